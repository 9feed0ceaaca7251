// Some thousands of cases; TEST_CASES=20 makes twenty times as many, around every clock change, in every zone that Intl lists.

import fc from 'fast-check'
import type { Test } from 'tap'
import t from 'tap'
import { parseCron } from '../../src/schedule/cron.ts'
import { describe, previewNotes } from '../../src/schedule/describe.ts'
import { cronTimetable } from '../../src/schedule/next-run.ts'
import { nextRun, nextRuns, nthRun, previousRun, slotsBetween } from '../../src/schedule/runs.ts'
import { pluck } from '../support/exactly.ts'
import { finish } from '../support/finish.ts'
import type { Drawn, Walk } from '../support/schedule-oracle.ts'
import { clockChanges, expressions, matches, runsAlong, walk } from '../support/schedule-oracle.ts'
import { always, cases, shuffled } from '../support/seed.ts'

const hour = 3600
const day = 24 * hour
const instant = (second: number) => new Date(second * 1000)
const seconds = (dates: (Date | undefined)[]) => dates.map(date => date && date.getTime() / 1000)

// Half hours, clocks that change at midnight, at 00:01 and by two hours, twice in a year, by the moon, backwards in winter, and not at all.
const zones =
  cases(1) > 1
    ? Intl.supportedValuesOf('timeZone')
    : [
        'America/New_York',
        'Europe/London',
        'Europe/Dublin',
        'Australia/Lord_Howe',
        'Africa/Casablanca',
        'America/Santiago',
        'Asia/Beirut',
        'Atlantic/Azores',
        'Antarctica/Troll',
        'Africa/Cairo',
        'Asia/Gaza',
        'America/Havana',
        'America/St_Johns',
        'Pacific/Chatham',
        'America/Asuncion',
        'Antarctica/Casey',
        'America/Scoresbysund',
        'Asia/Kolkata'
      ]

// Skipped days, gaps of exactly three hours, quarters of an hour, double summer time, and the next century.
const oddities: [zone: string, from: number, to: number][] = [
  ['Pacific/Apia', 2009, 2013],
  ['Pacific/Kwajalein', 1993, 1994],
  ['Pacific/Kiritimati', 1994, 1996],
  ['Antarctica/Casey', 2009, 2013],
  ['America/Caracas', 2007, 2017],
  ['Asia/Pyongyang', 2015, 2019],
  ['Asia/Kathmandu', 1985, 1987],
  ['America/St_Johns', 2005, 2012],
  ['Europe/London', 1940, 1948],
  ['Europe/Moscow', 2010, 2015],
  ['Africa/Casablanca', 2012, 2015],
  ['Asia/Gaza', 2040, 2041],
  ['America/New_York', 2100, 2105],
  ['Australia/Lord_Howe', 2103, 2105]
]

const same = (what: string, actual: unknown, expected: unknown) => {
  if (JSON.stringify(actual) !== JSON.stringify(expected))
    throw new Error(`${what}: ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`)
}

// Only expressions that no year matches may be rejected.
const parsed = (drawn: Drawn) => {
  try {
    return parseCron(drawn.text)
  } catch (error) {
    const allDay = { ...drawn, values: drawn.values.map((values, i) => (i < 3 ? new Set([0]) : values)) }
    for (let local = 0; local < 41 * 366 * day; local += day) if (matches(allDay, local)) throw error
    return undefined
  }
}

// Checks one expression between two instants of a walk.
const agrees = (zone: string, along: Walk, drawn: Drawn, from: Date, until: Date, keep: number) => {
  const cron = parsed(drawn)
  if (!cron) return
  const expected = runsAlong(along, drawn).filter(second => instant(second) > from && instant(second) <= until)

  // one more than expected is already wrong, and bounds an endless walk
  const forward: Date[] = []
  for (
    let run = nextRun(cronTimetable(cron, zone), from);
    run && run <= until && forward.length <= expected.length;
    run = nextRun(cronTimetable(cron, zone), run)
  )
    forward.push(run)
  same('nextRun', seconds(forward), expected)
  const backward: Date[] = []
  for (
    let run = previousRun(cronTimetable(cron, zone), new Date(until.getTime() + 1));
    run && run > from && backward.length <= expected.length;
    run = previousRun(cronTimetable(cron, zone), run)
  )
    backward.push(run)
  same('previousRun', seconds(backward.reverse()), expected)

  same('nextRuns', seconds(nextRuns(cronTimetable(cron, zone), from, expected.length)), expected)
  if (expected.length > 0) same('nthRun', seconds([nthRun(cronTimetable(cron, zone), from, expected.length)]), expected.slice(-1))

  const slots = finish(slotsBetween(cronTimetable(cron, zone), from, until, keep))
  same('count', slots.count, Math.min(expected.length, 10_000))
  same('first and last', seconds([slots.first, slots.last]), [expected[0], expected.at(-1)])
  same('newest', seconds(slots.newest), keep > 0 ? expected.slice(-keep) : [])
}

// Minute by minute through the days around a change.
const checkChanges = (t: Test, zone: string, changes: number[], count: number) => {
  const shifts = fc.integer({ min: -26 * hour * 1000, max: 26 * hour * 1000 })
  for (const change of changes) {
    const along = walk(zone, change - 54 * hour, change + 30 * hour, 60)
    const where = fc.constant({ zone, change: instant(change) })
    always(
      fc.property(where, expressions(), shifts, fc.integer({ min: 0, max: 20 }), (_, drawn, shift, keep) =>
        agrees(zone, along, drawn, new Date(change * 1000 + shift), instant(change + 30 * hour), keep)
      ),
      count
    )
  }
  t.pass(`${zone}: ${changes.length} changes`)
}

t.test('runs around clock changes from 2020 to 2037 follow the rule', async t => {
  for (const zone of zones) {
    const changes = shuffled(clockChanges(zone, 2020, 2038)).slice(0, cases(4))
    checkChanges(t, zone, changes.length ? changes : [Date.UTC(2028, 1, 29) / 1000], 3)
  }
})

t.test('runs around the most unusual changes of the past and the far future follow the rule', async t => {
  for (const [zone, from, to] of oddities) {
    const changes = clockChanges(zone, from, to)
    t.not(changes.length, 0, `${zone} has changes`)
    checkChanges(t, zone, shuffled(changes).slice(0, cases(4)), 6)
  }
})

t.test('runs of expressions with seconds follow the rule', async t => {
  const changes = zones.flatMap(zone => clockChanges(zone, 2024, 2027).map(change => ({ zone, change })))
  const shifts = fc.integer({ min: -3 * hour * 1000, max: hour * 1000 })
  always(
    fc.property(fc.constantFrom(...changes), expressions({ seconds: true }), shifts, ({ zone, change }, drawn, shift) => {
      const from = change * 1000 + shift
      const until = Math.floor(from / 1000) + 2 * hour
      // no clock is set back by more than three hours in these years
      agrees(zone, walk(zone, Math.floor(from / 1000) - 4 * hour, until, 1), drawn, new Date(from), instant(until), 20)
    }),
    20
  )
  t.pass('no counterexample')
})

t.test('months, days of the month and weekdays combine by the rule over years', async t => {
  const instants = fc.integer({ min: Date.UTC(1999, 0, 1) / 1000, max: Date.UTC(2110, 0, 1) / 1000 })
  always(
    fc.property(expressions({ anywhere: true }), instants, (drawn, from) => {
      const cron = parsed(drawn)
      if (!cron) return
      // in UTC: look for a matching day first, then through its minutes
      let expected: number | undefined
      for (let date = Math.floor(from / day) * day; expected === undefined && date < from + 9 * 366 * day; date += day) {
        if (!matches({ ...drawn, values: drawn.values.map((values, i) => (i < 3 ? new Set([0]) : values)) }, date)) continue
        for (let second = date; expected === undefined && second < date + day; second += 60) {
          if (second > from && matches(drawn, second)) expected = second
        }
      }
      const next = nextRun(cronTimetable(cron, 'UTC'), instant(from))!
      if (expected === undefined) same('far ahead', next.getTime() / 1000 > from + 9 * 365 * day, true)
      else same('next', next.toISOString(), instant(expected).toISOString())
    }),
    700
  )
  t.pass('no counterexample')
})

t.test('each run is after the previous one, and searching backwards finds the same runs', async t => {
  const instants = fc.integer({ min: Date.UTC(1950, 0, 1), max: Date.UTC(2110, 0, 1) }).map(milliseconds => new Date(milliseconds))
  always(
    fc.property(
      fc.constantFrom(...zones, ...oddities.map(([zone]) => zone)),
      expressions({ anywhere: true, seconds: true }),
      instants,
      (zone, drawn, from) => {
        const cron = parsed(drawn)
        if (!cron) return
        const found = nextRuns(cronTimetable(cron, zone), from, 20)
        let last = from
        for (const run of found) {
          if (run <= last) throw new Error(`${run.toISOString()} is not after ${last.toISOString()}`)
          last = run
        }
        const back: Date[] = []
        for (let run = found.at(-1); run && run > from && back.length <= found.length; run = previousRun(cronTimetable(cron, zone), run))
          back.push(run)
        same('backward', back.reverse(), found)
      }
    ),
    700
  )
  t.pass('no counterexample')
})

t.test('every expression has a description, and a preview with its next runs', async t => {
  const instants = fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2037, 0, 1) }).map(milliseconds => new Date(milliseconds))
  always(
    fc.property(
      fc.constantFrom(...zones),
      fc.oneof(expressions({ seconds: true }), expressions({ anywhere: true })),
      instants,
      (zone, drawn, from) => {
        const cron = parsed(drawn)
        if (!cron) return
        const schedule = { type: 'recurring', cron: drawn.text, timezone: zone } as const
        const words = describe(schedule)
        if (!words.endsWith(`, ${zone}`) || /undefined|NaN|null|\*|\d{3}/.test(words)) throw new Error(words)
        const rows = [...previewNotes(schedule, from, 5)]
        same(
          'at',
          pluck(rows, 'at'),
          nextRuns(cronTimetable(cron, zone), from, 5).map(run => run.toISOString())
        )
        same(
          'local',
          rows.map(({ local }) => new Date(local).toISOString()),
          pluck(rows, 'at')
        )
      }
    ),
    400
  )
  t.pass('no counterexample')
})
