/** Declared cues: POST /v1/cues/apply. */

import pg from 'pg'
import t from 'tap'
import { faults, hourly, nothing, stage, start, url, withClient } from '../support/apply-stage.ts'
import { exactly } from '../support/exactly.ts'
import { error } from '../support/setup.ts'

t.test('creates, replaces, leaves and prunes cues of a set, and says what changed', async t => {
  const { apply, get, patch, fn, account } = await stage(t)
  exactly(t, await apply([hourly('a'), hourly('b'), hourly('c')]), {
    status: 200,
    body: { ...nothing, set: 's', dry_run: false, created: ['a', 'b', 'c'] }
  })
  const { cues } = await get('/v1/cues?set=s')
  t.same(cues.map((cue: { key: string; managed_by: string }) => [cue.key, cue.managed_by]).sort(), [
    ['a', 's'],
    ['b', 's'],
    ['c', 's']
  ])
  exactly(t, await get('/v1/cues?set=other'), { total: 0 })
  const b = await get('/v1/cues/by-key/b')
  await patch(`/v1/cues/${b.id}`, { status: 'paused' })

  const rich = {
    ...hourly('b'),
    cron: '0 9 * * *',
    timezone: 'Europe/London',
    callback_url: undefined,
    callback: { url, headers: { 'X-Token': 'secret' } },
    payload: { n: 12345678901234567890n.toString() },
    delivery: { timeout_seconds: 5 },
    tags: ['x']
  }
  const next = [rich, hourly('a'), hourly('d')]
  const dry = await apply(next, { prune: true, dry_run: true })
  const changes = {
    tags: { from: [], to: ['x'] },
    'schedule.cron': { from: '0 * * * *', to: '0 9 * * *' },
    'schedule.timezone': { from: 'UTC', to: 'Europe/London' },
    'callback.headers.X-Token': { from: null, to: '********' },
    'delivery.timeout_seconds': { from: null, to: 5 },
    'delivery.outcome_deadline_seconds': { from: null, to: 300 },
    'delivery.claim_timeout_seconds': { from: null, to: 900 },
    'delivery.await_outcome': { from: null, to: false },
    payload: { from: {}, to: rich.payload }
  }
  t.same(dry.body, { set: 's', dry_run: true, created: ['d'], updated: [{ key: 'b', changes }], unchanged: ['a'], pruned: ['c'] })
  exactly(t, await get('/v1/cues'), { total: 3 })
  const done = await apply(next, { prune: true })
  t.same(done.body, { ...dry.body, dry_run: false })
  exactly(t, await get('/v1/cues/by-key/b'), { id: b.id, status: 'paused', next_run: null, version: b.version + 2, managed_by: 's' })
  exactly(t, await apply(next, { prune: true }), { body: { ...nothing, unchanged: ['b', 'a', 'd'] } })
  t.same((await get('/v1/cues')).cues.map(({ key }: { key: string }) => key).sort(), ['a', 'b', 'd'])

  const secret = { ...rich, callback: { url, headers: { 'X-Token': 'other' } } }
  const masked = { from: '********', to: '********' }
  exactly(t, await apply([secret]), { body: { updated: [{ key: 'b', changes: { 'callback.headers.X-Token': masked } }] } })
  t.same((await fn.readDeclaredCues({ account_id: account.id, keys: ['b', 'x'] })).length, 1)
  exactly(t, await apply([], { prune: true }), { body: { ...nothing, pruned: ['a', 'b', 'd'] } })
  exactly(t, await get('/v1/cues'), { total: 0 })
})

t.test('500 unchanged cues are compared without a lock, and no row is written', async t => {
  const { apply, stored, pool } = await stage(t)
  const payload = { text: 'x'.repeat(3000), task: 't' }
  const cues = Array.from({ length: 500 }, (_, n) => ({ ...hourly(`k/${n}`), ...(n < 100 && { payload: { ...payload, n } }) }))
  exactly(t, await apply(cues), { status: 200, body: { created: cues.map(({ key }) => key) } })
  const before = await stored()
  /** Changes with every version of a row. */
  const versions = async () => {
    const tables = ['cues', 'cue_runs', 'payloads', 'cue_rooms', 'idempotency_keys']
    const query = tables.map(
      name => `select '${name}', count(*), md5(string_agg(ctid::text || xmin::text, ' ' order by ctid)) from cue.${name}`
    )
    return (await pool.query({ text: query.join(' union all '), rowMode: 'array' })).rows
  }
  const former = await versions()
  const statements: string[] = []
  const { query } = pg.Client.prototype
  t.teardown(() => Object.assign(pg.Client.prototype, { query }))
  pg.Client.prototype.query = function (this: pg.Client, ...args: [{ text: string }]) {
    if (/cue\.\w*(apply|cue)/.test(args[0]?.text ?? '')) statements.push(args[0].text)
    return query.apply(this, args as never) as never
  } as never
  for (const options of [{}, { prune: true }, { dry_run: true, prune: true }, { take_over: true }]) {
    const since = performance.now()
    exactly(t, await apply(cues, options), { status: 200, body: { ...nothing, unchanged: cues.map(({ key }) => key) } })
    t.comment(`${Math.round(performance.now() - since)} ms`)
  }
  pg.Client.prototype.query = query
  t.same(statements.filter(text => /apply_cues|read_declared_cues/.test(text)).length, 8, 'two statements for each request')
  t.equal(statements.length, 8)
  t.same(await stored(), before)
  t.strictSame(await versions(), former)
})

t.test('a row locked by someone else does not delay a list that changes nothing', async t => {
  const { apply, connect } = await withClient(t)
  await apply([hourly('a')])
  const client = await connect()
  await client.query('begin; select from cue.accounts for update; select from cue.cues for update; select from cue.cue_runs for update')
  exactly(t, await apply([hourly('a')], { prune: true }), { status: 200, body: { unchanged: ['a'] } })
  await client.query('rollback')
})

t.test('shows drift of cues that were changed otherwise', async t => {
  const { apply, get, patch, call } = await stage(t)
  await apply([hourly('a'), hourly('b')])
  const { id } = await get('/v1/cues/by-key/a')
  exactly(t, await patch(`/v1/cues/${id}`, { name: 'Edited' }), { managed_by: 's', name: 'Edited' })
  await call('PUT', '/v1/cues/by-key/b', { ...hourly('b'), description: 'by hand' })
  exactly(t, await get('/v1/cues/by-key/b'), { managed_by: 's' }, 'a replacement leaves it in its set')
  const drift = [
    { key: 'a', changes: { name: { from: 'Edited', to: 'Hourly' } } },
    { key: 'b', changes: { description: { from: 'by hand', to: null } } }
  ]
  exactly(t, await apply([hourly('a'), hourly('b')], { dry_run: true }), { body: { updated: drift, unchanged: [] } })
  exactly(t, await get(`/v1/cues/${id}`), { name: 'Edited' })
  exactly(t, await apply([hourly('a'), hourly('b')]), { body: { updated: drift } })
  await patch(`/v1/cues/${id}`, { key: null })
  exactly(t, await get(`/v1/cues/${id}`), { managed_by: null, key: null }, 'without a key, it leaves the set')
})

t.test('adopts cues without a set, refuses those of another, and takes them over when asked', async t => {
  const { apply, get, post } = await stage(t)
  const { id } = await post('/v1/cues', hourly('a'))
  await post('/v1/cues', hourly('lonely'))
  await apply([hourly('x'), hourly('y')], { set: 'other' })
  exactly(t, await apply([hourly('a')]), {
    body: { updated: [{ key: 'a', changes: { managed_by: { from: null, to: 's' } } }] }
  })
  exactly(t, await get(`/v1/cues/${id}`), { managed_by: 's' })

  const refused = await apply([hourly('x'), hourly('b'), hourly('y')])
  exactly(t, refused, error('managed_elsewhere', 409))
  t.same(faults(refused), [
    ['managed_elsewhere', 'x'],
    ['managed_elsewhere', 'y']
  ])
  t.match(refused.body.error.message, /x.*set other/)
  exactly(t, await apply([hourly('x')], { dry_run: true }), error('managed_elsewhere', 409))
  exactly(t, await get('/v1/cues?key=b'), { total: 0 }, 'all or none')

  exactly(t, await apply([hourly('a'), hourly('x')], { take_over: true, prune: true }), {
    body: { updated: [{ key: 'x', changes: { managed_by: { from: 'other', to: 's' } } }], unchanged: ['a'], pruned: [] }
  })
  exactly(t, await apply([], { prune: true }), { body: { pruned: ['a', 'x'] } })
  t.same((await get('/v1/cues')).cues.map(({ key }: { key: string }) => key).sort(), ['lonely', 'y'], 'prunes only its own set')
})

t.test('creates a cue paused, and leaves its status alone afterwards', async t => {
  const { apply, get, patch, pool } = await stage(t)
  const [a, b] = [
    { ...hourly('a'), paused: true },
    { ...hourly('b'), paused: false }
  ]
  exactly(t, await apply([a, b], { dry_run: true }), { status: 200, body: { ...nothing, created: ['a', 'b'] } })
  exactly(t, await apply([a, b]), { status: 200, body: { ...nothing, created: ['a', 'b'] } })
  const cue = await get('/v1/cues/by-key/a')
  const none = { next_run: null, next_slot: null, paused_until: null, pause_reason: null }
  exactly(t, cue, { status: 'paused', paused_by: 'user', paused_at: new Date(start).toISOString(), ...none, version: 1 })
  exactly(t, await get('/v1/cues/by-key/b'), { status: 'active', paused_by: null, next_run: '2030-01-07T09:00:00.000Z' })
  exactly(t, await apply([a, { ...b, paused: true }]), { body: { ...nothing, unchanged: ['a', 'b'] } })
  exactly(t, await get('/v1/cues/by-key/b'), { status: 'active' }, 'it is not paused later')

  exactly(t, await patch(`/v1/cues/${cue.id}`, { status: 'active' }), { status: 'active', next_run: '2030-01-07T09:00:00.000Z' })
  exactly(t, await apply([{ ...a, cron: '30 * * * *' }]), { body: { updated: [{ key: 'a' }] } })
  exactly(t, await get('/v1/cues/by-key/a'), { status: 'active', paused_at: null, next_run: '2030-01-07T09:30:00.000Z' }, 'nor again')
  exactly(t, await apply([{ ...a, paused: 'yes' }]), { status: 422 })

  const { rows } = await pool.query(
    `select key, error from cue.apply_cues((select id from cue.accounts), 'sql', '[{"key": "sql", "paused": true, "next_run": "2030-01-08T00:00:00Z",
       "changes": {"name": "n", "transport": "worker", "schedule_type": "recurring", "cron": "0 0 * * *"}}]', '{sql}')`
  )
  t.same(rows, [{ key: 'sql', error: null }])
  exactly(t, await get('/v1/cues/by-key/sql'), { status: 'paused', next_run: null })
})

t.test('reports all errors at once, with key and field, and does nothing', async t => {
  const { apply, get } = await stage(t)
  await apply([hourly('x')], { set: 'other' })
  const { callback_url: _, ...worker } = hourly('worker')
  await apply([{ ...worker, worker: true }])
  const answer = await apply([
    hourly('fine'),
    { ...hourly('a/b'), cron: '61 * * * *' },
    { ...hourly('c'), retry: { max_attempts: 99, attempts: 1 } },
    { ...hourly('d'), callback_url: 'http://10.0.0.1/' },
    hourly('worker'),
    hourly('fine'),
    hourly('x'),
    { ...hourly('e'), key: 'not a key' },
    { name: 'n', cron: '@daily', worker: true },
    null,
    7,
    { ...hourly('f'), timezone: 'Mars/Base' },
    { ...hourly('g'), delivery: { timeout_seconds: 3601 } },
    { ...hourly('h'), payload: 'x'.repeat(1024 * 1024 + 1) },
    { ...hourly('i'), callback: { headers: { Host: 'x', 'X-A': '********' } } }
  ])
  t.same([answer.status, answer.body.error.code], [422, 'validation_error'])
  t.same(faults(answer), [
    ['value_error', 'fine key'],
    ['invalid_schedule', 'a/b schedule cron'],
    ['extra_forbidden', 'c retry attempts'],
    ['less_than_equal', 'c retry max_attempts'],
    ['invalid_callback_url', 'd callback url'],
    ['value_error', 'worker transport'],
    ['managed_elsewhere', 'x'],
    ['string_pattern_mismatch', 'not a key key'],
    ['missing', '8 key'],
    ['dict_type', '9'],
    ['dict_type', '10'],
    ['invalid_timezone', 'f schedule timezone'],
    ['less_than_equal', 'g delivery timeout_seconds'],
    ['invalid_payload_size', 'h payload'],
    ['value_error', 'i callback headers Host'],
    ['value_error', 'i callback headers X-A']
  ])
  exactly(t, await get('/v1/cues'), { total: 2 })
  exactly(t, await apply([{ ...hourly('a'), cron: 'x' }]), error('invalid_schedule', 400), 'the code that all have')
})

t.test('refuses malformed requests', async t => {
  const { call, get } = await stage(t)
  const at = async (body: unknown) => {
    const { status, body: answer } = await call('POST', '/v1/cues/apply', body)
    return [status, ...(answer.detail ?? []).map(({ loc }: { loc: string[] }) => loc.join('.'))]
  }
  const many = Array.from({ length: 501 }, (_, n) => hourly(`k${n}`))
  t.same(await at({ set: 's', cues: many }), [422, 'body.cues'])
  t.same(await at({ set: 's', cues: {} }), [422, 'body.cues'])
  t.same(await at({ set: 's', cues: null }), [422, 'body.cues'])
  t.same(await at({ set: 's', cues: 'x' }), [422, 'body.cues'])
  t.same(await at({ set: 's' }), [422, 'body.cues'])
  t.same(await at({ cues: [] }), [422, 'body.set'])
  t.same(await at({ set: '', cues: [] }), [422, 'body.set'])
  t.same(await at({ set: 'x'.repeat(101), cues: [] }), [422, 'body.set'])
  t.same(await at({ set: 's', cues: [], prune: 'yes' }), [422, 'body.prune'])
  t.same(await at({ set: 's', cues: [], purge: true }), [422, 'body.purge'])
  t.same(await at({ set: { cues: [1] }, cues: [] }), [422, 'body.set'])
  t.same(await at('{"set": "s", "cues": [{]}'), [400])
  t.same(await at('{"set": "s", "cues": [{"payload": "\\u0000"}]}'), [400])
  t.same(await at({ set: 's', cues: [[]] }), [422, 'body.cues.0'])
  t.same(await at({ set: 's', cues: [{ ...hourly('a'), x: 'x'.repeat(70_000) }] }), [413])
  t.same(
    await at(`{"set": "${'ü'.repeat(100)}", "cues": [${JSON.stringify(hourly('__proto__')).slice(0, -1)}, "payload": {"__proto__": 1}}]}`),
    [200]
  )
  exactly(t, await get('/v1/cues/by-key/__proto__'), { managed_by: 'ü'.repeat(100) })
})
