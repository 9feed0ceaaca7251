// Recording results while the database fails, and the flights meanwhile. The SQL functions are stubs.
import pg from 'pg'
import t, { type Test } from 'tap'
import type { BegunAttempt, Functions } from '../../src/database/functions.ts'
import { createFlights } from '../../src/deliveries/flights.ts'
import { createLeases } from '../../src/deliveries/leases.ts'
import { type AttemptResult, batchSize, createResults } from '../../src/deliveries/results.ts'
import { eventually } from '../support/eventually.ts'

type Statement = { execution_ids: string[]; done: () => void; fail: (error: object) => void }

const away = { code: 'ECONNREFUSED' }
const delivered: AttemptResult = {
  started_at: 0,
  duration_ms: 1,
  http_status: 200,
  body: '',
  error: null,
  headers: null,
  retry_after_ms: null,
  gone: false,
  reported: null
}

/** Results whose statements complete when the test says so. */
const setUp = () => {
  const statements: Statement[] = []
  const removed: number[] = []
  const logged: string[] = []
  const held: string[] = []
  const flights = createFlights({
    extendFlights: async ({ flight_ids }) => flight_ids,
    endFlights: async ({ flight_ids }) => void removed.push(...flight_ids)
  })
  const finishAttempts: Functions['finishAttempts'] = ({ execution_ids }) =>
    new Promise((resolve, reject) => {
      statements.push({ execution_ids, done: () => resolve(execution_ids.length), fail: reject })
    })
  const results = createResults({
    fn: { finishAttempts, settleAttempts: () => Promise.reject(new Error('nothing is refused here')), heldAttempts: async () => held },
    flights,
    onWritten: () => {},
    log: { warn: () => {}, error: (_: object, message?: string) => void logged.push(String(message)) } as never
  })
  let added = 0
  /** Ends the given number of a flight's attempts. */
  const end = (flight_id: number, count: number) => {
    for (let n = 0; n < count; n++) {
      const attempt = { execution_id: `e${added++}`, flight_id, attempt: 1, cue_id: 'c', plain: true } as BegunAttempt
      results.add(attempt, delivered)
    }
  }
  const statement = (n: number) => eventually(() => statements[n])
  return { flights, results, statements, removed, logged, held, end, statement }
}

t.test('keeps a flight until the last of its results is recorded, and then removes its row with the next extension', async t => {
  const { flights, end, statement, removed } = setUp()
  flights.add(7, batchSize + 10, performance.now())
  end(7, batchSize + 10)
  const held = await statement(0)
  t.equal(held.execution_ids.length, batchSize)
  held.fail(away)
  const again = await statement(1)
  t.same(again.execution_ids, held.execution_ids)
  again.done()
  const rest = await statement(2)
  await flights.extend()
  t.same([rest.execution_ids.length, flights.has(7), removed], [10, true, []], 'extended while results are held')
  rest.done()
  await eventually(() => !flights.has(7))
  t.notOk(flights.isEmpty)
  await flights.extend()
  await flights.extend()
  t.same([removed, flights.isEmpty], [[7], true])
})

t.test('results gather while others of their kind are being written, up to the size of a statement', async t => {
  const { flights, end, statements, statement } = setUp()
  flights.add(1, batchSize + 3, performance.now())
  end(1, 1)
  await statement(0)
  end(1, 2)
  await new Promise(resolve => setTimeout(resolve, 80))
  end(1, batchSize)
  t.equal(statements.length, 1)
  statements[0]!.done()
  t.equal((await statement(1)).execution_ids.length, batchSize)
  statements[1]!.done()
  t.equal((await statement(2)).execution_ids.length, 2)
})

t.test('a result that cannot be recorded lets its own flight expire, and no other', async t => {
  const { flights, end, statement, removed, logged } = setUp()
  flights.add(1, 2, performance.now())
  flights.add(2, 1, performance.now())
  end(1, 2)
  end(2, 1)
  const refusal = { code: '22P05', message: 'this cannot be stored' }
  for (const n of [0, 1]) (await statement(n)).fail(refusal)
  const rest = await statement(2)
  t.same(rest.execution_ids, ['e1', 'e2'])
  t.ok(flights.has(1), 'the others are still open')
  rest.done()
  await eventually(() => !flights.has(1))
  await flights.extend()
  t.same(removed, [2], 'the row of the first stays until it is recovered')
  t.same(logged, ['result not recorded'])
})

t.test('leaves held results to recovery when the engine stops, without an error', async t => {
  const { flights, results, end, statement, statements, logged } = setUp()
  flights.add(1, 1, performance.now())
  end(1, 1)
  const held = await statement(0)
  await results.stop(AbortSignal.timeout(1))
  held.fail(new Error('Cannot use a pool after calling end on the pool'))
  await new Promise(resolve => setImmediate(resolve))
  t.equal(statements.length, 1)
  t.same(logged, [])
})

// Leases ------------------------------------------------------------------------------------------------------------------------------

/** Leases on a stopped clock, asked every second whether to recover. */
const leasesOf = (t: Test, extend: () => Promise<void> = async () => {}) => {
  const clock = { time: 1e6, connectedAt: 1e6 as number | null }
  t.intercept(performance, 'now', { value: () => clock.time })
  const frees = [20, 3, 0]
  const askedAt: Date[] = []
  const leases = createLeases({
    fn: {
      recoverFlights: async ({ asked_at }) => {
        askedAt.push(asked_at!)
        return frees.shift() ?? 0
      }
    },
    flights: { extend } as never,
    now: () => 5000,
    connectedAt: () => clock.connectedAt,
    metrics: { attemptEnded: () => {} },
    log: { warn: () => {} } as never
  })
  /** Advances seconds, and returns after how many recovery was due, or -1. */
  const dueWithin = (seconds: number) => {
    for (let second = 1; second <= seconds; second++) {
      clock.time += 1000
      if (leases.isRecoveryDue()) return second
    }
    return -1
  }
  return { clock, leases, askedAt, dueWithin }
}

t.test('judges leases only while connected, from three seconds after connecting', async t => {
  const { clock, leases, dueWithin } = leasesOf(t)
  t.equal(dueWithin(10), 3)
  await leases.recover()
  t.equal(dueWithin(10), 2, 'and every two seconds')
  clock.connectedAt = null
  t.equal(dueWithin(10), -1)
  clock.connectedAt = clock.time
  t.equal(dueWithin(10), 3)
})

t.test('an engine that was frozen does not judge leases', async t => {
  const { clock, dueWithin } = leasesOf(t)
  dueWithin(10)
  clock.time += 40_000
  t.equal(dueWithin(10), 4, 'the first look tells that it was')
})

t.test('an engine with late or no responses does not judge leases', async t => {
  let fail = false
  const { leases, dueWithin } = leasesOf(t, async () => {
    if (fail) throw new Error('Query read timeout')
    for (let second = 0; second < 3; second++) dueWithin(1)
  })
  dueWithin(10)
  await leases.extend()
  t.equal(dueWithin(10), 3)
  fail = true
  await t.rejects(leases.extend())
  t.equal(dueWithin(10), 3)
})

t.test('retries a failed extension immediately', async t => {
  let tries = 0
  const { leases } = leasesOf(t, async () => {
    if (tries++ === 0) throw new Error('Connection terminated unexpectedly')
  })
  await leases.extend()
  t.equal(tries, 2)
})

t.test('recovers until nothing is left, and passes the time of the request', async t => {
  const { leases, askedAt } = leasesOf(t)
  await leases.recover()
  t.same(askedAt, [new Date(5000), new Date(5000), new Date(5000)])
})

t.test('records results of a locked row later, and the others immediately', async t => {
  const { flights, end, statement, statements, held, logged } = setUp()
  flights.add(7, 3, performance.now())
  end(7, 3)
  held.push('e1')
  const lockTimeout = Object.assign(new pg.DatabaseError('canceling statement due to lock timeout', 1, 'error'), { code: '55P03' })
  ;(await statement(0)).fail(lockTimeout)
  const others = await statement(1)
  t.same(others.execution_ids, ['e0', 'e2'])
  others.done()
  held.length = 0
  const late = await statement(2)
  t.same(late.execution_ids, ['e1'])
  t.ok(flights.has(7), 'the flight holds it')
  late.done()
  await eventually(() => !flights.has(7))
  t.equal(statements.length, 3)
  t.same(logged, [])
})

t.test('holds all results while a whole table is locked, then records them', async t => {
  const { flights, end, statement } = setUp()
  flights.add(7, 3, performance.now())
  end(7, 3)
  const lockTimeout = Object.assign(new pg.DatabaseError('canceling statement due to lock timeout', 1, 'error'), { code: '55P03' })
  for (const n of [0, 1]) (await statement(n)).fail(lockTimeout)
  const last = await statement(2)
  t.same(last.execution_ids, ['e0', 'e1', 'e2'])
  last.done()
  await eventually(() => !flights.has(7))
})
