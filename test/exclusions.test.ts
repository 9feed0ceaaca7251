// Exclusions and windows against a walk over every minute around clock changes, whose local times come from Intl.
import fc from 'fast-check'
import t from 'tap'
import { type Exclusion, excludedBy } from '../src/schedule/exclusions.ts'
import { fractionOf, planOf, runDueAfter } from '../src/schedule/plan.ts'
import { clockChanges, type Drawn, expressions, runsAlong, walk } from './schedule-oracle.ts'
import { always } from './seed.ts'

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

const isParsed = ({ values }: Drawn) => !(values[3]!.has(31) && values[3]!.size < 3) && !(values[3]!.has(30) && values[3]!.size < 3)

const isCron = (text: string) => {
  try {
    excludedBy([{ cron: text, minutes: 1 }], 'UTC')
    return true
  } catch {
    return false
  }
}

type Instants = { second: number; local: number }[]

/** The slots that run, in both directions, and when they fire. */
const checkPlan = (
  timezone: string,
  exclude: Exclusion[],
  along: ReturnType<typeof walk>,
  checked: Instants,
  cron: Drawn,
  isExcluded: (one: Instants[number]) => boolean,
  id: string
) => {
  const [from, until] = [checked[0]!.second, checked.at(-1)!.second]
  const nominal = runsAlong(along, cron).filter(second => second > from && second <= until)
  const atSecond = new Map(checked.map(one => [one.second, one]))
  const expected = nominal.filter(second => !isExcluded(atSecond.get(second)!)).map(second => second * 1000)
  const plan = planOf({ type: 'recurring', cron: cron.text, timezone, exclude, window: '25%' }, id)
  const forward: number[] = []
  for (let slot = plan.next(from * 1000); slot <= until * 1000 && forward.length <= expected.length; slot = plan.next(slot))
    if (!plan.excludedAt(slot)) forward.push(slot)
  same(forward, expected)
  const backward: number[] = []
  for (let slot = plan.previous(until * 1000 + 1); slot > from * 1000 && backward.length <= expected.length; slot = plan.previous(slot))
    if (!plan.excludedAt(slot)) backward.unshift(slot)
  same(backward, expected)
  for (const [n, second] of nominal.slice(0, -1).entries()) {
    const distance = (nominal[n + 1]! - second) * 1000
    same(plan.due(second * 1000) - second * 1000, Math.floor(fractionOf(id) * Math.min(0.25 * distance, day * 1000)))
  }
  for (const slot of expected.slice(0, -1)) same(runDueAfter(plan, new Date(plan.due(slot) - 1), null)?.slot.getTime(), slot)
}

const same = (actual: unknown, expected: unknown) => {
  if (JSON.stringify(actual) !== JSON.stringify(expected))
    throw new Error(`${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`)
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
        fc.property(fc.array(exclusion, { minLength: 1, maxLength: 3 }), expressions(), fc.nat(1e6), (drawn, slots, id) => {
          if (drawn.some(({ exclusion }) => 'cron' in exclusion && !isCron(exclusion.cron)) || !isParsed(slots) || !isCron(slots.text))
            return
          const exclude = drawn.map(one => one.exclusion)
          const isExcluded = ({ second, local }: (typeof checked)[number]) => drawn.some(({ contains }) => contains(second, local))
          const excluded = excludedBy(exclude, zone)
          for (const one of checked) {
            const stretch = excluded.at(one.second * 1000)
            if (!!stretch !== isExcluded(one)) throw new Error(`${iso(one.second)} is excluded: ${!!stretch}, expected ${isExcluded(one)}`)
            if (stretch && (stretch.from > one.second * 1000 || stretch.to <= one.second * 1000))
              throw new Error('a stretch without its instant')
          }
          checkPlan(zone, exclude, along, checked, slots, isExcluded, `cue_${id}`)
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
