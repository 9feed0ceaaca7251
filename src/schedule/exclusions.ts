/** Exclusions: stretches of time whose slots don't run. Pure. Instants are milliseconds since 1970. */
import { memoize } from '../memoize/memoize.ts'
import { parseCron } from './cron.ts'
import { cronTimetable, firstInstantAt } from './next-run.ts'
import type { Excluded, Stretch } from './timetable.ts'
import { type Zone, zoneOf } from './zones.ts'

/** From `from` to before `to`: instants, or local times in the zone of the cue. */
export type Range = { from: string; to: string }
/** Dates in the zone of the cue, a time in between, or real minutes from each run of a cron. A date without a year is one of every year. */
export type Exclusion = { dates: string[] } | Range | { cron: string; minutes: number }
/** The exclusions of several cues, under a name. */
export type Calendar = { dates: string[]; ranges: Range[] }

const day = 86_400
/** Adjoining dates that are united, so that a search passes them at once. */
const daysUnited = 400
/** Years in which 29 February occurs at least once. */
const years = 9
const kept = 1000

/** Whether it is an instant rather than a local time. */
export const isInstant = (text: string): boolean => /(Z|[+-]\d\d:\d\d)$/i.test(text)

const instantOf = (text: string, zone: Zone) => (isInstant(text) ? Date.parse(text) : firstInstantAt(zone, Date.parse(`${text}Z`)))

/** Whole days since 1970, counted as if UTC. */
const dayOf = (date: string) => Date.parse(date) / 86_400_000
const monthAndDay = (date: number) => new Date(date * 86_400_000).toISOString().slice(-19, -14)

/** Whether a date exists: 29 February does in some years only. */
export const isDate = (date: string) => !Number.isNaN(dayOf(date)) && monthAndDay(dayOf(date)) === date.slice(-5)

const byDates = (dates: readonly string[], zone: Zone): Excluded => {
  const once = dates.filter(date => date.length > 5).map(dayOf)
  const yearly = dates.filter(date => date.length === 5)
  const [isOnce, isYearly] = [new Set(once), new Set(yearly)]
  const isExcluded = (date: number) => isOnce.has(date) || (isYearly.size > 0 && isYearly.has(monthAndDay(date)))
  const localDay = (second: number) => Math.floor((second + zone(second).offset) / day)

  // Within a stretch of constant offset, so that a day of any length, or one shown in two parts, is exact.
  const at = (instant: number): Stretch | undefined => {
    const second = Math.floor(instant / 1000)
    const { start, end, offset } = zone(second)
    const today = localDay(second)
    if (!isExcluded(today)) return undefined
    let [first, last] = [today, today]
    while (last < today + daysUnited && (last + 1) * day - offset < end && isExcluded(last + 1)) last++
    while (first > today - daysUnited && first * day - offset > start && isExcluded(first - 1)) first--
    return { from: Math.max(first * day - offset, start) * 1000, to: Math.min((last + 1) * day - offset, end) * 1000 }
  }
  const sorted = [...isYearly].sort()
  const startAfter = (date: number) => {
    const [year, today] = [new Date(date * 86_400_000).getUTCFullYear(), monthAndDay(date)]
    const first = Math.min(...once.filter(other => other > date))
    for (let n = 0; n < years && sorted.length > 0; n++) {
      const found = sorted.find(text => (n > 0 || text > today) && isDate(`${year + n}-${text}`))
      if (found) return Math.min(first, dayOf(`${year + n}-${found}`))
    }
    return first
  }
  return {
    at,
    after: instant => {
      // Each of the next days may begin, or go on after a clock change.
      for (let date = localDay(Math.floor(instant / 1000)) - 1; ; ) {
        date = startAfter(date)
        if (date === Infinity) return undefined
        const from = firstInstantAt(zone, date * day * 1000)
        if (from > instant) return at(from) ?? { from, to: from }
      }
    }
  }
}

const byRanges = (ranges: readonly Range[], zone: Zone): Excluded => {
  const sorted = ranges
    .map(({ from, to }): Stretch => ({ from: instantOf(from, zone), to: instantOf(to, zone) }))
    .filter(({ from, to }) => from < to)
    .sort((a, b) => a.from - b.from)
  const united: { from: number; to: number }[] = []
  for (const { from, to } of sorted) {
    const open = united.at(-1)
    if (open && from <= open.to) open.to = Math.max(open.to, to)
    else united.push({ from, to })
  }
  /** The place of the first that begins after an instant. */
  const placeAfter = (instant: number) => {
    let [low, high] = [0, united.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (united[middle]!.from > instant) high = middle
      else low = middle + 1
    }
    return low
  }
  return {
    at: instant => {
      const stretch = united[placeAfter(instant) - 1]
      return stretch && instant < stretch.to ? stretch : undefined
    },
    after: instant => united[placeAfter(instant)]
  }
}

const byCron = ({ cron, minutes }: { cron: string; minutes: number }, timeZone: string): Excluded => {
  const starts = cronTimetable(parseCron(cron), timeZone)
  const from = (start: number): Stretch | undefined => (Number.isFinite(start) ? { from: start, to: start + minutes * 60_000 } : undefined)
  return {
    at: instant => {
      const stretch = from(starts.previous(instant + 1))
      return stretch && instant < stretch.to ? stretch : undefined
    },
    after: instant => from(starts.next(instant))
  }
}

const compile = (exclusions: readonly Exclusion[], timeZone: string): Excluded => {
  const zone = zoneOf(timeZone)
  const dates = exclusions.flatMap(one => ('dates' in one ? one.dates : []))
  const ranges = exclusions.flatMap(one => ('from' in one ? [one] : []))
  const all = exclusions.flatMap(one => ('cron' in one ? [byCron(one, timeZone)] : []))
  if (dates.length > 0) all.push(byDates(dates, zone))
  if (ranges.length > 0) all.push(byRanges(ranges, zone))
  return {
    at: instant => {
      const found = all.flatMap(({ at }) => at(instant) ?? [])
      if (found.length < 2) return found[0]
      return { from: Math.min(...found.map(({ from }) => from)), to: Math.max(...found.map(({ to }) => to)) }
    },
    after: instant => all.flatMap(({ after }) => after(instant) ?? []).sort((a, b) => a.from - b.from)[0]
  }
}

const compiled = memoize(kept, (text: string) => {
  const [timeZone, exclusions] = JSON.parse(text) as [string, Exclusion[]]
  return compile(exclusions, timeZone)
})

/** @throws CronError for an invalid cron, RangeError for an invalid zone */
export const excludedBy = (exclusions: readonly Exclusion[], timeZone: string): Excluded => compiled(JSON.stringify([timeZone, exclusions]))

export const exclusionsOf = (calendars: readonly Calendar[]): Exclusion[] =>
  calendars.flatMap(({ dates, ranges }) => [...(dates.length > 0 ? [{ dates }] : []), ...ranges])
