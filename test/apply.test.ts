/** Declared cues: POST /v1/cues/apply. */
import fc from 'fast-check'
import pg from 'pg'
import t from 'tap'
import { exactly } from './exactly.ts'
import { always } from './seed.ts'
import { build, error, eventually } from './setup.ts'

const start = '2030-01-07T08:30:00Z'
const url = 'http://127.0.0.1:5555/hook'
const hourly = (key: string) => ({ key, name: 'Hourly', cron: '0 * * * *', callback_url: url })
const env = { PLANS: '{"free":{"cues":1000,"executions_per_month":1000}}' }
const nothing = { created: [], updated: [], unchanged: [], pruned: [] }

const stage = async (t: Parameters<typeof build>[0]) => {
  const service = await build(t, start, { env })
  const { call, pool } = service
  return {
    ...service,
    apply: (cues: unknown, options: object = {}) => call('POST', '/v1/cues/apply', { set: 's', cues, ...options }),
    /** Everything an apply could write. */
    stored: async () =>
      (
        await pool.query(
          `select c.key, c.xmin::text, c.ctid::text, r.xmin::text as run_xmin, r.ctid::text as run_ctid, m.xmin::text as room
             from cue.cues c left join cue.cue_runs r on r.cue_id = c.id left join cue.cue_rooms m on m.account_id = c.account_id order by c.id`
        )
      ).rows
  }
}
const faults = ({ body }: { body: { detail?: { type: string; loc: unknown[] }[] } }) =>
  body.detail?.map(({ type, loc }) => [type, loc.slice(2).join(' ')])

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
  const written = async () => {
    await pool.query('select pg_stat_force_next_flush()')
    const { rows } = await pool.query(
      `select sum(n_tup_ins + n_tup_upd + n_tup_del)::int as rows from pg_stat_user_tables
        where schemaname = 'cue' and relname in ('cues', 'cue_runs', 'payloads', 'cue_rooms', 'accounts', 'idempotency_keys')`
    )
    return rows[0].rows
  }
  await eventually(async () => (await written()) >= 1000)
  const count = await written()
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
  t.equal(await written(), count)
})

t.test('a row locked by someone else does not delay a list that changes nothing', async t => {
  const { apply, connect } = await withClient(t)
  await apply([hourly('a')])
  const client = await connect()
  await client.query('begin; select from cue.accounts for update; select from cue.cues for update; select from cue.cue_runs for update')
  exactly(t, await apply([hourly('a')], { prune: true }), { status: 200, body: { unchanged: ['a'] } })
  await client.query('rollback')
})

const withClient = async (t: Parameters<typeof build>[0]) => {
  const service = await stage(t)
  const connect = async () => {
    const client = new pg.Client(service.url)
    client.on('error', () => {})
    await client.connect()
    t.teardown(() => client.end())
    return client
  }
  return { ...service, connect }
}

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

t.test('the limits of the plan apply to the result', async t => {
  const { apply, get, pool, post, clock } = await stage(t)
  const limit = (cues: number) => pool.query("update cue.plans set cues = $1 where plan = 'free'", [cues])
  await limit(3)
  await apply([hourly('a'), hourly('b'), hourly('c')])
  const refused = await apply([hourly('a'), hourly('d'), hourly('e')])
  exactly(t, refused, error('cue_limit_exceeded', 403))
  t.same(faults(refused), [
    ['cue_limit_exceeded', 'd'],
    ['cue_limit_exceeded', 'e']
  ])
  const swapped = [hourly('a'), hourly('d'), hourly('e')]
  exactly(t, await apply(swapped, { prune: true, dry_run: true }), { body: { created: ['d', 'e'], pruned: ['b', 'c'] } })
  exactly(t, await apply(swapped, { prune: true }), { body: { created: ['d', 'e'], pruned: ['b', 'c'] } })
  exactly(t, await apply([...swapped, hourly('f')], { prune: true, dry_run: true }), error('cue_limit_exceeded', 403))
  exactly(t, await post('/v1/cues', hourly('f')), { error: { code: 'cue_limit_exceeded' } })
  exactly(t, await get('/v1/cues'), { total: 3 })

  await limit(2)
  exactly(t, await apply(swapped), { body: { unchanged: ['a', 'd', 'e'] } }, 'after a downgrade, what is there may stay')
  await limit(3)
  const { cron: _, ...once } = { ...hourly('a'), at: '2030-01-07T09:00:00Z' }
  await apply([once])
  await pool.query("update cue.cues set status = 'completed' where key = 'a'")
  await pool.query('update cue.cue_runs set next_run = null from cue.cues c where c.id = cue_id and key = $1', ['a'])
  clock.advance('1 hour')
  exactly(t, await apply([once]), { body: { unchanged: ['a'] } })
  exactly(t, await apply([{ ...once, at: '2030-01-08T09:00:00Z' }]), {
    body: { updated: [{ key: 'a', changes: { 'schedule.at': {}, status: { from: 'completed', to: 'active' } } }] }
  })
  exactly(t, await apply([{ ...once, at: '2030-01-07T09:00:00Z' }]), error('invalid_schedule', 400), 'in the past')
})

t.test('only a key with scope account may set a callback that gets the key of the account', async t => {
  const { apply, post, as, patch, account } = await stage(t)
  await apply([hourly('a')])
  const { api_key } = await post('/v1/auth/keys', { label: 'l', scopes: ['read', 'write'] })
  const lesser = as({ ...account, api_key })
  const asked = (cues: object[]) => lesser.call('POST', '/v1/cues/apply', { set: 's', cues })
  await patch('/v1/auth/me', { webhook_authorization: 'api_key' })
  exactly(t, await asked([hourly('a')]), { status: 200, body: { unchanged: ['a'] } })
  const refused = await asked([{ ...hourly('a'), callback_url: `${url}2` }, hourly('b')])
  exactly(t, refused, error('insufficient_scope', 403))
  t.same(faults(refused), [
    ['insufficient_scope', 'a'],
    ['insufficient_scope', 'b']
  ])
})

t.test("another account's cues and sets are its own", async t => {
  const { apply, as, register, get } = await stage(t)
  await apply([hourly('a'), hourly('b')])
  const other = as(await register())
  const answer = await other.call('POST', '/v1/cues/apply', { set: 's', cues: [hourly('a')], prune: true, take_over: true })
  exactly(t, answer, { status: 200, body: { ...nothing, created: ['a'] } })
  exactly(t, await get('/v1/cues'), { total: 2 })
  exactly(t, await as(null).call('POST', '/v1/cues/apply', { set: 's', cues: [] }), error('not_authenticated', 401))
})

t.test('a key for requests makes the effect happen once', async t => {
  const { call, patch, get } = await stage(t)
  const send = (cues: object[]) => call('POST', '/v1/cues/apply', { set: 's', cues }, { 'idempotency-key': 'k' })
  const first = await send([hourly('a')])
  exactly(t, first, { status: 200, body: { created: ['a'] }, headers: { 'idempotency-replayed': undefined } })
  await patch(`/v1/cues/${(await get('/v1/cues/by-key/a')).id}`, { name: 'Edited' })
  const again = await send([hourly('a')])
  t.same([again.body, again.headers['idempotency-replayed']], [first.body, 'true'])
  exactly(t, await get('/v1/cues/by-key/a'), { name: 'Edited' })
  exactly(t, await send([hourly('b')]), error('idempotency_key_conflict', 409))
})

t.test('concurrent requests end with one of the lists, whole', async t => {
  const { apply, get } = await stage(t)
  const lists = [0, 1, 2, 3].map(n => Array.from({ length: 20 }, (_, i) => ({ ...hourly(`k${i + n}`), name: `n${n}` })))
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all(lists.map(cues => apply(cues, { prune: true })))
    t.same(
      answers.map(({ status }) => status),
      [200, 200, 200, 200]
    )
    const { cues, total } = await get('/v1/cues?limit=100')
    const names = new Set(cues.map(({ name }: { name: string }) => name))
    const keys = cues.map(({ key }: { key: string }) => key).sort()
    t.same([total, names.size], [20, 1])
    t.same(keys, lists[Number([...names].join().slice(1))]!.map(({ key }) => key).sort())
  }
})

t.test('requests, single replacements, fires and deletions at the same time neither fail nor wait for each other in circles', async t => {
  const { apply, call, get } = await stage(t)
  const cues = Array.from({ length: 30 }, (_, n) => hourly(`k${n}`))
  await apply(cues)
  const ids = (await get('/v1/cues?limit=100')).cues.map(({ id }: { id: string }) => id)
  const answers = await Promise.all([
    ...['x', 'y', 'z'].map(name => apply(cues.map(cue => ({ ...cue, name })))),
    ...ids.map((id: string) => call('PATCH', `/v1/cues/${id}`, { description: 'd' })),
    ...ids.slice(0, 10).map((id: string) => call('POST', `/v1/cues/${id}/fire`)),
    call('POST', '/v1/cues/bulk-delete', { ids: ids.toReversed() }, { 'x-confirm-destructive': 'true' })
  ])
  t.same(
    [...new Set(answers.map(({ status }) => status))].filter(status => ![200, 404, 503].includes(status)),
    []
  )
  exactly(t, await apply(cues), { status: 200 })
  exactly(t, await get('/v1/cues'), { total: 30 })
})

t.test('an interrupted request leaves nothing', async t => {
  const { apply, connect, stored, pool } = await withClient(t)
  await apply([hourly('a'), hourly('old')])
  const before = await stored()
  const list = [{ ...hourly('a'), name: 'b' }, ...Array.from({ length: 499 }, (_, n) => hourly(`k${n}`))]
  const holder = await connect()
  // The last step waits for this key, after cues were deleted and replaced.
  await holder.query(`begin; insert into cue.cues
    select (jsonb_populate_record(c, '{"id": "cue_zzzzzzzzzzzz", "key": "k250"}')).* from cue.cues c where key = 'a'`)
  const answer = apply(list, { prune: true })
  const waiting = async () =>
    (
      await pool.query(
        "select pid from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'apply_cues' and datname = current_database()"
      )
    ).rows
  const { pid } = await eventually(async () => (await waiting())[0])
  await pool.query('select pg_terminate_backend($1)', [pid])
  exactly(t, await answer, error('unavailable', 503))
  await holder.query('rollback')
  t.same(await stored(), before)
  exactly(t, await apply(list, { prune: true }), { status: 200, body: { pruned: ['old'] } })
})

t.test('an account held by someone else: refused as unavailable, and nothing is done', async t => {
  const { apply, connect, get } = await withClient(t)
  const holder = await connect()
  await holder.query('begin; select from cue.accounts for update')
  exactly(t, await apply([hourly('a')]), error('unavailable', 503))
  await holder.query('rollback')
  exactly(t, await get('/v1/cues'), { total: 0 })
})

t.test('any sequence of lists, changes and deletions leaves what a model of sets would hold', async t => {
  const { apply, get, call, del } = await stage(t)
  const key = fc.constantFrom('a', 'b', 'c')
  const cues = fc.uniqueArray(fc.record({ key, name: fc.constantFrom('x', 'y') }), { selector: ({ key }) => key })
  const flag = fc.boolean()
  const step = fc.oneof(
    fc.record({ kind: fc.constant('apply' as const), set: fc.constantFrom('s', 't'), cues, prune: flag, dry_run: flag, take_over: flag }),
    fc.record({ kind: fc.constant('put' as const), key }),
    fc.record({ kind: fc.constant('delete' as const), key })
  )
  type Model = Map<string, { name: string; set: string | null }>
  const expected = (
    model: Model,
    { set, cues, prune, take_over }: { set: string; cues: { key: string; name: string }[]; prune: boolean; take_over: boolean }
  ) => {
    const next: Model = new Map(model)
    const result: Record<string, string[]> = { created: [], updated: [], unchanged: [], pruned: [], refused: [] }
    for (const { key, name } of cues) {
      const old = model.get(key)
      const isForeign = old?.set != null && old.set !== set && !take_over
      const kind = !old ? 'created' : isForeign ? 'refused' : old.name === name && old.set === set ? 'unchanged' : 'updated'
      result[kind]!.push(key)
      next.set(key, { name, set })
    }
    const given = new Set(cues.map(({ key }) => key))
    const gone = prune ? [...model].filter(([key, cue]) => cue.set === set && !given.has(key)).map(([key]) => key) : []
    for (const key of gone) next.delete(key)
    result.pruned = gone.sort()
    return { next, result }
  }
  await always(
    fc.asyncProperty(fc.array(step, { maxLength: 10 }), async steps => {
      let model: Model = new Map()
      for (const one of steps) {
        if (one.kind === 'put') {
          await call('PUT', `/v1/cues/by-key/${one.key}`, { ...hourly(one.key), name: 'x' })
          model.set(one.key, { name: 'x', set: model.get(one.key)?.set ?? null })
        } else if (one.kind === 'delete') {
          await call('DELETE', `/v1/cues/by-key/${one.key}`)
          model.delete(one.key)
        } else {
          const { kind: _, cues, ...options } = one
          const { next, result } = expected(model, one)
          const { status, body } = await apply(
            cues.map(cue => ({ ...hourly(cue.key), name: cue.name })),
            options
          )
          if (result.refused!.length > 0) {
            t.same([status, body.detail?.map(({ loc }: { loc: string[] }) => loc[2])], [409, result.refused])
            continue
          }
          const { created, updated, unchanged, pruned } = body
          const { refused: __, ...rest } = result
          t.same({ created, updated: updated?.map(({ key }: { key: string }) => key), unchanged, pruned }, rest)
          if (!one.dry_run) model = next
        }
        const { cues: all } = await get('/v1/cues?limit=100')
        const found = all.map((cue: { key: string; name: string; managed_by: string }) => [
          cue.key,
          { name: cue.name, set: cue.managed_by }
        ])
        t.same(Object.fromEntries(found), Object.fromEntries(model))
      }
      for (const cue of (await get('/v1/cues?limit=100')).cues) await del(`/v1/cues/${cue.id}`)
    }),
    30
  )
})
