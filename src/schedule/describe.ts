import cronstrue from 'cronstrue'
import { memoize } from '../cache/memoize.ts'
import type { Cron } from './cron.ts'
import { fieldValues, parseCron } from './cron.ts'
import type { Calendar } from './exclusions.ts'
import { noteOf } from './notes.ts'
import { slotsAfter } from './parse-schedule.ts'
import { planOf } from './plan.ts'
import { previousRun } from './runs.ts'
import { cronsOf, type Recurring, type Rules, type Schedule } from './schedule.ts'
import { commonWords, fieldSizes } from './words.ts'
import { offsetText, zoneOf } from './zones.ts'

/** One of the next runs: `at` in UTC, `local` the same instant in the schedule's time zone, both ISO 8601. */
export type PreviewRun = { at: string; local: string; note: string | null }

const cronsKept = 5000

// Shortens 0,1,2,3,9 to 0-3,9.
const shorten = (values: readonly number[]) => {
  const runs: [number, number][] = []
  for (const value of values) {
    const run = runs.at(-1)
    if (run && value === run[1] + 1) run[1] = value
    else runs.push([value, value])
  }
  return runs.map(([from, to]) => (to - from < 2 ? [...new Set([from, to])].join(',') : `${from}-${to}`)).join(',')
}

// Returns the field as passed to cronstrue. Steps are expanded where "every 45 minutes" would suggest a regular interval that the
// expression does not have, and so are lists that cronstrue cannot describe ("5,*", "1-5,10-15/2").
const wordable = (cron: Cron, i: number) => {
  const text = cron.fields[i]!
  const values = fieldValues(cron, i)
  if (values.length === fieldSizes[i]) return '*'
  const ofDays = i === 3 || i === 5
  const [range, step] = text.split('/') as [string, string | undefined]
  if (text.includes(',')) return ofDays ? values.join(',') : shorten(values)
  if (step === undefined || values.length === 1) return step === undefined ? text : values.join(',')
  const even = range.includes('-') || fieldSizes[i]! % Number(step) === 0
  return (i < 3 && even) || (i === 3 && values.length > 8) ? text : values.join(',')
}

/** Up to a millisecond of work each, and a thousand per list of cues. */
const describeCron = memoize(cronsKept, (expression: string) => {
  const cron = parseCron(expression)
  const common = commonWords(cron)
  if (common) return common
  const fields = cron.fields.map((_, i) => wordable(cron, i))
  const either = cron.calendar.eitherDay
  if (either && (fields[3] === '*' || fields[5] === '*')) fields[3] = fields[5] = '*'
  // "on day 13 of the month, Monday through Friday" would read like "and"; as a list it becomes ", and on Monday", which means "or"
  else if (either) fields[5] = fieldValues(cron, 5).join(',')
  if (fields[0] === '0') fields.shift()
  const words = cronstrue.toString(fields.join(' '), { use24HourTimeFormat: true, logicalAndDayFields: !either })
  return either ? words.replace(', and on ', ', or on ') : words
})

const localText = (timeZone: string, at: Date) => {
  const offset = zoneOf(timeZone)(Math.floor(at.getTime() / 1000)).offset
  const local = new Date(at.getTime() + offset * 1000).toISOString().slice(0, -1)
  return local.replace(/\.000$/, '') + offsetText(offset)
}

const units = { s: 'second', m: 'minute', h: 'hour', d: 'day' }

const describeEvery = (every: string) => {
  const count = Number(every.slice(0, -1))
  const unit = units[every.at(-1) as keyof typeof units]
  return count === 1 ? `Every ${unit}` : `Every ${count} ${unit}s`
}

const windowText = (window: string) => (window.endsWith('%') ? `${window} of the time to the next slot` : lengthText(window))

const lengthText = (length: string) => {
  const [count, unit] = [Number(length.slice(0, -1)), units[length.at(-1) as keyof typeof units]]
  return count === 1 ? `1 ${unit}` : `${count} ${unit}s`
}

const exceptions = (exclude?: Rules['exclude'], calendars: string[] = []) => [
  ...(exclude ? [exclude.length === 1 ? '1 exclusion' : `${exclude.length} exclusions`] : []),
  ...(calendars.length > 0 ? [`${calendars.length === 1 ? 'the calendar' : 'the calendars'} ${calendars.join(', ')}`] : [])
]

const describeRecurring = (schedule: Recurring) => {
  const { every, anchor, starts_at, ends_at, max_runs, exclude, exclude_calendars, window, timezone } = schedule
  const local = (at: string | number) => localText(timezone, new Date(at))
  const parts = [
    every === undefined
      ? cronsOf(schedule)
          .map(describeCron)
          .map((words, i) => (i > 0 ? words.replace(/^(At|Every|On|Weekdays|Weekends)\b/, word => word.toLowerCase()) : words))
          .join('; ')
      : `${describeEvery(every)}, counted from ${local(anchor ?? 0)}`,
    starts_at && `from ${local(starts_at)}`,
    ends_at && `until ${local(ends_at)}`,
    max_runs && (max_runs === 1 ? 'at most 1 run' : `at most ${max_runs} runs`),
    window && `spread over ${windowText(window)}`,
    (exclude || exclude_calendars) && `except ${exceptions(exclude, exclude_calendars).join(' and ')}`,
    timezone
  ]
  return parts.filter(Boolean).join(', ')
}

/**
 * Describes a schedule with its time zone: 'Weekdays at 09:00, Europe/London', 'Once, at 2026-11-20T09:00:00+00:00,
 * Europe/London'.
 * @throws CronError for an invalid cron, RangeError for an invalid zone or `at`
 */
export const describe = (schedule: Schedule): string =>
  schedule.type === 'once'
    ? `Once, at ${localText(schedule.timezone, new Date(schedule.at))}, ${schedule.timezone}`
    : describeRecurring(schedule)

/**
 * The next `count` runs strictly after `from`, at most `max_runs`. `note` is a sentence if a clock change moves, repeats or shifts the run, otherwise
 * null.
 * @throws like `describe` and `slotsAfter`
 */
export function* previewNotes(
  schedule: Schedule,
  from: Date,
  count: number,
  calendars: readonly Calendar[] = []
): Generator<PreviewRun, undefined> {
  const { timezone } = schedule
  const plan = planOf(schedule, undefined, calendars)
  const crons = schedule.type === 'once' ? [] : cronsOf(schedule).map(parseCron)
  const most = Math.min(count, schedule.type === 'once' ? 1 : (schedule.max_runs ?? count))
  let listed = 0
  let before: Date | undefined
  for (const slot of slotsAfter(schedule, plan, from, count)) {
    const at = new Date(slot)
    before ??= previousRun(plan, at)
    const note = schedule.type === 'once' ? null : noteOf(crons, timezone, at, before)
    yield { at: at.toISOString(), local: localText(timezone, at), note }
    before = at
    if (++listed === most) return
  }
}

/**
 * Returns the first excluded slots after an instant and before the last run of a preview.
 * @throws like `describe`
 */
export const excludedNotes = (
  schedule: Schedule,
  from: Date,
  until: string | undefined,
  count: number,
  calendars: readonly Calendar[] = []
): Omit<PreviewRun, 'note'>[] => {
  const { all, excludedAt } = planOf(schedule, undefined, calendars)
  const numbers: number[] = []
  if (!all || until === undefined) return []
  for (let slot = all.next(+from); slot < Date.parse(until) && numbers.length < count; slot = all.next(slot))
    if (excludedAt(slot)) numbers.push(slot)
  return numbers.map(slot => ({ at: new Date(slot).toISOString(), local: localText(schedule.timezone, new Date(slot)) }))
}
