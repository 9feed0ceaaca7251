import type { Test } from 'tap'
import t from 'tap'
import { build } from './setup.ts'

const start = '2030-01-01T09:00:00Z'

/** A service at a fixed time with a worker cue, and what a worker does with it. */
const serve = async (t: Test, columns: object = {}) => {
  const service = await build(t, start)
  const { post } = service
  const cue = await post('/v1/cues', {
    name: 'job',
    cron: '@hourly',
    worker: true,
    payload: { task: 'go', n: 12345678901234567890n.toString() },
    ...columns
  })
  const fire = async (id = cue.id) => (await post(`/v1/cues/${id}/fire`)).id as string
  return { ...service, cue, fire }
}

t.test('a worker lists, claims, beats and reports', async t => {
  const { get, post, fire, cue } = await serve(t)
  const id = await fire()
  t.match(await get('/v1/executions/claimable'), {
    executions: [
      {
        id,
        execution_id: id,
        cue_id: cue.id,
        cue_name: 'job',
        task: 'go',
        scheduled_for: '2030-01-01T09:00:00.000Z',
        attempt: 1,
        payload: { task: 'go' }
      }
    ]
  })
  const claim = await post(`/v1/executions/${id}/claim`, { worker_id: 'w1' })
  t.match(claim, {
    claimed: true,
    execution_id: id,
    cue_id: cue.id,
    cue_name: 'job',
    task: 'go',
    lease_seconds: 900,
    lease_expires_at: '2030-01-01T09:15:00.000Z',
    claim_token: /^[0-9a-f-]{36}$/,
    execution_token: /^svc_sk_x_/,
    attempt: 1
  })
  t.same((await get('/v1/executions/claimable')).executions, [])
  t.match(await post(`/v1/executions/${id}/heartbeat`, undefined, { 'x-worker-id': 'w1' }), {
    acknowledged: true,
    lease_extended_until: '2030-01-01T09:15:00.000Z'
  })
  t.match(await post(`/v1/executions/${id}/outcome`, { success: true, result: 'done', metadata: { n: 1 } }), {
    execution_id: id,
    outcome: { success: true, result: 'done', metadata: { n: 1 }, recorded_at: '2030-01-01T09:00:00.000Z' },
    outcome_state: 'reported_success',
    outcome_recorded: true
  })
  t.match(await get(`/v1/executions/${id}`), {
    status: 'success',
    outcome: { success: true, result: 'done' },
    claimed_by_worker: 'w1',
    attempt_log: [{ attempt: 1, result: 'success', worker_id: 'w1' }]
  })
})

t.test('a worker that lost its lease cannot report over the new holder', async t => {
  const { post, fire, clock, fn } = await serve(t)
  const id = await fire()
  const first = await post(`/v1/executions/${id}/claim`, { worker_id: 'w1' })
  clock.advance('16 minutes')
  t.equal(await fn.recoverLeases({}), 1)
  const second = await post(`/v1/executions/${id}/claim`, { worker_id: 'w2' })
  t.equal(second.attempt, 2)
  t.match(await post(`/v1/executions/${id}/outcome`, { success: true }, { 'x-claim-token': first.claim_token }), {
    error: { code: 'claim_lost' }
  })
  t.match(await post(`/v1/executions/${id}/outcome`, { success: true }, { 'x-claim-token': second.claim_token }), {
    outcome_recorded: true
  })
})

t.test('a lease that is over lasts while its worker is heard of', async t => {
  const { post, fire, clock, fn } = await serve(t)
  const id = await fire()
  await post(`/v1/executions/${id}/claim`, { worker_id: 'w1' })
  clock.advance('16 minutes')
  await post('/v1/worker/heartbeat', { worker_id: 'w1', handlers: ['go'] })
  t.equal(await fn.recoverLeases({}), 0)
  clock.advance('2 minutes')
  t.equal(await fn.recoverLeases({}), 0)
  clock.advance('61 seconds')
  t.equal(await fn.recoverLeases({}), 1)
})

t.test('a waiting request is answered as soon as something is claimable', async t => {
  const { post, as, account } = await (async () => build(t))()
  const cue = await post('/v1/cues', { name: 'job', cron: '@hourly', worker: true, payload: { task: 'go' } })
  const waiting = as(account).post('/v1/executions/claim', { worker_id: 'w', wait: 30 })
  const idle = as(account).call('POST', '/v1/executions/claim', { worker_id: 'w', task: 'other', wait: 1 })
  await post(`/v1/cues/${cue.id}/fire`)
  t.match(await waiting, { claimed: true, cue_id: cue.id })
  t.match(await idle, { status: 409, body: { error: { code: 'nothing_claimable' } } })
})

t.test('a backlog of one task hides no other', async t => {
  const { post, get, pool, fire, cue } = await serve(t)
  const { id: other } = await post('/v1/cues', { name: 'rare', cron: '@hourly', worker: true, payload: { task: 'rare' } })
  await fire()
  await pool.query(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, task, claimable_at, claim_deadline_at, created_at, updated_at)
     select cue.uuid_v7(created_at), account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, task, claimable_at, claim_deadline_at, created_at, updated_at
       from cue.executions cross join generate_series(1, 2000) where cue_id = $1`,
    [cue.id]
  )
  const rare = await fire(other)
  const { executions } = await get('/v1/executions/claimable?limit=5')
  t.ok(
    executions.some((e: { id: string }) => e.id === rare),
    'it is listed'
  )
  const { executions: claims } = await post('/v1/executions/claim', { limit: 4 })
  t.ok(
    claims.some((e: { execution_id: string }) => e.execution_id === rare),
    'it is claimed'
  )
})

t.test('unclaimed executions are missed, released ones wait again', async t => {
  const { post, get, fire, clock, fn } = await serve(t)
  const id = await fire()
  const { claim_token } = await post(`/v1/executions/${id}/claim`)
  t.match(await post(`/v1/executions/${id}/release`, undefined, { 'x-claim-token': claim_token }), { released: true, status: 'pending' })
  t.match(await post(`/v1/executions/${id}/release`, undefined, { 'x-claim-token': claim_token }), {
    error: { code: 'execution_not_claiming' }
  })
  clock.advance('15 minutes')
  t.equal(await fn.missUnclaimed({}), 1)
  t.match(await get(`/v1/executions/${id}`), { status: 'missed' })
})
