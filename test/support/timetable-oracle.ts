// Schedules together with their meaning, second by second, for the property test. Like schedule-oracle.ts it shares nothing with src/schedule.
import fc from 'fast-check'
import type { Exclusion } from '../../src/schedule/exclusions.ts'
import type { Rules } from '../../src/schedule/schedule.ts'
import { expressions, runsAlong, type Walk } from './schedule-oracle.ts'

type Instant = Walk['instants'][0]

/** What says when a schedule runs, and its slots along a walk, in seconds. */
type Kind = { members: Rules & { cron?: string }; slots: (along: Walk) => number[] }
/** Members of a schedule that leave slots out. */
type Filter = { members: Rules; keeps: (instant: Instant) => boolean }

export type DrawnSchedule = Kind & {
  /** All slots, with those that bounds and exclusions leave out. */
  nominal: Kind['slots']
  /** By how much a slot may be late, in milliseconds, by the milliseconds until the next nominal one. */
  windowOf: (distance: number) => number
}

const iso = (second: number) => new Date(second * 1000).toISOString()
const hour = 3600
const units = { s: 1, m: 60, h: hour, d: 24 * hour }

const crons = (min: number, max: number): fc.Arbitrary<Kind> =>
  fc.array(fc.oneof(expressions(), expressions({ seconds: true })), { minLength: min, maxLength: max }).map(drawn => ({
    members: max === 1 ? { cron: drawn[0]!.text } : { crons: drawn.map(({ text }) => text) },
    slots: along => [...new Set(drawn.flatMap(one => runsAlong(along, one)))].sort((a, b) => a - b)
  }))

const lengths = fc.oneof(
  fc.integer({ min: 10, max: 10_000 }).map(n => [n, 's'] as const),
  fc.integer({ min: 1, max: 30 }).map(n => [n, 'm'] as const),
  fc.integer({ min: 1, max: 600 }).map(n => [n, 'm'] as const),
  fc.integer({ min: 1, max: 60 }).map(n => [n, 'h'] as const),
  fc.integer({ min: 1, max: 366 }).map(n => [n, 'd'] as const)
)

/** Up to forty years. */
const shifts = (step: number) => fc.integer({ min: -(2 ** 30), max: 2 ** 30 }).map(second => second - (second % step))

const every = (around: number): fc.Arbitrary<Kind> =>
  fc.tuple(lengths, fc.option(fc.oneof(shifts(60), shifts(1)), { nil: undefined })).map(([[n, unit], shift]) => {
    const anchor = shift === undefined ? 0 : around + shift
    return {
      members: { every: `${n}${unit}`, ...(shift !== undefined && { anchor: iso(anchor) }) },
      slots: ({ instants }) => instants.map(({ second }) => second).filter(second => (second - anchor) % (n * units[unit]) === 0)
    }
  })

/** Bounds near an instant: mostly on a slot of many schedules, sometimes on any second or within one. */
const bounds = (around: number): fc.Arbitrary<Filter>[] => {
  const near = fc
    .tuple(fc.constantFrom(1, 60, 300, 900, 1800), fc.integer({ min: -2 * hour, max: 2 * hour }), fc.constantFrom(0, 0, 0, 0.5))
    .map(([step, shift, part]) => around + Math.floor(shift / step) * step + part)
  return [
    near.map(at => ({ members: { starts_at: iso(at) }, keeps: ({ second }) => second >= at })),
    near.map(at => ({ members: { ends_at: iso(at) }, keeps: ({ second }) => second <= at }))
  ]
}

/** Windows: a length of time, or a part of the distance to the next slot. */
const windows: fc.Arbitrary<{ members: Rules; windowOf: DrawnSchedule['windowOf'] }> = fc.oneof(
  fc.constant({ members: {}, windowOf: () => 0 }),
  lengths
    .filter(([n, unit]) => n * units[unit] <= units.d)
    .map(([n, unit]) => ({
      members: { window: `${n}${unit}` },
      windowOf: (distance: number) => Math.min(n * units[unit] * 1000, distance)
    })),
  fc.integer({ min: 1, max: 100 }).map(percent => ({
    members: { window: `${percent}%` },
    windowOf: (distance: number) => Math.min((distance * percent) / 100, units.d * 1000)
  }))
)

/** An exclusion, and the instants of a walk that it contains. */
type DrawnExclusion = { exclusion: Exclusion; containedIn: (along: Walk) => (instant: Instant) => boolean }

/** Exclusions near an instant, whose local time is given as if it were UTC. */
const exclusions = (around: number, local: number): fc.Arbitrary<DrawnExclusion> => {
  const dates = fc
    .array(fc.tuple(fc.integer({ min: -1, max: 1 }), fc.boolean()), { minLength: 1, maxLength: 2 })
    .map(drawn => drawn.map(([days, isYearly]) => iso(local + days * units.d).slice(isYearly ? 5 : 0, 10)))
    .map(dates => ({
      exclusion: { dates },
      containedIn: () => (instant: Instant) => dates.some(date => iso(instant.local).slice(0, 10).endsWith(date))
    }))
  const lengthsOfTime = fc.tuple(fc.integer({ min: -2 * hour, max: 2 * hour }), fc.integer({ min: 1, max: 2 * hour }))
  const instants = lengthsOfTime.map(([start, length]) => {
    const [from, to] = [around + start, around + start + length]
    return {
      exclusion: { from: iso(from), to: iso(to) },
      containedIn:
        () =>
        ({ second }: Instant) =>
          second >= from && second < to
    }
  })
  // A local time is the first instant at which the clock shows it or a later one.
  const localTimes = lengthsOfTime.map(([start, length]) => ({
    exclusion: { from: iso(local + start).slice(0, 19), to: iso(local + start + length).slice(0, 19) },
    containedIn: (along: Walk) => {
      const first = (time: number) => along.instants.find(one => one.local >= time)?.second ?? Number.POSITIVE_INFINITY
      const [from, to] = [first(local + start), first(local + start + length)]
      return ({ second }: Instant) => second >= from && second < to
    }
  }))
  const crons = fc.tuple(expressions(), fc.integer({ min: 1, max: 60 })).map(([cron, minutes]) => ({
    exclusion: { cron: cron.text, minutes },
    containedIn: (along: Walk) => {
      const starts = runsAlong(along, cron)
      return ({ second }: Instant) => starts.some(start => second >= start && second < start + minutes * units.m)
    }
  }))
  return fc.oneof(dates, instants, localTimes, crons)
}

/** Schedules with a window, whose slots, bounds and exclusions are near an instant, of which the local time is given as if it were UTC. */
export const schedules = (around: number, local: number): fc.Arbitrary<DrawnSchedule> => {
  const kinds = fc.oneof(
    { weight: 1, arbitrary: crons(1, 1) },
    { weight: 3, arbitrary: crons(1, 4) },
    { weight: 2, arbitrary: every(around) }
  )
  const filters = [...bounds(around)].map(filter => fc.option(filter, { nil: undefined, freq: 2 }))
  const excluded = fc.array(exclusions(around, local), { maxLength: 3 })
  return fc.tuple(kinds, fc.tuple(...filters), excluded, windows).map(([kind, drawn, leftOut, window]) => {
    const limits = drawn.filter(limit => limit !== undefined)
    const exclude = leftOut.map(({ exclusion }) => exclusion)
    return {
      members: Object.assign({}, kind.members, ...limits.map(({ members }) => members), exclude.length > 0 && { exclude }, window.members),
      nominal: kind.slots,
      windowOf: window.windowOf,
      slots: along => {
        const at = new Map(along.instants.map(instant => [instant.second, instant]))
        const contained = leftOut.map(({ containedIn }) => containedIn(along))
        return kind
          .slots(along)
          .map(second => at.get(second)!)
          .filter(instant => limits.every(({ keeps }) => keeps(instant)) && !contained.some(contains => contains(instant)))
          .map(({ second }) => second)
      }
    }
  })
}
