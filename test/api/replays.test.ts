/** Replaying and cancelling executions. */
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { once, service, start, webhook, worker } from '../support/executions-stage.ts'
import { error } from '../support/setup.ts'

t.test('a replay is a new execution with the payload of the original, which stays unchanged', async t => {
  const { get, call, cue, ran, patch, clock } = await service()
  const cue_id = await cue({ ...webhook, payload: { from: 'the cue', both: 1 } })
  const id = await ran(cue_id, {}, { payload_override: { from: 'the fire' } })
  const before = await get(`/v1/executions/${id}`)
  await patch(`/v1/cues/${cue_id}`, { payload: { changed: true } })
  clock.advance('1 hour')
  const { status, body } = await call('POST', `/v1/executions/${id}/replay`)
  t.equal(status, 200)
  t.same(body, {
    id: body.id,
    execution_id: body.id,
    cue_id,
    scheduled_for: clock.now().toISOString(),
    status: 'pending',
    triggered_by: 'replay',
    replayed_from: id
  })
  exactly(t, await get(`/v1/executions/${body.id}`), {
    payload: { from: 'the fire', both: 1 },
    triggered_by: 'replay',
    replayed_from: id,
    attempts: 0
  })
  t.same(await get(`/v1/executions/${id}`), before)
  exactly(t, await get(`/v1/cues/${cue_id}`), { run_count: 2, fired_count: 0 })
})

const allStatuses: [status: string, columns: string, ended: boolean][] = [
  ['pending', ``, false],
  ['delivering', `started_at = now(), attempt_due_at = null, flight_id = 1`, false],
  ['success', `started_at = now(), attempt_due_at = null, ended_at = now()`, true],
  ['failed', `attempt_due_at = null, ended_at = now()`, true],
  ['retrying', `started_at = now()`, false],
  ['retry_ready', `started_at = now()`, false],
  ['missed', `attempt_due_at = null, ended_at = now()`, true],
  ['pending_outcome', `started_at = now(), attempt_due_at = null, outcome_deadline_at = now()`, false],
  ['outcome_timeout', `started_at = now(), attempt_due_at = null, ended_at = now()`, true]
]
for (const [status, columns, ended] of allStatuses) {
  t.test(`an execution that is ${status} ${ended ? 'can' : 'cannot'} be replayed`, async t => {
    const { call, cue, fire, set, get, jobsOf, pool } = await service()
    const id = await fire(await cue())
    await set(id, `status = '${status}'${columns && `, ${columns}`}`)
    const jobs = async () => (await pool.query('select from pgboss.job')).rowCount!
    const before = await jobs()
    const answer = await call('POST', `/v1/executions/${id}/replay`)
    t.equal(await jobs(), before + (ended ? 1 : 0))
    exactly(t, answer, ended ? { status: 200, body: { replayed_from: id } } : error('execution_in_flight', 409))
    t.equal((await get('/v1/executions')).total, ended ? 2 : 1)
    t.equal((await jobsOf(answer.body.id)).length, ended ? 1 : 0)
  })

  const cancellable = ['pending', 'retrying', 'retry_ready'].includes(status)
  t.test(`an execution that is ${status} ${cancellable ? 'can' : 'cannot'} be cancelled`, async t => {
    const { call, cue, fire, set, get, jobsOf, clock } = await service()
    const id = await fire(await cue({ ...webhook, on_failure: { email: true, webhook: null, pause: true } }))
    await set(id, `status = '${status}'${columns && `, ${columns}`}`)
    clock.advance('1 minute')
    const answer = await call('POST', `/v1/executions/${id}/cancel`)
    if (!cancellable) {
      exactly(t, answer, error('invalid_state', 409))
      exactly(t, await get(`/v1/executions/${id}`), { status, error_message: null })
      return
    }
    exactly(t, answer, { status: 200, body: { id, status: 'failed', error_message: 'cancelled' } })
    t.same(Object.keys(answer.body), ['id', 'status', 'error_message'])
    exactly(t, await get(`/v1/executions/${id}`), { status: 'failed', error_message: 'cancelled', updated_at: clock.now().toISOString() })
    t.same(await jobsOf(id), [], 'neither its job nor an on_failure job')
    exactly(t, await get(`/v1/cues/${(await get(`/v1/executions/${id}`)).cue_id}`), { status: 'active' })
    exactly(t, await call('POST', `/v1/executions/${id}/cancel`), { status: 409 })
  })
}

t.test("a replay of a worker's execution becomes claimable", async t => {
  const { call, cue, fire, pool } = await service()
  const id = await fire(await cue(worker))
  await call('POST', `/v1/executions/${id}/cancel`)
  const { body } = await call('POST', `/v1/executions/${id}/replay`)
  const { rows } = await pool.query('select transport, status, claimable_at from cue.executions where id = $1', [body.id])
  t.same(rows, [{ transport: 'worker', status: 'pending', claimable_at: new Date(start) }])
})

t.test("a deferred execution and a worker's can be cancelled before they begin", async t => {
  const { call, cue, fire, begin, clock, pool } = await service()
  const deferred = await fire(await cue(), { send_at: '2030-01-15T10:00:00Z' })
  const waiting = await fire(await cue(worker))
  t.equal((await call('POST', `/v1/executions/${deferred}/cancel`)).status, 200)
  t.equal((await call('POST', `/v1/executions/${waiting}/cancel`)).status, 200)
  clock.advance('2 hours')
  t.notOk((await begin()).some(attempt => attempt.execution_id === deferred))
  const { rows } = await pool.query('select attempt_due_at, claimable_at from cue.executions where id = any ($1)', [[deferred, waiting]])
  t.same(rows, Array(2).fill({ attempt_due_at: null, claimable_at: null }))
})

t.test('cancelling the execution of a one-time cue fails the cue, which does not run again', async t => {
  const { call, cue, fire, get } = await service()
  const cue_id = await cue(once)
  const id = await fire(cue_id)
  t.equal((await call('POST', `/v1/executions/${id}/cancel`)).status, 200)
  exactly(t, await get(`/v1/cues/${cue_id}`), { status: 'failed', next_run: null })
})
