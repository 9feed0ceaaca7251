/** Validates exclusions: those of a schedule, and those of a calendar. */
import { CronError, parseCron } from './cron.ts'
import { type Exclusion, isDate, isInstant, type Range } from './exclusions.ts'
import type { GivenExclusion } from './schemas.ts'

type Path = (string | number)[]
/** Throws the error for a member. */
export type Fail = (path: Path, rule: string) => never

/** In all exclusions of a schedule together. */
const maxDates = 500
const maxCrons = 10

/** @throws what `fail` throws */
export const readDates = (dates: readonly string[], fail: Fail): string[] => {
  for (const [n, date] of dates.entries())
    if (!isDate(date.length === 5 ? `2000-${date}` : date)) fail([n], `${date} does not exist in the calendar`)
  return [...new Set(dates)]
}

/** Instants as ISO 8601 in UTC, local times as given. @throws what `fail` throws */
export const readRange = ({ from, to }: Range, fail: Fail): Range => {
  const [start, end] = [readPoint(from, rule => fail(['from'], rule)), readPoint(to, rule => fail(['to'], rule))]
  if (isInstant(start) === isInstant(end) && Date.parse(utc(start)) >= Date.parse(utc(end))) fail(['to'], 'must be after from')
  return { from: start, to: end }
}

const utc = (text: string) => (isInstant(text) ? text : `${text}Z`)

const readPoint = (text: string, fail: (rule: string) => never) => {
  const rule = 'must be an instant such as 2026-12-24T18:00:00Z, or a local time without an offset'
  const instant = Date.parse(utc(text))
  if (Number.isNaN(instant) || !isDate(text.slice(0, 10))) return fail(rule)
  return isInstant(text) ? new Date(instant).toISOString() : text
}

/** @throws what `fail` throws */
export const readExclude = (rules: readonly GivenExclusion[], fail: Fail): Exclusion[] => {
  const read = rules.map((exclusion, n) => readExclusion(exclusion, (path, rule) => fail([n, ...path], rule)))
  const dates = read.reduce((sum, exclusion) => sum + ('dates' in exclusion ? exclusion.dates.length : 0), 0)
  if (dates > maxDates) fail([], `must have at most ${maxDates} dates in total; use a calendar for more`)
  if (read.filter(exclusion => 'cron' in exclusion).length > maxCrons)
    fail([], `must have at most ${maxCrons} entries with cron and minutes`)
  return read
}

const readExclusion = ({ dates, from, to, cron, minutes }: GivenExclusion, fail: Fail): Exclusion => {
  const kinds = [dates, from ?? to, cron ?? minutes].filter(value => value != null)
  if (kinds.length !== 1) fail([], 'must have either dates, from and to, or cron and minutes')
  if (dates != null) return { dates: readDates(dates, (path, rule) => fail(['dates', ...path], rule)) }
  if (cron != null || minutes != null) {
    if (cron == null) return fail(['cron'], 'goes with minutes')
    if (minutes == null) return fail(['minutes'], 'goes with cron')
    return { cron: readCron(cron, fail), minutes }
  }
  if (from == null) return fail(['from'], 'goes with to')
  if (to == null) return fail(['to'], 'goes with from')
  return readRange({ from, to }, fail)
}

const readCron = (cron: string, fail: Fail) => {
  try {
    return parseCron(cron).expression
  } catch (error) {
    if (error instanceof CronError) return fail(['cron'], error.message)
    throw error
  }
}
