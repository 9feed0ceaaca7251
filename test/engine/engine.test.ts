/** The engine's parts without a database: scheduling, deadlines, periodic tasks and the hand-over on stop. */
import { mock } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { BegunAttempt, Functions } from '../../src/database/functions.ts'
import { createDeadlines } from '../../src/engine/deadlines.ts'
import { createKeeper } from '../../src/engine/keeper.ts'
import { createScheduler } from '../../src/engine/scheduler.ts'
import { handOver } from '../../src/engine/stop.ts'
import { createWakeTimes } from '../../src/engine/wake-times.ts'
import { eventually } from '../support/eventually.ts'

const never = Number.POSITIVE_INFINITY

/** A scheduler whose parts are due at times set by the test. */
const schedulerOf = (t: Test) => {
  const at = { pump: never, workers: never, missed: never, tracked: never, deadline: never }
  const done: string[] = []
  const errors: string[] = []
  let fail = false
  const fire = (kind: 'missed' | 'tracked') => async () => {
    at[kind] = never
    done.push(kind)
  }
  const scheduler = createScheduler({
    pump: {
      turn: () => void done.push('turn'),
      get wakeAt() {
        return at.pump
      }
    },
    ahead: {
      hasDue: kind => kind !== 'send' && at[kind] <= performance.now(),
      get nextDue() {
        return Math.min(at.workers, at.missed, at.tracked)
      }
    },
    firing: {
      workers: async () => {
        at.workers = never
        done.push('workers')
        if (fail) throw new Error('cannot fire')
      },
      missed: fire('missed'),
      tracked: fire('tracked')
    },
    deadlines: {
      get at() {
        return at.deadline
      },
      meet: async () => {
        at.deadline = never
        done.push('meet')
      }
    },
    now: () => performance.now(),
    onError: (_, task) => void errors.push(task)
  })
  t.teardown(scheduler.stop)
  return { scheduler, at, done, errors, failFiring: () => (fail = true) }
}

t.test('several wake-ups cause one turn', async t => {
  const { scheduler, done } = schedulerOf(t)
  for (let n = 0; n < 3; n++) scheduler.wake()
  await tick()
  await tick()
  t.same(done, ['turn'])
})

t.test('a turn fires due cues and meets due deadlines, then takes another turn', async t => {
  const { scheduler, at, done } = schedulerOf(t)
  Object.assign(at, { workers: 0, missed: 0, tracked: 0, deadline: 0 })
  scheduler.wake()
  await eventually(() => done.length === 6)
  t.same(done, ['turn', 'workers', 'missed', 'tracked', 'meet', 'turn'])
})

t.test('the next turn starts when the first part is due', async t => {
  for (const part of ['pump', 'workers', 'missed', 'tracked', 'deadline'] as const) {
    const { scheduler, at, done } = schedulerOf(t)
    at[part] = performance.now() + 30
    scheduler.wake()
    await tick()
    t.same(done, ['turn'], part)
    await eventually(() => done.length > 1)
    t.ok(performance.now() >= at[part] || at[part] === never, part)
    at.pump = never
  }
})

t.test('a task does not run concurrently with itself, and again if it was notified meanwhile', async t => {
  const { scheduler } = schedulerOf(t)
  const ends: (() => void)[] = []
  const work = () => new Promise<void>(resolve => void ends.push(resolve))
  void scheduler.run('a', work)
  void scheduler.run('a', work)
  void scheduler.run('b', work)
  t.equal(ends.length, 2)
  ends[0]!()
  await tick()
  void scheduler.run('a', work)
  t.equal(ends.length, 3)
  for (let n = 0; n < 2; n++) void scheduler.run('a', work, true)
  t.equal(ends.length, 3)
  ends[2]!()
  await tick()
  t.equal(ends.length, 4, 'once more, as it may have missed something')
  ends[3]!()
  await tick()
  t.equal(ends.length, 4)
  ends[1]!()
})

t.test('reports a failed task, and retries it no sooner than half a second later', async t => {
  const { scheduler, at, done, errors, failFiring } = schedulerOf(t)
  failFiring()
  at.workers = 0
  const startedAt = performance.now()
  scheduler.wake()
  await eventually(() => errors.length === 1)
  t.same(errors, ['fire cues: workers'])
  at.workers = 0
  await eventually(() => done.filter(what => what === 'workers').length === 2)
  t.ok(performance.now() - startedAt >= 490)
})

t.test('a stopped scheduler takes no turn', async t => {
  const { scheduler, done } = schedulerOf(t)
  scheduler.wake()
  scheduler.stop()
  scheduler.wake()
  await tick()
  await tick()
  t.same(done, [])
})

t.test('meets deadlines until none is left, then reads the next, and rests after a try in vain', async t => {
  const moves = [[1, 0, 2], [0, 3, 0], [0, 0, 0, 1], []]
  const lost: number[] = []
  let reads = 0
  let first = 1100
  const next = (n: number) => async () => moves[0]![n] ?? 0
  const deadlines = createDeadlines({
    fn: {
      recoverLeases: next(0),
      expireOutcomes: next(1),
      missUnclaimed: next(2),
      meetApprovals: async () => 0,
      expireSignals: async () => 0
    },
    readNext: async () => {
      reads++
      deadlines.isAt(first)
    },
    endPauses: next(3),
    recordExclusions: async () => 0,
    metrics: { claimsLost: count => void lost.push(count) },
    now: () => 1000
  })
  t.equal(deadlines.at, never)
  deadlines.expect(700)
  deadlines.expect(800)
  t.equal(deadlines.at, 700)
  for (const at of [0, 0, 0, 1100]) {
    await deadlines.meet()
    t.equal(deadlines.at, at)
    moves.shift()
  }
  t.same([lost, reads], [[1], 1])

  first = 900
  moves.push([])
  await deadlines.meet()
  t.equal(deadlines.at, 1500, 'the row is locked')
  deadlines.expect(950)
  t.equal(deadlines.at, 950, 'there is another row')
})

t.test('passes on what it reads: when the next work of each kind is due', async t => {
  const never: Awaited<ReturnType<Functions['nextWakes']>> = {
    waiting_at: null,
    deadline_at: null,
    due_at: null,
    window_at: null,
    job_queues: [],
    job_waits_ms: [],
    has_flights: false
  }
  let read = never
  let time = 1000
  const flights = { isEmpty: true }
  const passedOn: [string, number | undefined][] = []
  const note = (what: string) => (at: number) => void passedOn.push([what, at])
  const wakes = createWakeTimes({
    fn: { nextWakes: async () => read },
    flights,
    pump: { expectWaiting: note('waiting') },
    deadlines: { isAt: note('deadline') },
    ahead: { firstIs: note('due') },
    jobs: { expect: (queues, waits) => void passedOn.push([`jobs ${queues}`, waits[0]]) },
    now: () => time
  })
  t.ok(!wakes.isIdle() && wakes.mayHavePassedWindow(), 'until it has read otherwise')
  const after = async (reading: Partial<typeof never>) => {
    read = { ...never, ...reading }
    passedOn.length = 0
    await wakes.read()
    return passedOn
  }
  t.strictSame(await after({}), [
    ['due', Number.POSITIVE_INFINITY],
    ['jobs ', undefined]
  ])
  t.ok(wakes.isIdle())
  t.notOk(wakes.mayHavePassedWindow())
  const all = {
    waiting_at: new Date(900),
    due_at: new Date(800),
    job_queues: ['mails'],
    job_waits_ms: [700],
    has_flights: true,
    window_at: new Date(1500)
  }
  t.strictSame(await after({ ...all, deadline_at: new Date(2000) }), [
    ['waiting', 900],
    ['deadline', 2000],
    ['due', 800],
    ['jobs mails', 700]
  ])
  t.notOk(wakes.isIdle())
  t.ok(wakes.mayHavePassedWindow(), 'a cue that is due does not fire')
  await after({ ...all, due_at: new Date(3000) })
  t.notOk(wakes.mayHavePassedWindow())
  time = 1500
  t.ok(wakes.mayHavePassedWindow())
  await after({})
  t.ok(wakes.isIdle())
  flights.isEmpty = false
  t.notOk(wakes.isIdle())
  flights.isEmpty = true
  t.notOk(wakes.isIdle(), 'there may be flights of others')
  await after({})
  t.ok(wakes.isIdle())
})

t.test('the keeper runs each task at its interval, sooner on request, only when due, and rarely while idle', async t => {
  const runs: string[] = []
  let isDue = false
  let isIdle = false
  let time = 0
  t.intercept(performance, 'now', { value: () => time })
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const keeper = createKeeper({ tickMs: 1000, idleTickMs: 4000, isIdle: () => isIdle, run: task => void runs.push(task) })
  t.teardown(keeper.stop)
  keeper.soon('often')
  t.same(runs, [], 'not before it is started')
  keeper.start([
    { task: 'often', everyMs: 0, work: async () => {} },
    { task: 'rarely', everyMs: 3000, work: async () => {} },
    { task: 'when due', everyMs: 0, isDue: () => isDue, work: async () => {} }
  ])
  const runsIn = (ms: number) => {
    runs.length = 0
    for (const end = time + ms; time < end; ) {
      time += 1000
      mock.timers.tick(1000)
    }
    return [...runs]
  }
  t.same(runs, ['often', 'rarely'])
  t.same(runsIn(2000), ['often', 'often'])
  t.same(runsIn(1000), ['often', 'rarely'])
  isDue = true
  keeper.soon('rarely')
  t.same(runsIn(1000), ['often', 'rarely', 'when due'])
  isDue = false
  isIdle = true
  t.same(runsIn(1000), ['often', 'rarely'], 'idle: it would be late at the next tick')
  t.same(runsIn(3000), [])
  t.same(runsIn(5000), ['often', 'rarely', 'often', 'rarely'], 'all together')
  keeper.notice()
  t.same(runsIn(2000), [], 'still idle')
  keeper.soon('rarely')
  t.same(runsIn(1000), ['often', 'rarely'])
  isIdle = false
  keeper.notice()
  t.same(runsIn(2000), ['often', 'often'], 'no longer')
  isIdle = true
  runsIn(4000)
  keeper.stop()
  keeper.soon('rarely')
  isIdle = false
  keeper.notice()
  t.same(runsIn(5000), [], 'stopped, and a task that was still running asked for another')
})

const attempt = (flight_id: number, execution_id: string) => ({ flight_id, execution_id }) as BegunAttempt

/** Hands over two unsent attempts and two open ones of two flights. */
const handOverWith = async (refuse = (_what: string) => false) => {
  const steps: string[] = []
  const errors: string[] = []
  const step = async (what: string) => {
    if (refuse(what)) throw new Error(what)
    steps.push(what)
  }
  const returned = await handOver({
    engineId: 'e',
    pump: {
      stop: async () => [attempt(1, 'a'), attempt(2, 'b')],
      ended: async () => [attempt(1, 'c'), attempt(1, 'd')]
    },
    flights: {
      end: attempts => void steps.push(`end ${attempts.map(({ flight_id }) => flight_id)}`),
      removeEnded: () => step('remove flights')
    },
    results: { stop: async () => step('results') },
    fn: {
      stopEngine: async () => step('stop'),
      releaseFlight: async ({ flight_id, execution_ids }) => {
        await step(`release ${flight_id} ${execution_ids}`)
        return execution_ids.length
      },
      loseAttempts: async ({ flight_id, execution_ids }) => {
        await step(`lose ${flight_id} ${execution_ids}`)
        return execution_ids.length
      }
    },
    onError: (_, task) => void errors.push(task)
  })
  return { returned, steps, errors }
}

t.test('a stopping engine returns unsent attempts, then open ones, and writes its results', async t => {
  const { returned, steps, errors } = await handOverWith()
  t.equal(returned, 4)
  t.same(steps, ['stop', 'release 1 a', 'end 1', 'release 2 b', 'end 2', 'lose 1 c,d', 'end 1,1', 'results', 'remove flights'])
  t.same(errors, [])
})

t.test('leaves a flight that cannot be returned to its lease, and returns the others', async t => {
  const { returned, steps, errors } = await handOverWith(what => what === 'release 1 a' || what === 'stop')
  t.equal(returned, 3)
  t.same(steps, ['release 2 b', 'end 2', 'lose 1 c,d', 'end 1,1', 'results', 'remove flights'])
  t.same(errors, ['report stop', 'return attempts'])
})
