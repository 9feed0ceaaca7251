import t, { type Test } from 'tap'
import { encryptKey, isKey } from '../../src/accounts/keys.ts'
import { build as buildApp } from '../../src/app.ts'
import { testConfig } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'
import { type Account, build, error } from '../support/setup.ts'
import { buildWithMail } from '../support/sign-in.ts'

const noon = '2030-01-15T12:00:00.000Z'
const all = ['read', 'write', 'worker', 'account']
const bearer = (api_key: string) => ({ authorization: `Bearer ${api_key}` })
type Built = Awaited<ReturnType<typeof build>>

/** Another replica on the same database, with an environment of its own. */
const replica = async (t: Test, { url, pool }: Built, env: Record<string, string> = {}) => {
  const app = await buildApp({ config: testConfig(url, { RATE_LIMIT: 'off', ...env }), pool })
  t.teardown(() => app.close())
  return async (path: string, headers: Record<string, string>) => {
    const answer = await app.inject({ url: path, headers })
    return { status: answer.statusCode, body: answer.json() }
  }
}
type Listed = { id: string; label: string; revoked_at: string | null }

t.test('shows a key once, on creation, and lists it without its text', async t => {
  const { call, get, pool } = await build(t, noon)
  const { status, body } = await call('POST', '/v1/auth/keys', { label: 'ci', scopes: ['worker', 'read', 'worker'] })
  t.equal(status, 201)
  t.same(body, {
    id: body.id,
    api_key: body.api_key,
    prefix: body.api_key.slice(0, 12),
    label: 'ci',
    scopes: ['read', 'worker'],
    created_at: noon
  })
  t.ok(isKey(body.api_key))
  const list = await get('/v1/auth/keys')
  t.same(
    list.keys.find(({ id }: Listed) => id === body.id),
    {
      id: body.id,
      prefix: body.prefix,
      label: 'ci',
      scopes: ['read', 'worker'],
      created_at: noon,
      created_by: 'user',
      is_default: false,
      last_used_at: null,
      revoked_at: null
    }
  )
  t.notOk(JSON.stringify(list).includes(body.api_key))
  t.same((await call('POST', '/v1/auth/keys', { label: 'all' })).body.scopes, all, 'by default')
  const { rows } = await pool.query('select * from cue.api_keys where id = $1', [body.id])
  t.notOk(JSON.stringify(rows).includes(body.api_key.slice(12)), 'nor is it stored')
})

t.test('accepts labels of 1 to 100 characters and known scopes', async t => {
  const { call, get } = await build(t)
  const bad = [
    undefined,
    {},
    { label: '' },
    { label: 'x'.repeat(101) },
    { label: 5 },
    { label: null },
    { label: 'x', scopes: [] },
    { label: 'x', scopes: ['admin'] },
    { label: 'x', scopes: 'read' },
    { label: 'x', created_by: 'register' }
  ]
  for (const body of bad) exactly(t, await call('POST', '/v1/auth/keys', body), error('validation_error', 422), JSON.stringify(body))
  exactly(t, await call('POST', '/v1/auth/keys', '{"label":"a\\u0000b"}'), error('validation_error', 400))
  t.equal((await get('/v1/auth/keys')).keys.length, 1)
  exactly(t, await call('POST', '/v1/auth/keys', { label: '🔑'.repeat(50) }), { status: 201 })
})

t.test('lists keys newest first, including revoked ones', async t => {
  const { post, get, del, clock } = await build(t, noon)
  clock.advance('1 second')
  const { id } = await post('/v1/auth/keys', { label: 'first' })
  clock.advance('1 second')
  await post('/v1/auth/keys', { label: 'second' })
  await del(`/v1/auth/keys/${id}`)
  const { keys } = await get('/v1/auth/keys')
  exactly(t, keys, [
    { label: 'second', revoked_at: null },
    { label: 'first', revoked_at: '2030-01-15T12:00:02.000Z' },
    { label: 'default', revoked_at: null }
  ])
})

t.test('allows ten new keys per hour on all replicas together, not counting rejected ones', async t => {
  const { call, clock, as, register } = await build(t, noon)
  const tries = await Promise.all(Array.from({ length: 16 }, (_, i) => call('POST', '/v1/auth/keys', { label: `key ${i}` })))
  t.equal(tries.filter(({ status }) => status === 201).length, 10)
  for (const refused of tries.filter(({ status }) => status !== 201)) {
    exactly(t, refused, { status: 429, body: { error: { code: 'rate_limit_exceeded' } }, headers: { 'retry-after': '3600' } })
  }
  exactly(t, await as(await register()).call('POST', '/v1/auth/keys', { label: 'of another account' }), { status: 201 })
  clock.advance('59 minutes')
  exactly(t, await call('POST', '/v1/auth/keys', { label: 'x' }), { status: 429, headers: { 'retry-after': '60' } })
  clock.advance('1 minute')
  exactly(t, await call('POST', '/v1/auth/keys', { label: 'x' }), { status: 201 })
})

t.test('renames a key and changes nothing else', async t => {
  const { post, call, get } = await build(t)
  const { id, api_key } = await post('/v1/auth/keys', { label: 'ci', scopes: ['read'] })
  exactly(t, await call('PATCH', `/v1/auth/keys/${id}`, { label: 'cd' }), {
    status: 200,
    body: { id, label: 'cd', scopes: ['read'], revoked_at: null }
  })
  for (const body of [{}, { label: '' }, { scopes: all }, { label: 'x', scopes: all }]) {
    exactly(t, await call('PATCH', `/v1/auth/keys/${id}`, body), { status: 422 })
  }
  exactly(
    t,
    (await get('/v1/auth/keys')).keys.find((key: Listed) => key.id === id),
    { label: 'cd', scopes: ['read'] }
  )
  exactly(t, await call('GET', '/v1/auth/me', undefined, bearer(api_key)), { status: 200 })
})

t.test('a revoked key fails everywhere at once, and revoking it again returns the same time', async t => {
  const first = await build(t, noon)
  const second = await replica(t, first)
  const { id, api_key } = await first.post('/v1/auth/keys', { label: 'leaked' })
  exactly(t, await second('/v1/auth/me', bearer(api_key)), { status: 200 })
  t.same(await first.call('DELETE', `/v1/auth/keys/${id}`).then(({ status, body }) => ({ status, body })), {
    status: 200,
    body: { id, revoked_at: noon }
  })
  const refused = error('invalid_api_key', 401)
  exactly(t, await second('/v1/auth/me', bearer(api_key)), refused)
  exactly(t, await first.call('GET', '/v1/auth/me', undefined, bearer(api_key)), refused)
  first.clock.advance('1 hour')
  t.same(await first.del(`/v1/auth/keys/${id}`), { id, revoked_at: noon })
  t.same(await first.del(`/v1/auth/keys/${id.toUpperCase()}`), { id, revoked_at: noon })
})

t.test('the last key cannot be revoked, even by two simultaneous calls', async t => {
  const { get, call, post } = await build(t)
  const [{ id }] = (await get('/v1/auth/keys')).keys
  exactly(t, await call('DELETE', `/v1/auth/keys/${id}`), error('last_key_protected', 409))
  for (let i = 0; i < 5; i++) {
    const other = await post('/v1/auth/keys', { label: `${i}` })
    const [a, b] = await Promise.all([
      call('DELETE', `/v1/auth/keys/${id}`, undefined, bearer(other.api_key)),
      call('DELETE', `/v1/auth/keys/${other.id}`)
    ])
    // Who comes second is refused, as an ended key or for the last one.
    t.equal([a, b].filter(({ status }) => status === 200).length, 1)
    const { status, body } = [a, b].find(({ status }) => status !== 200)!
    t.ok(['401 invalid_api_key', '409 last_key_protected'].includes(`${status} ${body.error.code}`))
    if (a.status === 200) return
  }
})

t.test('regenerating replaces the only key, and fails if there are several', async t => {
  const { call, account, get, post, del } = await build(t)
  const { status, body } = await call('POST', '/v1/auth/key/regenerate')
  t.equal(status, 200)
  t.same(body, { api_key: body.api_key, previous_key_revoked: true })
  exactly(t, await call('GET', '/v1/auth/me'), error('invalid_api_key', 401))
  const headers = bearer(body.api_key)
  const { keys } = await get('/v1/auth/keys', headers)
  exactly(t, keys, [
    { prefix: body.api_key.slice(0, 12), label: 'default', scopes: all, created_by: 'register', is_default: true, revoked_at: null },
    { prefix: account.api_key.slice(0, 12), revoked_at: String }
  ])

  const { id } = await post('/v1/auth/keys', { label: 'second' }, headers)
  exactly(t, await call('POST', '/v1/auth/key/regenerate', undefined, headers), {
    status: 409,
    body: { error: { code: 'multiple_active_keys', message: /POST \/v1\/auth\/keys.*DELETE \/v1\/auth\/keys/ } }
  })
  exactly(t, await call('GET', '/v1/auth/me', undefined, headers), { status: 200 })
  await del(`/v1/auth/keys/${id}`, headers)
  exactly(t, await call('POST', '/v1/auth/key/regenerate', undefined, headers), { status: 200 })
})

t.test('regenerating creates a key for an account without any', async t => {
  const { openSession, withSession, nobody, pool } = await buildWithMail(t, noon)
  await nobody.post('/v1/auth/register', { email: 'grace@example.com' })
  const session = withSession(await openSession('grace@example.com'))
  await pool.query('update cue.api_keys set revoked_at = created_at, ciphertext = null')
  exactly(t, await session.post('/v1/auth/key/regenerate'), { api_key: /^svc_sk_/, previous_key_revoked: false })
  exactly(t, await session.post('/v1/auth/key/regenerate'), { api_key: /^svc_sk_/, previous_key_revoked: true })
})

t.test('simultaneous regenerations leave exactly one key', async t => {
  const { call, pool, account } = await build(t)
  const tries = await Promise.all(Array.from({ length: 6 }, () => call('POST', '/v1/auth/key/regenerate')))
  t.ok(tries.some(({ status }) => status === 200))
  for (const { status } of tries) t.ok(status === 200 || status === 401)
  const { rows } = await pool.query('select count(*) from cue.api_keys where account_id = $1 and revoked_at is null', [account.id])
  exactly(t, rows, [{ count: 1 }])
})

t.test('the default key is shown to another key, but not to itself', async t => {
  const { call, post, account } = await build(t)
  exactly(t, await call('GET', '/v1/auth/key'), error('not_authenticated', 401))
  const other = await post('/v1/auth/keys', { label: 'other', scopes: ['account'] })
  const { status, body } = await call('GET', '/v1/auth/key', undefined, bearer(other.api_key))
  t.equal(status, 200)
  t.same(body, { api_key: account.api_key, key_prefix: account.api_key.slice(0, 12) })
  const { events } = (await call('GET', '/v1/auth/audit')).body
  exactly(t, events[0], { event: 'key.revealed', actor: `key:${other.id}` })
})

t.test("an encrypted key is of no use in another account's row, nor a device code in a key's", async t => {
  const { call, post, register, account, pool, config } = await build(t)
  const other = bearer((await post('/v1/auth/keys', { label: 'other' })).api_key)
  const victim = await register()
  const put = (text: string, values: string[]) =>
    pool.query(`update cue.api_keys set ciphertext = (${text}) where account_id = $1 and is_default`, [account.id, ...values])
  const gone = error('plaintext_unavailable', 410)
  await put('select ciphertext from cue.api_keys where account_id = $2', [victim.id])
  exactly(t, await call('GET', '/v1/auth/key', undefined, other), gone)
  await put('$2', [encryptKey(config.encryptionKeys, 'a-device-code', `device_code ${account.id}`)])
  exactly(t, await call('GET', '/v1/auth/key', undefined, other), gone)
  await put('$2', [encryptKey(config.encryptionKeys, account.api_key, `api_key ${account.id}`)])
  exactly(t, await call('GET', '/v1/auth/key', undefined, other), { status: 200, body: { api_key: account.api_key } })
})

t.test('a default key that is revoked or cannot be decrypted returns 410', async t => {
  const built = await build(t)
  const { post, call, get, del } = built
  const other = bearer((await post('/v1/auth/keys', { label: 'other' })).api_key)
  const gone = error('plaintext_unavailable', 410)
  const [first, second] = [Buffer.alloc(32, 1).toString('base64'), Buffer.alloc(32, 2).toString('base64')]
  exactly(t, await (await replica(t, built, { ENCRYPTION_KEYS: `${second},${first}` }))('/v1/auth/key', other), { status: 200 })
  exactly(t, await (await replica(t, built, { ENCRYPTION_KEYS: second }))('/v1/auth/key', other), gone)
  t.equal((await get('/v1/auth/audit')).events.filter(({ event }: { event: string }) => event === 'key.revealed').length, 1)
  const { keys } = await get('/v1/auth/keys')
  await del(`/v1/auth/keys/${keys.find((key: { is_default: boolean }) => key.is_default).id}`, other)
  exactly(t, await call('GET', '/v1/auth/key', undefined, other), gone)
})

t.test('last_used_at is null until a key is used', async t => {
  const { post, get, clock, as, account } = await build(t, noon)
  clock.advance('1 second')
  const { api_key } = await post('/v1/auth/keys', { label: 'x' })
  clock.advance('1 hour')
  await as({ ...account, api_key } as Account).get('/v1/auth/me')
  exactly(t, (await get('/v1/auth/keys')).keys, [{ label: 'x', last_used_at: '2030-01-15T13:00:01.000Z' }, { label: 'default' }])
})

t.test('removes a key 30 days after it was revoked', async t => {
  const { post, get, del, clock, fn } = await build(t, noon)
  const { id } = await post('/v1/auth/keys', { label: 'x' })
  await del(`/v1/auth/keys/${id}`)
  clock.advance('30 days')
  await fn.prune({})
  const { keys } = await get('/v1/auth/keys')
  t.same(keys.map(({ label }: { label: string }) => label).sort(), ['default', 'x'])
  clock.advance('1 second')
  await fn.prune({})
  exactly(t, (await get('/v1/auth/keys')).keys, [{ label: 'default' }])
})
