import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'

const approval = { expires: '2h', on_expiry: 'run', message: 'refund' }
const refund = { name: 'refund', key: 'refund', cron: '0 9 * * *', worker: true, approval }

/** A service with a cue that has an approval, a key that may not approve, and one that may. */
const stage = async (t: import('tap').Test) => {
  const service = await build(t)
  const approver = service.as(await service.addKey(service.account, ['read', 'write', 'account', 'approve']))
  const { id } = await service.post('/v1/cues', refund)
  return { ...service, approver, id }
}
type Stage = Awaited<ReturnType<typeof stage>>
type Caller = Pick<Stage, 'call'>

const destructive = { 'x-confirm-destructive': 'true' }
const put = (changes: object) => ({ ...refund, ...changes })

/** Ways to get around an approval: each is refused without the scope `approve`. */
const ways: Record<string, (caller: Caller, stage: Stage) => Promise<unknown>> = {
  'PATCH removes it': ({ call }, { id }) => call('PATCH', `/v1/cues/${id}`, { approval: null }),
  'PATCH has it run sooner': ({ call }, { id }) => call('PATCH', `/v1/cues/${id}`, { approval: { expires: '1h' } }),
  'PUT leaves it out': ({ call }) => call('PUT', '/v1/cues/by-key/refund', put({ approval: undefined })),
  'PUT has it run sooner': ({ call }) => call('PUT', '/v1/cues/by-key/refund', put({ approval: { ...approval, expires: '1m' } })),
  'PATCH changes the key': ({ call }, { id }) => call('PATCH', `/v1/cues/${id}`, { key: 'other' }),
  'PATCH removes the key': ({ call }, { id }) => call('PATCH', `/v1/cues/${id}`, { key: null }),
  DELETE: ({ call }, { id }) => call('DELETE', `/v1/cues/${id}`),
  'DELETE by key': ({ call }) => call('DELETE', '/v1/cues/by-key/refund'),
  'bulk-delete': ({ call }, { id }) => call('POST', '/v1/cues/bulk-delete', { ids: [id] }, destructive),
  'apply leaves it out': ({ call }) => call('POST', '/v1/cues/apply', { set: 's', cues: [put({ approval: undefined })] }),
  'apply prunes it': async ({ call }) => {
    const adopt = await call('POST', '/v1/cues/apply', { set: 's', cues: [refund] })
    t.equal(adopt.status, 200)
    return call('POST', '/v1/cues/apply', { set: 's', cues: [], prune: true })
  },
  'an operation deletes it': async ({ call }, { id, fn }) => {
    const { body } = await call('POST', '/v1/operations', { type: 'delete', ids: [id] }, destructive)
    while ((await fn.runOperation({ operation_id: body.id }))?.status === 'running');
    const { errors } = (await call('GET', `/v1/operations/${body.id}`)).body
    return errors.length === 0 ? { status: 200 } : { status: 403, body: { error: { ...errors[0], status: 403 } } }
  },
  'a test sends its request': ({ call }, { id }) => call('POST', '/v1/cues/test', { cue_id: id })
}

for (const [name, way] of Object.entries(ways)) {
  t.test(`a key without approve cannot get around an approval: ${name}`, async t => {
    const s = await stage(t)
    if (name.includes('test'))
      await s.pool.query("update cue.cues set transport = 'webhook', callback_url = 'http://127.0.0.1:1/' where id = $1", [s.id])
    exactly(t, await way(s, s), error('approval_protected', 403))
    const { approval: kept, key } = await s.get(`/v1/cues/${s.id}`)
    t.strictSame({ approval: kept, key }, { approval, key: 'refund' })
    const { status } = (await way(s.approver, s)) as { status: number }
    t.ok(status < 300, `${status} with approve`)
  })
}

t.test('what does not weaken an approval, or ends the cue for good, needs no scope', async t => {
  const { patch, post, id } = await stage(t)
  const changes = [{ expires: '3h' }, { expires: null }, { on_expiry: 'skip', expires: '1m' }, { message: null }]
  for (const change of changes) exactly(t, (await patch(`/v1/cues/${id}`, { approval: change })).approval, change)
  exactly(t, await post(`/v1/cues/${id}/pause`, {}), { status: 'paused' })
  const { id: open } = await post('/v1/cues', { ...refund, key: 'open', approval: null })
  exactly(t, (await patch(`/v1/cues/${open}`, { approval })).approval, approval)
})

t.test('a key without approve can get it neither by a new key, nor by a session, nor by another default key', async t => {
  const { call, post, as, account, approver } = await stage(t)
  exactly(t, await call('POST', '/v1/auth/keys', { label: 'mine', scopes: ['approve'] }), error('insufficient_scope', 403))
  exactly(t, await approver.call('POST', '/v1/auth/keys', { label: 'ours', scopes: ['approve'] }), { status: 201 })
  t.strictSame((await post('/v1/auth/keys', { label: 'default' })).scopes, ['read', 'write', 'worker', 'account'])
  for (const [caller, may] of [
    [{ post }, false],
    [approver, true]
  ] as const) {
    const { url } = await caller.post('/v1/auth/dashboard-link')
    const token = new URL(url).hash.replace(/^#(token=)?/, '') || new URL(url).searchParams.get('token')!
    const { session_token } = (await as(null).call('POST', '/v1/auth/session', { token })).body
    const { scopes } = await as({ ...account, api_key: session_token }).get('/v1/auth/me')
    t.equal(scopes.includes('approve'), may, `a link by a key ${may ? 'with' : 'without'} approve`)
  }
})

t.test('a regenerated key is the default key, which cannot approve', async t => {
  const { del, as, account, addKey, get } = await build(t)
  const sole = as(await addKey(account, ['read', 'account', 'approve']))
  const [{ id }] = (await get('/v1/auth/keys')).keys.filter((key: { is_default: boolean }) => key.is_default)
  await del(`/v1/auth/keys/${id}`)
  const { api_key } = await sole.post('/v1/auth/key/regenerate', undefined, destructive)
  t.strictSame((await as({ ...account, api_key }).get('/v1/auth/me')).scopes, ['read', 'account'])
})

t.test('only a caller with approve changes approvals_by_link', async t => {
  const { call, approver } = await stage(t)
  exactly(t, await call('PATCH', '/v1/auth/me', { approvals_by_link: true }), error('approval_protected', 403))
  exactly(t, await approver.call('PATCH', '/v1/auth/me', { approvals_by_link: false }), { status: 200, body: { approvals_by_link: false } })
})
