/** Exclusions: stretches of time whose slots don't run. Pure. Instants are milliseconds since 1970. */
import { createRecent } from '../cache/recent.ts'
import { parseCron } from './cron.ts'
import { cronTimetable, firstInstantAt } from './next-run.ts'
import { effort, firstOf, monthOf } from './slots.ts'
import { type Excluded, remembering, type Stretch } from './timetable.ts'
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
/** Bytes of compiled exclusions that are kept: those of schedules, and those of calendars. */
const bytesKept = 32 * 2 ** 20
/** Days that are as much work as a step. */
const perStep = 8

/** Whether it is an instant rather than a local time. */
export const isInstant = (text: string): boolean => /(Z|[+-]\d\d:\d\d)$/i.test(text)

const instantOf = (text: string, zone: Zone) => (isInstant(text) ? Date.parse(text) : firstInstantAt(zone, Date.parse(`${text}Z`)))

/** Whole days since 1970, counted as if UTC. */
const dayOf = (date: string) => Date.parse(date) / 86_400_000

/** Whether a date exists: 29 February does in some years only. */
export const isDate = (date: string) => !Number.isNaN(dayOf(date)) && new Date(date).toISOString().startsWith(date)

/** The place of the first of ascending numbers that is greater than another. */
const placeAfter = (length: number, numberAt: (place: number) => number, value: number) => {
  let [low, high] = [0, length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (numberAt(middle) > value) high = middle
    else low = middle + 1
  }
  return low
}

/** A day of the year as a number below 384. */
const yearDay = (date: number) => {
  const month = monthOf(date)
  return (month % 12) * 32 + date - firstOf(month)
}

const byDates = (dates: readonly string[], zone: Zone): Excluded => {
  const once = Int32Array.from(dates.filter(date => date.length > 5).map(dayOf)).sort()
  const isYearly = new Uint8Array(384)
  const yearly = dates.filter(date => date.length === 5).map(date => yearDay(dayOf(`2000-${date}`)))
  for (const date of yearly) isYearly[date] = 1
  const firstAfter = (date: number) => once[placeAfter(once.length, place => once[place]!, date)] ?? Infinity
  const isExcluded = (date: number) => firstAfter(date - 1) === date || (yearly.length > 0 && isYearly[yearDay(date)] === 1)
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
    effort.steps += Math.ceil((last - first) / perStep)
    return { from: Math.max(first * day - offset, start) * 1000, to: Math.min((last + 1) * day - offset, end) * 1000 }
  }
  const startAfter = (date: number) => {
    if (yearly.length === 0) return firstAfter(date)
    const end = Math.min(firstAfter(date), date + years * 366)
    let next = date + 1
    while (next < end && isYearly[yearDay(next)] === 0) next++
    effort.steps += Math.ceil((next - date) / perStep)
    return next
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
  const placeOf = (instant: number) => placeAfter(united.length, place => united[place]!.from, instant)
  return {
    at: instant => {
      const stretch = united[placeOf(instant) - 1]
      return stretch && instant < stretch.to ? stretch : undefined
    },
    after: instant => united[placeOf(instant)]
  }
}

const byCron = ({ cron, minutes }: { cron: string; minutes: number }, timeZone: string): Excluded => {
  const starts = remembering(cronTimetable(parseCron(cron), timeZone))
  const from = (start: number): Stretch | undefined => (Number.isFinite(start) ? { from: start, to: start + minutes * 60_000 } : undefined)
  return {
    at: instant => {
      const stretch = from(starts.previous(instant + 1))
      if (stretch && instant < stretch.to) return stretch
      starts.next(instant) // until then, no instant is searched for again
      return undefined
    },
    after: instant => from(starts.next(instant))
  }
}

/** Remembers the stretch that it found last. */
const remembered = ({ at, after }: Excluded): Excluded => {
  let latest: Stretch | undefined
  return {
    at: instant => {
      if (latest && instant >= latest.from && instant < latest.to) return latest
      const stretch = at(instant)
      latest = stretch ?? latest
      return stretch
    },
    after
  }
}

/** Where an exclusion is in its schedule. */
type Path = ['exclude' | 'exclude_calendars', number]
type Part = Excluded & { path: Path }
type Compiled = { parts: Part[]; bytes: number }

/** Those that pass most at once come first. */
const compile = (exclude: readonly Exclusion[], timeZone: string): Part[] => {
  const zone = zoneOf(timeZone)
  const dates = exclude.flatMap(exclusion => ('dates' in exclusion ? exclusion.dates : []))
  const ranges = exclude.flatMap(exclusion => ('from' in exclusion ? [exclusion] : []))
  const crons = exclude.flatMap((exclusion, n) => ('cron' in exclusion ? [{ ...exclusion, n }] : [])).sort((a, b) => b.minutes - a.minutes)
  const part = (n: number, excluded: Excluded): Part => ({ ...remembered(excluded), path: ['exclude', n] })
  const first = (member: string) => exclude.findIndex(exclusion => member in exclusion)
  effort.steps += dates.length + 2 * ranges.length
  return [
    ...(dates.length > 0 ? [part(first('dates'), byDates(dates, zone))] : []),
    ...(ranges.length > 0 ? [part(first('from'), byRanges(ranges, zone))] : []),
    ...crons.map(cron => part(cron.n, byCron(cron, timeZone)))
  ]
}

const compiled = createRecent<string, Compiled>(bytesKept, ({ bytes }) => bytes)

/** The same, kept under a name. */
const keep = (name: string, make: () => Compiled): Part[] => {
  let value = compiled.get(name)
  if (!value) {
    value = make()
    compiled.set(name, value)
  }
  return value.parts
}

const partsOf = (exclude: readonly Exclusion[], timeZone: string): Part[] => {
  const text = JSON.stringify([timeZone, exclude])
  return keep(text, () => ({ parts: compile(exclude, timeZone), bytes: 20 * text.length + 2000 }))
}

// By object, since revisions of several databases may be equal.
const numbers = new WeakMap<Calendar, number>()
let numbered = 0

const calendarParts = (calendar: Calendar, timeZone: string): Part[] => {
  const number = numbers.get(calendar) ?? ++numbered
  numbers.set(calendar, number)
  const { dates, ranges } = calendar
  return keep(`${number} ${timeZone}`, () => ({
    parts: compile([...(dates.length > 0 ? [{ dates }] : []), ...ranges], timeZone),
    bytes: 8 * dates.length + 100 * ranges.length + 2000
  }))
}

/**
 * The exclusions of a schedule and of its calendars. `costliest` says which of them has taken most steps.
 * @throws CronError for an invalid cron, RangeError for an invalid zone
 */
export const excludedBy = (exclude: readonly Exclusion[], timeZone: string, calendars: readonly Calendar[] = []) => {
  const parts = [
    ...calendars.flatMap((calendar, n) =>
      calendarParts(calendar, timeZone).map((part): Part => ({ ...part, path: ['exclude_calendars', n] }))
    ),
    ...partsOf(exclude, timeZone)
  ]
  const steps = parts.map(() => 0)
  return {
    at: (instant: number): Stretch | undefined => {
      for (let n = 0; n < parts.length; n++) {
        const began = effort.steps
        const stretch = parts[n]!.at(instant)
        steps[n]! += effort.steps - began
        if (!stretch) continue
        steps[n]!++
        return stretch
      }
      return undefined
    },
    after: (instant: number): Stretch | undefined => parts.flatMap(({ after }) => after(instant) ?? []).sort((a, b) => a.from - b.from)[0],
    costliest: (): Path => parts[steps.indexOf(Math.max(...steps))]!.path
  }
}
