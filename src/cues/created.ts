/** A new cue as the API shows it, made of its columns: reading it again took a quarter of what creating it cost the database. */
import { constants } from '../catalog.ts'
import { Json } from '../json/canonical-json.ts'
import { type StoredSchedule, scheduleOf } from '../schedule/schedule.ts'
import { defaults } from './columns.ts'
import type { Change, Columns } from './next-runs.ts'
import { type Group, membersOf, plainNames } from './schemas.ts'
import type { StoredCue } from './stored.ts'

/** What the database adds to the columns. */
type Added = Pick<StoredCue, 'id' | 'created_at'>

/** Members that a cue has only if they are set. */
const rare = new Set(['on_worker_failure', 'pause_after'])

/** The cue as in `cue.cue_view`. */
export const createdCue = ({ columns, next_run, next_slot }: Change, { id, created_at }: Added): StoredCue => {
  const columnOf = (name: string): unknown => columns[name] ?? (defaults as Columns)[name] ?? null
  const group = (name: Group): Columns => {
    const object: Columns = {}
    for (const [member, column] of membersOf[name]) {
      const value = columnOf(column)
      if (value !== null || !rare.has(member)) object[member] = value
    }
    return object
  }
  const schedule = scheduleOf(columns as StoredSchedule)
  const callback = group('callback')
  const delivery = group('delivery')
  return {
    id,
    name: columnOf('name'),
    ...Object.fromEntries(plainNames.map(name => [name, columnOf(name)])),
    managed_by: columnOf('managed_by'),
    status: columnOf('status'),
    paused_at: null,
    paused_by: null,
    pause_reason: null,
    paused_until: null,
    completed_reason: null,
    transport: columnOf('transport'),
    schedule: schedule.type === 'once' ? { ...schedule, at: new Date(schedule.at).toISOString() } : schedule,
    callback: { ...callback, headers: Object.fromEntries(Object.keys(callback.headers as object).map(name => [name, constants.mask])) },
    payload: new Json(columnOf('payload') as string),
    retry: group('retry'),
    on_failure: group('on_failure'),
    delivery: delivery.timeout_seconds === null ? null : { ...delivery, await_outcome: delivery.await_outcome ?? false },
    alerts: columnOf('alert_consecutive_failures') === null ? null : group('alerts'),
    catch_up: columnOf('catch_up'),
    verification: columnOf('verification_mode') === null ? null : group('verification'),
    next_run,
    next_slot: next_slot ?? next_run,
    last_run: null,
    run_count: 0,
    fired_count: 0,
    created_at,
    updated_at: created_at,
    version: 1,
    revision: 1,
    last_slot: null,
    await_outcome_set: columnOf('await_outcome'),
    warning: null
  } as StoredCue
}
