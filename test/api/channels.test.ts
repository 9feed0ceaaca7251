// Channels as the API shows and refuses them, and the addresses of mails.
import t from 'tap'
import { exactly, pluck } from '../support/exactly.ts'
import { mailServer, sendMails } from '../support/mailbox.ts'
import { serviceAt } from '../support/service.ts'
import { build, error, invalid, receiver } from '../support/setup.ts'
import { form, formHeaders } from '../support/sign-in.ts'

const service = serviceAt('2030-01-15T09:00:00Z')
const ops = '/v1/channels/ops'
const slack = { type: 'slack', target: 'https://hooks.slack.com/services/T0/B0/secret?x=1' }

t.test('a channel is created, read, listed, replaced and deleted, with its target masked', async t => {
  const { call, get } = await service()
  const shown = {
    name: 'ops',
    type: 'slack',
    target: 'https://hooks.slack.com/********',
    types: null,
    severity: 'high',
    tags: [],
    default: false,
    enabled: true,
    created_at: '2030-01-15T09:00:00.000Z',
    updated_at: '2030-01-15T09:00:00.000Z'
  }
  const put = async (body: object, name = ops) => call('PUT', name, body).then(({ status, body }) => [status, body])
  t.strictSame(await put(slack), [201, shown])
  t.strictSame(await put({ ...slack, target: shown.target }), [200, shown], 'a mask keeps the stored target')
  exactly(t, await get('/v1/auth/audit'), {
    events: [{ event: 'channel.set', actor: /^key:/, detail: { name: 'ops', type: 'slack' } }, {}]
  })
  const types = ['execution.failed', 'cue.*']
  exactly(t, (await put({ ...slack, types, severity: 'info', tags: ['a'], default: true, enabled: false }))[1], {
    types: ['execution.failed', 'cue.created', 'cue.updated', 'cue.deleted', 'cue.paused', 'cue.resumed', 'cue.completed'],
    severity: 'info',
    tags: ['a'],
    default: true,
    enabled: false
  })
  await put({ type: 'pagerduty', target: 'a'.repeat(32) }, '/v1/channels/a%2Fb')
  exactly(t, await get('/v1/channels'), {
    channels: [{ name: 'a/b', target: '********' }, { name: 'ops' }],
    total: 2,
    limit: 20,
    offset: 0
  })
  t.equal((await call('DELETE', ops)).status, 204)
  exactly(t, await call('GET', ops), error('channel_not_found', 404))
  exactly(t, await call('DELETE', ops), error('channel_not_found', 404))
  exactly(t, await call('POST', `${ops}/test`), error('channel_not_found', 404))
  exactly(t, await get('/v1/auth/audit'), { events: [{ event: 'channel.deleted', detail: { name: 'ops' } }, {}, {}, {}, {}] })
  t.notMatch(JSON.stringify(await get('/v1/auth/audit')), /secret/)
})

t.test('refuses targets that nothing can be sent to, unknown types, and the 21st channel', async t => {
  const { call } = await service()
  const put = (body: object, name = 'ops') => call('PUT', `/v1/channels/${name}`, body)
  exactly(t, await put({ ...slack, target: 'http://10.0.0.1/' }), error('invalid_callback_url', 400))
  exactly(t, await put({ ...slack, target: 'nonsense' }), error('invalid_callback_url', 400))
  for (const target of ['nonsense', 'a@b', `${'x'.repeat(65)}@example.com`])
    exactly(t, await put({ type: 'email', target }), invalid('body', 'target'))
  exactly(t, await put({ type: 'pagerduty', target: 'https://events.example.com/v2' }), invalid('body', 'target'))
  exactly(t, await put({ type: 'ntfy', target: 'https://ntfy.sh' }), invalid('body', 'target'))
  exactly(t, await put({ ...slack, types: ['cue.nonsense'] }), {
    status: 422,
    body: { detail: [{ loc: ['body', 'types'], msg: /cue\.nonsense.*cue\.created/ }] }
  })
  exactly(t, await put({ ...slack, colour: 'red' }), invalid('body', 'colour'))
  for (let n = 0; n < 20; n++) t.equal((await put(slack, `c${n}`)).status, 201)
  exactly(t, await put(slack), error('limit_reached', 403))
  t.equal((await put({ ...slack, default: true }, 'c0')).status, 200)
})

t.test('a test sends a message now, and is limited like fires', async t => {
  const { call, account, rows } = await service()
  const hook = await receiver(t)
  await call('PUT', ops, { type: 'discord', target: `${hook.url}x` })
  hook.answer({ status: 204, body: '' })
  t.strictSame((await call('POST', `${ops}/test`)).body, { http_status: 204 })
  exactly(t, JSON.parse(hook.requests[0]!.body), { embeds: [{ title: /Test of the channel ops/ }] })
  hook.answer({ status: 404 })
  exactly(t, (await call('POST', `${ops}/test`)).body, { http_status: 404, error: /404/ })
  for (let n = 2; n < 10; n++) t.equal((await call('POST', `${ops}/test`)).status, 200)
  exactly(t, await call('POST', `${ops}/test`), error('rate_limit_exceeded', 429))
  t.equal(hook.requests.length, 10)
  t.strictSame(await rows('select count(*)::int from cue.rate_windows where subject = $1', [`channel_tests:${account.id}`]), [{ count: 1 }])
})

t.test('the channels of a cue are created, changed, applied and removed', async t => {
  const { call, cue, get, patch } = await service()
  const id = await cue({ key: 'k', alerts: { channels: ['ops', 'b'] } })
  const alertsOf = async () => (await get(`/v1/cues/${id}`)).alerts
  t.strictSame(await alertsOf(), { consecutive_failures: 3, missed_window_multiplier: 2, channels: ['ops', 'b'] })
  await patch(`/v1/cues/${id}`, { alerts: { channels: [] } })
  t.strictSame((await alertsOf()).channels, [])
  const applied = { name: 'job', key: 'k', cron: '@hourly', worker: true, payload: { task: 'go' }, alerts: { channels: ['c'] } }
  exactly(t, await call('POST', '/v1/cues/apply', { set: 's', cues: [applied] }), {
    status: 200,
    body: { updated: [{ key: 'k', changes: { 'alerts.channels': { from: [], to: ['c'] } } }] }
  })
  await patch(`/v1/cues/${id}`, { alerts: { channels: null } })
  t.strictSame(await alertsOf(), { consecutive_failures: 3, missed_window_multiplier: 2 })
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { alerts: { channels: ['a b'] } }), invalid('body', 'alerts', 'channels', 0))
})

t.test('an address gets alerts once its owner has confirmed it', async t => {
  const server = await mailServer(t)
  const s = await build(t, '2030-01-15T09:00:00Z', { env: { SMTP_URL: server.url, BASE_URL: 'https://pgcue.example' } })
  const { call, app, fn, pool, account, clock, post } = s
  const put = (target: string) => call('PUT', ops, { type: 'email', target, default: true })
  await sendMails(s)
  exactly(t, await put('team@example.com'), { status: 409, body: { error: { code: 'address_unconfirmed', message: /link/ } } })
  exactly(t, await call('GET', ops), error('channel_not_found', 404))
  await sendMails(s)
  const mail = server.mails.at(-1)!
  exactly(t, mail, { recipients: ['team@example.com'], subject: 'Confirm this address for alerts' })
  const link = new URL(mail.links.find(url => url.includes('confirm-address'))!)
  const page = await app.inject(link.pathname + link.search)
  t.equal(page.statusCode, 200)
  exactly(t, await put('TEAM@example.com'), error('address_unconfirmed', 409), 'opening the page changes nothing')
  const token = link.searchParams.get('token')!
  const confirm = (token: string) => app.inject({ method: 'POST', url: link.pathname, headers: formHeaders, payload: form({ token }) })
  t.equal((await confirm(`x${token.slice(1)}`)).statusCode, 404)
  t.equal((await confirm(token)).statusCode, 200)
  exactly(t, await put('team@example.com'), { status: 201, body: { target: 't***@example.com' } })
  await put('third@example.com')
  exactly(t, await put('fourth@example.com'), error('rate_limit_exceeded', 429))
  exactly(t, await put(account.email), error('rate_limit_exceeded', 429))
  await fn.confirmEmail({ account_id: account.id })
  t.equal((await put(account.email)).status, 200, "the account's own address")
  t.equal((await put('team@example.com')).status, 200)

  const { id } = await post('/v1/cues', { name: 'x <b>\r\nBcc: y', cron: '@hourly', worker: true })
  await pool.query("select cue.raise_alert(c, 'missed_window', 'high', 'it is late', '{}', null, $2) from cue.cues c where id = $1", [
    id,
    clock.now()
  ])
  const { rows } = await pool.query('select id from cue.notices')
  t.equal(await fn.beginNotice({ notice_id: rows[0].id }), undefined)
  t.equal(await fn.beginNotice({ notice_id: rows[0].id }), undefined)
  const before = server.mails.length
  await sendMails(s)
  exactly(
    t,
    pluck(
      server.mails.slice(before).filter(({ subject }) => subject === 'An alert was raised'),
      'recipients'
    ),
    [['team@example.com']]
  )
  const { text, html } = server.mails.at(-1)!
  t.match(text, /it is late[\s\S]*x <b> Bcc: y[\s\S]*https:\/\/pgcue\.example\/dashboard\/cues\/cue_/)
  t.notMatch(html, /<b>/)
  exactly(t, (await call('GET', '/v1/alerts')).body.alerts[0].notices, [{ channel: 'ops', state: 'sent', tries: 1, http_status: null }])
})
