// Computes when a schedule runs. The rule (README, "Clock changes"): a *wildcard* cron runs at every real instant whose local time matches.
// A *fixed* one runs each local slot once: in a gap of under three hours at the first instant after it, in a repeated hour at its first
// occurrence. All functions are pure and read no clock. Instants are whole seconds internally and Dates in the interface.
//
// cron-parser reads the fields (cron.ts), but its iteration is not used: near clock changes it breaks this rule in 5 of the 19 vectors in
// test/cron-vectors.json, where slots in a gap run late, twice or not at all. It also takes 200 µs per run, against 1.5 µs here. A test
// fails as soon as it gets them right.
import { constants } from '../catalog.ts'
import type { Cron } from './cron.ts'
import { nextSlot, previousSlot } from './slots.ts'
import type { Zone } from './zones.ts'
import { zoneOf } from './zones.ts'

const day = 86_400
/** A fixed slot inside a gap runs after it if the gap is shorter than this, in seconds; otherwise it doesn't run. */
export const longestGapBridged = 3 * 3600
// If a cron has no run in a century (such as 02:30 on a Sunday that always loses that hour), it has none at all.
const horizon = 100 * 366 * day
const lastInstant = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000
const firstInstant = Date.parse('0001-01-01T00:00:00Z') / 1000

/** Maximum count of `slotsBetween`; 10,000 means that many or more. */
export const slotsCounted = constants.countedTo

// The latest local time that the clock has shown up to an instant. During a repeated hour, that is later than the current local time.
const latestShown = (zone: Zone, second: number) => {
  let segment = zone(second)
  let latest = second + segment.offset
  while (segment.start > second - day) {
    latest = Math.max(latest, segment.start - 1 + segment.before)
    segment = zone(segment.start - 1)
  }
  return latest
}

// The segment in which the clock first shows a local time or, if it skips that time, first shows a later one.
const firstShown = (zone: Zone, local: number) => {
  let segment = zone(local - day)
  while (segment.end + segment.offset <= local) segment = zone(segment.end)
  return segment
}

const nextWildcard = (cron: Cron, zone: Zone, after: number, limit: number) => {
  for (let from = after + 1; from <= limit; ) {
    const segment = zone(from)
    const second = nextSlot(cron.calendar, from + segment.offset) - segment.offset
    if (second < segment.end) return second
    from = segment.end
  }
  return Infinity
}

const previousWildcard = (cron: Cron, zone: Zone, before: number, limit: number) => {
  for (let from = before - 1; from >= limit; ) {
    const segment = zone(from)
    const second = previousSlot(cron.calendar, from + segment.offset) - segment.offset
    if (second >= segment.start) return second
    from = segment.start - 1
  }
  return -Infinity
}

const nextFixed = (cron: Cron, zone: Zone, after: number, limit: number) => {
  // A slot later than anything the clock has shown comes after `after`; an earlier one has passed.
  let slot = nextSlot(cron.calendar, latestShown(zone, after) + 1)
  while (slot <= limit + day) {
    const { start, offset, before } = firstShown(zone, slot)
    if (slot >= start + offset) return slot - offset
    if (offset - before < longestGapBridged) return start
    slot = nextSlot(cron.calendar, start + offset)
  }
  return Infinity
}

const previousFixed = (cron: Cron, zone: Zone, before: number, limit: number) => {
  let slot = previousSlot(cron.calendar, latestShown(zone, before - 1))
  while (slot >= limit - day) {
    const segment = firstShown(zone, slot)
    if (slot >= segment.start + segment.offset) return slot - segment.offset
    if (segment.offset - segment.before < longestGapBridged) return segment.start
    slot = previousSlot(cron.calendar, segment.start - 1 + segment.before)
  }
  return -Infinity
}

const nextSecond = (cron: Cron, zone: Zone, from: number) => {
  if (from >= lastInstant) return Infinity
  const after = Math.max(from, firstInstant)
  const limit = Math.min(after + horizon, lastInstant)
  const second = cron.wildcard ? nextWildcard(cron, zone, after, limit) : nextFixed(cron, zone, after, limit)
  return second <= limit ? second : Infinity
}

const previousSecond = (cron: Cron, zone: Zone, from: number) => {
  if (from <= firstInstant) return -Infinity
  const before = Math.min(from, lastInstant)
  const limit = Math.max(before - horizon, firstInstant)
  const second = cron.wildcard ? previousWildcard(cron, zone, before, limit) : previousFixed(cron, zone, before, limit)
  return second >= limit ? second : -Infinity
}

const dateOf = (second: number) => (Number.isFinite(second) ? new Date(second * 1000) : undefined)

const millisecondsOf = (date: Date) => {
  const milliseconds = date.getTime()
  if (Number.isNaN(milliseconds)) throw new RangeError('not a valid date')
  return milliseconds
}

/**
 * Returns the first run strictly after an instant, on a whole second; undefined if there is none within a hundred years. Years range from 1
 * to 9999.
 * @param timeZone a name from `canonicalTimeZone`
 * @throws RangeError for an unknown zone or an invalid date, also in the functions below
 */
export const nextRun = (cron: Cron, timeZone: string, after: Date): Date | undefined =>
  dateOf(nextSecond(cron, zoneOf(timeZone), Math.floor(millisecondsOf(after) / 1000)))

/** Returns the last run strictly before an instant, mirroring `nextRun`. */
export const previousRun = (cron: Cron, timeZone: string, before: Date): Date | undefined =>
  dateOf(previousSecond(cron, zoneOf(timeZone), Math.ceil(millisecondsOf(before) / 1000)))

/** Returns the next `count` runs strictly after an instant, earliest first; fewer if the schedule ends. */
export const nextRuns = (cron: Cron, timeZone: string, after: Date, count: number): Date[] => {
  const zone = zoneOf(timeZone)
  const runs: Date[] = []
  let second = nextSecond(cron, zone, Math.floor(millisecondsOf(after) / 1000))
  for (; runs.length < count && second !== Infinity; second = nextSecond(cron, zone, second)) runs.push(new Date(second * 1000))
  return runs
}

/** Returns the n-th run strictly after an instant; 1 is `nextRun`. Takes time proportional to n. */
export const nthRun = (cron: Cron, timeZone: string, after: Date, n: number): Date | undefined => {
  if (!Number.isInteger(n) || n < 1) throw new RangeError('n must be a whole number of at least 1')
  const zone = zoneOf(timeZone)
  let second = Math.floor(millisecondsOf(after) / 1000)
  for (let i = 0; i < n && second !== Infinity; i++) second = nextSecond(cron, zone, second)
  return dateOf(second)
}

/** `count` is exact up to 10,000; `first` and `last` are always exact; `newest` is in ascending order. */
export type Slots = { count: number; first: Date | undefined; last: Date | undefined; newest: Date[] }

/** Returns the runs in (from, to], including the newest `keepNewest`. Computes at most 10,000 slots plus those, however many there are. */
export const slotsBetween = (cron: Cron, timeZone: string, from: Date, to: Date, keepNewest: number): Slots => {
  const zone = zoneOf(timeZone)
  const after = Math.floor(millisecondsOf(from) / 1000)
  const until = Math.floor(millisecondsOf(to) / 1000)
  let count = 0
  let first: number | undefined
  for (let second = nextSecond(cron, zone, after); second <= until && count < slotsCounted; second = nextSecond(cron, zone, second)) {
    first ??= second
    count++
  }
  if (first === undefined) return { count: 0, first: undefined, last: undefined, newest: [] }
  const last = previousSecond(cron, zone, until + 1)
  const newest: number[] = []
  for (let second = last; second >= first && newest.length < keepNewest; second = previousSecond(cron, zone, second)) newest.push(second)
  return { count, first: dateOf(first), last: dateOf(last), newest: newest.reverse().map(second => new Date(second * 1000)) }
}
