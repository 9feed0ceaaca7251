/** Who changed what: the audit log has every change of a cue. */
import t from 'tap'
import { createOperationBatches } from '../../src/operations/work.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { refused, resultsOf } from '../support/stage.ts'

const service = serviceAt('2030-01-15T09:00:00Z')

/** The service, and what the audit log of its account has besides the registration, oldest first. */
const audited = async () => {
  const s = await service()
  const [{ id: key_id }] = (await s.get('/v1/auth/keys')).keys
  const events = async () =>
    (await s.get('/v1/auth/audit')).events
      .filter(({ event }: { event: string }) => /^(cues?|operation)\./.test(event))
      .map(({ event, actor, detail }: Record<string, unknown>) => ({ event, actor, detail }))
      .reverse()
  return { ...s, events, actor: `key:${key_id}` }
}

t.test('each change of a cue writes one entry that names the cue and who made it; what changes nothing writes none', async t => {
  const { call, cue, events, actor } = await audited()
  const cue_id = await cue({ key: 'k' })
  const path = `/v1/cues/${cue_id}`
  await call('PATCH', path, { name: 'other', payload: { task: 'stop' } })
  await call('PATCH', path, { name: 'other' })
  await call('POST', `${path}/pause`, { reason: 'a flood' })
  await call('POST', `${path}/resume`, {})
  await call('PATCH', path, { status: 'paused', description: 'x' })
  await call('POST', `${path}/resume`, {})
  await call('PUT', '/v1/cues/by-key/k', { name: 'third', cron: '@daily', worker: true })
  await call('PUT', '/v1/cues/by-key/k', { name: 'third', cron: '@daily', worker: true })
  await call('POST', `${path}/fire`)
  await call('DELETE', path)
  await call('DELETE', path)
  const many = [await cue(), await cue()]
  await call('POST', '/v1/cues/bulk-delete', { ids: [...many, cue_id] }, { 'x-confirm-destructive': 'true' })
  t.same(await events(), [
    { event: 'cue.created', actor, detail: { cue_id } },
    { event: 'cue.updated', actor, detail: { cue_id, fields: ['payload', 'name'] } },
    { event: 'cue.paused', actor, detail: { cue_id, fields: ['pause_reason', 'status'] } },
    { event: 'cue.resumed', actor, detail: { cue_id, fields: ['pause_reason', 'status'] } },
    { event: 'cue.paused', actor, detail: { cue_id, fields: ['description', 'status'] } },
    { event: 'cue.resumed', actor, detail: { cue_id, fields: ['status'] } },
    { event: 'cue.updated', actor, detail: { cue_id, fields: ['payload', 'cron', 'description', 'name'] } },
    { event: 'cue.deleted', actor, detail: { cue_id } },
    ...many.map(cue_id => ({ event: 'cue.created', actor, detail: { cue_id } })),
    ...[...many].sort().map(cue_id => ({ event: 'cue.deleted', actor, detail: { cue_id } }))
  ])
})

t.test('an operation and an apply write one entry each, with their counts; a dry run writes none', async t => {
  const { call, fn, cue, clock, events, actor } = await audited()
  const ids = [await cue(), await cue()]
  const { body: operation } = await call('POST', '/v1/operations', { type: 'pause', ids: [...ids, 'cue_000000000000'], reason: 'a flood' })
  const batch = createOperationBatches(fn, () => +clock.now())
  while ((await batch(operation.id))?.status === 'running');
  const list = (names: string[]) => names.map(key => ({ key, name: key, cron: '@daily', worker: true }))
  const apply = (cues: object[], more: object = {}) => call('POST', '/v1/cues/apply', { set: 's', cues, ...more })
  await apply(list(['a', 'b', 'c']), { dry_run: true })
  await apply(list(['a', 'b', 'c']))
  await apply(list(['a', 'b', 'c']))
  await apply([...list(['a']), { key: 'b', name: 'changed', cron: '@daily', worker: true }, ...list(['d'])], { prune: true })
  t.same((await events()).slice(2), [
    {
      event: 'operation.created',
      actor,
      detail: { operation_id: operation.id, type: 'pause', total: 3, not_found: 1, pause_reason: 'a flood' }
    },
    { event: 'cues.applied', actor, detail: { set: 's', created: 3, updated: 0, pruned: 0 } },
    { event: 'cues.applied', actor, detail: { set: 's', created: 1, updated: 1, pruned: 1 } }
  ])
})

t.test('what the service pauses and resumes has an entry, too', async t => {
  const { cue, fn, fire, clock, events, run } = await audited()
  const cue_id = await cue({ callback: { url: 'http://127.0.0.1/hook' }, on_failure: { pause: true } })
  await fire(cue_id)
  clock.advance('1 second')
  await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 1 }), { ...refused, gone: true }, clock.now()))
  t.equal((await run(cue_id)).status, 'paused')
  exactly(t, (await events()).slice(1), [{ event: 'cue.paused', actor: 'service', detail: { cue_id, paused_by: 'failures' } }])
})

t.test('changes by SQL name the database user', async t => {
  const { account, cue, fn, row, events } = await audited()
  const cue_id = await cue()
  const { name } = await row('select session_user as name')
  await fn.deleteCue({ account_id: account.id, cue_id })
  exactly(t, (await events()).slice(1), [{ event: 'cue.deleted', actor: name, detail: { cue_id } }])
})
