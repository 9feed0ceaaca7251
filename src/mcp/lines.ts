/** Short text forms of cues, executions and alerts: agents pay for every token. */
import type { Alert, Cue, Execution } from '../client/index.ts'

export const cueLine = (cue: Cue) => {
  const {
    id,
    key,
    name,
    status,
    paused_by,
    pause_reason,
    paused_until,
    completed_reason,
    transport,
    schedule,
    callback,
    next_run,
    run_count,
    overlap,
    version
  } = cue
  return {
    cue_id: id,
    ...(key && { key }),
    name,
    status,
    ...(paused_by && { paused_by }),
    ...(pause_reason && { pause_reason }),
    ...(paused_until && { paused_until }),
    ...(completed_reason && { completed_reason }),
    transport,
    schedule,
    ...(callback.url && { callback_url: callback.url }),
    next_run,
    run_count,
    ...(overlap !== 'allow' && { overlap }),
    version
  }
}

type Page = { total: number; total_exact: boolean; next_cursor: string | null }

/** The rest of a page of a long list, with what to do next if it is the last one. */
export const more = ({ total, total_exact, next_cursor }: Page, otherwise: string) => ({
  total,
  ...(!total_exact && { total_exact }),
  ...(next_cursor !== null && { next_cursor }),
  next_step: next_cursor === null ? otherwise : 'use cursor for more'
})

type Line = Omit<Execution, 'outcome'>

export const executionLine = (execution: Line) => {
  const { id, cue_id, cue_name, status, outcome_state, scheduled_for, attempts, http_status, error_message } = execution
  return { execution_id: id, cue_id, cue_name, status, outcome_state, scheduled_for, attempts, http_status, error_message }
}

export const alertLine = ({ id, cue_id, execution_id, alert_type, severity, message, acknowledged, created_at }: Alert) => ({
  alert_id: id,
  cue_id,
  execution_id,
  alert_type,
  severity,
  message,
  acknowledged,
  created_at
})
