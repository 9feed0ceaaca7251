import { randomUUID } from 'node:crypto'
import t from 'tap'
import { isKey } from '../../src/accounts/keys.ts'
import { exactly } from '../support/exactly.ts'
import { error, invalid } from '../support/setup.ts'
import { buildWithMail, everything, form, formHeaders, newDeviceCode } from '../support/sign-in.ts'
import { forOneCell } from '../support/two-cells.ts'

// Every test starts a service, which takes long on busy machines; the default limit of a file run by node is 30 seconds.

const noon = '2030-01-15T12:00:00.000Z'
const base = '/v1/auth/device-code'

t.test("a device signs in with a new address and gets a session token and, once, the new account's key", async t => {
  const { config, nobody, requestLink, confirm, poll, as, pool } = await buildWithMail(t, noon)
  const device_code = newDeviceCode()
  exactly(t, await nobody.call('POST', base, { device_code }), {
    status: 201,
    body: { device_code, verification_url: `https://pgcue.example/auth/device?code=${device_code}`, expires_in: 900 }
  })
  t.same(await poll(device_code), { status: 'pending' })

  const asked = await requestLink('grace@example.com')
  t.same(await poll(asked.device_code), { status: 'email_sent' })
  exactly(t, await confirm(asked.fields), { status: 200, body: /Your device is signed in/ })
  const approved = await poll(asked.device_code)
  exactly(t, approved, { status: 'approved', email: 'grace@example.com', session_token: new RegExp(`^${config.cell}[\\w-]{43}$`) })
  t.ok(isKey(approved.api_key))
  t.same(await poll(asked.device_code), { status: 'claimed' })
  t.same(await poll(asked.device_code), { status: 'claimed' })

  const { get } = as({ id: '', email: '', api_key: approved.api_key })
  exactly(t, await get('/v1/auth/me'), { email: 'grace@example.com', plan: 'free' })
  exactly(t, await get('/v1/auth/audit'), { events: [{ event: 'account.registered', actor: 'anonymous' }] })
  const { rows } = await pool.query("select data from pgboss.job where name = 'mails'")
  t.same(rows, [], 'who followed a link needs no mail about the account')
})

t.test('a device signs in to an existing account, ignoring case, and gets no key', async t => {
  const { signIn, account, nobody, withSession } = await buildWithMail(t)
  const approved = await signIn(account.email.toUpperCase())
  t.same(Object.keys(approved).sort(), ['email', 'session_token', 'status'])
  t.equal(approved.email, account.email)
  const { session_token } = await nobody.post('/v1/auth/session', { token: approved.session_token })
  exactly(t, await withSession(session_token).get('/v1/auth/me'), { id: account.id })
})

t.test('the mail has the link, the code to compare and the origin of the request, in text and HTML', async t => {
  const { nobody, mails } = await buildWithMail(t, noon)
  const device_code = newDeviceCode()
  await nobody.post(base, { device_code })
  exactly(t, await nobody.call('POST', `${base}/submit-email`, { device_code, email: 'grace@example.com' }), {
    status: 200,
    body: { status: 'email_sent' }
  })
  const [mail] = await mails()
  exactly(t, mail, { recipients: ['grace@example.com'], subject: 'Your sign-in link', links: [String] })
  for (const text of [mail!.text, mail!.html]) {
    for (const part of [device_code, '15 January 2030, 12:15 UTC', '127.0.0.1']) t.ok(text.includes(part), part)
  }
  t.ok(mail!.html.includes(mail!.links[0]!.replaceAll('&', '&amp;')))
  t.match(mail!.links[0], new RegExp(`^https://pgcue.example/v1/auth/verify\\?token=[\\w-]{43}&device_code=${device_code}$`))
})

t.test('opening the link changes nothing, so scanners do not use it up', async t => {
  const { nobody, requestLink, confirm, poll } = await buildWithMail(t)
  const { path, fields, device_code } = await requestLink('grace@example.com')
  for (const method of ['GET', 'GET', 'HEAD']) {
    exactly(t, await nobody.call(method, path), { status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } })
  }
  t.same(await poll(device_code), { status: 'email_sent' })
  t.match(await nobody.get(path), new RegExp(`${device_code}.*grace@example.com.*no account yet.*<button>`, 's'))
  await confirm(fields)
  exactly(t, await poll(device_code), { status: 'approved' })
})

t.test("the link's page shows the age of the account and its number of keys", async t => {
  const { nobody, requestLink, account } = await buildWithMail(t, noon)
  const { path } = await requestLink(account.email)
  t.match(await nobody.get(path), /was created on 15 January 2030, 12:00 UTC and has one active API key\./)
})

t.test('a link works once', async t => {
  const { nobody, requestLink, confirm, poll, pool } = await buildWithMail(t)
  const { path, fields, device_code } = await requestLink('grace@example.com')
  const all = await Promise.all(Array.from({ length: 6 }, () => confirm(fields)))
  t.same(all.map(({ status }) => status).sort(), [200, 400, 400, 400, 400, 400])
  exactly(t, await nobody.call('GET', path), { status: 400, body: /already used/ })
  await poll(device_code)
  exactly(t, await confirm(fields), { status: 400, body: /already used/ })
  t.same(await poll(device_code), { status: 'claimed' })
  exactly(t, (await pool.query("select count(*) from cue.accounts where email = 'grace@example.com'")).rows, [{ count: 1 }])
})

t.test('of many simultaneous polls, one gets the sign-in', async t => {
  const { requestLink, confirm, poll, pool } = await buildWithMail(t)
  const { fields, device_code } = await requestLink('grace@example.com')
  await confirm(fields)
  const all = await Promise.all(Array.from({ length: 8 }, () => poll(device_code)))
  t.equal(all.filter(({ status }) => status === 'approved').length, 1)
  t.equal(all.filter(({ status }) => status === 'claimed').length, 7)
  exactly(t, (await pool.query('select count(*) from cue.session_tokens')).rows, [{ count: 1 }])
})

t.test('two simultaneous sign-ins with a new address create one account', async t => {
  const { requestLink, confirm, poll, pool } = await buildWithMail(t)
  const one = await requestLink('grace@example.com')
  const two = await requestLink('Grace@Example.com')
  exactly(t, await Promise.all([confirm(one.fields), confirm(two.fields)]), [{ status: 200 }, { status: 200 }])
  const both = await Promise.all([poll(one.device_code), poll(two.device_code)])
  t.equal(both.filter(({ api_key }) => api_key).length, 1)
  t.equal(both[0].email, both[1].email)
  exactly(t, (await pool.query("select count(*) from cue.accounts where lower(email) = 'grace@example.com'")).rows, [{ count: 1 }])
})

t.test('a code expires after 15 minutes at every stage', { skip: forOneCell }, async t => {
  const { nobody, requestLink, confirm, poll, clock, pool, maintain } = await buildWithMail(t, noon)
  const waiting = newDeviceCode()
  await nobody.post(base, { device_code: waiting })
  const sent = await requestLink('grace@example.com')
  const approved = await requestLink('ada@example.org')
  await confirm(approved.fields)
  clock.advance('15 minutes')
  for (const code of [waiting, sent.device_code, approved.device_code]) t.same(await poll(code), { status: 'expired' })
  exactly(
    t,
    await nobody.call('POST', `${base}/submit-email`, { device_code: waiting, email: 'a@example.org' }),
    error('device_code_expired', 400)
  )
  exactly(t, await nobody.call('GET', sent.path), { status: 400, body: /expired/ })
  exactly(t, await confirm(sent.fields), { status: 400, body: /expired/ })
  exactly(t, await nobody.call('GET', `/auth/device?code=${waiting}`), { status: 400, body: /expired/ })
  exactly(t, (await pool.query("select count(*) from cue.accounts where email = 'grace@example.com'")).rows, [{ count: 0 }])
  exactly(t, await nobody.call('POST', base, { device_code: waiting }), { status: 201 }, 'the code is free again')
  await maintain()
  exactly(t, (await pool.query('select count(*) from cue.device_codes')).rows, [{ count: 1 }], 'what expired is swept away')
})

t.test('sends no link after the code has expired', async t => {
  const { nobody, mails, clock } = await buildWithMail(t, noon)
  const device_code = newDeviceCode()
  await nobody.post(base, { device_code })
  await nobody.post(`${base}/submit-email`, { device_code, email: 'grace@example.com' })
  clock.advance('15 minutes')
  t.notOk((await mails()).some(({ subject }) => subject === 'Your sign-in link'))
})

t.test('rejects invalid codes and codes in use', async t => {
  const { nobody } = await buildWithMail(t)
  for (const device_code of [
    '',
    'short',
    'x'.repeat(129),
    'with blank',
    'ümläut-code',
    '<script>alert(1)</script>',
    'evil.example/path',
    5,
    null
  ]) {
    exactly(t, await nobody.call('POST', base, { device_code }), error('invalid_device_code', 400), String(device_code))
  }
  exactly(t, await nobody.call('POST', base, {}), { status: 422, body: { detail: [{ type: 'missing', loc: ['body', 'device_code'] }] } })
  for (const device_code of ['abc-12', 'x'.repeat(128), randomUUID()]) {
    exactly(t, await nobody.call('POST', base, { device_code }), { status: 201, body: { device_code } })
    exactly(t, await nobody.call('POST', base, { device_code }), error('device_code_exists', 409))
  }
})

t.test('accepts one address per pending code', async t => {
  const { nobody } = await buildWithMail(t)
  const device_code = newDeviceCode()
  const submit = (body: object) => nobody.call('POST', `${base}/submit-email`, body)
  exactly(t, await submit({ device_code, email: 'grace@example.com' }), error('device_code_not_found', 404))
  await nobody.post(base, { device_code })
  exactly(t, await submit({ device_code, email: 'grace' }), invalid('body', 'email'))
  exactly(t, await submit({ device_code, email: 'grace@example.com' }), { status: 200, body: { status: 'email_sent' } })
  exactly(t, await submit({ device_code, email: 'ada@example.org' }), error('invalid_status', 400))
})

t.test('allows five codes per hour and address, not counting rejected ones', { skip: forOneCell }, async t => {
  const { app, clock } = await buildWithMail(t, noon, { RATE_LIMIT: 'on' })
  const create = async (device_code: string, remoteAddress = '192.0.2.7') => {
    const answer = await app.inject({ method: 'POST', url: base, payload: { device_code }, remoteAddress })
    return { status: answer.statusCode, code: answer.json().error?.code, wait: answer.headers['retry-after'] }
  }
  for (let i = 0; i < 5; i++) {
    exactly(t, await create(`code-number-${i}`), { status: 201 })
    exactly(t, await create('code-number-0'), i < 4 ? { code: 'device_code_exists' } : { code: 'rate_limit_exceeded' })
  }
  exactly(t, await create('code-number-6'), { status: 429, code: 'rate_limit_exceeded', wait: '3600' })
  exactly(t, await create('code-number-6', '127.0.0.2'), { status: 201 })
  clock.advance('1 hour')
  exactly(t, await create('code-number-7'), { status: 201 })
})

t.test('allows 30 polls per minute for an existing code', async t => {
  const { app, clock } = await buildWithMail(t, noon, { RATE_LIMIT: 'on' })
  const send = async (url: string, n = 0) => {
    const answer = await app.inject({ method: 'POST', url, payload: { device_code: 'the-code' }, remoteAddress: `192.0.2.${n}` })
    return { status: answer.statusCode, body: answer.json(), wait: answer.headers['retry-after'] }
  }
  await send(base)
  for (let i = 0; i < 30; i++) exactly(t, await send(`${base}/poll`, i), { status: 200, body: { status: 'pending' } })
  exactly(t, await send(`${base}/poll`, 40), { status: 429, body: { error: { code: 'rate_limit_exceeded' } }, wait: '60' })
  clock.advance('1 minute')
  exactly(t, await send(`${base}/poll`, 41), { status: 200 })
})

t.test('sends at most three mails per hour to one address, whoever requests them', async t => {
  const { nobody, mails, clock } = await buildWithMail(t, noon)
  const submit = async (email: string) => {
    const device_code = newDeviceCode()
    await nobody.post(base, { device_code })
    return nobody.call('POST', `${base}/submit-email`, { device_code, email })
  }
  for (const email of ['grace@example.com', 'GRACE@example.com', 'Grace@Example.Com']) exactly(t, await submit(email), { status: 200 })
  exactly(t, await submit('grace@EXAMPLE.com'), { ...error('rate_limit_exceeded', 429), headers: { 'retry-after': '3600' } })
  exactly(t, await submit('ada@example.org'), { status: 200 })
  t.equal((await mails()).length, 4)
  clock.advance('1 hour')
  exactly(t, await submit('grace@example.com'), { status: 200 })
})

t.test('polling unknown codes stores nothing', async t => {
  const service = await buildWithMail(t)
  const before = await everything(service)
  for (let i = 0; i < 100; i++) t.same(await service.poll(newDeviceCode()), { status: 'expired' })
  t.same(await everything(service), before)
})

t.test('responds to forms with pages and to JSON with JSON', async t => {
  const { nobody, mails } = await buildWithMail(t)
  const device_code = newDeviceCode()
  await nobody.post(base, { device_code })
  const submit = (fields: Record<string, string>) => nobody.call('POST', `${base}/submit-email`, form(fields), formHeaders)
  exactly(t, await submit({ device_code, email: 'no address' }), {
    status: 422,
    body: /value="no address" aria-invalid="true".*?Enter a valid email address/s
  })
  exactly(t, await submit({ device_code: newDeviceCode(), email: 'a@example.org' }), { status: 404, body: /is not valid/ })
  exactly(t, await submit({ device_code, email: 'grace@example.com' }), { status: 200, body: /sent a link to grace@example.com/ })
  exactly(t, await submit({ device_code, email: 'grace@example.com' }), { status: 400, body: /Check your mail/ })
  t.equal((await mails()).filter(({ subject }) => subject === 'Your sign-in link').length, 1)
})

t.test("the code's page shows the status of the sign-in", async t => {
  const { nobody, requestLink, confirm } = await buildWithMail(t)
  const device_code = newDeviceCode()
  exactly(t, await nobody.call('GET', `/auth/device?code=${device_code}`), { status: 400, body: /expired/ })
  exactly(t, await nobody.call('GET', '/auth/device'), invalid('query', 'code'))
  await nobody.post(base, { device_code })
  exactly(t, await nobody.call('GET', `/auth/device?code=${device_code}`), { status: 200, body: /<label for="email">/ })
  const { fields } = await requestLink('grace@example.com')
  exactly(t, await nobody.call('GET', `/auth/device?code=${fields.device_code}`), { status: 200, body: /Check your mail/ })
  await confirm(fields)
  exactly(t, await nobody.call('GET', `/auth/device?code=${fields.device_code}`), { status: 200, body: /signed in/ })
})

t.test('stores no code, link or token in plain text', async t => {
  const service = await buildWithMail(t)
  const { device_code, fields } = await service.requestLink('grace@example.com')
  const stored = async () => Object.values(await everything(service)).join()
  const sent = await stored()
  t.ok(sent.includes('grace@example.com'))
  for (const secret of [device_code, fields.token!]) t.notOk(sent.includes(secret))
  await service.confirm(fields)
  const { session_token, api_key } = await service.poll(device_code)
  const claimed = await stored()
  for (const secret of [device_code, fields.token!, session_token, api_key]) t.notOk(claimed.includes(secret))
})
