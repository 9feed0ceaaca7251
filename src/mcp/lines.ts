/** Short forms of cues, executions and alerts: agents pay for every token. Optional members that are null are left out. */
import { Type } from 'typebox'
import * as alerts from '../alerts/schemas.ts'
import type { Alert, Cue, Event, Execution } from '../client/index.ts'
import * as cues from '../cues/schemas.ts'
import { aboutEvent } from '../events/about.ts'
import * as events from '../events/schemas.ts'
import * as executions from '../executions/schemas.ts'
import { NextCursor, Nullable } from '../schemas.ts'
import { NextStep } from './tool.ts'

export const CueLine = Type.Object({
  cue_id: Type.String(),
  ...Type.Pick(cues.Cue, ['name', 'status', 'transport', 'schedule', 'next_run', 'run_count', 'version']).properties,
  callback_url: Type.Optional(Type.String()),
  ...Type.Partial(Type.Pick(cues.Cue, ['key', 'paused_by', 'pause_reason', 'paused_until', 'completed_reason'])).properties,
  overlap: Type.Optional(Nullable(cues.Cue.properties.overlap)),
  gate: Type.Optional(Nullable(Type.String())),
  after: Type.Optional(cues.Cue.properties.after),
  approval: Type.Optional(cues.Cue.properties.approval)
})
export const cueLine = (cue: Cue) => ({
  ...cue,
  cue_id: cue.id,
  callback_url: cue.callback.url,
  overlap: cue.overlap === 'allow' ? null : cue.overlap
})

export const ExecutionLine = Type.Object({
  execution_id: Type.String(),
  ...Type.Pick(executions.Execution, [
    'cue_id',
    'cue_name',
    'status',
    'outcome_state',
    'scheduled_for',
    'attempts',
    'http_status',
    'error_message'
  ]).properties
})
export const executionLine = (execution: Omit<Execution, 'outcome'>) => ({ ...execution, execution_id: execution.id })

export const AlertLine = Type.Object({
  alert_id: Type.String(),
  ...Type.Omit(alerts.Alert, ['id', 'metadata', 'acknowledged_at', 'resolution', 'snoozed_until', 'notices']).properties
})
export const alertLine = (
  alert: Omit<Alert, 'metadata' | 'acknowledged' | 'acknowledged_at' | 'resolution' | 'snoozed_until' | 'notices'>
) => ({
  ...alert,
  alert_id: alert.id
})

export const EventLine = Type.Object({
  event_id: Type.String(),
  ...Type.Pick(events.Event, ['type', 'at']).properties,
  ...Type.Partial(Type.Pick(events.Event, ['cue_id', 'cue_key', 'execution_id'])).properties,
  about: Type.Optional(Nullable(Type.String()))
})
export const eventLine = (event: Event) => ({ ...event, event_id: event.id, about: aboutEvent(event) })

/** The rest of a page of a long list. */
export const page = {
  total: Type.Integer(),
  total_exact: Type.Optional(Type.Boolean()),
  next_cursor: Type.Optional(NextCursor),
  next_step: NextStep
}
type Page = { total: number; total_exact: boolean; next_cursor: string | null }

/** The rest of a page, with what to do next if it is the last one. */
export const more = ({ total, total_exact, next_cursor }: Page, otherwise: string) => ({
  total,
  total_exact: total_exact ? null : false,
  next_cursor,
  next_step: next_cursor === null ? otherwise : 'use cursor for more'
})
