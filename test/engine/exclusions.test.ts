// Exclusions against a walk over every minute around clock changes, whose local times come from Intl; timetable.property.test.ts has the slots that remain.

import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { parseCron } from '../../src/schedule/cron.ts'
import { type Exclusion, excludedBy } from '../../src/schedule/exclusions.ts'
import { cronTimetable } from '../../src/schedule/next-run.ts'
import { firstRun } from '../../src/schedule/parse-schedule.ts'
import { excludedFrom, fractionOf, lastDueBy, planOf, runDueAfter } from '../../src/schedule/plan.ts'
import { nthRun, slotsBetween } from '../../src/schedule/runs.ts'
import type { Schedule } from '../../src/schedule/schedule.ts'
import { effort } from '../../src/schedule/slots.ts'
import { stepsPerSearch } from '../../src/schedule/timetable.ts'
import { zoneOf } from '../../src/schedule/zones.ts'
import { clockChanges, expressions, runsAlong, walk } from '../support/schedule-oracle.ts'
import { always } from '../support/seed.ts'

const minute = 60
const hour = 60 * minute
const day = 24 * hour
const zones = ['Europe/London', 'America/New_York', 'Australia/Lord_Howe', 'America/Havana', 'Asia/Kolkata']
const iso = (local: number) => new Date(local * 1000).toISOString()

/** An exclusion, and the rule that says which instants of a walk it contains. */
type DrawnExclusion = { exclusion: Exclusion; contains: (second: number, local: number) => boolean }

const byDates = (around: number): fc.Arbitrary<DrawnExclusion> =>
  fc
    .array(fc.tuple(fc.integer({ min: -4, max: 4 }), fc.boolean()), { minLength: 1, maxLength: 4 })
    .map(drawn => drawn.map(([days, yearly]) => iso(around + days * day).slice(yearly ? 5 : 0, 10)))
    .map(dates => ({ exclusion: { dates }, contains: (_, local) => dates.some(date => iso(local).slice(0, 10).endsWith(date)) }))

const byInstants = (around: number): fc.Arbitrary<DrawnExclusion> =>
  fc.tuple(fc.integer({ min: -3 * 1440, max: 3 * 1440 }), fc.integer({ min: 1, max: 2000 })).map(([start, length]) => {
    const [from, to] = [around + start * minute, around + (start + length) * minute]
    return { exclusion: { from: iso(from), to: iso(to) }, contains: second => second >= from && second < to }
  })

/** A local time stands for the first instant at which the clock shows it or a later one. */
const byLocalTimes = (around: number, instants: { second: number; local: number }[]): fc.Arbitrary<DrawnExclusion> =>
  fc.tuple(fc.integer({ min: -3 * 1440, max: 3 * 1440 }), fc.integer({ min: 1, max: 2000 })).map(([start, length]) => {
    const [from, to] = [around + start * minute, around + (start + length) * minute]
    const first = (local: number) => instants.find(one => one.local >= local)?.second ?? Number.POSITIVE_INFINITY
    const [begin, end] = [first(from), first(to)]
    return {
      exclusion: { from: iso(from).slice(0, 16), to: iso(to).slice(0, 19) },
      contains: second => second >= begin && second < end
    }
  })

const byCron = (instants: ReturnType<typeof walk>): fc.Arbitrary<DrawnExclusion> =>
  fc.tuple(expressions(), fc.integer({ min: 1, max: 1500 })).map(([cron, minutes]) => {
    const starts = runsAlong(instants, cron)
    return {
      exclusion: { cron: cron.text, minutes },
      contains: second => starts.some(start => second >= start && second < start + minutes * minute)
    }
  })

const isCron = (text: string) => {
  try {
    parseCron(text)
    return true
  } catch {
    return false
  }
}

for (const zone of zones) {
  t.test(`exclusions match every minute around clock changes in ${zone}`, async t => {
    const changes = clockChanges(zone, 2026, 2027)
    for (const change of changes.length > 0 ? changes : [Date.UTC(2026, 2, 29) / 1000]) {
      const along = walk(zone, change - 7 * day, change + 4 * day, minute)
      const checked = along.instants.filter(({ second }) => second > change - 2 * day)
      const local = along.instants.find(({ second }) => second >= change)!.local
      const exclusion = fc.oneof(byDates(local), byInstants(change), byLocalTimes(local, along.instants), byCron(along))
      always(
        fc.property(fc.array(exclusion, { minLength: 1, maxLength: 3 }), drawn => {
          if (drawn.some(({ exclusion }) => 'cron' in exclusion && !isCron(exclusion.cron))) return
          const exclude = drawn.map(one => one.exclusion)
          const isExcluded = ({ second, local }: (typeof checked)[number]) => drawn.some(({ contains }) => contains(second, local))
          const excluded = excludedBy(exclude, zone)
          for (const one of checked) {
            const stretch = excluded.at(one.second * 1000)
            if (!!stretch !== isExcluded(one)) throw new Error(`${iso(one.second)} is excluded: ${!!stretch}, expected ${isExcluded(one)}`)
            if (stretch && (stretch.from > one.second * 1000 || stretch.to <= one.second * 1000))
              throw new Error('a stretch without its instant')
          }
        }),
        8
      )
    }
    t.ok(changes)
  })
}

t.test('stretches that begin later are found in order', async t => {
  const excluded = excludedBy([{ dates: ['12-25', '2026-12-31'] }, { from: '2026-12-28T00:00', to: '2026-12-28T06:00' }], 'Europe/Berlin')
  const starts: string[] = []
  for (let at = Date.parse('2026-12-01T00:00:00Z'); starts.length < 4; ) {
    at = excluded.after(at)!.from
    starts.push(new Date(at).toISOString())
  }
  t.strictSame(starts, ['2026-12-24T23:00:00.000Z', '2026-12-27T23:00:00.000Z', '2026-12-30T23:00:00.000Z', '2027-12-24T23:00:00.000Z'])
  t.equal(excludedBy([{ dates: ['2026-01-01'] }], 'UTC').after(Date.parse('2026-01-01T00:00:00Z')), undefined)
  t.equal(excludedBy([{ dates: ['02-29'] }], 'UTC').after(Date.parse('2097-01-01T00:00:00Z'))!.from, Date.parse('2104-02-29T00:00:00Z'))
})

t.test('a window ends before the next slot, and no delay is longer than a day', async t => {
  const slot = Date.parse('2026-01-01T00:00:00Z')
  const delay = (rules: object, id: string) => planOf({ type: 'recurring', timezone: 'UTC', ...rules } as never, id).due(slot) - slot
  for (let n = 0; n < 1000; n++) {
    const id = `cue_${n}`
    t.ok(delay({ cron: '* * * * *', window: '30m' }, id) < 60_000)
    t.ok(delay({ cron: '* * * * * *', window: '100%' }, id) < 1000)
    t.ok(delay({ cron: '0 0 1 1 *', window: '50%' }, id) < 86_400_000)
    t.equal(delay({ cron: '0 0 1 1 *', window: '24h' }, id), Math.floor(fractionOf(id) * 86_400_000))
  }
})

/** Expressions that are searched far, and those that leave out slots one by one. */
const costly = fc.constantFrom(
  '* * * * * *',
  '* * * * 1-6',
  '0-58 * * * *',
  '59 * * 2-12 *',
  '5 3 29 2 */7',
  '* * 29 2 0',
  // It never occurs in New York.
  '* 2 8-14 3 */7'
)
const anyCron = fc
  .oneof(
    { weight: 2, arbitrary: costly },
    {
      weight: 1,
      arbitrary: fc.oneof(expressions({ anywhere: true }), expressions({ seconds: true, anywhere: true })).map(({ text }) => text)
    }
  )
  .filter(isCron)
const dayBetween = fc.integer({ min: 10_000, max: 40_000 })
const anyDates = (maxLength: number) =>
  fc.array(
    fc.tuple(dayBetween, fc.boolean()).map(([date, isYearly]) => iso(date * day).slice(isYearly ? 5 : 0, 10)),
    { maxLength }
  )
const anyRanges = (maxLength: number) =>
  fc.array(
    fc.tuple(dayBetween, fc.integer({ min: 1, max: 60 * day }), fc.constantFrom(19, 24)).map(([date, length, end]) => ({
      from: iso(date * day).slice(0, end),
      to: iso(date * day + length).slice(0, end)
    })),
    { maxLength }
  )
const minutes = fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 3000 }) })
const anySchedule = fc
  .record({
    kind: fc.oneof(
      anyCron.map(cron => ({ cron })),
      fc.array(anyCron, { minLength: 2, maxLength: 10 }).map(crons => ({ crons })),
      fc.constantFrom('10s', '1m', '1d', '366d').map(every => ({ every }))
    ),
    timezone: fc.constantFrom('UTC', ...zones),
    window: fc.constantFrom(undefined, '50%', '24h'),
    crons: fc.array(fc.record({ cron: anyCron, minutes }), { maxLength: 10 }),
    dates: anyDates(500),
    ranges: anyRanges(39),
    calendars: fc.array(fc.record({ dates: anyDates(1000), ranges: anyRanges(500) }), { maxLength: 2 })
  })
  .map(({ kind, timezone, window, crons, dates, ranges, calendars }) => {
    const exclude: Exclusion[] = [...crons, ...(dates.length > 0 ? [{ dates }] : []), ...ranges]
    const exclude_calendars = calendars.map((_, n) => `c${n}`)
    const schedule: Schedule = { type: 'recurring', ...kind, timezone, exclude, exclude_calendars, ...(window && { window }) }
    return { schedule, calendars }
  })

t.test('no search of a schedule takes many steps, and so does no first run', async t => {
  // A zone is computed only once.
  for (const zone of zones) for (let year = 1850; year < 2300; year++) zoneOf(zone)(Date.UTC(year, 0) / 1000)
  let most = 0
  always(
    fc.property(anySchedule, fc.integer({ min: 7000, max: 45_000 }), ({ schedule, calendars }, date) => {
      const at = new Date(date * day * 1000)
      const steps = (searches: number, search: () => unknown) => {
        const began = effort.steps
        search()
        const part = (effort.steps - began) / stepsPerSearch / searches
        if (part > 2) throw new Error(`${search} takes ${effort.steps - began} steps`)
        most = Math.max(most, part)
      }
      const plan = () => planOf(schedule, 'cue_1', calendars)
      plan() // compiled once
      steps(1, () => plan().next(+at))
      steps(1, () => plan().previous(+at))
      steps(1, () => plan().due(+at))
      steps(1, () => plan().excludedAt(+at))
      steps(1, () => excludedFrom(plan(), at))
      steps(2, () => lastDueBy(plan(), at))
      steps(3, () => runDueAfter(plan(), at, null))
      steps(10, () => nthRun(plan(), at, 10))
      const slots = slotsBetween(plan(), new Date(+at - 366 * day * 1000), at, 100)
      for (let n = 0; n < 100; n++) steps(2, () => slots.next())
      steps(11, () => {
        try {
          firstRun(schedule, at, 'cue_1', calendars)
        } catch {}
      })
    }),
    40
  )
  t.ok(most > 0.5 && most <= 2, `at most ${most.toFixed(2)} times as many as a search may take`)
})

t.test('a search takes no steps within a known stretch or the gap after it, nor for a rare expression of a union', async t => {
  const at = Date.parse('2026-06-01T00:00:00Z')
  const stepsOf = (search: (instant: number) => unknown, ...instants: number[]) => {
    const began = effort.steps
    for (const instant of instants) search(instant)
    return effort.steps - began
  }
  const daily = excludedBy([{ cron: '0 0 * * *', minutes: 60 }], 'Europe/London')
  const rare = excludedBy([{ cron: '5 3 29 2 */7', minutes: 1 }], 'Europe/London')
  for (const { at: search } of [daily, rare]) {
    t.ok(stepsOf(search, at, at + 2 * hour * 1000) > 0)
    t.equal(stepsOf(search, at + 2 * hour * 1000, at + 3 * hour * 1000, at + 1, at + 22 * hour * 1000, at + 2 * hour * 1000), 0)
  }
  const alone = cronTimetable(parseCron('* * * * *'), 'UTC')
  const both = planOf({ type: 'recurring', crons: ['* * * * *', '5 3 29 2 */7'], timezone: 'UTC' })
  const minutes = Array.from({ length: 100 }, (_, n) => at + n * 60_000)
  both.next(at)
  t.equal(stepsOf(both.next, ...minutes), stepsOf(alone.next, ...minutes) - 1)
})

t.test('exclusions and calendars of very many zones fit into little memory', async t => {
  const code = `
    const { planOf } = await import(${JSON.stringify(new URL('../../src/schedule/plan.ts', import.meta.url))})
    const day = n => new Date(Date.UTC(2026, 0, n)).toISOString().slice(0, 10)
    const calendar = n => ({
      dates: Array.from({ length: 1000 }, (_, i) => day(2 * i + n)),
      ranges: Array.from({ length: 500 }, (_, i) => ({ from: day(2 * i + n) + 'T10:00', to: day(2 * i + n) + 'T11:00' }))
    })
    const zones = Intl.supportedValuesOf('timeZone').slice(0, 40)
    for (let change = 0; change < 10; change++) {
      const calendars = [calendar(change), calendar(change + 1)]
      for (const timezone of zones) {
        const exclude = Array.from({ length: 10 }, (_, n) => ({ cron: change + n + ' 3 * * *', minutes: 1 }))
        const dates = calendar(change).dates.slice(500)
        planOf({ type: 'recurring', cron: '0 9 * * *', timezone, exclude: [...exclude, { dates }] }, undefined, calendars).next(Date.UTC(2026, 0))
      }
    }`
  const worker = new Worker(`(async () => {${code}})()`, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 64 } })
  const error = await new Promise(resolve => worker.once('error', resolve).once('exit', () => resolve(undefined)))
  t.equal(error, undefined)
})
