/** Options that select cues or executions: their help, the members of requests they set, and their names in errors. */
import type { CueFilter, ExecutionFilter } from '../client/index.ts'
import type { Context } from './command.ts'

export const tagFilter = {
  tag: { type: 'string', multiple: true, value: 'TAG', help: 'only with this tag; of several, all must match' }
} as const

export const cueFilters = {
  status: { type: 'string', value: 'STATUS', help: 'active, paused, completed or failed' },
  set: { type: 'string', value: 'NAME', help: 'only cues managed by this set' },
  'key-prefix': { type: 'string', value: 'TEXT', help: 'only cues whose key begins with this' },
  name: { type: 'string', value: 'TEXT', help: 'only cues whose name contains this; case is ignored' },
  transport: { type: 'string', value: 'TRANSPORT', help: 'webhook or worker' },
  'paused-by': { type: 'string', value: 'CAUSE', help: 'user, plan, failures or deletion' },
  search: { type: 'string', value: 'TEXT', help: 'only cues whose name, key, task or tags contain this, among the newest 10,000' },
  calendar: { type: 'string', value: 'NAME', help: 'only cues that exclude this calendar' },
  ...tagFilter
} as const

export const cueFilterNames = {
  status: '--status',
  set: '--set',
  key_prefix: '--key-prefix',
  name: '--name',
  transport: '--transport',
  paused_by: '--paused-by',
  search: '--search',
  calendar: '--calendar',
  tag: '--tag'
} as const

export const cueFilterOf = ({ 'key-prefix': key_prefix, 'paused-by': paused_by, ...o }: Context<typeof cueFilters>['options']) =>
  ({
    status: o.status,
    set: o.set,
    key_prefix,
    name: o.name,
    transport: o.transport,
    paused_by,
    search: o.search,
    calendar: o.calendar,
    tag: o.tag
  }) as CueFilter

export const executionFilters = {
  cue: { type: 'string', value: 'ID', help: 'only for this cue' },
  status: { type: 'string', value: 'STATUS', help: 'for example pending, delivering, success, failed, retrying or missed' },
  outcome: { type: 'string', value: 'STATE', help: 'for example reported_success, reported_failure or verification_pending' },
  trigger: { type: 'string', value: 'TRIGGER', help: 'schedule, manual_fire, replay or backfill' },
  worker: { type: 'string', value: 'ID', help: 'only those last claimed by this worker' },
  error: { type: 'string', value: 'TEXT', help: 'only those whose error contains this; case is ignored' },
  'error-group': { type: 'string', value: 'GROUP', help: 'only dead letters of this group, as listed by pgcue errors' },
  dead: { type: 'boolean', help: 'only dead letters: failed, missed or timed out, and neither replayed nor dismissed' },
  ...tagFilter,
  since: { type: 'string', value: 'TIME', help: 'created at or after this time, or in the last 30m, 2h or 3d' },
  until: { type: 'string', value: 'TIME', help: 'created before this time, or before the last 30m, 2h or 3d' }
} as const

export const executionFilterNames = {
  cue_id: '--cue',
  status: '--status',
  outcome_state: '--outcome',
  triggered_by: '--trigger',
  worker_id: '--worker',
  error: '--error',
  error_group: '--error-group',
  dead: '--dead',
  tag: '--tag',
  from: '--since',
  to: '--until'
} as const

export const executionFilterOf = (o: Context<typeof executionFilters>['options']) =>
  ({
    cue_id: o.cue,
    status: o.status,
    outcome_state: o.outcome,
    triggered_by: o.trigger,
    worker_id: o.worker,
    error: o.error,
    error_group: o['error-group'],
    dead: o.dead,
    tag: o.tag,
    from: timeOf(o.since),
    to: timeOf(o.until)
  }) as ExecutionFilter

const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A time as given, or so long ago: `2h`. */
export const timeOf = (text: string | undefined, now = Date.now()): string | undefined => {
  const [, count, unit] = /^(\d{1,5})([smhd])$/.exec(text ?? '') ?? []
  return unit ? new Date(now - Number(count) * units[unit as keyof typeof units]).toISOString() : text
}
