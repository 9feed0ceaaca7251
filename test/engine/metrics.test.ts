/** Metrics, access to them, and security headers. */
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { comesFromNear, hasToken, isNear } from '../../src/metrics/access.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, error, eventually, receiver } from '../support/setup.ts'

const metricsToken = 'a-token-of-16-or-more'

/** Samples by name and labels, as `name{a="b"}`. */
const samples = (text: string): Record<string, number> =>
  Object.fromEntries(
    text
      .split('\n')
      .filter(line => line && !line.startsWith('#'))
      .map(line => {
        const [, name = '', value] = /^(.*) (\S+)$/.exec(line) ?? []
        return [name, Number(value)]
      })
  )

const scraped = async (t: Test, env: Record<string, string> = {}) => {
  const metrics = createMetrics()
  const service = await build(t, undefined, { env, metrics })
  const scrape = async () => samples((await service.as(null).call('GET', '/metrics')).body)
  return { ...service, metrics, scrape }
}

// Metrics -----------------------------------------------------------------------------------------------------------------------------

t.test('returns text that Prometheus reads, with help and type for each metric', async t => {
  const { as } = await scraped(t)
  const { status, headers, body } = await as(null).call('GET', '/metrics')
  exactly(
    t,
    { status, headers },
    { status: 200, headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'x-ratelimit-limit': '60' } }
  )
  const names = [...body.matchAll(/^# TYPE (\w+) (counter|gauge|histogram)$/gm)].map(([, name]) => name)
  t.same(
    [...body.matchAll(/^# HELP (\w+) \S/gm)].map(([, name]) => name),
    names
  )
  for (const line of body
    .trim()
    .split('\n')
    .filter((line: string) => line && !line.startsWith('#'))) {
    t.match(line, /^[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)+\})? (-?[\d.]+(e[+-]?\d+)?|NaN|[+-]Inf)$/, line)
  }
})

t.test('counts requests by method, route and status, never by path', async t => {
  const { call, get, scrape } = await scraped(t)
  for (const token of ['a-secret-token-1', 'a-secret-token-2']) await get(`/v1/echo/${token}`)
  await call('GET', '/v1/cues/cue_000000000000')
  await call('GET', '/nothing/a-secret-path')
  await call('POST', '/v1/cues', '{')
  const count = 'pgcue_http_request_duration_seconds_count'
  const found = await eventually(async () => {
    const found = await scrape()
    return found[`${count}{method="POST",route="/v1/cues",status="400"}`] && found
  })
  exactly(t, found, {
    [`${count}{method="GET",route="/v1/echo/:token",status="200"}`]: 2,
    [`${count}{method="GET",route="/v1/cues/:cue_id",status="404"}`]: 1,
    [`${count}{method="GET",route="none",status="404"}`]: 1,
    [`${count}{method="POST",route="/v1/cues",status="400"}`]: 1
  })
  t.notMatch(Object.keys(found).join(), /secret/)
})

t.test('counts deliveries and their lateness, and rejections as another result', async t => {
  const { config, metrics, post, scrape } = await scraped(t)
  const hook = await receiver(t)
  await startEngine(t, config, metrics)
  const at = new Date(Date.now() + 1500).toISOString()
  await post('/v1/cues', { name: 'once', at, callback_url: hook.url })
  await hook.received(1)
  hook.answer({ status: 500 })
  const { id } = await post('/v1/cues', { name: 'refused', cron: '0 9 * * *', callback_url: hook.url })
  await post(`/v1/cues/${id}/fire`)
  const found = await eventually(async () => {
    const found = await scrape()
    return found['pgcue_attempts_total{result="failed"}'] === 1 ? found : null
  })
  exactly(t, found, {
    'pgcue_attempts_total{result="success"}': 1,
    'pgcue_attempts_total{result="failed"}': 1,
    'pgcue_attempts_total{result="lost"}': 0,
    pgcue_lateness_seconds_count: 1,
    'pgcue_lateness_seconds_bucket{le="+Inf"}': 1
  })
  t.ok(found.pgcue_lateness_seconds_sum! >= 0)
})

t.test('counts lost attempts and claims by the sweep that recovers them', async t => {
  const { config, metrics, post, pool, scrape } = await scraped(t)
  const { id } = await post('/v1/cues', { name: 'work', cron: '0 9 * * *', worker: true })
  await post(`/v1/cues/${id}/fire`)
  const { execution_id } = await post('/v1/executions/claim', { worker_id: 'gone' })
  await pool.query(
    `update cue.executions set lease_expires_at = now() - interval '1 hour', last_heartbeat_at = now() - interval '1 hour' where id = $1`,
    [execution_id]
  )
  await startEngine(t, config, metrics)
  await eventually(async () => (await scrape()).pgcue_claims_lost_total === 1)
  metrics.attemptEnded('lost', 3)
  t.equal((await scrape())['pgcue_attempts_total{result="lost"}'], 3)
})

t.test('shows waiting work from the database and connections from the pools', async t => {
  const { post, scrape, metrics, pool } = await scraped(t)
  const { id } = await post('/v1/cues', { name: 'work', cron: '0 9 * * *', worker: true })
  for (let n = 0; n < 3; n++) await post(`/v1/cues/${id}/fire`)
  const hook = await post('/v1/cues', { name: 'hook', cron: '0 9 * * *', callback_url: 'http://127.0.0.1:9999/' })
  await post(`/v1/cues/${hook.id}/fire`)
  const cancelled = await post(`/v1/cues/${id}/fire`)
  await post(`/v1/executions/${cancelled.id}/cancel`)
  await pool.query("update cue.executions set attempt_due_at = now() - interval '91 seconds' where attempt_due_at is not null")
  const found = await scrape()
  exactly(t, found, {
    'pgcue_queue_depth{queue="pending_worker"}': 3,
    'pgcue_queue_depth{queue="pending"}': 1,
    'pgcue_queue_depth{queue="retrying"}': 0,
    'pgcue_queue_depth{queue="delivering"}': 0,
    'pgcue_executions_ended_total{status="failed"}': 1,
    pgcue_database_up: 1,
    pgcue_engines: 0,
    'pgcue_pool_connections{pool="api",state="waiting"}': 0
  })
  t.ok(found.pgcue_queue_oldest_seconds! >= 90)
  t.ok(found['pgcue_pool_connections{pool="api",state="idle"}']! > 0)
  const client = await pool.connect()
  t.ok(samples(await metrics.text(null, new Date()))['pgcue_pool_connections{pool="api",state="used"}']! >= 1)
  client.release()
})

t.test('reports an unavailable database', async t => {
  const { pool, scrape } = await scraped(t)
  const query = pool.query.bind(pool)
  Object.assign(pool, { query: () => Promise.reject(Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })) })
  exactly(t, await scrape(), { pgcue_database_up: 0, 'pgcue_pool_connections{pool="api",state="waiting"}': 0 })
  Object.assign(pool, { query })
})

t.test('includes memory, CPU and event loop of the process', async t => {
  const { scrape } = await scraped(t)
  const first = await scrape()
  t.ok(first.process_resident_memory_bytes! > 10_000_000)
  t.ok(first['nodejs_heap_size_used_bytes{thread="engine"}']! < first.process_resident_memory_bytes!)
  t.ok(Math.abs(first.process_start_time_seconds! - (Date.now() / 1000 - process.uptime())) < 5)
  const second = await scrape()
  t.ok(second.process_cpu_seconds_total! >= first.process_cpu_seconds_total!)
  for (const { 'nodejs_eventloop_utilization{thread="engine"}': share } of [first, second]) t.ok(share! >= 0 && share! <= 1, String(share))
})

// Access ------------------------------------------------------------------------------------------------------------------------------

t.test('allows this machine and private networks, but no others', async t => {
  for (const address of [
    '127.0.0.1',
    '127.255.0.1',
    '::1',
    '10.1.2.3',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    'fd00::1',
    'fe80::1',
    '::ffff:10.0.0.1'
  ]) {
    t.ok(isNear(address), address)
  }
  for (const address of [
    '8.8.8.8',
    '172.32.0.1',
    '192.169.0.1',
    '2001:db8::1',
    '2606:4700::1',
    '::ffff:8.8.8.8',
    '0.0.0.0',
    '100.64.0.1',
    '',
    'localhost',
    '10.0.0.1, 8.8.8.8'
  ]) {
    t.notOk(isNear(address), address)
  }
})

t.test('treats a proxied request by the farthest address named, and as remote if proxies are not trusted', async t => {
  t.ok(comesFromNear({ ips: ['10.0.0.1'], forwards: false }))
  t.notOk(comesFromNear({ ips: ['10.0.0.1'], forwards: true }), 'its client is unknown')
  t.ok(comesFromNear({ ips: ['10.0.0.1', '192.168.0.5'], forwards: true }))
  t.notOk(comesFromNear({ ips: ['10.0.0.1', '8.8.8.8'], forwards: true }))
  t.notOk(comesFromNear({ ips: ['10.0.0.1', '8.8.8.8', '10.0.0.2'], forwards: true }), 'the farthest is what the client wrote itself')
})

t.test('compares the complete token', async t => {
  t.ok(hasToken('Bearer a-token', 'a-token'))
  t.ok(hasToken('bearer  a-token', 'a-token'))
  for (const given of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer a-toke',
    'Bearer a-tokens',
    'Basic a-token',
    'a-token',
    'Bearer A-TOKEN'
  ]) {
    t.notOk(hasToken(given, 'a-token'), String(given))
  }
  t.notOk(hasToken('Bearer null', null))
  t.notOk(hasToken('Bearer undefined', null), 'without a configured token, none is valid')
})

t.test('requires the token from other networks', async t => {
  const { app } = await build(t, undefined, { env: { METRICS_TOKEN: metricsToken, TRUST_PROXY: '1' } })
  const ask = async (remoteAddress: string, headers: Record<string, string> = {}) => {
    const answer = await app.inject({ url: '/metrics', remoteAddress, headers })
    return { status: answer.statusCode, headers: answer.headers, body: answer.statusCode === 200 ? answer.body : answer.json() }
  }
  exactly(t, await ask('10.0.0.1'), { status: 200 })
  exactly(t, await ask('8.8.8.8'), { ...error('not_authenticated', 401), headers: { 'www-authenticate': 'Bearer' } })
  exactly(t, await ask('8.8.8.8', { authorization: `Bearer ${metricsToken}` }), { status: 200, body: /pgcue_attempts_total/ })
  exactly(t, await ask('8.8.8.8', { authorization: 'Bearer b-token' }), { status: 401 })
  exactly(t, await ask('10.0.0.1', { 'x-forwarded-for': '8.8.8.8' }), { status: 401 })
  exactly(t, await ask('10.0.0.1', { 'x-forwarded-for': '10.0.0.9, 8.8.8.8' }), { status: 401 })
  exactly(t, await ask('10.0.0.1', { 'x-forwarded-for': '10.0.0.2' }), { status: 200 })
  exactly(t, await ask('10.0.0.1', { 'x-forwarded-for': '8.8.8.8', authorization: `Bearer ${metricsToken}` }), { status: 200 })
})

t.test('requires the token behind an untrusted proxy, and refuses without one', async t => {
  const { as } = await build(t)
  const { call } = as(null)
  exactly(t, await call('GET', '/metrics'), { status: 200 })
  for (const headers of [
    { 'x-forwarded-for': '10.0.0.1' },
    { forwarded: 'for=10.0.0.1' },
    { 'x-forwarded-for': '', authorization: 'Bearer ' }
  ]) {
    exactly(t, await call('GET', '/metrics', undefined, headers as never), error('not_authenticated', 401), JSON.stringify(headers))
  }
})

t.test('an address that guesses tokens is refused, with or without a database', async t => {
  const { app, clock, pool, register } = await build(t, '2030-01-15T12:00:00Z', {
    env: { METRICS_TOKEN: metricsToken, OPERATOR_TOKEN: `${metricsToken}-2`, RATE_LIMIT: 'on', HOST: '0.0.0.0' }
  })
  const { api_key } = await register()
  const ask = async (url: string, remoteAddress: string, token: string) => {
    const answer = await app.inject({ url, remoteAddress, headers: { authorization: `Bearer ${token}` } })
    return { status: answer.statusCode, headers: answer.headers, body: answer.json }
  }
  const open = async (remoteAddress: string, operator_token: string) => {
    const answer = await app.inject({ method: 'POST', url: '/v1/operator/session', remoteAddress, payload: { operator_token } })
    return answer.statusCode
  }
  const limited = { status: 429, headers: { 'retry-after': '60' } }
  const guess = async (url: string, address: string, status: number) => {
    for (let n = 0; n < 10; n++) t.equal((await ask(url, address, `guess-number-${n}-of-many`)).status, status)
    exactly(t, await ask(url, address, 'another-guess-of-many'), limited)
  }
  await guess('/metrics', '8.8.8.8', 401)
  exactly(t, await ask('/metrics', '8.8.8.8', metricsToken), limited, 'the right one, too')
  t.equal(await open('8.8.8.8', `${metricsToken}-2`), 429, 'nor the other token')
  t.equal((await ask('/v1/auth/me', '8.8.8.8', api_key)).status, 200, 'keys are no guesses')
  t.equal((await ask('/v1/operator', '8.8.8.8', api_key)).status, 403)
  t.equal((await ask('/metrics', '8.8.4.4', metricsToken)).status, 200, 'other addresses')
  t.equal((await ask('/metrics', '127.0.0.1', 'anything')).status, 200, 'without a token')
  await guess('/v1/operator', '2001:db8::1', 401)
  exactly(t, await ask('/v1/operator', '2001:db8::2', `${metricsToken}-2`), limited, 'one client has a whole /64')
  for (let n = 0; n < 10; n++) t.equal(await open('9.9.9.9', `guess-number-${n}-of-many`), 401)
  t.equal(await open('9.9.9.9', `${metricsToken}-2`), 429)
  clock.advance('59 seconds')
  exactly(t, await ask('/metrics', '8.8.8.8', metricsToken), { status: 429, headers: { 'retry-after': '1' } })
  clock.advance('1 second')
  t.equal((await ask('/metrics', '8.8.8.8', metricsToken)).status, 200)
  for (let n = 0; n < 20; n++) t.equal((await ask('/metrics', '8.8.8.8', metricsToken)).status, 200, 'the right one is not counted')
  pool.query = (() => Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }))) as never
  await guess('/metrics', '7.7.7.7', 401)
})

t.test('does not accept an API key as token', async t => {
  const { call } = await build(t, undefined, { env: { METRICS_TOKEN: metricsToken } })
  exactly(t, await call('GET', '/metrics', undefined, { 'x-forwarded-for': '8.8.8.8' }), error('not_authenticated', 401))
})

t.test('an engine without the API serves metrics too', async t => {
  const { call } = await build(t, undefined, { env: { ROLES: 'engine' } })
  exactly(t, await call('GET', '/metrics'), { status: 200, body: /pgcue_lateness_seconds/ })
})

// Browsers ----------------------------------------------------------------------------------------------------------------------------

/** Headers that are not sent. */
const leftOut = [
  'x-powered-by',
  'x-xss-protection',
  'x-download-options',
  'x-permitted-cross-domain-policies',
  'x-dns-prefetch-control',
  'origin-agent-cluster'
]

t.test('responses forbid framing, sniffing and scripts', async t => {
  const { call } = await build(t)
  for (const path of ['/v1/auth/me', '/nothing', '/health', '/v1/blog/rss', '/openapi.json', '/%00', '/%zz']) {
    const { headers } = await call('GET', path)
    exactly(
      t,
      headers,
      {
        'content-security-policy': /^default-src 'none';.*frame-ancestors 'none'/,
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin'
      },
      path
    )
    for (const name of leftOut) t.notOk(name in headers, name)
    t.notOk('strict-transport-security' in headers, 'a service without TLS must stay reachable')
  }
})

t.test('sends HSTS if BASE_URL uses TLS', async t => {
  const { call } = await build(t, undefined, { env: { BASE_URL: 'https://cue.example.com' } })
  exactly(t, (await call('GET', '/health')).headers, { 'strict-transport-security': 'max-age=31536000' })
})

t.test('the reference page keeps its own policy over a real connection', async t => {
  const { app } = await build(t)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const [answer] = await once(request({ port, path: '/docs' }).end(), 'response')
  answer.resume()
  t.match(answer.headers['content-security-policy'], /script-src 'self'/)
  t.notMatch(answer.headers['content-security-policy'], /form-action 'none', /, 'one policy, not two')
})
