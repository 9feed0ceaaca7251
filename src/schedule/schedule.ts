/** A cue's schedule, and its slots. */
import { parseCron } from './cron.ts'
import type { Exclusion } from './exclusions.ts'
import { cronTimetable } from './next-run.ts'
import { lengthOf } from './offset.ts'
import { between, type Excluded, regular, single, type Timetable, union, without } from './timetable.ts'

/** The members of a recurring schedule that few cues have, as stored in `schedule_rules`; absent unless set. Instants are ISO 8601 in UTC. */
export type Rules = {
  crons?: string[]
  every?: string
  anchor?: string
  starts_at?: string
  ends_at?: string
  max_runs?: number
  exclude?: Exclusion[]
  /** Names of the account's calendars. */
  exclude_calendars?: string[]
  /** `"30m"` or `"25%"`. */
  window?: string
}

/** It has one of `cron`, `crons` and `every`. `timezone` comes from `canonicalTimeZone`. */
export type Recurring = Rules & { type: 'recurring'; cron?: string; timezone: string }
/** `at` is an instant (as text: ISO 8601 with zone). */
export type Once = { type: 'once'; at: Date | string; timezone: string }
export type Schedule = Recurring | Once

/** A schedule as the database has it. */
export type StoredSchedule = {
  /** Null: none. */
  schedule_type: Schedule['type'] | null
  cron: string | null
  at?: Date | null
  timezone: string
  schedule_rules: object | null
}

/** The schedule of a cue that has one. */
export const scheduleOf = ({ schedule_type: type, cron, at, timezone, schedule_rules }: StoredSchedule): Schedule =>
  type === 'once' ? { type, at: at!, timezone } : { type: 'recurring', ...(cron !== null && { cron }), ...schedule_rules, timezone }

/** What is stored as `schedule_rules`; null if there is nothing. */
export const rulesOf = (schedule: Schedule): Rules | null => {
  if (schedule.type === 'once') return null
  const { type, cron, timezone, ...rules } = schedule
  return Object.keys(rules).length > 0 ? rules : null
}

/** Its cron expressions; none if it runs at regular intervals. */
export const cronsOf = ({ cron, crons }: Recurring): string[] => crons ?? (cron === undefined ? [] : [cron])

/**
 * The slots of a schedule without its exclusions and bounds.
 * @throws CronError for an invalid cron, RangeError for an invalid zone
 */
export const nominalSlots = (schedule: Schedule): Timetable => {
  if (schedule.type === 'once') return single(+new Date(schedule.at))
  const { every, anchor, timezone } = schedule
  const [first, ...rest] = cronsOf(schedule).map(cron => cronTimetable(parseCron(cron), timezone))
  return first ? union([first, ...rest]) : regular(lengthOf(every!), instantOf(anchor) ?? 0)
}

/** The slots of a schedule, whatever its `max_runs`. */
export const timetableOf = (schedule: Schedule, nominal = nominalSlots(schedule), excluded?: Excluded): Timetable => {
  const slots = excluded ? without(nominal, excluded) : nominal
  if (schedule.type === 'once' || (schedule.starts_at === undefined && schedule.ends_at === undefined)) return slots
  return between(slots, instantOf(schedule.starts_at) ?? -Infinity, instantOf(schedule.ends_at) ?? Infinity)
}

const instantOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
