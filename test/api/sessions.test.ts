import { decodeJwt, decodeProtectedHeader } from 'jose'
import t from 'tap'
import { isKey } from '../../src/accounts/keys.ts'
import { build as buildApp } from '../../src/app.ts'
import { createPool } from '../../src/database/pool.ts'
import { exactly } from '../support/exactly.ts'
import { error } from '../support/setup.ts'
import { buildWithMail } from '../support/sign-in.ts'

// Every test starts a service, which takes long on busy machines; the default limit of a file run by node is 30 seconds.

const noon = '2030-01-15T12:00:00.000Z'

/** Sorted by name: entries of the same millisecond are listed in any order. */
const eventsOf = async (get: (path: string) => Promise<{ events: { event: string; actor: string }[] }>) =>
  (await get('/v1/auth/audit')).events.map(({ event, actor }) => `${event} by ${actor}`).sort()

t.test('a one-time token becomes a session of one year with all rights of a key', async t => {
  const { signIn, nobody, withSession, account } = await buildWithMail(t, noon)
  const { session_token: token } = await signIn(account.email)
  const { status, body } = await nobody.call('POST', '/v1/auth/session', { token })
  t.equal(status, 200)
  t.same(Object.keys(body).sort(), ['email', 'session_token'])
  t.equal(body.email, account.email)
  t.same(decodeProtectedHeader(body.session_token), { alg: 'HS256', typ: 'JWT' })
  const claims = decodeJwt(body.session_token)
  exactly(t, claims, { iss: 'pgcue', sub: account.id, jti: /^[0-9a-f-]{36}$/ })
  t.same([claims.iat, claims.exp], [Date.parse(noon) / 1000, Date.parse('2031-01-15T12:00:00Z') / 1000])

  const { get, post, del } = withSession(body.session_token)
  exactly(t, await get('/v1/auth/me'), { id: account.id, scopes: ['read', 'write', 'worker', 'account', 'approve'] })
  const { id } = await post('/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true })
  t.match(id, /^cue_/)
  t.equal(await del(`/v1/cues/${id}`), '')
  t.ok(isKey((await post('/v1/auth/keys', { label: 'made by a session' })).api_key))
  const by = `session:${claims.jti}`
  const changes = ['cue.created', 'cue.deleted', 'key.created', 'session.created'].map(event => `${event} by ${by}`)
  t.same(await eventsOf(get), ['account.registered by anonymous', ...changes])
})

t.test('a session can show the default key, even if all other keys are revoked', async t => {
  const { openSession, withSession, account, call } = await buildWithMail(t)
  const session = withSession(await openSession(account.email))
  t.same(await session.get('/v1/auth/key'), { api_key: account.api_key, key_prefix: account.api_key.slice(0, 12) })
  exactly(t, await call('GET', '/v1/auth/key'), error('not_authenticated', 401), 'the key itself is not shown itself')
  t.same(
    (await eventsOf(session.get)).map(event => event.replace(/ by .*/, '')),
    ['account.registered', 'key.revealed', 'session.created']
  )
})

t.test('a one-time token works once, within 15 minutes', async t => {
  const { signIn, nobody, clock, account } = await buildWithMail(t, noon)
  const { session_token: token } = await signIn(account.email)
  const all = await Promise.all(Array.from({ length: 6 }, () => nobody.call('POST', '/v1/auth/session', { token })))
  t.same(all.map(({ status }) => status).sort(), [200, 401, 401, 401, 401, 401])
  exactly(t, all.find(({ status }) => status === 401)!, error('not_authenticated', 401))

  const { session_token: late } = await signIn(account.email)
  clock.advance('15 minutes')
  exactly(t, await nobody.call('POST', '/v1/auth/session', { token: late }), error('not_authenticated', 401))
  for (const token of ['', 'x', 'x'.repeat(43)]) {
    exactly(t, await nobody.call('POST', '/v1/auth/session', { token }), error('not_authenticated', 401))
  }
  exactly(t, await nobody.call('POST', '/v1/auth/session', {}), { status: 422 })
})

t.test('accepts only one spelling of a session JWT', async t => {
  const { openSession, withSession, account } = await buildWithMail(t, noon)
  const jwt = await openSession(account.email)
  const [head, body, signature] = jwt.split('.') as [string, string, string]
  exactly(t, await withSession(jwt).call('GET', '/v1/auth/me'), { status: 200 })
  // The last of 43 characters encodes four bits; its other two are ignored.
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const sameBytes = `${signature.slice(0, -1)}${letters[letters.indexOf(signature.at(-1)!) + 1]}`
  for (const other of [`${jwt}=`, `${head}=.${body}.${signature}`, `${head}.${body}=.${signature}`, `${head}.${body}.${sameBytes}`]) {
    exactly(t, await withSession(other).call('GET', '/v1/auth/me'), error('not_authenticated', 401), other.slice(-20))
  }
})

t.test('refreshing extends a session by a year, and the former one ends a day later', async t => {
  const { openSession, withSession, clock, account, call, maintain, pool } = await buildWithMail(t, noon)
  const jwt = await openSession(account.email)
  const former = withSession(jwt)
  clock.set('2030-12-31T00:00:00Z')
  const { session_token, email } = await former.post('/v1/auth/session/refresh')
  t.equal(email, account.email)
  t.not(session_token, jwt)
  t.equal(decodeJwt(session_token).exp, Date.parse('2031-12-31T00:00:00Z') / 1000)
  const next = withSession(session_token)
  exactly(t, await former.call('GET', '/v1/auth/me'), { status: 200 }, 'a lost response locks nobody out')
  clock.advance('24 hours')
  exactly(t, await former.call('GET', '/v1/auth/me'), error('not_authenticated', 401))
  exactly(t, await next.call('GET', '/v1/auth/me'), { status: 200 })
  exactly(t, await call('POST', '/v1/auth/session/refresh'), error('not_authenticated', 401), 'a key is no session')
  await maintain()
  exactly(t, (await pool.query('select count(*) from cue.sessions')).rows, [{ count: 1 }], 'removes ended sessions')
})

t.test('signing out takes effect immediately on every replica', async t => {
  const { openSession, withSession, account, config, app, call } = await buildWithMail(t, noon)
  const pool = createPool(config)
  const replica = await buildApp({ config, pool, clock: app.now })
  t.teardown(async () => {
    await replica.close()
    await pool.end()
  })
  const jwts = [await openSession(account.email), await openSession(account.email), await openSession(account.email)] as const
  const there = async (jwt: string) =>
    (await replica.inject({ url: '/v1/auth/me', headers: { authorization: `Bearer ${jwt}` } })).statusCode
  t.same(await Promise.all(jwts.map(there)), [200, 200, 200])
  t.same(await withSession(jwts[0]).del('/v1/auth/session'), { revoked: 1 })
  t.same(await Promise.all(jwts.map(there)), [401, 200, 200])
  exactly(t, await withSession(jwts[0]).call('DELETE', '/v1/auth/session'), error('not_authenticated', 401))
  exactly(t, await call('DELETE', '/v1/auth/session'), error('not_authenticated', 401), 'a key has no session of its own')
  t.same(await withSession(jwts[1]).del('/v1/auth/session?all=true'), { revoked: 2 })
  t.same(await Promise.all(jwts.map(there)), [401, 401, 401])
  exactly(t, await call('GET', '/v1/auth/me'), { status: 200 }, 'keys are not sessions')
})

t.test('the sessions of an account share a rate limit', async t => {
  const { openSession, withSession, account, nobody } = await buildWithMail(t, noon, {
    RATE_LIMIT: 'on',
    PLANS: '{"free":{"requests_per_minute":4}}'
  })
  const one = withSession(await openSession(account.email))
  const { session_token } = await one.post('/v1/auth/session/refresh')
  const two = withSession(session_token)
  const statuses = []
  for (const { call } of [one, two, one, two]) statuses.push((await call('GET', '/v1/auth/me')).status)
  t.same(statuses, [200, 200, 200, 429])
  exactly(t, await nobody.call('GET', '/v1/auth/me'), { status: 401 })
})

t.test('an approved client gets a key with read, write and worker for a one-time token', async t => {
  const { signIn, nobody, account, as, get, clock } = await buildWithMail(t, noon, { MCP_CLIENT_IDS: 'desk,phone' })
  clock.advance('1 second')
  const exchange = (body: object) => nobody.call('POST', '/v1/auth/mcp-exchange', body)
  const { session_token } = await signIn(account.email)
  exactly(t, await exchange({ session_token, client_id: 'stranger' }), error('client_not_approved', 403))
  const { status, body } = await exchange({ session_token, client_id: 'desk', label: 'my desk' })
  t.equal(status, 200)
  t.same(Object.keys(body).sort(), ['api_key', 'expires_at', 'key_id', 'scopes', 'user_id'])
  exactly(t, body, { user_id: account.id, scopes: ['read', 'write', 'worker'], expires_at: null })
  t.ok(isKey(body.api_key))
  exactly(t, await exchange({ session_token, client_id: 'desk' }), error('not_authenticated', 401), 'the token is used up')

  const client = as({ ...account, api_key: body.api_key })
  exactly(t, await client.call('POST', '/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true }), { status: 201 })
  exactly(t, await client.call('GET', '/v1/auth/keys'), error('insufficient_scope', 403))
  const desk = { id: body.key_id, label: 'my desk', created_by: 'mcp-exchange', is_default: false }
  exactly(t, await get('/v1/auth/keys'), { keys: [desk, { label: 'default' }] })
  exactly(t, await get('/v1/auth/audit'), {
    events: [
      { event: 'cue.created', actor: `key:${body.key_id}` },
      { event: 'key.created', actor: 'client:desk', detail: { client_id: 'desk' } },
      { event: 'account.registered' }
    ],
    total: 3
  })

  clock.advance('1 second')
  const again = await signIn(account.email)
  await exchange({ session_token: again.session_token, client_id: 'phone' })
  exactly(t, await get('/v1/auth/keys'), { keys: [{ label: 'MCP: phone' }, desk, { label: 'default' }] })
})

t.test('without MCP_CLIENT_IDS no client is approved', async t => {
  const { nobody } = await buildWithMail(t)
  exactly(t, await nobody.call('POST', '/v1/auth/mcp-exchange', { session_token: 'x', client_id: '' }), error('client_not_approved', 403))
  exactly(t, await nobody.call('POST', '/v1/auth/mcp-exchange', { session_token: 'x' }), { status: 422 })
})

t.test('an exchange above ten keys per hour keeps the token', async t => {
  const { signIn, nobody, account, post, clock } = await buildWithMail(t, noon, { MCP_CLIENT_IDS: 'desk' })
  for (let i = 0; i < 10; i++) await post('/v1/auth/keys', { label: `key ${i}` })
  clock.advance('50 minutes')
  const { session_token } = await signIn(account.email)
  const exchange = () => nobody.call('POST', '/v1/auth/mcp-exchange', { session_token, client_id: 'desk' })
  exactly(t, await exchange(), { ...error('rate_limit_exceeded', 429), headers: { 'retry-after': '600' } })
  clock.advance('10 minutes')
  exactly(t, await exchange(), { status: 200 })
})
