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
  'a test sends its request': ({ call }, { id }) => call('POST', '/v1/cues/test', { cue_id: id })
}

for (const [name, way] of Object.entries(ways)) {
  t.test(`a key without approve cannot get around an approval: ${name}`, async t => {
    const s = await stage(t)
    if (name.includes('test'))
      await s.pool.query("update cue.cues set transport = 'webhook', callback_url = 'http://127.0.0.1:1/' where id = $1", [s.id])
    exactly(t, await way(s, s), error('approval_protected', 403))
    const { approval: kept, version, key } = await s.get(`/v1/cues/${s.id}`)
    t.strictSame({ approval: kept, version, key }, { approval, version: 1, key: 'refund' })
    const { status } = (await way(s.approver, s)) as { status: number }
    t.ok(status < 300, `${status} with approve`)
  })
}
