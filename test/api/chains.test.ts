// Cues that follow others: how they are written, shown and refused.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { error, invalid } from '../support/setup.ts'

const service = serviceAt('2030-01-15T09:00:00Z')
const after = (...cues: string[]) => ({ cues })
const cue = (key: string, more: object = {}) => ({ name: key, key, worker: true, ...more })
const daily = { cron: '0 9 * * *' }

const stage = async (...cues: object[]) => {
  const calls = await service()
  const { call } = calls
  const create = (key: string, more?: object) => call('POST', '/v1/cues', cue(key, more))
  const ids: string[] = []
  for (const body of cues) {
    const { status, body: created } = await call('POST', '/v1/cues', body)
    if (status !== 201) throw new Error(JSON.stringify(created))
    ids.push(created.id)
  }
  return { ...calls, create, ids }
}
const apply = (cues: object[], more: object = {}) => ['POST', '/v1/cues/apply', { set: 's', cues, ...more }] as const

t.test('a cue follows others, by key or id, with or without a schedule', async t => {
  const { create, call, get, ids } = await stage(cue('extract', daily), { name: 'no key', worker: true, ...daily })
  const [extract, plain] = ids as [string, string]
  const created = await create('report', { after: { cues: ['extract', plain, extract], when: 'verified' } })
  const report = { cues: ['extract', plain], when: 'verified', mode: 'all', within: '24h' }
  exactly(t, created, { status: 201, body: { after: report, schedule: null, status: 'active', next_run: null, next_slot: null } })
  const path = `/v1/cues/${created.body.id}`
  exactly(t, await get(path), { after: report, followers: [], pending_signals: [] })
  exactly(t, await get(`/v1/cues/${extract}`), { after: null, followers: ['report'] })
  exactly(t, await get('/v1/cues?summary=true&key=report'), { cues: [{ summary: { schedule: `After extract and ${plain} is verified` } }] })

  const patch = async (body: object) => call('PATCH', path, body)
  exactly(t, await patch({ after: { when: null, mode: 'any' } }), {
    status: 200,
    body: { after: { ...report, when: 'success', mode: 'any' }, version: 2 }
  })
  exactly(t, await patch({ after: { cues: ['extract'] }, schedule: { cron: '0 10 * * *' } }), {
    status: 200,
    body: { after: { cues: ['extract'], mode: 'any' }, next_run: '2030-01-15T10:00:00.000Z' }
  })
  exactly(t, await patch({ after: { wait: '30m' } }), { status: 200, body: { after: { wait: '30m' } } })
  exactly(t, await patch({ schedule: null }), invalid('body', 'after', 'wait'))
  exactly(t, await patch({ schedule: null, after: { wait: null } }), {
    status: 200,
    body: { schedule: null, next_run: null, status: 'active' }
  })
  exactly(t, await patch({ after: null }), invalid('body', 'schedule'))
  exactly(t, await get(`/v1/cues/${plain}`), { followers: [] })
  exactly(t, await call('POST', `${path}/pause`, {}), { status: 200 })
  exactly(t, await call('POST', `${path}/resume`, {}), { status: 200, body: { status: 'active', next_run: null } })
  exactly(t, await patch({ after: null, schedule: daily }), { status: 200, body: { after: null } })
  t.equal((await call('DELETE', `/v1/cues/${extract}`)).status, 204, 'nothing follows it any more')
})

t.test('refuses what cannot be followed', async t => {
  const { create, call, get } = await stage(cue('extract', daily))
  const refusals: [object, unknown][] = [
    [after('unknown'), invalid('body', 'after')],
    [after('report'), error('cue_cycle', 409)],
    [{ cues: [] }, { status: 422 }],
    [{}, invalid('body', 'after', 'cues')],
    [{ cues: ['extract'], within: '32d' }, invalid('body', 'after', 'within')],
    [{ cues: ['extract'], within: 'soon' }, invalid('body', 'after', 'within')],
    [{ cues: ['extract'], wait: '5m' }, invalid('body', 'after', 'wait')],
    [{ cues: Array.from({ length: 21 }, (_, n) => `k${n}`) }, { status: 422 }]
  ]
  for (const [after, expected] of refusals)
    exactly(t, await create('report', { after }), expected as never, JSON.stringify(after).slice(0, 60))
  exactly(t, await create('report', { after: { cues: ['extract'], wait: '25h' }, ...daily }), invalid('body', 'after', 'wait'))
  exactly(t, await create('report'), { status: 422 })
  exactly(t, await get('/v1/cues'), { cues: [{ key: 'extract' }] })
  exactly(t, await call('PUT', '/v1/cues/by-key/extract', { ...cue('extract'), after: after('extract') }), {
    status: 409,
    body: { error: { code: 'cue_cycle', message: /extract → extract/ } }
  })
})

t.test('refuses cycles, lines of more than 20 and more than 50 followers', async t => {
  const { create, call, ids } = await stage(cue('c1', daily))
  const all = [...ids]
  for (let n = 2; n <= 20; n++) all.push((await create(`c${n}`, { after: after(`c${n - 1}`) })).body.id)
  exactly(t, await create('c21', { after: after('c20') }), invalid('body', 'after'))
  exactly(t, await create('c0', daily), { status: 201 })
  exactly(t, await call('PATCH', `/v1/cues/${all[0]}`, { after: after('c0') }), invalid('body', 'after'), 'counted below it, too')
  exactly(t, await call('PATCH', `/v1/cues/${all[0]}`, { after: after('c20') }), {
    status: 409,
    body: { error: { message: /c1 → c2 → .* → c20 → c1\b/ } }
  })
  for (let n = 0; n < 50; n++) t.equal((await create(`f${n}`, { after: after('c0') })).status, 201)
  exactly(t, await create('f50', { after: after('c0') }), invalid('body', 'after'))
})

t.test('two requests cannot make a cycle together', async t => {
  const { call, ids } = await stage(cue('a', daily), cue('b', daily))
  const results = await Promise.all([
    call('PATCH', `/v1/cues/${ids[0]}`, { after: after('b') }),
    call('PATCH', `/v1/cues/${ids[1]}`, { after: after('a') })
  ])
  t.same(results.map(({ status }) => status).sort(), [200, 409])
})

t.test('a cue that others follow is deleted only together with them', async t => {
  const { call, get, fn, ids } = await stage(
    cue('a', daily),
    cue('b', { after: after('a') }),
    cue('c', { after: after('b') }),
    cue('d', { after: after('b') })
  )
  const [a, b, c, d] = ids as [string, string, string, string]
  exactly(t, await call('DELETE', `/v1/cues/${b}`), { status: 409, body: { error: { code: 'cue_has_followers', cue_ids: [c, d].sort() } } })
  const remove = (...ids: string[]) => call('POST', '/v1/cues/bulk-delete', { ids }, { 'x-confirm-destructive': 'true' })
  exactly(t, await remove(a, b, c), { status: 200, body: { deleted: [c], skipped: [a, b] } })
  const operate = async (...ids: string[]) => {
    const { body } = await call('POST', '/v1/operations', { type: 'delete', ids }, { 'x-confirm-destructive': 'true' })
    for (let n = 0; n < 6; n++) await fn.runOperation({ operation_id: body.id })
    return get(`/v1/operations/${body.id}`)
  }
  exactly(t, await operate(a, b), { status: 'completed', succeeded: 0, skipped: 2 })
  exactly(t, await get('/v1/cues'), { total: 3 })
  exactly(t, await operate(a, b, d), { status: 'completed', succeeded: 3, failed: 0 })
})

t.test('apply resolves keys of its list in any order, rearranges a graph and prunes chains', async t => {
  const { call, get } = await stage()
  const chain = [cue('c', { after: after('b') }), cue('b', { after: after('a') }), cue('a', daily)]
  exactly(t, await call(...apply(chain)), { status: 200, body: { created: ['c', 'b', 'a'] } })
  exactly(t, await call(...apply(chain)), { status: 200, body: { created: [], updated: [], unchanged: ['c', 'b', 'a'] } })
  const reversed = [cue('c', daily), cue('b', { after: after('c') }), cue('a', { after: after('b', 'd') }), cue('d', { after: after('c') })]
  exactly(t, await call(...apply(reversed, { dry_run: true })), {
    status: 200,
    body: { created: ['d'], updated: [{ key: 'c' }, { key: 'b' }, { key: 'a' }] }
  })
  exactly(t, await call(...apply(reversed)), { status: 200, body: { created: ['d'] } })
  exactly(t, await get('/v1/cues/by-key/a'), { after: after('b', 'd'), schedule: null })

  const cyclic = [cue('c', { after: after('a') }), ...reversed.slice(1)]
  exactly(t, await call(...apply(cyclic)), {
    status: 409,
    body: { error: { code: 'cue_cycle' }, detail: [{ loc: ['body', 'cues', 'c'] }] }
  })
  const unknown = [
    ...reversed,
    cue('e', { after: after('x') }),
    cue('f', { after: after('bad') }),
    { ...cue('bad'), timezone: 'nowhere', ...daily }
  ]
  exactly(t, await call(...apply(unknown)), {
    status: 422,
    body: { detail: [{ loc: ['body', 'cues', 'e', 'after'] }, { loc: ['body', 'cues', 'bad', 'schedule', 'timezone'] }] }
  })
  exactly(t, await call('POST', '/v1/cues', cue('outside', { after: after('b') })), { status: 201 })
  exactly(t, await call(...apply([cue('c', daily)], { prune: true })), {
    status: 409,
    body: { error: { code: 'cue_has_followers' }, detail: [{ loc: ['body', 'cues', 'b'] }] }
  })
  exactly(t, await call(...apply([cue('b', daily)], { prune: true })), { status: 200, body: { pruned: ['a', 'c', 'd'] } })
})
