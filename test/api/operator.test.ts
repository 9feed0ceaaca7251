/** The operator's figures, and who may read them. */
import t from 'tap'
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
  t.equal(status, 'healthy')
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
