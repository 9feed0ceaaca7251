/** A cue's schedule, and its slots. */
import { parseCron } from './cron.ts'
import { cronTimetable } from './next-run.ts'
import { between, regular, single, type Timetable, union } from './timetable.ts'

/** The members of a recurring schedule that few cues have, as stored in `schedule_rules`; absent unless set. Instants are ISO 8601 in UTC. */
export type Rules = {
  crons?: string[]
  every?: string
  anchor?: string
  starts_at?: string
  ends_at?: string
  max_runs?: number
}

/** It has one of `cron`, `crons` and `every`. `timezone` comes from `canonicalTimeZone`. */
export type Recurring = Rules & { type: 'recurring'; cron?: string; timezone: string }
/** `at` is an instant (as text: ISO 8601 with zone). */
export type Once = { type: 'once'; at: Date | string; timezone: string }
export type Schedule = Recurring | Once

/** A schedule as the database has it. */
export type StoredSchedule = {
  schedule_type: Schedule['type']
  cron: string | null
  at?: Date | null
  timezone: string
  schedule_rules: object | null
}

export const scheduleOf = ({ schedule_type: type, cron, at, timezone, schedule_rules }: StoredSchedule): Schedule =>
  type === 'once' ? { type, at: at!, timezone } : { type, ...(cron !== null && { cron }), ...schedule_rules, timezone }

const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The milliseconds of a length such as '45m'. */
export const lengthOf = (text: string): number => Number(text.slice(0, -1)) * units[text.at(-1) as keyof typeof units]

/** Its cron expressions; none if it runs at regular intervals. */
export const cronsOf = ({ cron, crons }: Recurring): string[] => crons ?? (cron === undefined ? [] : [cron])

/**
 * The slots of a schedule, whatever its `max_runs`.
 * @throws CronError for an invalid cron, RangeError for an invalid zone
 */
export const timetableOf = (schedule: Schedule): Timetable => {
  if (schedule.type === 'once') return single(+new Date(schedule.at))
  const { every, anchor, starts_at, ends_at, timezone } = schedule
  const [first, ...others] = cronsOf(schedule).map(cron => cronTimetable(parseCron(cron), timezone))
  const slots = first ? union([first, ...others]) : regular(lengthOf(every!), instantOf(anchor) ?? 0)
  // Slots are left out here, before the bounds: `without(slots, …)`.
  if (starts_at === undefined && ends_at === undefined) return slots
  return between(slots, instantOf(starts_at) ?? -Infinity, instantOf(ends_at) ?? Infinity)
}

const instantOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
