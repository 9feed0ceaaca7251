/** The operator's figures, and who may read them. */
import t from 'tap'
import { createKey, storedKey } from '../../src/accounts/keys.ts'
import { localEmail } from '../../src/accounts/operator.ts'
import { build as buildApp } from '../../src/app.ts'
import { version } from '../../src/config.ts'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'
import { forOneCell } from '../support/two-cells.ts'

const noon = '2030-01-15T12:00:00.000Z'
const OPERATOR_TOKEN = 'operator-token-0123456789'
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const own = { origin: 'http://localhost:0' }

t.test('the operator sees engines, waiting work, connections, partitions, accounts and migrations', { skip: forOneCell }, async t => {
  const { as, fn, pool, post, register, maintain, account, clock } = await build(t, noon, { env: { OPERATOR_TOKEN } })
  const read = async () => (await as(null).call('GET', '/v1/operator', undefined, bearer(OPERATOR_TOKEN))).body
  const empty = await read()
  exactly(t, empty, { version, timestamp: noon, cells: [{ cell: 1, status: 'down', reason: 'no engine has run yet' }] })
  t.same(empty.cells[0].figures.engines, [])
  t.same(
    empty.cells[0].figures.queues,
    ['due', 'pending', 'retrying', 'delivering', 'pending_outcome', 'pending_worker', 'claimed', 'deferred', 'queued'].map(queue => ({
      queue,
      waiting: 0,
      oldest: null
    }))
  )

  const beat = (n: number, lateness_ms: number) =>
    fn.beatEngine({
      engine_id: `00000000-0000-0000-0000-00000000000${n}`,
      version: 'v',
      lateness_ms,
      open_deliveries: n,
      missed_after: '1 day'
    })
  await beat(3, 1)
  clock.advance('1 minute')
  await beat(4, 2)
  await fn.stopEngine({ engine_id: '00000000-0000-0000-0000-000000000004' })
  clock.advance('1 second')
  await beat(1, 12)
  await beat(2, 7)
  const other = await register()
  const cue = await post('/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true })
  await post(`/v1/cues/${cue.id}/fire`)
  await post(`/v1/cues/${cue.id}/fire`)
  await post(`/v1/cues/${cue.id}/fire`, { send_at: '2030-01-16T00:00:00Z' })
  await post('/v1/executions/claim', { worker_id: 'w' })
  const quiet = await as(other).post('/v1/cues', { name: 'another', cron: '0 9 * * *', callback_url: 'http://127.0.0.1:9999/' })
  await as(other).post(`/v1/cues/${quiet.id}/fire`)
  clock.advance('1 second')
  await maintain()
  clock.advance('6 seconds')
  const [{ status, figures }] = (await read()).cells
  t.equal(status, 'degraded', 'a fire has waited for more than 5 s')
  exactly(t, figures.engines, [
    { state: 'live', share: 0.5, lateness_ms: 12, open_deliveries: 1, version: 'v' },
    { state: 'live', share: 0.5, lateness_ms: 7, open_deliveries: 2, last_seen_at: '2030-01-15T12:01:01.000Z' },
    { state: 'silent', share: 0, lateness_ms: 1 },
    { state: 'stopped', share: 0, lateness_ms: 2 }
  ])
  t.same(Object.fromEntries(figures.queues.map(({ queue, waiting, oldest }: Record<string, unknown>) => [queue, [waiting, oldest]])), {
    due: [0, null],
    pending: [1, '2030-01-15T12:01:01.000Z'],
    retrying: [0, null],
    delivering: [0, null],
    pending_outcome: [0, null],
    pending_worker: [1, '2030-01-15T12:01:01.000Z'],
    claimed: [1, '2030-01-15T12:01:01.000Z'],
    deferred: [1, '2030-01-16T00:00:00.000Z'],
    queued: [0, null]
  })
  exactly(t, figures.accounts, [
    { account_id: account.id, email: account.email, plan: 'free', executions_used: 3, executions_per_month: 300, cues_used: 1, cues: 10 },
    { account_id: other.id, executions_used: 1 }
  ])
  const [mine] = figures.connections.filter(({ name }: { name: string }) => name === 'pgcue')
  t.ok(mine.open >= 1 && mine.active >= 1 && mine.open <= figures.connection_limit, 'this query')
  t.ok(figures.size_bytes > figures.partitions[0].size_bytes)
  exactly(t, figures.partitions[0], { table: 'executions', month: /^\d{4}-\d\d$/ })
  const { rows } = await pool.query('select id, name from cue.migrations where id > 0 order by id desc')
  t.same(
    figures.migrations.map(({ id, name }: { id: number; name: string }) => ({ id, name })),
    rows.slice(0, 10)
  )
  t.equal(figures.migration_count, rows.length)
})

t.test('only the operator may read them', async t => {
  const { as, call, config, pool, clock } = await build(t, noon, { env: { OPERATOR_TOKEN } })
  const visitor = as(null)
  const path = '/v1/operator'
  exactly(t, await visitor.call('GET', path), error('not_authenticated', 401))
  exactly(t, await visitor.call('GET', path, undefined, bearer(`${OPERATOR_TOKEN}x`)), error('not_authenticated', 401))
  exactly(t, await call('GET', path), error('insufficient_scope', 403))
  exactly(t, await call('GET', '/v1/auth/me', undefined, bearer(OPERATOR_TOKEN)), error('not_authenticated', 401), 'it opens nothing else')

  const open = (operator_token: unknown, headers: Record<string, string> = own) =>
    visitor.call('POST', `${path}/session`, { operator_token }, headers)
  for (const wrong of ['x', `${OPERATOR_TOKEN} x`, OPERATOR_TOKEN.slice(1), `é${OPERATOR_TOKEN}`])
    exactly(t, await open(wrong), error('not_authenticated', 401), wrong)
  for (const invalid of ['', null, 17, 'x'.repeat(1001)]) exactly(t, await open(invalid), error('validation_error', 422))
  exactly(t, await open(OPERATOR_TOKEN, { origin: 'https://evil.example' }), error('cross_origin_refused', 403))
  const answer = await open(OPERATOR_TOKEN)
  exactly(t, answer, { status: 204 })
  t.match(answer.headers['set-cookie'], /^pgcue_operator_0=\d+\.[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
  const cookie = answer.headers['set-cookie']!.split(';')[0]!
  exactly(t, await visitor.call('GET', path, undefined, { cookie }), { status: 200 })
  exactly(t, await call('GET', path, undefined, { cookie }), error('insufficient_scope', 403), 'a header wins')
  for (const changed of [
    cookie.replace(/\d\./, '9.'),
    `${cookie}x`,
    cookie.slice(0, -1),
    'pgcue_operator_0=',
    'pgcue_operator_0=9999999999.',
    'pgcue_operator_0=9999999999.é'
  ])
    exactly(t, await visitor.call('GET', path, undefined, { cookie: changed }), error('not_authenticated', 401), changed)
  clock.advance('12 hours')
  exactly(t, await visitor.call('GET', path, undefined, { cookie }), error('not_authenticated', 401), 'after 12 hours')
  clock.set(noon)
  const out = await visitor.call('DELETE', `${path}/session`)
  exactly(t, out, { status: 204 })
  t.match(out.headers['set-cookie'], /^pgcue_operator_0=; Path=\/; Max-Age=0;/)

  const changed = await buildApp({ config: { ...config, operatorToken: 'another-token-0123456' }, pool, clock: clock.now })
  t.teardown(() => changed.close())
  t.notOk((await changed.inject({ url: path, headers: { cookie } })).statusCode === 200, 'a new token makes it invalid')
})

t.test('without OPERATOR_TOKEN, only the account of an embedded database is the operator', async t => {
  const { as, call, config, pool, clock, register } = await build(t, noon)
  const session = (operator_token: string) => as(null).call('POST', '/v1/operator/session', { operator_token }, own)
  for (const token of ['x', 'null', 'undefined']) exactly(t, await session(token), error('not_authenticated', 401))
  exactly(t, await as(null).call('GET', '/v1/operator', undefined, bearer('null')), error('not_authenticated', 401))
  const forged = { cookie: 'pgcue_operator_0=9999999999.x' }
  exactly(t, await as(null).call('GET', '/v1/operator', undefined, forged), error('not_authenticated', 401))
  const local = await register(localEmail)
  exactly(t, await as(local).call('GET', '/v1/operator'), error('insufficient_scope', 403), 'not of another database')
  exactly(t, await as(local).get('/v1/auth/me'), { is_operator: false })

  const embedded = await buildApp({ config: { ...config, embedded: true }, pool, clock: clock.now })
  t.teardown(() => embedded.close())
  const status = async (api_key: string, url = '/v1/operator') => (await embedded.inject({ url, headers: bearer(api_key) })).statusCode
  t.equal(await status(local.api_key), 200)
  exactly(t, (await embedded.inject({ url: '/v1/auth/me', headers: bearer(local.api_key) })).json(), { is_operator: true })
  t.equal(await status((await register()).api_key), 403)
  const { api_key } = await as(local).post('/v1/auth/keys', { label: 'reader', scopes: ['read', 'write', 'worker'] })
  t.equal(await status(api_key), 403, 'only with the scope account')
  exactly(t, await call('POST', '/v1/auth/register', { email: localEmail }), error('validation_error', 422), 'nobody else can have it')
})

t.test('the operator changes plans and limits of accounts', { skip: forOneCell }, async t => {
  const { as, account, register, get, post, pool, clock } = await build(t, noon, { env: { OPERATOR_TOKEN } })
  const operator = (method: string, path = '', body?: object) =>
    as(null).call(method, `/v1/operator/accounts${path}`, body, bearer(OPERATOR_TOKEN))
  const change = (body: object, id = account.id) => operator('PATCH', `/${id}`, body)
  const { id, email } = account
  t.same((await change({ plan: 'pro', limits: { cues: 3, fires_per_hour: 2 } })).body, {
    id,
    email,
    plan: 'pro',
    limits: { cues: 3, fires_per_hour: 2 }
  })
  exactly(t, await get('/v1/usage'), { plan: 'pro', cues: { limit: 3 }, executions: { limit: 5000 } })
  t.same((await change({ plan: 'scale' })).body.limits, { cues: 3, fires_per_hour: 2 }, 'they survive a change of plan')
  await pool.query("select cue.set_plan($1, 'free')", [id])
  t.same((await change({ limits: { executions_per_month: 4 } })).body.limits, { cues: 3, fires_per_hour: 2, executions_per_month: 4 })
  exactly(t, await get('/v1/usage'), { plan: 'free', cues: { limit: 3 }, executions: { limit: 4, remaining: 4 } })

  const cues: { id: string; status: string }[] = []
  for (let n = 0; n < 3; n++) {
    clock.advance('1 second')
    cues.push(await post('/v1/cues', { name: `cue ${n}`, cron: '0 9 * * *', worker: true }))
  }
  exactly(t, await post('/v1/cues', { name: 'one more', cron: '0 9 * * *', worker: true }), { error: { code: 'cue_limit_exceeded' } })
  const fire = () => post(`/v1/cues/${cues[0]!.id}/fire`)
  for (const allowed of [true, true, false]) t.equal('id' in (await fire()), allowed)
  exactly(t, await fire(), { error: { code: 'rate_limit_exceeded', message: 'Fire limit reached: 2 per cue per hour.' } })
  await change({ limits: { fires_per_hour: 20 } })
  for (const allowed of [true, true, true, true, true, true, false])
    t.equal('id' in (await fire()), allowed, 'until twice the limit of executions')
  await change({ limits: { executions_per_month: 40, cues: 1 } })
  t.ok('id' in (await fire()))
  t.same((await get('/v1/cues')).cues.map(({ status }: { status: string }) => status).sort(), ['active', 'paused', 'paused'])
  const { rows: mails } = await pool.query(
    "select data from pgboss.job where name = 'mails' and data ->> 'kind' = 'downgrade' order by created_on"
  )
  exactly(t, mails.at(-1).data, { cue_ids: [cues[2]!.id, cues[1]!.id], same_plan: true })

  t.same((await change({ limits: { cues: null, executions_per_month: null, fires_per_hour: null } })).body, {
    id,
    email,
    plan: 'free',
    limits: {}
  })
  exactly(t, await get('/v1/usage'), { cues: { limit: 10 }, executions: { limit: 300 } })
  t.same((await change({})).body, { id, email, plan: 'free', limits: {} })
  const [{ event, actor, detail }] = (await get('/v1/auth/audit')).events
  t.same(
    { event, actor, detail },
    {
      event: 'plan.changed',
      actor: 'operator',
      detail: { limits: { cues: null, executions_per_month: null, fires_per_hour: null } }
    }
  )

  const other = await register('grace@example.com')
  t.same((await operator('GET', '?search=GRACE')).body, { accounts: [{ id: other.id, email: other.email, plan: 'free', limits: {} }] })
  t.same((await operator('GET', `?search=${id}`)).body.accounts, [{ id, email, plan: 'free', limits: {} }])
  t.equal((await operator('GET')).body.accounts.length, 2)
  t.same((await operator('GET', '?search=%25')).body.accounts, [])

  for (const nobody of ['018f0000-0000-7000-8000-000000000000', 'x'])
    exactly(t, await change({ plan: 'pro' }, nobody), error('not_found', 404))
  for (const invalid of [
    { cues: -1 },
    { unknown: 1 },
    { plan: 'pro' },
    { cues: 1.5 },
    { cues: '1' },
    { fires_per_hour: 0 },
    { cues: 2 ** 31 },
    []
  ])
    exactly(t, await change({ limits: invalid }), error('validation_error', 422), JSON.stringify(invalid))
  exactly(t, await change({ plan: 'gold' }), error('validation_error', 422))
  for (const invalid of [
    '{"cues": -1}',
    '{"unknown": 1}',
    '{"plan": "pro"}',
    '{"cues": 1.5}',
    '{"cues": "1"}',
    '{"open_deliveries": 0}',
    '{"cues": 4294967296}'
  ])
    await t.rejects(pool.query('select cue.set_limits($1, $2)', [id, invalid]), { code: /^(QU034|22003)$/ }, invalid)
  exactly(t, await as(other).call('PATCH', `/v1/operator/accounts/${other.id}`, { plan: 'scale' }), error('insufficient_scope', 403))
  exactly(t, await as(other).call('GET', '/v1/operator/accounts'), error('insufficient_scope', 403))
  t.same((await operator('GET', '?search=grace')).body.accounts[0].plan, 'free')
})

t.test('the account of an embedded database has no limits', { skip: forOneCell }, async t => {
  const { as, fn, config, pool, clock } = await build(t, noon, { env: { RATE_LIMIT: 'on' } })
  const api_key = createKey(config.cell)
  const id = await fn.newAccountId({})
  await fn.openLocalAccount({
    account_id: id,
    email: localEmail,
    ...storedKey(config.encryptionKeys, api_key, id),
    token_hash: Buffer.alloc(32)
  })
  await fn.openLocalAccount({
    account_id: await fn.newAccountId({}),
    email: localEmail,
    ...storedKey(config.encryptionKeys, createKey(1), id),
    token_hash: Buffer.alloc(32, 1)
  })
  const { call, get, post } = as({ id, email: localEmail, api_key })
  exactly(t, await get('/v1/auth/me'), {
    plan: 'scale',
    active_cue_limit: null,
    monthly_execution_limit: null,
    rate_limit_per_minute: null
  })
  const names = ['cues', 'executions_per_month', 'fires_per_hour', 'requests_per_minute']
  const unlimited = Object.fromEntries(names.map(name => [name, null]))
  const limits = async () => (await pool.query('select limits from cue.accounts where id = $1', [id])).rows[0].limits
  t.same(await limits(), unlimited)

  // On a plan whose limits are soon reached.
  await pool.query("select cue.set_plan($1, 'free')", [id])
  const cues: { id: string; status: string }[] = []
  for (let n = 0; n < 12; n++) cues.push(await post('/v1/cues', { name: `cue ${n}`, cron: '0 9 * * *', worker: true }))
  t.same(new Set(cues.map(({ status }) => status)), new Set(['active']))
  await pool.query("insert into cue.usage_counters (account_id, month, slot, executions) values ($1, '2030-01-01', 7, 601)", [id])
  for (let n = 0; n < 12; n++) t.ok('id' in (await post(`/v1/cues/${cues[0]!.id}/fire`)))
  await fn.foldUsage({})
  exactly(t, await post(`/v1/cues/${cues[1]!.id}/pause`), { status: 'paused' })
  exactly(t, await post(`/v1/cues/${cues[1]!.id}/resume`), { status: 'active' })
  for (let n = 0; n < 60; n++) t.equal((await call('GET', '/v1/auth/me')).status, 200)
  const { body, headers } = await call('GET', '/v1/usage')
  exactly(t, headers, { 'x-ratelimit-limit': '2147483647', 'x-ratelimit-remaining': '2147483647' })
  t.notOk('x-service-usage-warning' in headers)
  exactly(t, body, {
    plan: 'free',
    cues: { used: 12, limit: null, remaining: null, percent_used: 0 },
    executions: { used: 613, limit: null, remaining: null, percent_used: 0, projected_month_end: 1267, will_exceed_limit: false },
    rate_limit: { requests_per_minute: null, limit: null, current_usage: 0 }
  })
  t.same((await pool.query('select limit_reached_at from cue.accounts where id = $1', [id])).rows, [{ limit_reached_at: null }])
  clock.advance('1 hour')
  t.same((await get('/v1/cues')).total, 12)

  await pool.query(`select cue.set_limits($1, '{"cues": 11, "open_deliveries": 5}')`, [id])
  exactly(t, await post('/v1/cues', { name: 'one more', cron: '0 9 * * *', worker: true }), { error: { code: 'cue_limit_exceeded' } })
  await pool.query(`select cue.set_limits($1, '{"cues": null}')`, [id])
  t.same(await limits(), { ...unlimited, open_deliveries: 5 }, 'without an override, there is no limit again')
})
