// Some dozens of cases; TEST_CASES=250 makes ten thousand.
import fc from 'fast-check'
import t from 'tap'
import { CronError } from '../../src/schedule/cron.ts'
import { lastDueBy, type Plan, planOf, runDueAfter } from '../../src/schedule/plan.ts'
import { nextRuns, previousRun, slotsBetween } from '../../src/schedule/runs.ts'
import { finish } from '../support/finish.ts'
import { clockChanges, type Walk, walk } from '../support/schedule-oracle.ts'
import { always, cases, shuffled } from '../support/seed.ts'
import { type DrawnSchedule, schedules } from '../support/timetable-oracle.ts'

const hour = 3600
// Summer time in both hemispheres, by half an hour, at midnight, and in the year's second half only.
const zones = ['America/New_York', 'Europe/London', 'Australia/Lord_Howe', 'Africa/Cairo', 'America/Santiago']
const all = zones.flatMap(zone => [
  ...clockChanges(zone, 2026, 2028).map(around => ({ zone, around })),
  { zone, around: Date.UTC(2027, 5, 15, 12) / 1000 }
])
const places = shuffled(all).slice(0, cases(4))

const walks = new Map<string, Walk>()
/** Every second from four hours before an instant, so that earlier local times are known, to two hours after it. */
const walkAround = ({ zone, around }: (typeof all)[0]) => {
  const name = `${zone} ${around}`
  if (!walks.has(name)) walks.set(name, walk(zone, around - 4 * hour, around + 2 * hour, 1))
  return walks.get(name)!
}

const same = (what: string, actual: unknown, expected: unknown) => {
  if (JSON.stringify(actual) !== JSON.stringify(expected))
    throw new Error(`${what}: ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`)
}
const seconds = (runs: (Date | undefined)[]) => runs.map(run => run && run.getTime() / 1000)

/** The fraction of its windows that delays a cue, read from a window of a known length: to within its millisecond. */
const fractionsOf = (cueId: string) => {
  const day = 24 * hour * 1000
  const delay = planOf({ type: 'recurring', every: '1d', window: '24h', timezone: 'UTC' }, cueId).due(0)
  return { atLeast: delay / day, below: (delay + 1) / day }
}

/** Checks when slots fire, as far as a walk shows the nominal slot after them, and the searches by that time. */
const checkWindows = (plan: Plan, cueId: string, schedule: DrawnSchedule, along: Walk, from: Date, until: Date) => {
  const nominal = schedule.nominal(along)
  const last = nominal.at(-1) ?? 0
  const next = new Map(nominal.slice(1).map((second, i) => [nominal[i]!, second]))
  const fraction = fractionsOf(cueId)
  // Earlier ones may be in an exclusion that began before the walk.
  const slots = schedule.slots(along).filter(second => second * 1000 > +from && second !== last)
  const due = slots.map(second => {
    const window = schedule.windowOf((next.get(second)! - second) * 1000)
    const at = plan.due(second * 1000) - second * 1000
    const isRight = at >= Math.floor(fraction.atLeast * window) && at <= Math.floor(fraction.below * window)
    if (!isRight || (window > 0 && at >= (next.get(second)! - second) * 1000)) throw new Error(`${second} is late by ${at} of ${window} ms`)
    return second * 1000 + at
  })
  // At slots, when they fire, and between: what has fired by then, and what fires next.
  const instants = due.flatMap((at, i) => [slots[i]! * 1000, at - 1, at, at + 1]).filter(at => at < Math.min(+until, last * 1000))
  for (const at of instants) {
    const fired = slots.filter((_, i) => due[i]! <= at)
    if (fired.length > 0) same(`fired by ${at}`, seconds([lastDueBy(plan, new Date(at))]), fired.slice(-1))
    const ahead = due.findIndex(one => one > at)
    if (ahead < 0) continue
    const run = runDueAfter(plan, new Date(at), null)
    same(`fires after ${at}`, [run && +run.slot / 1000, run && +run.due], [slots[ahead], due[ahead]])
    if (ahead + 1 === slots.length) continue
    const second = runDueAfter(plan, new Date(at), new Date(slots[ahead]! * 1000))
    same(`fires after ${at}, behind ${slots[ahead]}`, seconds([second?.slot]), [slots[ahead + 1]])
  }
  return instants.length
}

t.test(`schedules run as a walk over seconds says (${cases(40)} cases)`, async t => {
  const shifts = fc.integer({ min: -2 * hour * 1000, max: 2 * hour * 1000 })
  const drawn = fc.constantFrom(...places).chain(place => {
    const { local } = walkAround(place).instants.find(({ second }) => second === place.around)!
    return fc.tuple(fc.constant(place), schedules(place.around, local), shifts)
  })
  let slots = 0
  let instants = 0
  always(
    fc.property(drawn, fc.integer({ min: 0, max: 20 }), fc.uuid(), ([place, schedule, shift], keep, cueId) => {
      const from = new Date(place.around * 1000 + shift)
      const until = new Date((place.around + 2 * hour) * 1000)
      let timetable: Plan
      try {
        timetable = planOf({ type: 'recurring', ...schedule.members, timezone: place.zone }, cueId)
      } catch (error) {
        if (error instanceof CronError) return // an expression that never runs
        throw error
      }
      const expected = schedule.slots(walkAround(place)).filter(second => second * 1000 > +from && second * 1000 <= +until)
      slots += expected.length
      const found = nextRuns(timetable, from, expected.length + 1).filter(run => run <= until)
      same('forward', seconds(found), expected)
      const back: Date[] = []
      for (let run = previousRun(timetable, new Date(+until + 1)); run && run > from; run = previousRun(timetable, run)) {
        back.push(run)
        if (back.length > expected.length) break
      }
      same('backward', seconds(back.reverse()), expected)
      const between = finish(slotsBetween(timetable, from, until, keep))
      same('count', between.count, Math.min(expected.length, 10_000))
      same('first and last', seconds([between.first, between.last]), [expected[0], expected.at(-1)])
      same('newest', seconds(between.newest), keep > 0 ? expected.slice(-keep) : [])
      instants += checkWindows(timetable, cueId, schedule, walkAround(place), from, until)
    }),
    40
  )
  t.ok(slots > 0 && instants > 0, `${slots} slots`)
})
