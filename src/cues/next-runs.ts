/** The next run of a cue that changes. Engines load this too, which need no schemas of requests. */
import { calendarsOf, checkInterval, firstRun, sameSchedule } from '../schedule/parse-schedule.ts'
import { type Plan, planOf, type Run, runDueAfter } from '../schedule/plan.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { StoredCalendars } from '../schedule/stored-calendars.ts'
import type { StoredCue } from './stored.ts'

/** Columns by name, as accepted by `create_cue` and `update_cue`. */
export type Columns = Record<string, unknown>

/** `next_run` applies if the schedule is new or restarts; `next_slot` is its nominal time, if that is earlier. */
export type Change = { columns: Columns; next_run: Date | null; next_slot: Date | null }

export const hasWindow = (schedule: Schedule) => schedule.type === 'recurring' && schedule.window !== undefined

export const nextOf = (schedule: Schedule, { slot, due }: Run) => ({
  next_run: due,
  next_slot: hasWindow(schedule) || +slot !== +due ? slot : null
})

/** What the next run was computed from. */
export const revisions = (used: readonly { name: string; revision: number }[]): Columns =>
  used.length > 0 ? { calendars: Object.fromEntries(used.map(({ name, revision }) => [name, revision])) } : {}

export const reschedule = (
  schedule: Schedule | null,
  stored: Pick<StoredCue, 'id' | 'schedule' | 'next_run' | 'next_slot' | 'last_slot'>,
  now: Date,
  minInterval: number | null,
  calendars: StoredCalendars,
  resumed = false
): Omit<Change, 'columns'> & { calendars?: Columns } => {
  const { id, next_run, last_slot } = stored
  const next_slot = +(stored.next_slot ?? 0) === +(next_run ?? 0) ? null : stored.next_slot
  const changed = !sameSchedule(schedule, stored.schedule)
  if (!schedule) return { next_run: null, next_slot: null }
  if (changed) checkInterval(schedule, minInterval)
  const used = calendarsOf(schedule, calendars)
  if (!changed && !resumed) return { next_run, next_slot }
  // A time zone doesn't affect an instant: a slot that is due, or has run, stays so.
  const sameInstant =
    schedule.type === 'once' && stored.schedule?.type === 'once' && +new Date(schedule.at) === +new Date(stored.schedule.at)
  if (sameInstant && !resumed) return { next_run, next_slot }
  const plan = planOf(schedule, id, used)
  const run = resumed ? runDueAfter(plan, now, last_slot) : waitingRun(plan, stored, now)
  const isRun = run && !plan.excludedAt(+run.slot)
  const next = isRun ? run : firstRun(schedule, new Date(Math.max(+now, +(last_slot ?? 0))), id, used)
  return { ...nextOf(schedule, next), calendars: revisions(used) }
}

/** Resumes a cue. One that isn't paused keeps its next run. @throws ApiError */
export const resumptionOf = (stored: StoredCue, now: Date, calendars: StoredCalendars): Change => {
  const { calendars: used, ...next } = reschedule(stored.schedule, stored, now, null, calendars, stored.status === 'paused')
  return { columns: { status: 'active', ...used }, ...next }
}

/** A slot that waits within its window stays, if the changed schedule has it. */
const waitingRun = (plan: Plan, { next_run, next_slot }: Pick<StoredCue, 'next_run' | 'next_slot'>, now: Date): Run | undefined =>
  next_run && next_slot && next_slot <= now && next_run > now && plan.next(+next_slot - 1) === +next_slot
    ? { slot: next_slot, due: new Date(Math.max(plan.due(+next_slot), +now)) }
    : undefined
