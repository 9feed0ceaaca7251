/** Rules for every route: paths and methods, ids and log lines, errors, browsers. */
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { build as buildApp } from '../src/app.ts'
import { createPool } from '../src/database/pool.ts'
import { isAway, toApiError } from '../src/errors.ts'
import { testConfig } from './database.ts'
import { exactly } from './exactly.ts'
import { build, error, eventually } from './setup.ts'

type Line = Record<string, unknown> & { msg: string; level: number }

/** The service with its log. */
const logged = async (t: Test, env: Record<string, string> = {}) => {
  const log: Line[] = []
  const logStream = { write: (line: string) => void log.push(JSON.parse(line)) }
  const service = await build(t, undefined, { env: { LOG_LEVEL: 'info', ...env }, logStream })
  return { ...service, log, ended: () => log.filter(({ msg }) => msg === 'request ended') }
}

// Paths and methods ---------------------------------------------------------------------------------------------------------------

t.test('responds with 404 to an unknown path, and with 405 and Allow to another method', async t => {
  const { call } = await build(t)
  for (const path of ['/v1', '/v2/cues', '/v1/nothing', '/health/', '/v1/echo', '/v1/echo/a/b', '//health', '/HEALTH', '/docs/x']) {
    exactly(t, await call('GET', path), error('not_found', 404), path)
    exactly(t, await call('POST', path, '{'), error('not_found', 404), `${path}, with any body`)
  }
  for (const [method, path, allow] of [
    ['POST', '/', 'GET, HEAD, OPTIONS'],
    ['POST', '/health', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/v1/echo/a-token-of-16-or-more', 'POST, GET, HEAD, OPTIONS'],
    ['PUT', '/v1/echo/a%20token?of=16', 'POST, GET, HEAD, OPTIONS'],
    ['TRACE', '/status', 'GET, HEAD, OPTIONS']
  ] as const) {
    exactly(t, await call(method, path), { ...error('method_not_allowed', 405), headers: { allow } }, `${method} ${path}`)
  }
})

t.test('OPTIONS returns the allowed methods without authentication', async t => {
  const { as } = await build(t)
  exactly(t, await as(null).call('OPTIONS', '/health'), { status: 204, headers: { allow: 'GET, HEAD, OPTIONS' }, body: '' })
  exactly(t, await as(null).call('OPTIONS', '/nothing'), error('not_found', 404))
})

t.test('HEAD responds like GET, without the body', async t => {
  const { call } = await build(t)
  const { headers } = await call('GET', '/status')
  exactly(t, await call('HEAD', '/status'), { status: 503, headers: { 'content-length': headers['content-length'] }, body: '' })
})

t.test('responds with 400 to an undecodable path or one with NUL, and with 404 to a long one', async t => {
  const { call } = await build(t)
  for (const path of ['/%zz', '/v1/echo/%E0%A4%A', '/v1/echo/a%00token-of-16-chars', '/health?x=%00']) {
    exactly(
      t,
      await call('GET', path),
      { ...error('validation_error', 400), headers: { 'x-request-id': /./, 'x-ratelimit-limit': '60' } },
      path
    )
  }
  exactly(t, await call('GET', `/${'x'.repeat(10_000)}`), error('not_found', 404))
  exactly(t, await call('GET', `/v1/echo/${'x'.repeat(10_000)}`), { status: 200, body: { status: 'waiting' } }, 'a parameter of any length')
})

// Ids and logs --------------------------------------------------------------------------------------------------------------------

t.test('every response has a request id, which a valid id from the client replaces', async t => {
  const { call } = await build(t)
  const id = async (given?: string) =>
    (await call('GET', '/health', undefined, given === undefined ? {} : { 'x-request-id': given })).headers['x-request-id']
  t.match(await id(), /^[0-9a-f-]{36}$/)
  t.not(await id(), await id())
  t.equal(await id('trace-1234.5:6_7'), 'trace-1234.5:6_7')
  for (const given of ['', 'short', 'x'.repeat(65), 'a"b\\c and more', 'ünïcödé-id']) t.match(await id(given), /^[0-9a-f-]{36}$/, given)
  for (const path of ['/nothing', '/%zz', '/v1/cues?limit=x'])
    exactly(t, (await call('GET', path)).headers, { 'x-request-id': /^[0-9a-f-]{36}$/ }, path)
})

t.test('logs each request as one line with ids and without any of its content', async t => {
  const { call, as, account, log, ended } = await logged(t)
  const secret = 'hunter2hunter2'
  await call('POST', `/v1/echo/${secret}-as-token?key=${secret}`, { password: secret }, { 'x-request-id': 'trace-12345', cookie: secret })
  await call('GET', '/v1/auth/me')
  await call('GET', `/${secret}`)
  await as(null).call('GET', '/v1/auth/me', undefined, { authorization: `Bearer svc_sk_${secret}` })
  await eventually(() => ended().length === 4)
  const common = { level: 30, ms: Number, time: Number, pid: Number, hostname: String }
  exactly(t, ended(), [
    { ...common, request_id: 'trace-12345', method: 'POST', route: '/v1/echo/:token', status: 200 },
    { ...common, request_id: /^[0-9a-f-]{36}$/, method: 'GET', route: '/v1/auth/me', status: 200, account_id: account.id },
    { ...common, method: 'GET', route: null, status: 404 },
    { ...common, method: 'GET', route: '/v1/auth/me', status: 401 }
  ])
  t.notMatch(JSON.stringify(log), /hunter2/)
  t.notOk(
    log.some(({ level }) => level > 30),
    'a 4xx is not logged as an error'
  )
})

t.test('logs an internal error with its cause, and does not send the cause', async t => {
  const { call, app, log, fn } = await logged(t)
  app.get('/bug', { config: { exempt: true } }, async () => {
    throw new Error('outer hunter2', { cause: new TypeError('inner') })
  })
  app.get('/sql', { config: { exempt: true } }, async () => fn.revokeKey({ account_id: 'no uuid', key_id: 'x', actor: 'x', ip: 'x' }))
  app.get('/thrown', { config: { exempt: true } }, async () => {
    throw null
  })
  for (const path of ['/bug', '/sql', '/thrown']) {
    const answer = await call('GET', path)
    exactly(t, answer, error('internal_error', 500), path)
    t.notMatch(JSON.stringify(answer.body), /hunter2|uuid/, path)
  }
  const [bug, sql] = log.filter(({ level }) => level === 50)
  exactly(t, bug, {
    msg: 'request failed',
    code: 'internal_error',
    err: { message: 'outer hunter2', stack: /app.test/, cause: { type: 'TypeError', message: 'inner' } }
  })
  exactly(t, sql, { err: { code: '22P02', message: /uuid/ } })
})

t.test('a response that does not match its schema is an internal error', async t => {
  const { call, app } = await build(t)
  const schema = { response: { 200: Type.Object({ n: Type.Integer() }) } }
  app.get('/wrong', { config: { exempt: true }, schema }, async () => ({}) as never)
  app.get('/more', { config: { exempt: true }, schema }, async () => ({ n: 1, secret: 'x' }))
  exactly(t, await call('GET', '/wrong'), error('internal_error', 500))
  t.strictSame((await call('GET', '/more')).body, { n: 1 }, 'what the schema does not name never leaves')
})

// Errors of the database ----------------------------------------------------------------------------------------------------------

t.test('maps each database error to its response', async t => {
  const of = (fields: object) => toApiError(Object.assign(new Error('a message'), fields))
  for (const [code, expected] of [
    ['QU001', 'cue_not_found'],
    ['QU016', 'claim_lost'],
    ['QU014', 'unavailable'],
    ['QU030', 'cue_limit_exceeded'],
    ['QU999', 'internal_error'],
    ['08000', 'unavailable'],
    ['08006', 'unavailable'],
    ['53300', 'unavailable'],
    ['57014', 'unavailable'],
    ['57P01', 'unavailable'],
    ['57P03', 'unavailable'],
    ['55P03', 'unavailable'],
    ['40001', 'unavailable'],
    ['40P01', 'unavailable'],
    ['25P03', 'unavailable'],
    ['23505', 'internal_error'],
    ['22P02', 'internal_error'],
    ['42883', 'internal_error'],
    ['ECONNREFUSED', 'unavailable'],
    ['ECONNRESET', 'unavailable'],
    ['EPIPE', 'unavailable'],
    ['ETIMEDOUT', 'unavailable'],
    ['ENOTFOUND', 'unavailable'],
    ['EAI_AGAIN', 'unavailable'],
    ['EHOSTUNREACH', 'unavailable'],
    ['ENOSPC', 'internal_error'],
    ['toString', 'internal_error']
  ] as const) {
    t.equal(of({ code }).code, expected, code)
  }
  for (const message of [
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'timeout exceeded when trying to connect',
    'Query read timeout',
    'failure on connection marked as essential: 127.0.0.1:5433',
    'Client has encountered a connection error and is not queryable'
  ]) {
    t.ok(isAway(new Error(message)), message)
  }
  exactly(t, of({ code: 'QU031', detail: '17' }), {
    code: 'rate_limit_exceeded',
    statusCode: 429,
    message: 'a message',
    headers: { 'retry-after': '17' }
  })
  exactly(t, of({ code: '40001' }).headers, { 'retry-after': /^\d+$/ })
  exactly(t, of({ code: 'ECONNRESET', statusCode: 400 }), { code: 'validation_error', statusCode: 400 }, 'the client hung up')
})

t.test('responds with 503 if the connection breaks during a request, and serves the next one', async t => {
  const { call, app, pool, log } = await logged(t)
  app.get('/cut', { config: { exempt: true } }, async () => pool.query('select pg_terminate_backend(pg_backend_pid())'))
  exactly(t, await call('GET', '/cut'), { ...error('unavailable', 503), headers: { 'retry-after': /^\d+$/ } })
  exactly(
    t,
    log.find(({ level }) => level === 40),
    { code: 'unavailable', err: { code: '57P01' } }
  )
  exactly(t, await call('GET', '/v1/auth/me'), { status: 200 })
})

t.test('responds with 503 to a lock timeout and to a statement timeout', async t => {
  const { call, app, pool } = await build(t)
  const holder = await pool.connect()
  t.teardown(() => holder.release(true))
  for (const setting of ['lock_timeout', 'statement_timeout']) {
    app.get(`/${setting}`, { config: { exempt: true } }, async () => {
      const client = await pool.connect()
      try {
        await client.query(`set ${setting} = 50`)
        return await client.query('select * from cue.plans')
      } finally {
        client.release(true)
      }
    })
  }
  await app.ready()
  await holder.query('begin; lock table cue.plans')
  exactly(t, await call('GET', '/lock_timeout'), error('unavailable', 503))
  exactly(t, await call('GET', '/statement_timeout'), error('unavailable', 503))
})

t.test('without a database, responds with 503 only where it is needed', async t => {
  const config = testConfig('postgres://nobody@127.0.0.1:1/none')
  const pool = createPool(config)
  const app = await buildApp({ config, pool })
  t.teardown(() => app.close().then(() => pool.end()))
  app.get('/public', { config: { public: true } }, async () => ({ fine: true }))
  for (const [path, status] of [
    ['/v1/auth/me', 503],
    ['/public', 200],
    ['/nothing', 404],
    ['/openapi.json', 200],
    ['/health', 200]
  ] as const) {
    const answer = await app.inject({ url: path, headers: { authorization: 'Bearer x' } })
    t.equal(answer.statusCode, status, path)
    if (status === 503)
      exactly(
        t,
        { body: answer.json(), headers: answer.headers },
        { body: { error: { code: 'unavailable' } }, headers: { 'retry-after': /\d/ } }
      )
  }
})

// Browsers ------------------------------------------------------------------------------------------------------------------------

t.test('allows calls from browsers only from the allowed origins', async t => {
  const origin = 'https://app.example.com'
  const { as } = await build(t, undefined, { env: { CORS_ORIGINS: `${origin},https://b.example.com` } })
  const { call } = as(null)
  const asked = { origin, 'access-control-request-method': 'PATCH', 'access-control-request-headers': 'authorization, x-claim-token' }
  exactly(t, await call('OPTIONS', '/v1/echo/a-token-of-16-or-more', undefined, asked), {
    status: 204,
    headers: {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': /\bGET\b/,
      'access-control-allow-headers': 'authorization, x-claim-token',
      vary: /Origin/
    }
  })
  exactly(t, (await call('GET', '/v1/auth/me', undefined, { origin })).headers, {
    'access-control-allow-origin': origin,
    'access-control-expose-headers': /x-request-id/
  })
  for (const [other, service] of [
    ['https://evil.example.com', as],
    ['null', as],
    [origin, (await build(t)).as]
  ] as const) {
    const answer = await service(null).call('OPTIONS', '/health', undefined, { ...asked, origin: other })
    t.equal(answer.status, 204)
    t.notOk(
      Object.keys(answer.headers).some(name => name.startsWith('access-control')),
      other
    )
  }
})

t.test('forbids caching and content sniffing of responses', async t => {
  const { call } = await build(t)
  for (const path of ['/v1/auth/me', '/nothing', '/health']) {
    exactly(t, (await call('GET', path)).headers, { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }, path)
  }
})
