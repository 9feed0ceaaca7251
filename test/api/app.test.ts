/** Rules for every route: paths and methods, ids and log lines, errors, browsers. */
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { build as buildApp } from '../../src/app.ts'
import { createPool } from '../../src/database/pool.ts'
import { isUnavailable, toApiError } from '../../src/errors.ts'
import { testConfig } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'
import { paths } from '../support/openapi.ts'
import { build, error, eventually } from '../support/setup.ts'

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

t.test('every route of the API refuses query parameters that it does not have, and lists those it has', async t => {
  const operator = 'o'.repeat(32)
  const { call, addKey, account } = await build(t, undefined, { env: { OPERATOR_TOKEN: operator } })
  const approver = await addKey(account, ['approve'])
  const receivers = ['POST /v1/echo/{token}', 'POST /v1/billing/webhook']
  for (const [path, methods] of Object.entries(paths))
    for (const [method, { parameters = [] }] of Object.entries(methods)) {
      const name = `${method.toUpperCase()} ${path}`
      const token = path.startsWith('/v1/operator') ? operator : /(approve|reject)$/.test(path) ? approver.api_key : null
      const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
      const url = `${path.replaceAll(/\{\w+\}/g, 'x'.repeat(16))}?limits=5&api_token=secret`
      const { status, body } = await call(method.toUpperCase(), url, undefined, headers)
      const names = parameters.flatMap(parameter => (parameter.in === 'query' ? [parameter.name] : []))
      const msg = `Unknown query parameter. This route has ${names.join(', ') || 'none'}.`
      const fault = { type: 'extra_forbidden', msg }
      if (receivers.includes(name)) t.not(body.detail?.[0]?.type, fault.type, name)
      else
        t.strictSame(
          [status, body.error?.code, body.detail],
          [
            422,
            'validation_error',
            [
              { ...fault, loc: ['query', 'limits'], input: '5' },
              { ...fault, loc: ['query', 'api_token'], input: '********' }
            ]
          ],
          name
        )
    }
  exactly(t, await call('POST', '/v1/cues?dry_run=true', '{'), { status: 422 }, 'before the body is read')
  exactly(t, await call('GET', '/v1/cues?limits=5', undefined, { authorization: 'Bearer x' }), { status: 401 })
})

t.test('pages take any query parameters, because links get tracking parameters', async t => {
  const { as } = await build(t)
  for (const path of '/dashboard /plans /docs /blog /v1/blog/posts /auth/device /v1/auth/verify /auth/confirm-email'.split(' ')) {
    const { body } = await as(null).call('GET', `${path}?utm_source=mail`, undefined, { accept: 'text/html' })
    t.notMatch(body, /Unknown query|utm_source/, path)
  }
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
  const { call, app } = await build(t, undefined, { isNew: true })
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
    ['28P01', 'unavailable'],
    ['3D000', 'unavailable'],
    ['42501', 'unavailable'],
    ['58030', 'unavailable'],
    ['XX000', 'unavailable'],
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
    t.ok(isUnavailable(new Error(message)), message)
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

t.test('says that nothing was changed only if that is known', async t => {
  const { call, get, post, pool } = await build(t)
  const { id } = await post('/v1/cues', { name: 'job', cron: '@yearly', worker: true })
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>
  /** Sends a request in which calls of a function fail after they were sent, or the n-th of them before. */
  const failing = async (
    name: string,
    error: object,
    [method, path, body]: [string, string, object?],
    sent = true,
    n = 1
  ): Promise<string> => {
    let calls = 0
    pool.query = (async (statement: { text?: string }, ...rest: []) => {
      if (!statement.text?.includes(`cue.${name}(`) || ++calls < n) return query(statement, ...rest)
      if (sent) await query(statement, ...rest)
      throw error
    }) as never
    const answer = await call(method, path, body)
    pool.query = query as never
    exactly(t, answer, error503)
    return answer.body.error.message
  }
  const error503 = error('unavailable', 503)
  const nothing = 'The service is temporarily unavailable. Nothing was changed; retry after the time in Retry-After.'
  const unknown =
    'The service is temporarily unavailable. It is unknown whether this took effect. Repeat it with the same Idempotency-Key, or read first.'
  const lost = () => new Error('Connection terminated unexpectedly')
  const code = (code: string) => Object.assign(new Error('a message'), { code })
  const refused = () => Object.assign(code('ECONNREFUSED'), { sent: false })
  const rename = (name: string): [string, string, object] => ['PATCH', `/v1/cues/${id}`, { name }]

  t.equal(await failing('update_cue', code('25006'), rename('a'), false), nothing, 'the server has refused it')
  t.equal(await failing('update_cue', refused(), rename('a'), false), nothing, 'it was not sent')
  t.equal((await get(`/v1/cues/${id}`)).name, 'job')
  t.equal(await failing('update_cue', lost(), rename('b')), unknown, 'it was sent')
  t.equal((await get(`/v1/cues/${id}`)).name, 'b')
  t.equal(await failing('update_cue', code('57P01'), rename('c')), unknown, 'the server ends')
  t.equal(await failing('read_cues', refused(), rename('d'), false, 2), unknown, 'reading it afterwards fails')
  t.equal((await get(`/v1/cues/${id}`)).name, 'd')
  t.equal(await failing('admit', lost(), rename('e')), nothing, 'the caller is not known yet')
  t.equal(await failing('read_usage', lost(), ['GET', '/v1/usage']), nothing, 'it only reads')
  const create: [string, string, object] = ['POST', '/v1/cues', { name: 'new', cron: '@yearly', worker: true }]
  t.equal(await failing('has_live_worker', refused(), create, false), unknown, 'the cue exists')
  t.equal((await get('/v1/cues')).cues.filter(({ name }: { name: string }) => name === 'new').length, 1)
})

t.test('responds with 503 to a lock timeout and to a statement timeout', async t => {
  const { call, app, pool } = await build(t, undefined, { isNew: true })
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

const everywhere = '/ /health /metrics /mcp /openapi.json /dashboard /auth/device?code=x /v1/cues /nothing /%zz'.split(' ')

t.test('a loopback listener answers only to hosts of this machine and of BASE_URL', async t => {
  const environments: Record<string, string>[] = [{}, { ROLES: 'engine' }, { TRUST_PROXY: 'on' }]
  for (const env of environments) {
    const { as } = await build(t, undefined, { env: { BASE_URL: 'https://Cue.example:8443/x', ...env } })
    const { call } = as(null)
    const local = 'localhost LOCALHOST:1 a.b.localhost 127.0.0.1:8080 127.8.9.255 [::1] [::1]:8080 cue.example CUE.example:99'.split(' ')
    for (const host of local) t.equal((await call('GET', '/openapi.json', undefined, { host })).status, 200, host)
    const foreign =
      'evil.example evil.example:8080 localhost.evil.example evillocalhost 127.0.0.1.evil.example 127.1 127.0.0.256 0x7f.0.0.1 [::2]'
    for (const host of [...foreign.split(' '), 'me@localhost', 'localhost:8080:1', 'localhost, x', 'localhost/', '[::1', 'localhost.']) {
      const answer = await call('GET', '/metrics', undefined, { host, 'x-forwarded-host': 'localhost' })
      exactly(t, answer, { ...error('misdirected_request', 421), headers: { 'x-request-id': /./, 'x-ratelimit-remaining': '60' } }, host)
    }
    for (const path of everywhere) {
      for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE'])
        exactly(t, await call(method, path, undefined, { host: 'evil.example' }), error('misdirected_request', 421), `${method} ${path}`)
    }
  }
  for (const HOST of ['0.0.0.0', '::', '192.0.2.1']) {
    const { call } = await build(t, undefined, { env: { HOST } })
    exactly(t, await call('GET', '/v1/auth/me', undefined, { host: 'any.example' }), { status: 200 }, HOST)
  }
})

t.test('pages of other sites change nothing, unless CORS_ORIGINS includes their origin', async t => {
  const origin = 'https://app.example.com'
  for (const HOST of ['127.0.0.1', '0.0.0.0']) {
    const { call, get } = await build(t, undefined, { env: { HOST, CORS_ORIGINS: origin } })
    const cue = { name: 'a cue', cron: '0 9 * * *', worker: true }
    for (const site of ['cross-site', 'same-site']) {
      const other = { 'sec-fetch-site': site, origin: 'https://evil.example.com' }
      for (const path of everywhere)
        exactly(t, await call('POST', path, undefined, other), error('cross_origin_refused', 403), `${site} ${path}`)
      for (const method of ['PUT', 'PATCH', 'DELETE'])
        exactly(t, await call(method, '/v1/auth/me', undefined, other), error('cross_origin_refused', 403), `${site} ${method}`)
      exactly(t, await call('POST', '/v1/auth/register', '', { 'sec-fetch-site': site }), error('cross_origin_refused', 403), 'no Origin')
      exactly(t, await call('GET', '/v1/auth/me', undefined, other), { status: 200 })
      exactly(t, await call('POST', '/v1/cues', cue, { ...other, origin }), { status: 201 })
    }
    for (const site of ['same-origin', 'none']) exactly(t, await call('POST', '/v1/cues', cue, { 'sec-fetch-site': site }), { status: 201 })
    exactly(t, await get('/v1/cues'), { total: 4 })
  }
})

t.test('forbids caching and content sniffing of responses', async t => {
  const { call } = await build(t)
  for (const path of ['/v1/auth/me', '/nothing', '/health']) {
    exactly(t, (await call('GET', path)).headers, { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }, path)
  }
})
