// Waiting attempts, and attempts of engines that died: flights and the sweeps.
import t from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { setLockTimeout } from '../support/patient.ts'
import { refused, stage } from '../support/stage.ts'

t.test('begin_attempts begins due attempts, oldest first, and removes their jobs', async t => {
  const { cue, take, settle, fn, clock, jobs, execution, rows } = await stage(t)
  const first = await take([await cue({ retry_backoff_minutes: [1] })])
  await settle(first, refused)
  const second = await take([await cue({ retry_backoff_minutes: [2], payload: '{"which": "second"}' })])
  await settle(second, refused)
  clock.advance('1 hour')
  const [one] = await beginWaiting(fn, { limit: 1 })
  exactly(t, one, {
    execution_id: first[0]!.execution_id,
    attempt: 2,
    plain: true,
    secrets: [/^whsec_/],
    payload: '{"n": 1}',
    timeout_seconds: 30
  })
  t.same(
    (await jobs()).map(job => job.id),
    [second[0]!.execution_id]
  )
  exactly(t, await execution(one!.execution_id), {
    status: 'delivering',
    attempts: 2,
    attempt_due_at: null,
    flight_id: one!.flight_id,
    last_attempt_at: clock.now(),
    started_at: new Date('2030-01-15T09:00:00Z')
  })
  exactly(t, await rows('select * from cue.flights where id = $1', [one!.flight_id]), [
    { execution_ids: [one!.execution_id], lease_expires_at: new Date(clock.now().getTime() + 4000) }
  ])
  exactly(t, await beginWaiting(fn, { limit: 10 }), [{ payload: '{"which": "second"}', attempt: 2 }])
  t.same(await beginWaiting(fn, { limit: 10 }), [])
})

t.test('begin_attempts skips attempts without a job, and requeue_attempts creates their jobs', async t => {
  const { begun, settle, fn, clock, rows, jobs } = await stage(t)
  const attempt = await begun({ retry_backoff_minutes: [1] })
  await settle([attempt], refused)
  const before = await jobs()
  await rows('delete from pgboss.job')
  clock.advance('1 hour')
  t.same(await beginWaiting(fn, { limit: 10 }), [])
  t.equal(await fn.requeueAttempts({}), 1)
  t.same(await jobs(), before)
  t.equal(await fn.requeueAttempts({}), 0)
  exactly(t, await beginWaiting(fn, { limit: 10 }), [{ execution_id: attempt.execution_id }])
})

t.test('replaces a job that pg-boss considers finished', async t => {
  const { begun, settle, fn, clock, rows, jobs } = await stage(t)
  const attempt = await begun({ retry_backoff_minutes: [1] })
  await settle([attempt], refused)
  await rows("update pgboss.job set state = 'failed'")
  clock.advance('1 hour')
  t.same(await beginWaiting(fn, { limit: 10 }), [])
  t.equal(await fn.requeueAttempts({}), 1)
  exactly(t, await jobs(), [{ state: 'created' }])
  t.equal((await beginWaiting(fn, { limit: 10 })).length, 1)
})

t.test('attempts of other accounts can be left for later', async t => {
  const { cue, take, settle, fn, clock, account } = await stage(t)
  const other = await account()
  const attempts = [...(await take([await cue()])), ...(await take([await cue({}, { account_id: other })]))]
  await settle(attempts, refused)
  clock.advance('1 hour')
  exactly(t, await beginWaiting(fn, { limit: 10, skip_accounts: [other] }), [{ execution_id: attempts[0]!.execution_id }])
  exactly(t, await beginWaiting(fn, { limit: 10 }), [{ account_id: other }])
})

t.test('begins no attempt of a deleted cue', async t => {
  const { begun, settle, fn, clock, account_id } = await stage(t)
  const attempt = await begun()
  await settle([attempt], refused)
  await fn.deleteCue({ account_id, cue_id: attempt.cue_id })
  clock.advance('1 hour')
  t.same(await beginWaiting(fn, { limit: 10 }), [])
})

t.test('a deferred fire is not begun before its time', async t => {
  const { cue, fn, clock, account_id } = await stage(t)
  const send_at = new Date('2030-01-15T10:00:00Z')
  const { id } = await fn.fireCue({ account_id, cue_id: await cue(), send_at })
  t.same((await fn.nextWakes({})).waiting_at, send_at)
  clock.set('2030-01-15T09:59:59.999Z')
  t.same(await beginWaiting(fn, { limit: 10 }), [])
  clock.set(send_at)
  exactly(t, await beginWaiting(fn, { limit: 10 }), [{ execution_id: id, attempt: 1, scheduled_for: send_at }])
})

t.test('finds the next cue, window and job, and whether anything is in flight', async t => {
  const { cue, take, fn, rows } = await stage(t)
  const empty = { waiting_at: null, deadline_at: null, due_at: null, window_at: null, job_queues: [], job_waits_ms: [], has_flights: false }
  t.strictSame(await fn.nextWakes({}), empty)
  const [first, second] = [await cue(), await cue()]
  const [run] = await rows('select min(next_run) as due_at from cue.cue_runs')
  t.strictSame(await fn.nextWakes({}), { ...empty, ...run })
  const window = (cueId: string, end: string) => rows(`update cue.cue_runs set success_due_at = ${end} where cue_id = $1`, [cueId])
  await rows("update cue.cue_runs set next_run = next_run + interval '1 hour' where cue_id = $1", [second])
  await window(first, 'next_run')
  t.strictSame(await fn.nextWakes({}), { ...empty, ...run }, 'not while the cue is due sooner')
  await window(first, "next_run - interval '1 minute'")
  await window(second, 'next_run')
  const window_at = new Date(+run!.due_at - 60_000)
  t.strictSame(await fn.nextWakes({}), { ...empty, ...run, window_at })
  await rows('update cue.cue_runs set next_run = null where cue_id = $1', [first])
  t.strictSame((await fn.nextWakes({})).window_at, window_at, 'it does not run again')
  await rows('update cue.cue_runs set next_run = $2 where cue_id = $1', [first, run!.due_at])
  const [attempt] = await take([first])
  const taken = await fn.nextWakes({})
  t.ok(taken.due_at! > run!.due_at)
  t.equal(taken.has_flights, true)
  await fn.endFlights({ flight_ids: [attempt!.flight_id] })
  t.equal((await fn.nextWakes({})).has_flights, false)
  await fn.addJob({ queue: 'mails', data: {}, start_after: new Date(Date.now() + 120_000) })
  await fn.addJob({ queue: 'alerts', data: {}, start_after: new Date(Date.now() + 60_000) })
  const { job_queues, job_waits_ms } = await fn.nextWakes({})
  const waits = job_queues.map((queue, n) => [queue, Math.round(job_waits_ms[n]! / 10_000)])
  t.same(waits.sort(), [
    ['alerts', 6],
    ['mails', 12]
  ])
})

t.test('simultaneous begin_attempts calls share the attempts and begin each once', async t => {
  const { cue, take, settle, clock, connect, rows } = await stage(t)
  const ids = await Promise.all(Array.from({ length: 10 }, () => cue()))
  await settle(await take(ids), refused)
  clock.advance('1 hour')
  const [a, b] = [await connect(), await connect()]
  await a.client.query('begin')
  await b.client.query('begin')
  const first = await beginWaiting(a.fn, { limit: 4 })
  const second = await beginWaiting(b.fn, { limit: 10 })
  await a.client.query('rollback')
  await b.client.query('commit')
  t.equal(first.length, 4)
  t.equal(second.length, 6)
  t.equal(new Set([...first, ...second].map(attempt => attempt.execution_id)).size, 10)
  t.same(await rows('select status, count(*) from cue.executions group by 1 order by 1'), [
    { status: 'delivering', count: 6 },
    { status: 'retrying', count: 4 }
  ])
})

t.test('an execution cancelled during begin_attempts is either cancelled or begun', async t => {
  const { begun, settle, clock, connect, account_id, execution, jobs } = await stage(t)
  const attempt = await begun()
  await settle([attempt], refused)
  clock.advance('1 hour')
  const { execution_id } = attempt
  const [a, b] = [await connect(), await connect()]
  await a.client.query('begin')
  await a.fn.cancelExecution({ account_id, execution_id })
  t.same(await beginWaiting(b.fn, { limit: 10 }), [], 'locked by the cancellation')
  await a.client.query('commit')
  t.same(await beginWaiting(b.fn, { limit: 10 }), [])
  exactly(t, await execution(execution_id), { status: 'failed', error_message: 'cancelled' })
  t.same(await jobs(), [])
})

// Flights ----------------------------------------------------------------------------------------------------------------------------

t.test('extend_flights extends flights and returns those still held', async t => {
  const { cue, take, fn, clock } = await stage(t)
  const [kept] = await take([await cue()])
  const [lapsed] = await take([await cue()])
  clock.advance('3 seconds')
  t.same(await fn.extendFlights({ flight_ids: [kept!.flight_id] }), [kept!.flight_id])
  clock.advance('2 seconds')
  t.equal(await fn.recoverFlights({}), 1)
  t.same(await fn.extendFlights({ flight_ids: [kept!.flight_id, lapsed!.flight_id] }), [kept!.flight_id])
  clock.advance('3.9 seconds')
  t.equal(await fn.recoverFlights({}), 0)
})

t.test('recovering an expired flight makes its executions retry_ready, due now, and logs the attempt as lost', async t => {
  const { begun, fn, clock, execution, attempts, jobs, rows } = await stage(t)
  const attempt = await begun()
  clock.advance('5 seconds')
  t.equal(await fn.recoverFlights({}), 1)
  exactly(t, await execution(attempt.execution_id), {
    status: 'retry_ready',
    attempts: 1,
    lost_attempts: 1,
    flight_id: null,
    attempt_due_at: clock.now(),
    ended_at: null
  })
  exactly(t, await attempts(attempt.execution_id), [{ attempt: 1, result: 'lost', duration_ms: 5000, http_status: null }])
  exactly(t, await jobs(), [{ id: attempt.execution_id, start_after: clock.now() }])
  t.same(await rows('select * from cue.flights'), [])
  t.equal(await fn.recoverFlights({}), 0)
})

t.test('does not recover flights that expired after the request for recovery', async t => {
  const { begun, fn, clock } = await stage(t)
  await begun()
  const asked_at = clock.now()
  clock.advance('20 seconds')
  t.equal(await fn.recoverFlights({ asked_at }), 0)
  t.equal(await fn.recoverFlights({ asked_at: clock.now() }), 1)
})

t.test('simultaneous recoveries take different flights', async t => {
  const { cue, take, clock, connect } = await stage(t)
  for (let i = 0; i < 3; i++) await take([await cue()])
  clock.advance('5 seconds')
  const [a, b] = [await connect(), await connect()]
  await a.client.query('begin')
  t.equal(await a.fn.recoverFlights({ limit: 2 }), 2)
  t.equal(await b.fn.recoverFlights({}), 1)
  await a.client.query('commit')
  t.equal(await b.fn.recoverFlights({}), 0)
})

t.test('an execution is missed after five lost attempts, and on_failure applies', async t => {
  const { begun, fn, clock, execution, attempts, jobs, run } = await stage(t)
  const attempt = await begun({ on_failure_email: true, on_failure_pause: true })
  for (let lost = 1; lost <= 5; lost++) {
    clock.advance('5 seconds')
    t.equal(await fn.recoverFlights({}), 1)
    t.equal((await beginWaiting(fn, { limit: 1 })).length, lost < 5 ? 1 : 0)
  }
  exactly(t, await execution(attempt.execution_id), {
    status: 'missed',
    attempts: 5,
    lost_attempts: 5,
    ended_at: clock.now(),
    attempt_due_at: null
  })
  t.same(
    (await attempts(attempt.execution_id)).map(row => row.result),
    Array(5).fill('lost')
  )
  exactly(t, await run(attempt.cue_id), { status: 'paused', failed_deliveries: 1 })
  t.equal((await jobs('mails')).length, 1)
})

t.test('an expired flight cannot take a later attempt', async t => {
  const { begun, fn, clock, rows, execution } = await stage(t)
  const attempt = await begun()
  const [flight] = await rows('select * from cue.flights')
  clock.advance('5 seconds')
  await fn.recoverFlights({})
  const [second] = await beginWaiting(fn, { limit: 1 })
  // The old flight's row again, as after a crash during its removal.
  await rows('insert into cue.flights (id, execution_ids, lease_expires_at) values ($1, $2, $3)', [
    flight.id,
    flight.execution_ids,
    flight.lease_expires_at
  ])
  t.equal(await fn.recoverFlights({}), 0)
  t.equal(await fn.loseAttempts({ flight_id: flight.id, execution_ids: flight.execution_ids, error: 'stopped' }), 0)
  t.equal(await fn.releaseFlight({ flight_id: flight.id, execution_ids: flight.execution_ids }), 0)
  exactly(t, await execution(attempt.execution_id), { status: 'delivering', attempts: 2, flight_id: second!.flight_id, lost_attempts: 1 })
})

t.test('a result recorded during recovery of its flight waits, and is dropped', async t => {
  const { begun, clock, connect, execution, finish, rows } = await stage(t)
  await setLockTimeout(rows, 'short', '10s')
  const attempt = await begun()
  clock.advance('5 seconds')
  const [a, b] = [await connect(), await connect()]
  await a.client.query('begin')
  await a.fn.recoverFlights({})
  const late = finish([attempt], b.fn)
  await b.blocked()
  await a.client.query('commit')
  t.equal(await late, 0)
  exactly(t, await execution(attempt.execution_id), { status: 'retry_ready' })
})

t.test('ending a flight does not wait for a lock on it', async t => {
  const { begun, connect, finish, rows, fn, clock } = await stage(t)
  const attempt = await begun()
  const { client } = await connect()
  await client.query('begin')
  await client.query('select from cue.flights for update')
  t.equal(await finish([attempt]), 1)
  await fn.endFlights({ flight_ids: [attempt.flight_id] })
  await client.query('rollback')
  clock.advance('5 seconds')
  t.equal(await fn.recoverFlights({}), 0, 'removed when it expires')
  t.same(await rows('select * from cue.flights'), [])
})

// Stuck in delivering: a minute past its timeout and five minutes old, although its engine is alive.
for (const [timeout_seconds, seconds, stuck] of [
  [30, 299, false],
  [30, 301, true],
  [3600, 3659, false],
  [3600, 3661, true]
] as const) {
  t.test(`an attempt of ${timeout_seconds} s is ${stuck ? '' : 'not '}stuck after ${seconds} s`, async t => {
    const { begun, fn, clock, execution, attempts } = await stage(t)
    const attempt = await begun({ timeout_seconds, outcome_deadline_seconds: 300, claim_timeout_seconds: 900, await_outcome: false })
    clock.advance(`${seconds} seconds`)
    await fn.extendFlights({ flight_ids: [attempt.flight_id] })
    t.equal(await fn.recoverStuck({}), stuck ? 1 : 0)
    const after = await execution(attempt.execution_id)
    exactly(t, after, stuck ? { status: 'retrying', attempt_due_at: clock.now(), flight_id: null } : { status: 'delivering' })
    exactly(t, await attempts(attempt.execution_id), stuck ? [{ result: 'failed', http_status: null }] : [])
  })
}
