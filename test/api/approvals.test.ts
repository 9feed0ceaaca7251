import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'

const start = '2030-01-15T09:00:00Z'
const approval = { expires: '24h', on_expiry: 'skip', message: 'Refund $50?' }
const refund = { name: 'refund', cron: '0 9 * * *', worker: true, payload: { amount: 50 }, approval }

const stage = async (t: import('tap').Test) => {
  const service = await build(t, start)
  const approver = service.as(await service.addKey(service.account, ['read', 'write', 'approve']))
  const { id: cue_id } = await service.post('/v1/cues', refund)
  const fire = async (): Promise<string> => {
    service.clock.advance('1 second') // ids of one millisecond have no order
    return (await service.post(`/v1/cues/${cue_id}/fire`)).id
  }
  return { ...service, approver, cue_id, fire }
}

t.test('approval is a member of cues: complete in responses, merged by PATCH, null by default', async t => {
  const { post, patch, call } = await build(t, start)
  const cue = { name: 'a cue', cron: '0 9 * * *', worker: true }
  t.equal((await post('/v1/cues', cue)).approval, null)
  const { id, approval } = await post('/v1/cues', { ...cue, approval: {} })
  t.strictSame(approval, { expires: '24h', on_expiry: 'skip', message: null })
  const changed = await patch(`/v1/cues/${id}`, { approval: { message: 'ok?' } })
  t.strictSame(changed.approval, { expires: '24h', on_expiry: 'skip', message: 'ok?' })
  t.strictSame((await patch(`/v1/cues/${id}`, { approval: { expires: null } })).approval.expires, null)
  for (const [member, value] of [
    ['expires', '59s'],
    ['expires', '32d'],
    ['expires', 'soon'],
    ['expires', 60],
    ['on_expiry', 'fail'],
    ['message', 'x'.repeat(501)]
  ] as const) {
    const { status, body } = await call('POST', '/v1/cues', { ...cue, approval: { [member]: value } })
    t.strictSame([status, body.detail[0].loc], [422, ['body', 'approval', member]], `${member} ${value}`)
  }
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { approval: { expire: '1h' } }), { status: 422 })
})

t.test('an execution shows what it waits for, is listed, and runs once it is approved', async t => {
  const { get, call, approver, cue_id, fire, fn, pool } = await stage(t)
  const [id, other] = [await fire(), await fire()]
  const waiting = await get('/v1/executions?held=approval')
  t.strictSame(
    waiting.executions.map((execution: { id: string }) => execution.id),
    [other, id]
  )
  exactly(t, waiting.executions[1], {
    status: 'pending',
    held: { by: 'approval', key: null, reason: 'approval', since: '2030-01-15T09:00:01.000Z', ahead: 0 },
    approval: { message: 'Refund $50?', requested_by: /^key:/, expires_at: '2030-01-16T09:00:01.000Z', decision: null }
  })
  t.strictSame((await get(`/v1/executions?held=approval&cue_id=${cue_id}&count_to=1`)).total, 1)
  await pool.query(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, ended_at, created_at, updated_at)
     select cue.uuid_v7($2), account_id, id, 'worker', 'missed', 'schedule', $2, '{}', $2, $2, $2 from cue.cues, generate_series(1, 200) where id = $1`,
    [cue_id, new Date('2030-01-15T09:00:03Z')]
  )
  t.strictSame((await get('/v1/executions?held=approval&search_to=100')).executions.length, 2, 'however many came later')
  exactly(t, await call('POST', `/v1/executions/${id}/approve`), error('insufficient_scope', 403))
  exactly(t, await approver.call('POST', `/v1/executions/${id}/approve`, { reason: 'fine' }), {
    status: 200,
    body: { execution_id: id, decision: 'approved', decided_by: /^key:/, decided_at: '2030-01-15T09:00:02.000Z' }
  })
  exactly(t, await approver.call('POST', `/v1/executions/${id}/reject`, { reason: 'no' }), {
    status: 409,
    body: { error: { code: 'already_decided', decision: 'approved', decided_by: /^key:/, decided_at: '2030-01-15T09:00:02.000Z' } }
  })
  exactly(t, await get(`/v1/executions/${id}`), { held: null, approval: { decision: 'approved', decided_via: 'call', reason: 'fine' } })
  exactly(t, await call('POST', '/v1/executions/claim', { worker_id: 'w', task: null }), { status: 200, body: { execution_id: id } })
  await approver.post(`/v1/executions/${other}/reject`, { reason: 'too much' })
  exactly(t, await get(`/v1/executions/${other}`), { status: 'failed', error_message: 'rejected: too much' })
  t.strictSame((await get('/v1/executions?held=approval')).executions, [])
  while ((await fn.publishEvents({})) > 0);
  const types = (await get('/v1/events?after=start')).events.map((event: { type: string }) => event.type)
  t.strictSame(
    types.filter((type: string) => /^(approval|execution)/.test(type)),
    ['approval.requested', 'approval.requested', 'approval.decided', 'approval.decided']
  )
})

t.test('refuses decisions that are malformed, by whoever requested it, or about another account', async t => {
  const { approver, cue_id, as, register, addKey, fire, get } = await stage(t)
  const id = await fire()
  for (const [path, body, ...loc] of [
    ['reject', {}, 'reason'],
    ['reject', { reason: '' }, 'reason'],
    ['reject', { reason: 'x'.repeat(501) }, 'reason'],
    ['approve', { reason: 'x'.repeat(501) }, 'reason'],
    ['approve', { why: 'x' }, 'why']
  ] as const) {
    const refused = await approver.call('POST', `/v1/executions/${id}/${path}`, body)
    t.strictSame([refused.status, refused.body.detail[0].loc], [422, ['body', ...loc]])
  }
  const stranger = as(await addKey(await register(), ['approve']))
  exactly(t, await stranger.call('POST', `/v1/executions/${id}/approve`), error('execution_not_found', 404))
  const { id: own } = await approver.post(`/v1/cues/${cue_id}/fire`)
  exactly(t, await approver.call('POST', `/v1/executions/${own}/approve`), error('own_request', 403))
  t.equal((await get('/v1/executions?held=approval')).total, 2)
})

t.test('operations approve and reject waiting executions', async t => {
  const { approver, call, cue_id, fire, get, fn } = await stage(t)
  const ids = [await fire(), await fire()]
  const { id: own } = await approver.post(`/v1/cues/${cue_id}/fire`)
  const filter = { cue_id }
  exactly(t, await call('POST', '/v1/operations', { type: 'approve', filter }), error('insufficient_scope', 403))
  exactly(t, await approver.call('POST', '/v1/operations', { type: 'reject', filter }), { status: 422 })
  const dry = await approver.post('/v1/operations', { type: 'approve', filter, dry_run: true })
  t.equal(dry.total, 3)
  const { id } = await approver.post('/v1/operations', { type: 'approve', filter, reason: 'all' })
  while ((await fn.runOperation({ operation_id: id }))?.status === 'running');
  exactly(t, await get(`/v1/operations/${id}`), { succeeded: 2, failed: 1, errors: [{ target: own, code: 'own_request' }] })
  for (const execution of ids)
    exactly(t, await get(`/v1/executions/${execution}`), { approval: { decided_via: 'operation', reason: 'all' } })
  const rejecting = await approver.post('/v1/operations', { type: 'reject', ids: [own, ids[0]], reason: 'no' })
  while ((await fn.runOperation({ operation_id: rejecting.id }))?.status === 'running');
  exactly(t, await get(`/v1/operations/${rejecting.id}`), { succeeded: 1, skipped: 1 })
})
