/** Claims from a worker's view: claiming, holders, leases and releases. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { error } from '../support/setup.ts'

const serve = serviceAt('2030-01-15T09:00:00Z')
const callback = { url: 'http://127.0.0.1/hook' }

t.test('a worker lists, claims, sends heartbeats and reports', async t => {
  const { get, post, cue, fire } = await serve()
  const cue_id = await cue({ payload: { task: 'go', n: 1.0 } })
  const id = await fire(cue_id)
  const item = {
    execution_id: id,
    cue_id,
    cue_name: 'job',
    task: 'go',
    scheduled_for: '2030-01-15T09:00:00.000Z',
    attempt: 1,
    payload: { task: 'go', n: 1 }
  }
  t.strictSame(await get('/v1/executions/claimable'), { executions: [{ id, ...item }], has_more: false })
  const { claim_token, execution_token, ...claim } = await post(`/v1/executions/${id}/claim`, { worker_id: 'w1' })
  t.strictSame(claim, { claimed: true, ...item, lease_seconds: 900, lease_expires_at: '2030-01-15T09:15:00.000Z' })
  exactly(t, [claim_token, execution_token], [/^[0-9a-f-]{36}$/, /^svc_sk_x_/])
  t.strictSame(await get('/v1/executions/claimable'), { executions: [], has_more: false })
  t.strictSame(await post(`/v1/executions/${id}/heartbeat`, undefined, { 'x-worker-id': 'w1' }), {
    acknowledged: true,
    lease_extended_until: '2030-01-15T09:15:00.000Z'
  })
  exactly(t, await post(`/v1/executions/${id}/outcome`, { success: true, result: 'done' }), { outcome_recorded: true })
  exactly(t, await get(`/v1/executions/${id}`), {
    status: 'success',
    attempts: 1,
    claimed_by_worker: 'w1',
    lease_expires_at: null,
    attempt_log: [{ attempt: 1, result: 'success', worker_id: 'w1' }]
  })
})

t.test('a payload whose task is too long reaches workers that accept any task', async t => {
  const { cue, fire, post, get } = await serve()
  const task = Array.from({ length: 3000 }, () => crypto.randomUUID()[0]).join('')
  const cue_id = await cue({ payload: { task } })
  await fire(cue_id)
  await fire(await cue(), { payload_override: { task } })
  exactly(t, await get('/v1/executions/claimable'), {
    executions: [
      { task: null, payload: { task } },
      { task: null, payload: { task } }
    ]
  })
  exactly(t, await post('/v1/executions/claim', { worker_id: 'w' }), { task: null, payload: { task } })
})

t.test('returns already_claimed for everything that is not claimable', async t => {
  const { call, post, del, cue, fire, claim, clock, fn, other } = await serve()
  const { calls } = await other()
  const claimed = await fire(await cue())
  await claim(claimed)
  const done = await fire(await cue())
  await claim(done)
  await post(`/v1/executions/${done}/outcome`, { success: true })
  const cancelled = await fire(await cue())
  await post(`/v1/executions/${cancelled}/cancel`)
  const orphan = await cue()
  const ofDeleted = await fire(orphan)
  await del(`/v1/cues/${orphan}`)
  const unclaimable = {
    'of nobody': randomUUID(),
    'no id at all': 'x',
    'an id and more': `${randomUUID()}0`,
    "another account's": await fire(await cue({}, calls), {}, calls),
    claimed,
    ended: done,
    cancelled,
    'of a deleted cue': ofDeleted,
    deferred: await fire(await cue(), { send_at: '2030-01-15T09:00:00.001Z' }),
    "a callback's": await fire(await cue({ callback }))
  }
  for (const [what, id] of Object.entries(unclaimable)) {
    exactly(t, await call('POST', `/v1/executions/${id}/claim`, { worker_id: 'w2' }), error('already_claimed', 409), what)
  }
  clock.advance('1 millisecond')
  exactly(t, await call('POST', `/v1/executions/${unclaimable.deferred}/claim`), { status: 200 }, 'the deferred one when it is time')
  const late = await fire(await cue())
  clock.advance('15 minutes')
  await fn.missUnclaimed({})
  exactly(t, await call('POST', `/v1/executions/${late}/claim`), error('already_claimed', 409), 'a missed one')
})

t.test('a claim needs no body and accepts ids in any case', async t => {
  const { call, cue, fire, execution } = await serve()
  const id = await fire(await cue())
  exactly(t, await call('POST', `/v1/executions/${id.toUpperCase()}/claim`), { status: 200, body: { execution_id: id } })
  exactly(t, await execution(id), { claimed_by_worker: 'anonymous-worker' })
})

t.test('executions of a silent worker become claimable again and say why', async t => {
  const { get, cue, fire, claim, clock, fn } = await serve()
  const id = await fire(await cue())
  await claim(id)
  clock.advance('15 minutes')
  await fn.recoverLeases({})
  exactly(t, await get(`/v1/executions/${id}`), {
    status: 'pending',
    attempts: 1,
    claimed_by_worker: null,
    claimed_at: null,
    lease_expires_at: null,
    last_heartbeat_at: null,
    error_message: 'worker stopped sending heartbeats',
    attempt_log: [
      {
        attempt: 1,
        result: 'lost',
        worker_id: 'w1',
        started_at: '2030-01-15T09:00:00.000Z',
        finished_at: '2030-01-15T09:15:00.000Z',
        duration_ms: 900_000,
        error: 'worker stopped sending heartbeats'
      }
    ]
  })
  exactly(t, await get('/v1/executions/claimable'), { executions: [{ id, attempt: 2 }] })
  exactly(t, await claim(id, 'w2'), { claimed: true, attempt: 2 })
})

t.test('an execution is missed after as many lost claims as the cue has attempts', async t => {
  const { get, cue, fire, claim, clock, fn, jobs, run } = await serve()
  const cue_id = await cue({ retry: { max_attempts: 2 } })
  const id = await fire(cue_id)
  for (let n = 1; n <= 2; n++) {
    await claim(id, `w${n}`)
    clock.advance('15 minutes')
    t.equal(await fn.recoverLeases({}), 1)
  }
  exactly(t, await get(`/v1/executions/${id}`), {
    status: 'missed',
    attempts: 2,
    claimed_by_worker: 'w2',
    error_message: 'gave up after 2 claims without an outcome',
    attempt_log: [{ result: 'lost' }, { result: 'lost' }]
  })
  exactly(t, await run(cue_id), { failed_deliveries: 1 })
  exactly(t, await jobs('mails'), [{ data: { kind: 'registered' } }, { data: { kind: 'cue_failed', execution_id: id } }])
})

t.test("a worker that lost its lease cannot act on the new holder's claim", async t => {
  const { call, cue, fire, claim, clock, fn, execution } = await serve()
  const id = await fire(await cue())
  const first = await claim(id, 'w')
  clock.advance('15 minutes')
  await fn.recoverLeases({})
  const stale = { 'x-claim-token': first.claim_token }
  exactly(t, await call('POST', `/v1/executions/${id}/heartbeat`, undefined, stale), error('claim_lost', 409), 'not while it waits either')
  const second = await claim(id, 'w')
  const before = await execution(id)
  const path = `/v1/executions/${id}`
  for (const headers of [stale, { 'x-claim-token': 'no token' }]) {
    exactly(t, await call('POST', `${path}/heartbeat`, undefined, { ...headers, 'x-worker-id': 'w' }), error('claim_lost', 409))
    exactly(t, await call('POST', `${path}/release`, undefined, headers), error('claim_lost', 409))
    exactly(t, await call('POST', `${path}/outcome`, { success: true }, headers), error('claim_lost', 409))
    exactly(t, await call('PATCH', `${path}/evidence`, { external_id: 'x' }, headers), error('claim_lost', 409))
  }
  t.strictSame(await execution(id), before)
  const current = { 'x-claim-token': second.claim_token }
  exactly(t, await call('POST', `${path}/outcome`, { success: true }, current), { status: 200 })
  exactly(t, await call('PATCH', `${path}/evidence`, { external_id: 'x' }, stale), error('claim_lost', 409))
  exactly(t, await call('PATCH', `${path}/evidence`, { external_id: 'x' }, current), { body: { evidence_updated: true } })
})

t.test('a heartbeat names its worker', async t => {
  const { call, as, cue, fire, claim } = await serve()
  const id = await fire(await cue())
  const beat = (headers = {}, path = id, by: { call: typeof call } = { call }) =>
    by.call('POST', `/v1/executions/${path}/heartbeat`, undefined, headers)
  exactly(t, await beat({ 'x-worker-id': 'w1' }), error('execution_not_claiming', 409), 'nobody has claimed it')
  const { claim_token, execution_token } = await claim(id)
  const token = as({ id: '', email: '', api_key: execution_token })
  exactly(t, await beat(), { status: 422, body: { detail: [{ type: 'missing', loc: ['header', 'X-Worker-Id'] }] } })
  exactly(t, await beat({ 'x-worker-id': 'w2' }), error('not_execution_owner', 403))
  exactly(t, await beat({ 'x-worker-id': 'w2', 'x-claim-token': claim_token }), error('not_execution_owner', 403))
  exactly(t, await beat({ 'x-worker-id': 'w2' }, id, token), error('not_execution_owner', 403))
  exactly(t, await beat({ 'x-worker-id': 'w1' }), { status: 200 })
  exactly(t, await beat({ 'x-claim-token': claim_token }), { status: 200 })
  exactly(t, await beat({}, id, token), { status: 200 })
  const ofCallback = await fire(await cue({ callback }))
  for (const headers of [{ 'x-worker-id': 'w1' }, { 'x-claim-token': claim_token }]) {
    exactly(t, await beat(headers, ofCallback), error('execution_not_claiming', 409))
  }
  await call('POST', `/v1/executions/${id}/outcome`, { success: true })
  exactly(t, await beat({ 'x-worker-id': 'w1' }), error('execution_not_claiming', 409))
})

t.test('worker ids may contain any characters, sent as UTF-8 or Latin-1', async t => {
  const { call, cue, fire } = await serve()
  const utf8 = (name: string) => Buffer.from(name).toString('latin1') // how Node has such a header
  for (const [worker_id, headers] of [
    ['Büro', ['Büro', utf8('Büro')]],
    ['東京-1', [utf8('東京-1')]],
    [utf8('é'), [utf8('é')]]
  ] as const) {
    const path = `/v1/executions/${await fire(await cue())}`
    await call('POST', `${path}/claim`, { worker_id })
    for (const header of headers) {
      exactly(t, await call('POST', `${path}/heartbeat`, undefined, { 'x-worker-id': header }), { status: 200 }, header)
    }
    for (const other of ['B\xfcrx', utf8('大阪')]) {
      exactly(t, await call('POST', `${path}/heartbeat`, undefined, { 'x-worker-id': other }), error('not_execution_owner', 403))
    }
  }
})

t.test('a heartbeat on an execution counts for its worker', async t => {
  const { post, get, cue, fire, claim, clock } = await serve()
  await post('/v1/worker/heartbeat', { worker_id: 'w1', handlers: [] })
  const id = await fire(await cue())
  await claim(id)
  clock.advance('3 minutes')
  exactly(t, await get('/v1/workers'), { workers: [{ heartbeat_status: 'stale' }] })
  await post(`/v1/executions/${id}/heartbeat`, undefined, { 'x-worker-id': 'w1' })
  exactly(t, await get('/v1/workers'), { workers: [{ heartbeat_status: 'active', seconds_since_heartbeat: 0 }] })
})
