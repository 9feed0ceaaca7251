/** Each lease is defined once, in sql/constants.sql; every grant, extension and check of a lease uses it. */
import t from 'tap'
import { catalog } from '../../scripts/catalog.ts'
import { constants } from '../../src/catalog.ts'
import type { BegunAttempt } from '../../src/database/functions.ts'
import { createFlights } from '../../src/deliveries/flights.ts'
import { leaseTimes } from '../../src/deliveries/leases.ts'
import { createPump } from '../../src/deliveries/pump.ts'
import { createDueQueue } from '../../src/firing/due-queue.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { createRun } from '../support/run.ts'
import { once, refused, stage } from '../support/stage.ts'

t.test('every function that grants a lease uses its constant', async t => {
  const { rows } = await stage(t)
  const leased = await rows(
    `select proname as name, substring(pg_get_function_arguments(oid) from 'p_lease interval DEFAULT ([^,]+)') as lease
       from pg_proc where pronamespace = 'cue'::regnamespace and 'p_lease' = any (proargnames)`
  )
  const flights = ['begin_attempts', 'extend_flights', 'take_due_cues', 'take_last_slots']
  for (const { name, lease } of leased) {
    if (name === 'begin_claims') continue // called by the others
    t.equal(lease, flights.includes(name) ? 'cue.flight_lease()' : 'cue.claim_lease()', name)
  }
  t.same(
    leased.map(({ name }) => name).filter(name => flights.includes(name)).sort(), // biome-ignore format: one line
    flights
  )
})

t.test('a changed lease applies to taking, extending and recovering flights', async t => {
  const { rows, row, cue, take, settle, fn, clock, pool } = await stage(t)
  const original = (await row("select pg_get_functiondef('cue.flight_lease()'::regprocedure) as text")).text
  t.teardown(() => rows(original))
  await rows("create or replace function cue.flight_lease() returns interval language sql immutable as $$ select interval '2 seconds' $$")

  const generated = /flightLeaseMs: (\d+)/.exec(await catalog(pool))
  t.equal(generated?.[1], '2000', "the service's copy")
  const end = async ({ flight_id }: BegunAttempt) =>
    (await row('select lease_expires_at as at from cue.flights where id = $1', [flight_id])).at
  const inSeconds = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000)

  const [taken] = await take([await cue()])
  t.same(await end(taken!), inSeconds(2), 'take_due_cues')
  clock.advance('1 second')
  t.same(await fn.extendFlights({ flight_ids: [taken!.flight_id] }), [taken!.flight_id])
  t.same(await end(taken!), inSeconds(2), 'extend_flights')
  clock.advance('2 seconds')
  t.equal(await fn.recoverFlights({}), 0, 'the lease is valid')
  clock.advance('0.001 seconds')
  t.equal(await fn.recoverFlights({}), 1, 'the lease has expired')

  const [again] = await fn.beginAttempts({ execution_ids: [taken!.execution_id] })
  t.same(await end(again!), inSeconds(2), 'begin_attempts')
  const waiting = await take([await cue(once)], { next: null })
  await settle(waiting, refused)
  clock.advance('1 hour')
  const [begun] = await beginWaiting(fn, { limit: 1 })
  t.same(await end(begun!), inSeconds(2), 'a waiting attempt')
})

t.test('an engine keeps to the lease it is granted: it extends it in time and stops sending before its end', async t => {
  let time = 1000
  t.intercept(performance, 'now', { value: () => time })
  const granted: unknown[] = []
  for (const leaseMs of [constants.flightLeaseMs, 2000]) {
    granted.length = 0
    const lease = `${leaseMs} milliseconds`
    const grant = async (args: { lease: string }) => {
      granted.push(args.lease)
      return []
    }
    const fn = {
      takeDueCues: grant,
      beginAttempts: grant,
      lookWaiting: async () => [{ execution_id: 'e', account_id: 'a', due_at: 1, is_due: true }],
      extendFlights: async (args: { lease: string; flight_ids: number[] }) => {
        granted.push(args.lease)
        return args.flight_ids
      },
      endFlights: async () => {},
      openLimits: async () => []
    }
    const flights = createFlights(fn as never, leaseMs)
    let due = [{ cue_id: 'c', account_id: 'a', schedule: { schedule_rules: null }, slot: { next_run: new Date(0), next: null } }]
    const none = () => {}
    const queue = createDueQueue()
    const pump = createPump({
      fn,
      ahead: {
        takeDue: (kind: 'send', limit: number) => ({ cues: due.splice(0), waiting: queue.take(kind, 1e6, limit) }),
        doneWith: none,
        tryAgain: none,
        expectFrom: none,
        isLookDue: () => false
      },
      queue,
      flights,
      now: () => 1e6,
      concurrency: 1,
      leastOpen: 50,
      missedAfter: '1 minute',
      run: createRun(none),
      onChange: none,
      onError: (error: Error) => t.error(error)
    } as never)
    for (let n = 0; n < 3; n++) {
      pump.turn()
      await new Promise(setImmediate)
      time += 100 // few cues gather, and a statement that won few of them is followed by a pause
    }
    flights.add(7, 1, time)
    await flights.extend()
    exactly(t, granted, [lease, lease, lease], 'taken, begun and extended')

    time += leaseMs * (7 / 8) - 1
    t.ok(flights.stands(7))
    time += 1
    t.notOk(flights.stands(7), 'while others may not recover it yet')
    due = []
    const { extendMs, answerMs, settledMs, silentMs, idleMs } = leaseTimes(leaseMs)
    t.ok(extendMs + 2 * answerMs <= leaseMs, 'a failed extension can be repeated within the lease')
    t.ok(silentMs > extendMs && settledMs > silentMs && settledMs < leaseMs)
    t.ok(idleMs <= leaseMs, 'a flight is seen before its lease can expire')
    t.ok(idleMs > silentMs, 'an idle engine that sees one leaves its holder time to extend the lease')
  }
})
