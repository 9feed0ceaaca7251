// Computes when a cron runs. The rule (src/guide/schedules.md, "Clock changes"): a *wildcard* cron runs at every real instant whose local time matches.
// A *fixed* one runs each local slot once: in a gap of under three hours at the first instant after it, in a repeated hour at its first
// occurrence. All functions are pure and read no clock. Instants are whole seconds internally and milliseconds in the interface.
//
// cron-parser reads the fields (cron.ts), but its iteration is not used: near clock changes it breaks this rule in 5 of the 19 vectors in
// test/support/cron-vectors.json, where slots in a gap run late, twice or not at all. It also takes 200 µs per run, against 1.5 µs here. A test
// fails as soon as it gets them right.
import type { Cron } from './cron.ts'
import { nextSlot, previousSlot } from './slots.ts'
import { firstInstant as firstMs, lastInstant as lastMs, type Timetable } from './timetable.ts'
import type { Zone } from './zones.ts'
import { zoneOf } from './zones.ts'

const day = 86_400
/** A fixed slot inside a gap runs after it if the gap is shorter than this, in seconds; otherwise it doesn't run. */
export const longestGapBridged = 3 * 3600
// If a cron has no run in a century (such as 02:30 on a Sunday that always loses that hour), it has none at all.
const horizon = 100 * 366 * day
const lastInstant = Math.floor(lastMs / 1000)
const firstInstant = firstMs / 1000

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

/** The instant at which a zone's clock first shows a local time or, if it skips that time, a later one. Both in milliseconds. */
export const firstInstantAt = (zone: Zone, local: number): number => {
  const { start, offset } = firstShown(zone, Math.floor(local / 1000))
  return Math.max(local - offset * 1000, start * 1000)
}

// Local times up to a slot don't match. Offsets differ by less than two days, so a search from two days before a segment's end also covers what
// later segments show before that slot.
const margin = 2 * day

const nextWildcard = (cron: Cron, zone: Zone, after: number, limit: number) => {
  for (let from = after + 1; from <= limit; ) {
    const segment = zone(from)
    const second = nextSlot(cron.calendar, from + segment.offset) - segment.offset
    if (second < segment.end) return second
    from = from < segment.end - margin ? Math.max(segment.end, second - margin) : segment.end
  }
  return Infinity
}

const previousWildcard = (cron: Cron, zone: Zone, before: number, limit: number) => {
  for (let from = before - 1; from >= limit; ) {
    const segment = zone(from)
    const second = previousSlot(cron.calendar, from + segment.offset) - segment.offset
    if (second >= segment.start) return second
    from = from >= segment.start + margin ? Math.min(segment.start - 1, second + margin) : segment.start - 1
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

/**
 * The runs of a cron, on whole seconds, in the years 1 to 9999; none where a hundred years have none.
 * @param timeZone a name from `canonicalTimeZone`
 * @throws RangeError for an unknown zone
 */
export const cronTimetable = (cron: Cron, timeZone: string): Timetable => {
  const zone = zoneOf(timeZone)
  return {
    next: after => nextSecond(cron, zone, Math.floor(after / 1000)) * 1000,
    previous: before => previousSecond(cron, zone, Math.ceil(before / 1000)) * 1000
  }
}
