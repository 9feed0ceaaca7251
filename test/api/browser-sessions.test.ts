/** Sessions of browsers: a cookie that no script can read, accepted from pages of the service only. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { hashKey } from '../../src/accounts/keys.ts'
import { createLocalToken } from '../../src/accounts/local-token.ts'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'
import { buildWithMail } from '../support/sign-in.ts'

const noon = '2030-01-15T12:00:00.000Z'
const path = '/v1/auth/browser-session'
const own = { origin: 'http://localhost:0' }

type Answer = { headers: Record<string, string> }
const cookieOf = ({ headers }: Answer): string => String(headers['set-cookie']).split(';')[0]!

t.test('a key opens a session whose cookie no script can read, and no bearer is', async t => {
  const { as, account, get } = await build(t, noon)
  const { call } = as(null)
  const answer = await call('POST', path, { api_key: account.api_key }, own)
  exactly(t, answer, { status: 200, body: { email: account.email } })
  t.same(Object.keys(answer.body), ['email'])
  t.match(answer.headers['set-cookie'], /^pgcue_session_0=[\w-]+\.[\w-]+\.[\w-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
  const cookie = cookieOf(answer)
  exactly(t, await call('GET', '/v1/auth/me', undefined, { cookie }), {
    status: 200,
    body: { id: account.id, scopes: ['read', 'write', 'worker', 'account'] }
  })
  exactly(t, await call('GET', '/v1/auth/me', undefined, { cookie: `other=1; ${cookie}; third=3` }), { status: 200 })
  exactly(t, await call('GET', '/v1/auth/me', undefined, { cookie, authorization: 'Bearer x' }), error('not_authenticated', 401))
  const [name, jwt] = cookie.split('=') as [string, string]
  const { session_token } = (await call('POST', '/v1/auth/session/refresh', undefined, { cookie, ...own })).body
  for (const authorization of [`Bearer ${jwt}`, `bearer  ${jwt} `])
    exactly(t, await call('GET', '/v1/auth/me', undefined, { authorization }), error('not_authenticated', 401))
  exactly(t, await call('GET', '/v1/auth/me', undefined, { authorization: `Bearer ${session_token}` }), { status: 200 })
  exactly(t, await call('GET', '/v1/auth/me', undefined, { cookie: `${name}=${session_token}` }), error('not_authenticated', 401))
  exactly(
    t,
    await call('GET', '/v1/auth/me', undefined, { cookie: `pgcue_session_1=${jwt}` }),
    error('not_authenticated', 401),
    'another port'
  )
  const { events } = await get('/v1/auth/audit')
  exactly(t, events[1], { event: 'session.created', actor: /^key:/, detail: { session_id: /./, key_id: /./ } })
})

t.test('the cookie is bound to the host with https, else to the path of BASE_URL, and on loopback to its port for 12 hours', async t => {
  const shared = 'HttpOnly; SameSite=Strict'
  for (const [BASE_URL, name, attributes] of [
    ['https://example.com', '__Host-pgcue_session', `Path=/; Max-Age=31536000; ${shared}; Secure`],
    ['https://example.com:8443/cue/a', '__Host-pgcue_session_cue_a', `Path=/; Max-Age=31536000; ${shared}; Secure`],
    ['http://example.com/cue', 'pgcue_session_cue', `Path=/cue/; Max-Age=31536000; ${shared}`],
    ['http://127.0.0.1', 'pgcue_session_80', `Path=/; Max-Age=43200; ${shared}`],
    ['http://[::1]:9000/cue', 'pgcue_session_9000_cue', `Path=/cue/; Max-Age=43200; ${shared}`],
    ['https://cue.localhost', '__Host-pgcue_session_443', `Path=/; Max-Age=43200; ${shared}; Secure`]
  ] as const) {
    const { as, account, clock } = await build(t, noon, { env: { BASE_URL } })
    const { call } = as(null)
    const answer = await call('POST', path, { api_key: account.api_key }, { origin: new URL(BASE_URL).origin })
    const [pair, ...rest] = String(answer.headers['set-cookie']).split('; ') as [string]
    t.same([pair.split('=')[0], rest.join('; ')], [name, attributes], BASE_URL)
    const headers = { cookie: pair, origin: new URL(BASE_URL).origin }
    clock.advance('11 hours')
    const { session_token } = (await call('POST', '/v1/auth/session/refresh', undefined, headers)).body
    const bearer = { authorization: `Bearer ${session_token}` }
    clock.advance('61 minutes')
    const isLong = attributes.includes('31536000')
    t.equal((await call('GET', '/v1/auth/me', undefined, headers)).status, isLong ? 200 : 401, 'after 12 hours')
    t.equal((await call('GET', '/v1/auth/me', undefined, bearer)).status, 200)
    clock.advance('11 hours')
    t.equal((await call('GET', '/v1/auth/me', undefined, bearer)).status, isLong ? 200 : 401, 'the renewed one after 12 hours')
  }
})

t.test('a page of another origin changes nothing with the cookie', async t => {
  const { as, account, get } = await build(t, noon)
  const { call } = as(null)
  const cookie = cookieOf(await call('POST', path, { api_key: account.api_key }, own))
  const body = { name: 'a cue', cron: '0 9 * * *', worker: true }
  const refused: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://localhost:3000', host: 'localhost:0' },
    { origin: 'http://127.0.0.1.evil.example:8080', host: 'localhost:8080' },
    { origin: 'https://proxy.example', host: 'localhost' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: 'http://localhost:0' },
    { 'sec-fetch-site': 'none' }
  ]
  for (const headers of refused) {
    exactly(t, await call('POST', '/v1/cues', body, { cookie, ...headers }), error('cross_origin_refused', 403), JSON.stringify(headers))
    exactly(t, await call('POST', path, { api_key: account.api_key }, headers), error('cross_origin_refused', 403))
  }
  exactly(t, await get('/v1/cues'), { total: 0 })
  const allowed: Record<string, string>[] = [
    own,
    { origin: 'http://127.0.0.1:8080', host: 'localhost:8080' },
    { origin: 'https://a.localhost', host: 'localhost' },
    { 'sec-fetch-site': 'same-origin', origin: 'https://proxy.example' }
  ]
  for (const headers of allowed) exactly(t, await call('POST', '/v1/cues', body, { cookie, ...headers }), { status: 201 })
  const open = await build(t, noon, { env: { HOST: '0.0.0.0', BASE_URL: 'https://cue.example' } })
  for (const [origin, status] of [
    ['https://cue.example', 200],
    ['https://proxy.example', 403],
    ['http://localhost', 403]
  ] as const) {
    const headers = { origin, host: origin.split('//')[1]! }
    t.equal((await open.as(null).call('POST', path, { api_key: open.account.api_key }, headers)).status, status, origin)
  }
  const authorization = `Bearer ${account.api_key}`
  exactly(
    t,
    await call('POST', '/v1/cues', body, { authorization, origin: 'https://evil.example' }),
    { status: 201 },
    'a key is sent on purpose'
  )
})

t.test('a session has the scopes of its key, and ends with it', async t => {
  const { as, post, del } = await build(t, noon)
  const { call } = as(null)
  const key = await post('/v1/auth/keys', { label: 'reader', scopes: ['read'] })
  const cookie = cookieOf(await call('POST', path, { api_key: key.api_key }, own))
  const headers = { cookie, ...own }
  exactly(t, await call('GET', '/v1/auth/me', undefined, headers), { status: 200, body: { scopes: ['read'] } })
  exactly(t, await call('POST', '/v1/cues', { name: 'a', cron: '0 9 * * *', worker: true }, headers), error('insufficient_scope', 403))
  exactly(t, await call('DELETE', '/v1/auth/session?all=true', undefined, headers), error('insufficient_scope', 403))

  const { session_token } = (await call('POST', '/v1/auth/session/refresh', undefined, headers)).body
  const renewed = as({ id: '', email: '', api_key: session_token })
  exactly(t, await renewed.get('/v1/auth/me'), { scopes: ['read'] })
  await del(`/v1/auth/keys/${key.id}`)
  exactly(t, await call('GET', '/v1/auth/me', undefined, headers), error('not_authenticated', 401))
  exactly(t, await renewed.call('GET', '/v1/auth/me'), error('not_authenticated', 401))
  exactly(t, await call('POST', path, { api_key: key.api_key }, own), error('invalid_api_key', 401))
})

t.test('signing out ends the session and removes the cookie; everywhere ends all', async t => {
  const { as, account, get } = await build(t, noon)
  const { call } = as(null)
  const open = async () => cookieOf(await call('POST', path, { api_key: account.api_key }, own))
  const [first, second, third] = [await open(), await open(), await open()]
  const out = await call('DELETE', '/v1/auth/session', undefined, { cookie: first, ...own })
  exactly(t, out, { status: 200, body: { revoked: 1 } })
  t.match(out.headers['set-cookie'], /^pgcue_session_0=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/)
  exactly(t, await call('GET', '/v1/auth/me', undefined, { cookie: first }), error('not_authenticated', 401))
  exactly(t, await call('DELETE', '/v1/auth/session?all=true', undefined, { cookie: second, ...own }), {
    status: 200,
    body: { revoked: 2 }
  })
  exactly(t, await call('GET', '/v1/auth/me', undefined, { cookie: third }), error('not_authenticated', 401))
  exactly(t, await get('/v1/auth/me'), { id: account.id }, 'keys stay')
})

t.test('sessions are listed with their origin, and one of them can be ended', async t => {
  const { as, account, get, call, clock, del } = await build(t, noon)
  const browser = 'Mozilla/5.0 (X11; Linux x86_64) Firefox/147.0'
  const { call: visit } = as(null)
  const open = async (headers: object = {}) => {
    clock.advance('1 minute')
    return cookieOf(await visit('POST', path, { api_key: account.api_key }, { ...own, ...headers }))
  }
  const first = await open({ 'user-agent': `${browser} ${'x'.repeat(400)}` })
  const second = await open({ 'user-agent': 'M\u00fcnchen \u0007' })
  const { sessions, ...page } = (await visit('GET', '/v1/auth/sessions', undefined, { cookie: first })).body
  t.same(page, { total: 2, limit: 50, offset: 0 })
  const { key_id } = sessions[0]
  const shared = { key_id, key_label: 'default', ip: '127.0.0.1', scopes: ['read', 'write', 'worker', 'account'] }
  t.match(key_id, /^[0-9a-f-]{36}$/)
  t.same(sessions, [
    {
      ...shared,
      id: sessions[0].id,
      is_current: false,
      user_agent: 'M\ufffdnchen \u0007',
      created_at: '2030-01-15T12:02:00.000Z',
      expires_at: '2030-01-16T00:02:00.000Z'
    },
    {
      ...shared,
      id: sessions[1].id,
      is_current: true,
      user_agent: `${browser} ${'x'.repeat(400)}`.slice(0, 300),
      created_at: '2030-01-15T12:01:00.000Z',
      expires_at: '2030-01-16T00:01:00.000Z'
    }
  ])
  const other = `/v1/auth/sessions/${sessions[0].id}`
  t.equal(await del(other), '')
  exactly(t, await call('DELETE', other), error('session_not_found', 404))
  exactly(t, await visit('GET', '/v1/auth/me', undefined, { cookie: second }), error('not_authenticated', 401))
  exactly(t, await visit('GET', '/v1/auth/me', undefined, { cookie: first }), { status: 200 })
  const { events } = await get('/v1/auth/audit?limit=1')
  exactly(t, events, [{ event: 'session.revoked', actor: `key:${key_id}`, detail: { all: false, count: 1, session_id: sessions[0].id } }])
  clock.advance('365 days')
  exactly(t, await get('/v1/auth/sessions'), { sessions: [], total: 0 }, 'expired')
})

t.test('a session opened with a key does not confirm the email address', async t => {
  const { fn, as, account, signIn, nobody } = await buildWithMail(t, noon)
  await as(null).call('POST', path, { api_key: account.api_key }, { origin: 'https://pgcue.example' })
  t.equal(await fn.isEmailConfirmed({ account_id: account.id }), false)
  const { session_token } = await signIn(account.email)
  exactly(t, await nobody.call('POST', path, { token: session_token }, { origin: 'https://pgcue.example' }), { status: 200 })
  exactly(t, await nobody.call('POST', path, { token: session_token }), error('not_authenticated', 401), 'a token works once')
})

t.test('the link of an embedded start works once, and only on the same machine', async t => {
  const { app, fn, as } = await build(t, noon)
  const open = async (token: string, remoteAddress: string, url = path) => {
    const { statusCode } = await app.inject({ method: 'POST', url, payload: { token }, remoteAddress })
    return statusCode
  }
  const account = { account_id: randomUUID(), email: 'you@localhost', prefix: 'svc_sk_12345', ciphertext: 'k.x' }
  const token = createLocalToken()
  await fn.openLocalAccount({ ...account, key_hash: hashKey('first'), token_hash: hashKey(token) })
  for (const address of ['10.0.0.7', '203.0.113.9', '2001:db8::1']) t.equal(await open(token, address), 401, address)
  t.equal(await open(token, '203.0.113.9', '/v1/auth/session'), 401, 'nor a session of any other kind')
  t.equal(await open(token.replace('local-', ''), '203.0.113.9'), 401, 'the prefix is part of the token')
  t.equal(await open(token, '127.0.0.1'), 200)
  t.equal(await open(token, '127.0.0.1'), 401, 'once')

  const again = createLocalToken()
  await fn.openLocalAccount({ ...account, key_hash: hashKey('second'), token_hash: hashKey(again) })
  t.equal(await open(again, '::ffff:127.0.0.1'), 200)
  exactly(t, await as(null).call('POST', '/v1/auth/register', { email: 'you@localhost' }), { status: 422 }, 'nobody can register it')
})

t.test('refuses other bodies', async t => {
  const { as, account } = await build(t, noon)
  const { call } = as(null)
  for (const body of [{}, { api_key: account.api_key, token: 'x' }])
    exactly(t, await call('POST', path, body), error('validation_error', 400))
  for (const body of [{ api_key: 7 }, { api_key: 'x'.repeat(201) }, { key: 'x' }, []])
    exactly(t, await call('POST', path, body), { status: 422 })
  for (const api_key of ['', 'x', 'svc_sk_unknown']) exactly(t, await call('POST', path, { api_key }), error('invalid_api_key', 401))
})
