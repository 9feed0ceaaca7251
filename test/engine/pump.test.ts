import { stat } from 'node:fs'
import { setImmediate as tick } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { BegunAttempt } from '../../src/database/functions.ts'
import { createFastSlots } from '../../src/deliveries/capacity.ts'
import { createPump } from '../../src/deliveries/pump.ts'
import { createDueQueue } from '../../src/firing/due-queue.ts'
import { createRun } from '../support/run.ts'

/** An hour: no receiver is slow in a test that doesn't set the time. */
const slowAfterMs = 3_600_000

/** A pump over due cues. Taken attempts and responses arrive when the test says so. */
const setup = (t: Test, { due = 5000, concurrency = 100, spoiled = '' } = {}) => {
  const taken: number[] = []
  const arriving: ((isTaken?: boolean) => void)[] = []
  const sent: (() => void)[] = []
  const passedOver: string[] = []
  const asked: number[] = []
  const flights = new Map<number, number>()
  let left = due
  const none = () => {}
  const answer = { ok: true, http_status: 200, answer: '', headers: null, error: null, retry_after_ms: null, gone: false, duration_ms: 1 }
  const pump = createPump({
    fn: {
      takeDueCues: ({ cue_ids }: { cue_ids: string[] }) => {
        taken.push(cue_ids.length)
        if (cue_ids.includes(spoiled)) return Promise.reject(Object.assign(new Error('too long'), { code: '54000' }))
        const flight_id = taken.length
        const attempts = cue_ids.map(cue_id => ({ cue_id, account_id: cue_id, flight_id, plain: true }) as unknown as BegunAttempt)
        return new Promise(resolve => void arriving.push((isTaken = false) => resolve(isTaken ? attempts.slice(0, 2) : attempts)))
      },
      lookWaiting: async () => [],
      openLimits: async () => [],
      goneAttempts: async ({ attempts }: { attempts: number[] }) => {
        asked.push(attempts.length)
        return []
      }
    },
    ahead: {
      takeDue: (_lane: string, limit: number, admit: (account: string) => boolean) => {
        const count = Math.min(limit, left)
        left -= count
        const shared = { schedule: { schedule_rules: null }, slot: { next_run: new Date(0), next: null } }
        const cues = Array.from({ length: count }, (_, n) => ({ cue_id: `${left + n}`, account_id: `${left + n}`, ...shared }))
        return { cues: cues.filter(cue => admit(cue.account_id)), waiting: [] }
      },
      fired: none,
      tryAgain: none,
      doneWith: none,
      passOver: ({ cue_id }: { cue_id: string }) => passedOver.push(cue_id),
      expect: none,
      isLookDue: () => false,
      expectFrom: none
    },
    queue: createDueQueue(),
    flights: { add: (id: number, count: number) => flights.set(id, count), stands: () => true, has: () => true },
    results: { add: none },
    client: { post: () => new Promise(resolve => void sent.push(() => resolve(answer))) },
    request: () => ({}),
    now: Date.now,
    concurrency,
    leastOpen: 50,
    slowAfterMs,
    missedAfter: '60 seconds',
    run: createRun(() => pump.turn()),
    onChange: () => pump.turn(),
    onError: (error: unknown) => spoiled || t.error(error as Error),
    metrics: { taken: none, attemptEnded: none, attemptTook: none },
    log: { debug: none, info: none }
  } as unknown as Parameters<typeof createPump>[0])
  /** Makes more cues due. */
  const come = (count: number) => {
    left += count
    pump.turn()
  }
  /** Delivers the oldest batch taken. */
  const arrive = async () => {
    arriving.shift()!()
    await tick()
  }
  /** Answers that other engines have taken all but two of the oldest batch. */
  const arriveTaken = async () => {
    arriving.shift()!(true)
    await tick()
  }
  /** Responds to the given number of requests. */
  const end = async (count: number) => {
    for (const one of sent.splice(0, count)) one()
    await tick()
  }
  t.teardown(async () => {
    while (sent.length > 0) await end(sent.length)
  })
  return { pump, taken, sent, passedOver, asked, flights, come, arrive, arriveTaken, end }
}

t.test('takes a batch at a time while there are more, until enough are on hand', async t => {
  t.intercept(performance, 'now', { value: () => 1e6 })
  const { pump, taken, sent, arrive, end } = setup(t)
  pump.turn()
  t.strictSame(taken, [1000])
  await arrive()
  await arrive()
  t.strictSame(taken, [1000, 1000])
  t.equal(sent.length, 100, 'no more than there are slots')
  for (let n = 0; n < 9; n++) await end(100)
  t.equal(taken.length, 2, '1,000 are on hand')
  await end(100)
  t.equal(taken.length, 3, '900 are')
})

t.test('asks whether requests are still wanted only if their receivers are slow', async t => {
  let time = 1e6
  t.intercept(performance, 'now', { value: () => time })
  const { pump, asked, come, arrive, end } = setup(t, { due: 50 })
  pump.turn()
  await arrive()
  time += slowAfterMs - 1
  await pump.abortGone()
  t.strictSame(asked, [])
  come(2)
  await arrive()
  time += 1
  await pump.abortGone()
  t.strictSame(asked, [50])
  await end(50)
  await pump.abortGone()
  t.strictSame(asked, [50], 'the others are fast so far')
})

t.test('a second statement takes more only if the first, which takes many, lasts 250 ms', async t => {
  let time = 1e6
  t.intercept(performance, 'now', { value: () => time })
  const { pump, taken, come, arrive } = setup(t, { due: 2100 })
  pump.turn()
  time += 249
  come(0)
  t.strictSame(taken, [1000])
  time += 1
  come(0)
  t.strictSame(taken, [1000, 1000])
  time += 250
  come(0)
  t.strictSame(taken, [1000, 1000], 'no third one')
  await arrive()
  t.strictSame(taken, [1000, 1000, 100])
})

t.test('cues gather for 10 ms after a statement that takes few has begun', async t => {
  let time = 1e6
  t.intercept(performance, 'now', { value: () => time })
  const { taken, come, arrive } = setup(t, { due: 0 })
  come(49)
  time += 9
  come(30)
  t.strictSame(taken, [49])
  time += 1
  come(10)
  t.strictSame(taken, [49, 40], 'it may wait for a lock')
  await arrive()
  await arrive()
  time += 9
  come(5)
  t.strictSame(taken, [49, 40])
  time += 1
  come(5)
  t.strictSame(taken, [49, 40, 10])
})

t.test('takes nothing for 50 ms after a statement for cues of which others had taken most', async t => {
  let time = 1e6
  t.intercept(performance, 'now', { value: () => time })
  const { taken, come, arrive, arriveTaken } = setup(t, { due: 0 })
  come(5)
  await arriveTaken()
  time += 49
  come(5)
  t.strictSame(taken, [5])
  time += 1
  come(5)
  t.strictSame(taken, [5, 10])
  await arrive()
  time += 10
  come(5)
  t.strictSame(taken, [5, 10, 5], 'not after one that took any')
})

t.test('skips a cue that the database rejects, and sends the others of its batch', async t => {
  const { pump, sent, passedOver, flights, arrive } = setup(t, { due: 8, spoiled: '5' })
  pump.turn()
  for (let n = 0; n < 6 && sent.length < 7; n++) {
    await tick()
    await tick()
    if (flights.size < 3) await arrive().catch(() => {})
  }
  t.same(passedOver, ['5'])
  t.equal(sent.length, 7)
  t.equal(
    [...flights.values()].reduce((a, b) => a + b),
    7
  )
  t.ok(flights.size > 1)
})

t.test('a response that arrived while the process was busy is not slow', async t => {
  const slow: string[] = []
  const fast = createFastSlots({ slots: 1, slowAfterMs: 1, onSlow: account => slow.push(account) })
  await new Promise<void>(resolve =>
    setImmediate(() => {
      const giveBack = fast.lend('a')
      // Like the response, it is there before the loop goes on, and read after the timers have run.
      stat('.', () => {
        giveBack()
        setImmediate(resolve)
      })
      for (const end = performance.now() + 50; performance.now() < end; );
    })
  )
  t.same(slow, [])
})
