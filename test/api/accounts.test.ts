import t from 'tap'
import { isKey } from '../../src/accounts/keys.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { type Account, build, error } from '../support/setup.ts'

const noon = '2030-01-15T12:00:00.000Z'
const secret = /^whsec_[0-9a-f]{64}$/
const alertSecret = /^[0-9a-f]{64}$/
const confirmed = { 'x-confirm-destructive': 'true' }

t.test('registering creates an account with a working key and queues a mail', async t => {
  const { as, pool } = await build(t, noon)
  const { status, body } = await as(null).call('POST', '/v1/auth/register', { email: 'Grace@Example.com' })
  t.equal(status, 201)
  exactly(t, body, { email: 'Grace@Example.com', plan: 'free', id: /^[0-9a-f-]{36}$/ })
  t.ok(isKey(body.api_key))
  t.same(Object.keys(body).sort(), ['api_key', 'email', 'id', 'plan'])

  const { get } = as({ api_key: body.api_key } as Account)
  exactly(t, await get('/v1/auth/me'), { id: body.id, email: 'Grace@Example.com', api_key_prefix: body.api_key.slice(0, 12) })
  exactly(t, await get('/v1/auth/keys'), { keys: [{ label: 'default', created_by: 'register', is_default: true, created_at: noon }] })
  const { rows } = await pool.query(`select data from pgboss.job where name = 'mails' and data ->> 'account_id' = $1`, [body.id])
  exactly(t, rows, [{ data: { kind: 'registered', account_id: body.id, key_id: /^[0-9a-f-]{36}$/ } }])
})

t.test('rejects an e-mail address in use, ignoring case, even in many simultaneous registrations', async t => {
  const { as, pool } = await build(t)
  const { call } = as(null)
  const emails = ['ada@example.org', 'ADA@example.org', 'Ada@Example.ORG', 'ada@EXAMPLE.org', 'ada@example.org']
  const all = await Promise.all(emails.map(email => call('POST', '/v1/auth/register', { email })))
  t.same(all.map(({ status }) => status).sort(), [201, 409, 409, 409, 409])
  exactly(t, all.find(({ status }) => status === 409)!.body, { error: { code: 'duplicate_email', status: 409 } })
  exactly(t, (await pool.query("select count(*) from cue.accounts where lower(email) = 'ada@example.org'")).rows, [{ count: 1 }])
  exactly(t, (await pool.query("select count(*) from pgboss.job where name = 'mails'")).rows, [{ count: 2 }], 'one mail for each account')
})

t.test('rejects invalid e-mail addresses', async t => {
  const { as } = await build(t)
  const { call } = as(null)
  const domain = `${'d'.repeat(60)}.`.repeat(3)
  const bad = [
    '',
    'ada',
    'ada@',
    '@example.org',
    'ada@example',
    'ada@@example.org',
    'a b@example.org',
    'ada@example.org ',
    'ada@example.org\n',
    '"a\nb"@example.org',
    'ada@[127.0.0.1]',
    'ada..l@example.org',
    'ada@-example.org',
    'ada@example..org',
    'ada@127.0.0.1',
    'adä@example.org',
    `${'a'.repeat(65)}@example.org`,
    `${'a'.repeat(64)}@${domain}example.org`,
    5,
    null,
    {},
    ['ada@example.org']
  ]
  for (const email of bad) {
    const { status, body } = await call('POST', '/v1/auth/register', { email })
    exactly(
      t,
      { status, body },
      { status: 422, body: { error: { code: 'validation_error' }, detail: [{ loc: ['body', 'email'] }] } },
      JSON.stringify(email)
    )
  }
  exactly(t, await call('POST', '/v1/auth/register', {}), { status: 422, body: { detail: [{ type: 'missing', loc: ['body', 'email'] }] } })
  exactly(t, await call('POST', '/v1/auth/register'), { status: 422 })
  exactly(t, await call('POST', '/v1/auth/register', { email: 'ada@example.org', plan: 'scale' }), {
    status: 422,
    body: { detail: [{ type: 'extra_forbidden' }] }
  })
  for (const email of ['a.b+c@sub.example.org', "o'hara@example.co", 'x@xn--bcher-kva.example', `${'a'.repeat(64)}@example.org`]) {
    exactly(t, await call('POST', '/v1/auth/register', { email }), { status: 201, body: { email } })
  }
})

t.test('allows five registrations per hour and address, counting those of known addresses', async t => {
  const { app, clock } = await build(t, noon, { env: { RATE_LIMIT: 'on' } })
  const register = async (email: string, remoteAddress = '192.0.2.7') => {
    const answer = await app.inject({ method: 'POST', url: '/v1/auth/register', payload: { email }, remoteAddress })
    return { status: answer.statusCode, code: answer.json().error?.code, wait: answer.headers['retry-after'] }
  }
  for (const email of ['ada1@example.org', 'ada2@example.org']) {
    exactly(t, await register(email), { status: 201 })
    exactly(t, await register('nobody'), { status: 422 })
    exactly(t, await register(email.toUpperCase()), { status: 409, code: 'duplicate_email' })
    clock.advance('2 minutes')
  }
  const known = await Promise.all(Array.from({ length: 4 }, () => register('ada1@example.org')))
  t.same(known.map(({ status }) => status).sort(), [409, 429, 429, 429], 'also simultaneous ones')
  clock.advance('1 minute')
  exactly(t, await register('ada5@example.org'), { status: 429, code: 'rate_limit_exceeded', wait: String(55 * 60) })
  exactly(t, await register('ada5@example.org', '192.0.2.8'), { status: 201 }, 'another address')
  clock.advance('55 minutes')
  exactly(t, await register('ada6@example.org'), { status: 201 })
  exactly(t, await register('ada1@example.org'), { code: 'duplicate_email' })
  exactly(t, await register('ada7@example.org'), { code: 'rate_limit_exceeded', wait: '120' })
})

t.test('returns plan, usage and settings of the account to a key of any scope', async t => {
  const { get, post, as, clock, account, pool } = await build(t, noon)
  const { api_key } = await post('/v1/auth/keys', { label: 'worker', scopes: ['worker'] })
  const me = {
    scopes: ['read', 'write', 'worker', 'account'],
    is_operator: false,
    id: account.id,
    email: account.email,
    plan: 'free',
    has_webhook_secret: true,
    active_cues: 0,
    active_cue_limit: 10,
    monthly_executions: 0,
    executions_this_month: 0,
    monthly_execution_limit: 300,
    rate_limit_per_minute: 60,
    api_key_prefix: account.api_key.slice(0, 12),
    memory_block_enabled: false,
    alert_webhook_url: null,
    webhook_authorization: 'execution_token',
    events: 'default',
    approvals_by_link: true,
    created_at: noon
  }
  t.same(await get('/v1/auth/me'), me)
  t.same(await as({ ...account, api_key }).get('/v1/auth/me'), { ...me, scopes: ['worker'] })

  await pool.query("insert into cue.usage_counters values ($1, '2030-01-01', 0, 40), ($1, '2030-01-01', 7, 2), ($1, '2029-12-01', 0, 9)", [
    account.id
  ])
  exactly(t, await get('/v1/auth/me'), { monthly_executions: 42, executions_this_month: 42 })
  clock.advance('3 weeks')
  exactly(t, await get('/v1/auth/me'), { monthly_executions: 0 })
})

t.test('changes each setting separately and names the changed ones in the audit log', async t => {
  const { patch, get } = await build(t)
  exactly(t, await patch('/v1/auth/me', { alert_webhook_url: 'http://127.0.0.1:3999/alerts' }), {
    alert_webhook_url: 'http://127.0.0.1:3999/alerts'
  })
  exactly(t, await patch('/v1/auth/me', { memory_block_enabled: true, webhook_authorization: 'api_key' }), {
    alert_webhook_url: 'http://127.0.0.1:3999/alerts',
    memory_block_enabled: true,
    webhook_authorization: 'api_key'
  })
  exactly(t, await patch('/v1/auth/me', { alert_webhook_url: '' }), { alert_webhook_url: null, memory_block_enabled: true })
  exactly(t, await get('/v1/auth/me'), { alert_webhook_url: null, memory_block_enabled: true, webhook_authorization: 'api_key' })
  const { events } = await get('/v1/auth/audit')
  exactly(t, pluck(events.slice(0, 3), 'detail'), [
    { fields: ['alert_webhook_url'] },
    { fields: ['memory_block_enabled', 'webhook_authorization'] },
    { fields: ['alert_webhook_url'] }
  ])
})

t.test('rejects invalid settings and changes nothing', async t => {
  const { call, get } = await build(t)
  for (const body of [
    undefined,
    {},
    { plan: 'scale' },
    { memory_block_enabled: 'true' },
    { memory_block_enabled: null },
    { alert_webhook_url: 5 },
    { webhook_authorization: 'none' },
    { memory_block_enabled: true, id: 'x' }
  ]) {
    exactly(t, await call('PATCH', '/v1/auth/me', body), error('validation_error', 422), JSON.stringify(body))
  }
  for (const alert_webhook_url of [
    'alerts',
    'ftp://example.org',
    'https://10.0.0.1/',
    'http://169.254.169.254/',
    'http://u:p@127.0.0.1/',
    'http://127.0.0.1:5432/',
    'http://[::ffff:10.0.0.1]/'
  ]) {
    exactly(
      t,
      await call('PATCH', '/v1/auth/me', { alert_webhook_url, memory_block_enabled: true }),
      error('invalid_alert_webhook_url', 400),
      alert_webhook_url
    )
  }
  exactly(t, await get('/v1/auth/me'), { alert_webhook_url: null, memory_block_enabled: false })
})

t.test('the webhook secret is stable until it is regenerated', async t => {
  const { get, post, as, register } = await build(t)
  const { webhook_secret: first } = await get('/v1/auth/webhook-secret')
  exactly(t, first, secret)
  exactly(t, await get('/v1/auth/webhook-secret'), { webhook_secret: first })
  const { webhook_secret: second, previous_secret_revoked } = await post('/v1/auth/webhook-secret/regenerate')
  exactly(t, second, secret)
  t.not(second, first)
  t.equal(previous_secret_revoked, true)
  t.same(await get('/v1/auth/webhook-secret'), { webhook_secret: second })
  t.not((await as(await register()).get('/v1/auth/webhook-secret')).webhook_secret, second)
})

t.test('after regenerating the secret, both sign during the requested overlap, then only the new one', async t => {
  const { get, post, clock, account, pool, call } = await build(t, noon)
  const signing = async () => {
    const query = 'select secrets from cue.signing_account($1, $2)'
    return (await pool.query(query, [account.id, clock.now()])).rows[0].secrets
  }
  const alertSigning = async () => {
    const query = 'select cue.alert_signing_secrets(a, $2) as secrets from cue.accounts a where id = $1'
    return (await pool.query(query, [account.id, clock.now()])).rows[0].secrets
  }
  const { webhook_secret: first } = await get('/v1/auth/webhook-secret')
  const { alert_webhook_secret: firstAlert } = await get('/v1/auth/alert-webhook-secret')
  const { webhook_secret: second, previous_secret_revoked } = await post('/v1/auth/webhook-secret/regenerate?overlap_seconds=3600')
  const { alert_webhook_secret: secondAlert } = await post(
    '/v1/auth/alert-webhook-secret/regenerate?overlap_seconds=60',
    undefined,
    confirmed
  )
  t.equal(previous_secret_revoked, false)
  clock.advance('59 seconds')
  t.same(await signing(), [second, first])
  t.same(await alertSigning(), [secondAlert, firstAlert])
  clock.advance('1 second')
  t.same(await alertSigning(), [secondAlert])
  clock.advance('59 minutes')
  t.same(await signing(), [second])

  await post('/v1/auth/webhook-secret/regenerate?overlap_seconds=86400')
  const { webhook_secret: last } = await post('/v1/auth/webhook-secret/regenerate')
  t.same(await signing(), [last], 'without an overlap, all previous secrets are revoked at once')
  for (const overlap of ['-1', '86401', '1.5', 'x', '']) {
    exactly(t, await call('POST', `/v1/auth/webhook-secret/regenerate?overlap_seconds=${overlap}`), { status: 422 }, overlap)
  }
})

t.test('creates the alert secret once, even with simultaneous first calls, and regenerates it only when confirmed', async t => {
  const { get, call, post } = await build(t)
  const all = await Promise.all(Array.from({ length: 8 }, () => get('/v1/auth/alert-webhook-secret')))
  const { alert_webhook_secret: first } = all[0]
  exactly(t, first, alertSecret)
  for (const answer of all) t.same(answer, { alert_webhook_secret: first })

  for (const headers of [{}, { 'x-confirm-destructive': 'false' }, { 'x-confirm-destructive': '' }]) {
    exactly(t, await call('POST', '/v1/auth/alert-webhook-secret/regenerate', undefined, headers as Record<string, string>), {
      status: 400,
      body: { error: { code: 'confirmation_required', message: /X-Confirm-Destructive/ } }
    })
  }
  exactly(t, await get('/v1/auth/alert-webhook-secret'), { alert_webhook_secret: first })
  const { alert_webhook_secret: second, previous_secret_revoked } = await post(
    '/v1/auth/alert-webhook-secret/regenerate',
    undefined,
    confirmed
  )
  exactly(t, second, alertSecret)
  t.not(second, first)
  t.equal(previous_secret_revoked, true)
  exactly(t, await get('/v1/auth/alert-webhook-secret'), { alert_webhook_secret: second })
  const events = (await get('/v1/auth/audit')).events.map(({ event }: { event: string }) => event)
  t.same(events, ['alert_webhook_secret.regenerated', 'alert_webhook_secret.created', 'account.registered'])
})

t.test('the audit log lists who did what from where, newest first, in pages, without secrets', async t => {
  const { post, del, patch, account, pool, call } = await build(t, noon)
  const { id, api_key } = await post('/v1/auth/keys', { label: 'ci' })
  await patch(`/v1/auth/keys/${id}`, { label: 'deploys' })
  await del(`/v1/auth/keys/${id}`)
  await del(`/v1/auth/keys/${id}`)
  await post('/v1/auth/webhook-secret/regenerate')
  await post('/v1/auth/key/regenerate').then(({ api_key }) => Object.assign(account, { api_key }))
  exactly(t, await call('GET', '/v1/auth/audit'), { status: 401 }, 'the calls still carry the old key')

  const { rows: keys } = await pool.query('select id from cue.api_keys where revoked_at is null')
  const answer = await call('GET', '/v1/auth/audit', undefined, { authorization: `Bearer ${account.api_key}` })
  const { events, total, limit, offset } = answer.body
  exactly(t, { total, limit, offset }, { total: 6, limit: 20, offset: 0 })
  exactly(t, events, [
    { event: 'key.regenerated', detail: { key_id: keys[0].id } },
    { event: 'webhook_secret.regenerated', detail: { overlap_seconds: 0 } },
    { event: 'key.revoked', detail: { key_id: id } },
    { event: 'key.renamed', detail: { key_id: id, label: 'deploys' } },
    { event: 'key.created', actor: /^key:[0-9a-f-]{36}$/, ip: '127.0.0.1', created_at: noon, detail: { key_id: id, label: 'ci' } },
    { event: 'account.registered', actor: 'anonymous', ip: '127.0.0.1' }
  ])
  t.same(Object.keys(events[0]).sort(), ['actor', 'created_at', 'detail', 'event', 'id', 'ip'])
  for (const text of [api_key, account.api_key, 'whsec_']) t.notOk(JSON.stringify(events).includes(text))
})
