import t from 'tap'
import { createKey } from '../../src/accounts/keys.ts'

import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'

t.test('every route sets exactly one of scope, public and exempt', async t => {
  const { app } = await build(t, undefined, { isNew: true })
  const handler = async () => ({})
  t.throws(() => app.get('/a', handler), { message: 'GET /a must set exactly one of scope, public, exempt' })
  t.throws(() => app.get('/b', { config: { scope: 'read', public: true } }, handler))
  t.throws(() => app.get('/c/:id', { config: { scope: 'worker', executionToken: true } }, handler), {
    message: /has executionToken but no :execution_id$/
  })
})

t.test('identifies a caller by key', async t => {
  const { app, as, account } = await build(t, undefined, { isNew: true })
  app.get('/own', { config: { scope: 'any' } }, async ({ caller }) => caller)
  exactly(t, await as(account).get('/own'), { account_id: account.id, actor: /^key:/, ip: '127.0.0.1' })
  exactly(t, await as(null).call('GET', '/own'), { ...error('not_authenticated', 401), headers: { 'www-authenticate': 'Bearer' } })
  const bearer = (authorization: string) => as(null).call('GET', '/own', undefined, { authorization })
  for (const wrong of ['', 'Bearer', 'Bearer x', 'Basic YTpi', account.api_key, 'Bearer eyJhbGciOiJIUzI1NiJ9.e30.x']) {
    exactly(t, await bearer(wrong), error('not_authenticated', 401), wrong)
  }
  for (const wrong of ['svc_sk_', `${account.api_key}x`, `${account.api_key.slice(0, -1)}-`, 'svc_sk_x_abc']) {
    exactly(t, await bearer(`Bearer ${wrong}`), error('invalid_api_key', 401), wrong)
  }
})

t.test('rate limits appear in every response and count by key, or by address without one', async t => {
  const { call, as, app } = await build(t, '2030-01-15T09:00:30Z', {
    env: { RATE_LIMIT: 'on', PLANS: '{"free":{"requests_per_minute":3}}' }
  })
  app.get('/any', { config: { scope: 'any' } }, async () => ({}))
  const told = ({ status, headers }: Awaited<ReturnType<typeof call>>) => [
    status,
    headers['x-ratelimit-limit'],
    headers['x-ratelimit-remaining'],
    headers['x-ratelimit-reset'],
    headers['retry-after']
  ]
  const now = String(Date.parse('2030-01-15T09:00:30Z') / 1000)
  const reset = String(Date.parse('2030-01-15T09:01:31Z') / 1000) // rounded up
  t.strictSame(told(await call('GET', '/any')), [200, '3', '2', reset, undefined])
  t.strictSame(told(await call('POST', '/v1/cues', '{')), [400, '3', '1', reset, undefined])
  t.strictSame(told(await call('GET', '/any')), [200, '3', '0', reset, undefined])
  t.strictSame(told(await call('GET', '/any')), [429, '3', '0', reset, '60'])
  exactly(t, await call('GET', '/any'), error('rate_limit_exceeded', 429))
  t.strictSame(told(await as(null).call('GET', '/nothing')), [404, '60', '59', reset, undefined], 'an address of its own')
  t.strictSame(told(await as(null).call('GET', '/any')), [401, '60', '58', reset, undefined])
  t.strictSame(told(await as(null).call('GET', '/docs')), [200, '60', '60', now, undefined], 'not counted')
})

t.test("unknown paths count towards the caller's limit and do not reveal whether a key is valid", async t => {
  const { call, as, account } = await build(t, '2030-01-15T09:00:30Z', {
    env: { RATE_LIMIT: 'on', PLANS: '{"free":{"requests_per_minute":3}}' }
  })
  const told = async (calls: { call: typeof call }, method: string, path: string) => {
    const { status, headers } = await calls.call(method, path)
    return [status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]
  }
  t.same(await told({ call }, 'GET', '/v1/nothing'), [404, '3', '2'])
  t.same(await told({ call }, 'PUT', '/v1/cues'), [405, '3', '1'])
  const mistyped = as({ ...account, api_key: createKey() })
  t.same(await told(mistyped, 'GET', '/v1/nothing'), [404, '60', '59'])
  t.same(await told(mistyped, 'GET', '/openapi.json'), [200, '60', '58'])
  await told({ call }, 'GET', '/v1/nothing')
  exactly(t, await call('GET', '/v1/nothing'), error('rate_limit_exceeded', 429))
})

t.test('warns in every response near the monthly limit', async t => {
  const { call, pool, account } = await build(t, '2030-01-15T09:00:00Z')
  t.notOk((await call('GET', '/v1/auth/me')).headers['x-service-usage-warning'])
  await pool.query(`insert into cue.usage_counters (account_id, month, slot, executions) values ($1, '2030-01-01', 0, 240)`, [account.id])
  exactly(t, (await call('GET', '/v1/auth/me')).headers, { 'x-service-usage-warning': 'approaching_limit' })
})

t.test('behind proxies, uses the address reported by the nearest trusted one', async t => {
  for (const [trust, seen] of [
    ['off', '127.0.0.1'],
    ['1', '192.0.2.2'],
    ['2', '192.0.2.1'],
    ['on', '192.0.2.1'],
    ['loopback', '192.0.2.2']
  ] as const) {
    const { app, as } = await build(t, undefined, { env: { TRUST_PROXY: trust } })
    app.get('/ip', { config: { public: true } }, async request => ({ ip: request.ip }))
    t.strictSame(await as(null).get('/ip', { 'x-forwarded-for': '192.0.2.1, 192.0.2.2' }), { ip: seen }, trust)
  }
})
