/** Requests with an Idempotency-Key. */
import pg from 'pg'
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { build, error, eventually, invalid } from '../support/setup.ts'
import { cueDefaults, stage } from '../support/stage.ts'

const start = '2030-01-07T08:30:00Z'
const hourly = { name: 'Hourly', cron: '0 * * * *', callback_url: 'http://127.0.0.1:5555/hook' }
const key = (value: string) => ({ 'idempotency-key': value })
type Service = Awaited<ReturnType<typeof build>>
type Answer = Awaited<ReturnType<Service['call']>>

const replayed = ({ headers }: Answer) => headers['idempotency-replayed'] === 'true'
const total = async ({ get }: Service) => (await get('/v1/cues')).total
const kept = async ({ pool }: Service) => (await pool.query('select count(*)::int as count from cue.idempotency_keys')).rows[0].count

t.test('a repetition gets the stored response and does nothing', async t => {
  const service = await build(t, start)
  const { call, as, register, clock, patch, del, post } = service
  const body = { ...hourly, payload: { n: 1, text: 'x'.repeat(5000) }, unknown: 1 }
  const first = await call('POST', '/v1/cues', body, key('k'))
  exactly(t, first, { status: 201, headers: { 'idempotency-replayed': undefined }, body: { name: 'Hourly', warning: /unknown/ } })
  await patch(`/v1/cues/${first.body.id}`, { name: 'Other' })
  const again = await call('POST', '/v1/cues', body, key('k'))
  t.same([again.status, again.body, again.headers['content-type']], [201, first.body, first.headers['content-type']])
  t.ok(replayed(again))
  t.equal(await total(service), 1)

  exactly(t, await call('POST', '/v1/cues', { ...body, name: 'b' }, key('k')), error('idempotency_key_conflict', 409))
  exactly(t, await call('POST', '/v1/cues', body, key('K')), { status: 201, headers: { 'idempotency-replayed': undefined } })
  const other = await as(await register()).call('POST', '/v1/cues', body, key('k'))
  exactly(t, other, { status: 201, headers: { 'idempotency-replayed': undefined } })

  await del(`/v1/cues/${first.body.id}`)
  clock.advance('23 hours')
  clock.advance('59 minutes')
  t.ok(replayed(await call('POST', '/v1/cues', body, key('k'))), 'also when the cue is deleted')
  clock.advance('1 minute')
  const later = await call('POST', '/v1/cues', body, key('k'))
  t.same([later.status, replayed(later), later.body.id === first.body.id], [201, false, false], 'keys last 24 hours')
  t.ok(replayed(await call('POST', '/v1/cues', body, key('k'))))
  exactly(t, await post('/v1/cues', hourly), { name: 'Hourly' })
})

t.test('a key belongs to one path: fires and replays', async t => {
  const { call, post, get } = await build(t, start)
  const [a, b] = [await post('/v1/cues', hourly), await post('/v1/cues', hourly)]
  const fire = (id: string, body: object | undefined, headers: Record<string, string>) => call('POST', `/v1/cues/${id}/fire`, body, headers)
  const first = await fire(a.id, { payload_override: { n: 1 } }, key('k'))
  t.same((await fire(a.id, { payload_override: { n: 1 } }, key('k'))).body, first.body)
  exactly(t, await fire(a.id, { payload_override: { n: 2 } }, key('k')), error('idempotency_key_conflict', 409))
  exactly(t, await fire(b.id, { payload_override: { n: 1 } }, key('k')), { status: 200, headers: { 'idempotency-replayed': undefined } })
  exactly(t, await get(`/v1/cues/${a.id}`), { execution_total: 1 })

  exactly(t, await fire(a.id, { idempotency_key: 'x' }, key('y')), invalid('body', 'idempotency_key'))
  const both = await fire(a.id, { idempotency_key: 'y' }, key('y'))
  t.ok(replayed(await fire(a.id, { idempotency_key: 'y' }, key('y'))))
  exactly(t, await fire(a.id, { idempotency_key: 'y' }, {}), { body: { id: both.body.id } }, "fire's own key")

  await post(`/v1/executions/${first.body.id}/cancel`)
  const replay = () => call('POST', `/v1/executions/${first.body.id}/replay`, undefined, key('k'))
  const once = await replay()
  const twice = await replay()
  t.same([once.status, twice.status, twice.body, replayed(once), replayed(twice)], [200, 200, once.body, false, true])
  exactly(t, await get(`/v1/cues/${a.id}`), { execution_total: 3 })
})

t.test('declarations and operations take a key, too', async t => {
  const { call, get } = await build(t, start)
  for (const [path, body, change] of [
    ['/v1/cues/apply', { set: 's', cues: [{ ...hourly, key: 'a' }] }, { prune: true }],
    ['/v1/operations', { type: 'replay', filter: { status: 'failed' } }, { name: 'x' }]
  ] as const) {
    const first = await call('POST', path, body, key('k'))
    t.same([first.status < 300, replayed(first)], [true, false], path)
    const again = await call('POST', path, body, key('k'))
    t.same([again.status, again.body, replayed(again)], [first.status, first.body, true], path)
    exactly(t, await call('POST', path, { ...body, ...change }, key('k')), error('idempotency_key_conflict', 409), path)
  }
  exactly(t, await get('/v1/operations'), { total: 1 })
})

t.test('a refusal is not stored', async t => {
  const service = await build(t, start)
  const { call, pool, clock } = service
  exactly(t, await call('POST', '/v1/cues', { ...hourly, cron: '61 * * * *' }, key('k')), error('invalid_schedule', 400))
  exactly(t, await call('POST', '/v1/cues', { name: 'n' }, key('k')), { status: 422 })
  await pool.query("update cue.plans set cues = 0 where plan = 'free'")
  exactly(t, await call('POST', '/v1/cues', hourly, key('k')), error('cue_limit_exceeded', 403))
  await pool.query("update cue.plans set cues = 10 where plan = 'free'")
  t.equal(await kept(service), 0)
  const soon = { ...hourly, cron: undefined, at: '2030-01-07T08:31:00Z' }
  const first = await call('POST', '/v1/cues', soon, key('k'))
  t.equal(first.status, 201)
  clock.advance('5 minutes')
  t.same((await call('POST', '/v1/cues', soon, key('k'))).body, first.body, 'a repetition is not checked again: its time is past')
})

t.test('refuses keys that are not 1 to 255 visible ASCII characters', async t => {
  const service = await build(t, start)
  for (const value of [' ', 'a b', 'k'.repeat(256), 'a\tb', 'ä', 'a, b'])
    exactly(t, await service.call('POST', '/v1/cues', hourly, key(value)), invalid('header', 'idempotency-key'))
  t.equal(await total(service), 0)
  for (const value of ['!', '~'.repeat(255), '";--', '\\'])
    t.equal((await service.call('POST', '/v1/cues', hourly, key(value))).status, 201)
})

t.test('of many concurrent requests with one key, one has an effect', async t => {
  const service = await build(t, start)
  const { call, get, post } = service
  const many = async (method: string, path: string, body?: object) => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => call(method, path, body, key('k'))))
    const done = answers.filter(({ status }) => status < 300)
    for (const { status, body, headers } of answers.filter(({ status }) => status >= 300))
      t.same([status, body.error.code, headers['retry-after']], [409, 'idempotency_key_in_use', '1'])
    t.equal(done.filter(answer => !replayed(answer)).length, 1)
    t.equal(new Set(done.map(({ body }) => JSON.stringify(body))).size, 1)
    return done[0]!.body
  }
  const { id } = await many('POST', '/v1/cues', hourly)
  t.equal(await total(service), 1)
  const fired = await many('POST', `/v1/cues/${id}/fire`, { payload_override: { n: 1 } })
  exactly(t, await get(`/v1/cues/${id}`), { execution_total: 1 })
  await post(`/v1/executions/${fired.id}/cancel`)
  await many('POST', `/v1/executions/${fired.id}/replay`)
  exactly(t, await get(`/v1/cues/${id}`), { execution_total: 2 })
})

t.test('a transaction killed before its commit leaves neither the effect nor the key', async t => {
  const service = await build(t)
  const { call, url, account, pool } = service
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  t.teardown(() => holder.end())
  await holder.query('begin')
  await holder.query('select from cue.accounts where id = $1 for update', [account.id])
  const waiting = call('POST', '/v1/cues', hourly, key('k'))
  const blocked = () =>
    pool.query('select pid from pg_stat_activity where pg_blocking_pids(pid) <> $1 and datname = current_database()', ['{}'])
  await eventually(async () => (await blocked()).rows.length === 1)
  exactly(t, await call('POST', '/v1/cues', hourly, key('k')), { ...error('idempotency_key_in_use', 409), headers: { 'retry-after': '1' } })
  await pool.query('select pg_terminate_backend($1)', [(await blocked()).rows[0].pid])
  exactly(t, await waiting, { status: 503 })
  await holder.query('rollback')
  t.same([await total(service), await kept(service)], [0, 0])
  const { status, body } = await call('POST', '/v1/cues', hourly, key('k'))
  t.equal(status, 201)
  t.same((await call('POST', '/v1/cues', hourly, key('k'))).body, body)
  t.same([await total(service), await kept(service)], [1, 1])
})

t.test('a held account keeps no connection from other accounts', async t => {
  const service = await build(t)
  const { call, as, register, url, account } = service
  const other = as(await register())
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  t.teardown(() => holder.end())
  await holder.query('begin')
  await holder.query('select from cue.accounts where id = $1 for update', [account.id])
  const held = Array.from({ length: 10 }, (_, n) => call('POST', '/v1/cues', hourly, key(`k${n}`)))
  const before = performance.now()
  exactly(t, await other.call('POST', '/v1/cues', hourly, key('k')), { status: 201 })
  exactly(t, await other.call('POST', '/v1/cues', hourly), { status: 201 })
  t.ok(performance.now() - before < 1500)
  t.same([...new Set((await Promise.all(held)).map(({ status }) => status))], [503])
  await holder.query('rollback')
  t.same([await total(service), await kept(service)], [0, 1])
  exactly(t, await call('POST', '/v1/cues', hourly, key('k0')), { status: 201 })
})

t.test('functions that are replaced between two requests', async t => {
  const service = await build(t)
  const { call, pool } = service
  for (const n of [1, 2, 3, 4]) {
    exactly(t, await call('POST', '/v1/cues', hourly, key(`k${n}`)), { status: 201 }, `${n}`)
    await pool.query(`alter table cue.executions add column extra_${n} int`)
    await pool.query(`drop function cue.begin_idempotent; ${beginIdempotent}`)
  }
  t.equal(await total(service), 4)
})
const beginIdempotent = `create function cue.begin_idempotent(p_account_id uuid, p_route text, p_key text, p_request_hash bytea, p_now timestamptz default now())
  returns table (status int, body text) language sql security definer set search_path = pg_catalog
  as $$ select * from cue.stored_response(p_account_id, p_route, p_key, p_request_hash, p_now) $$`

t.test('an account keeps a bounded size of responses, counted until they expire', async t => {
  const service = await build(t, start)
  const { call, pool, clock, fn, as, register } = service
  await pool.query('create or replace function cue.idempotency_bytes() returns int language sql immutable as $$ select 3000 $$')
  const bytes = async () =>
    (await pool.query('select sum(bytes)::int as sum from cue.idempotency_keys where account_id = $1', [service.account.id])).rows[0].sum
  exactly(t, await call('POST', '/v1/cues', hourly, key('a')), { status: 201 })
  clock.advance('12 hours')
  exactly(t, await call('POST', '/v1/cues', hourly, key('b')), { status: 201 })
  const each = (await bytes()) / 2
  t.ok(each > 800 && each < 1200, `${each}`)
  const refused = await call('POST', '/v1/cues', hourly, key('c'.repeat(255)))
  exactly(t, refused, { ...error('rate_limit_exceeded', 429), headers: { 'retry-after': String(12 * 3600) } })
  t.equal(await total(service), 2, 'without an effect')
  t.ok(replayed(await call('POST', '/v1/cues', hourly, key('a'))))
  exactly(t, await as(await register()).call('POST', '/v1/cues', hourly, key('c')), { status: 201 }, 'other accounts are not affected')
  clock.advance('12 hours')
  exactly(t, await call('POST', '/v1/cues', hourly, key('c'.repeat(255))), { status: 201 }, 'the oldest has expired')
  exactly(t, await call('POST', '/v1/cues', hourly, key('d'.repeat(255))), { status: 429 })
  t.equal(await fn.pruneIdempotencyKeys({}), 1)
  exactly(t, await call('POST', '/v1/cues', hourly, key('d'.repeat(255))), { status: 429 }, 'pruning changes nothing')
  clock.advance('2 days')
  t.equal(await fn.pruneIdempotencyKeys({ batch: 2 }), 2)
  t.equal(await fn.pruneIdempotencyKeys({ batch: 2 }), 1)
  t.equal(await fn.pruneIdempotencyKeys({ batch: 2 }), 0)
  exactly(t, await call('POST', '/v1/cues', hourly, key('a')), { status: 201, headers: { 'idempotency-replayed': undefined } })
})

t.test('stored responses count towards the payload bytes per day', async t => {
  const env = { PLANS: '{"free": {"payload_bytes_per_day": 3000}}' }
  const service = await build(t, start, { env })
  const { call } = service
  exactly(t, await call('POST', '/v1/cues', hourly, key('a')), { status: 201 })
  exactly(t, await call('POST', '/v1/cues', { ...hourly, description: 'd'.repeat(2000) }, key('b')), error('execution_limit_exceeded', 403))
  t.equal(await total(service), 1)
  exactly(t, await call('POST', '/v1/cues', { ...hourly, description: 'd'.repeat(2000) }), { status: 201 })
})

t.test('two transactions with one key', async t => {
  const { fn, connect, account_id, rows } = await stage(t)
  const [a, b] = [await connect(), await connect()]
  const asked = { account_id, route: 'POST /v1/cues', key: 'k', request_hash: Buffer.from('1') }
  await a.client.query('begin')
  t.equal(await a.fn.beginIdempotent(asked), undefined)
  await t.rejects(b.fn.beginIdempotent(asked), { code: 'QU019' })
  t.equal(await b.fn.beginIdempotent({ ...asked, key: 'other' }), undefined)
  t.equal(await fn.storedResponse(asked), undefined)
  await a.fn.createCue({ account_id, cue: cueDefaults, next_run: null })
  await a.fn.endIdempotent({ ...asked, status: 201, body: '{}' })
  await a.client.query('commit')
  t.same(await b.fn.beginIdempotent(asked), { status: 201, body: '{}' })
  await t.rejects(fn.storedResponse({ ...asked, request_hash: Buffer.from('2') }), { code: 'QU013' })
  t.equal((await rows('select from cue.cues')).length, 1)
})
