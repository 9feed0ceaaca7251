import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { layOut } from '../../src/mails/layout.ts'
import { startEngine } from '../support/engine.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { mailServer, readMail, sendMails } from '../support/mailbox.ts'
import { build, eventually } from '../support/setup.ts'

// Every test starts a service, which takes long on busy machines; the default limit of a file run by node is 30 seconds.

const noon = '2030-01-15T12:00:00.000Z'
const env = { BASE_URL: 'https://pgcue.example', EMAIL_FROM: 'The pgcue <cue@pgcue.example>' }

/** The service with its account's registration mail queued, and no mail server yet. */
const setup = async (t: Test, own: Record<string, string> = {}) => {
  const service = await build(t, noon, { env: { ...env, DATA_DIR: t.testdir(), ...own } })
  const waiting = async () => (await service.pool.query("select data from pgboss.job where name = 'mails'")).rows
  const addMail = (data: object) => service.fn.addJob({ queue: 'mails', data })
  return { ...service, waiting, addMail }
}

/** A cue of the account with an execution that has failed, and the mail about it. */
const failure = async ({ post, pool }: Awaited<ReturnType<typeof setup>>, name = 'nightly report') => {
  const { id } = await post('/v1/cues', { name, cron: '0 9 * * *', worker: true })
  const execution = await post(`/v1/cues/${id}/fire`)
  await pool.query(
    `update cue.executions set status = 'failed', attempts = 3, http_status = 503, error_message = 'the receiver <b>answered</b> 503',
            started_at = $2, ended_at = $2, claimable_at = null, claim_deadline_at = null where id = $1`,
    [execution.id, noon]
  )
  return { cue_id: id as string, execution_id: execution.id as string }
}

t.test('sends a mail over SMTP once, as text and HTML', async t => {
  const server = await mailServer(t)
  const service = await setup(t, { SMTP_URL: server.url })
  exactly(t, await sendMails(service), { errors: [], sent: 1, log: [{ msg: 'mail sent', kind: 'registered', ms: Number }] })
  exactly(t, server.mails, [
    { from: 'cue@pgcue.example', recipients: [service.account.email], subject: 'An account was created with your address' }
  ])
  const { headers, text, html, links } = server.mails[0]!
  exactly(t, headers, {
    from: 'The pgcue <cue@pgcue.example>',
    to: service.account.email,
    date: 'Tue, 15 Jan 2030 12:00:00 +0000',
    'message-id': /^<[0-9a-f-]{36}@pgcue\.example>$/,
    'auto-submitted': 'auto-generated',
    'content-type': /^multipart\/alternative/
  })
  t.same(
    links.map(link => link.replace(/[\w-]{43}$/, '')),
    ['https://pgcue.example/auth/not-me?token=', 'https://pgcue.example/auth/confirm-email?token=']
  )
  for (const part of [text, html]) t.ok(part.includes(service.account.api_key.slice(0, 12)) && part.includes('15 January 2030, 12:00 UTC'))
  t.match(html, /^<!doctype html>\n<html lang="en">/)
  t.same(await service.waiting(), [])
})

t.test('neither log nor job contains links, addresses or keys of a mail sent over SMTP', async t => {
  const server = await mailServer(t, { judge: address => ({ code: 451, text: `try ${address} later` }) })
  const service = await setup(t, { SMTP_URL: server.url })
  const { log, errors } = await sendMails(service)
  exactly(t, log, [{ level: 40, msg: 'mail not sent, will retry', code: 'EENVELOPE', response_code: 451 }])
  exactly(t, errors, [{ message: 'the mail server rejected the mail: EENVELOPE 451' }])
  server.judge(() => undefined)
  const { log: second } = await sendMails(service)
  for (const line of [...log, ...second]) t.notMatch(JSON.stringify(line), /@|token=|svc_sk_/)
})

t.test('retries while the mail server is unreachable or busy, or refuses the password, with the same link', async t => {
  const service = await setup(t)
  const server = await mailServer(t)
  const smtpUrl = server.url
  exactly(t, await sendMails(service, { smtpUrl: 'smtp://127.0.0.1:1' }), {
    errors: [{ message: /rejected the mail: ESOCKET|ECONNECTION/ }]
  })
  exactly(t, await sendMails(service, { smtpUrl: smtpUrl.replace('//', '//someone:wrong@') }), { errors: [{ message: /EAUTH/ }] })
  server.judge(() => ({ code: 450, text: 'mailbox busy' }))
  exactly(t, await sendMails(service, { smtpUrl }), { errors: [{ message: /450/ }] })
  server.judge(() => undefined)
  exactly(t, await sendMails(service, { smtpUrl }), { errors: [], sent: 1 })
  const first = server.mails[0]!
  await service.addMail({ kind: 'registered', account_id: service.account.id, key_id: (await service.get('/v1/auth/keys')).keys[0].id })
  await sendMails(service, { smtpUrl })
  t.same(server.mails[1]!.links, first.links)
})

t.test('does not retry a permanently rejected mail', async t => {
  const server = await mailServer(t, { judge: () => ({ code: 550, text: 'no such user' }) })
  const service = await setup(t, { SMTP_URL: server.url })
  exactly(t, await sendMails(service), {
    errors: [],
    failures: [{ tries: 1, isFinal: true }],
    log: [{ level: 40, msg: 'mail permanently rejected', response_code: 550 }]
  })
  t.same(await service.waiting(), [])
})

t.test('warns at start if mails could not be written', async t => {
  const service = await setup(t)
  const dataDir = join(t.testdir({ file: '' }), 'file')
  const warning = { level: 40, msg: 'outbox cannot be written and SMTP_URL is not set: mails will be lost', err: { code: /./ } }
  exactly(t, (await sendMails(service, { dataDir })).log, [warning])
  t.same(
    (await sendMails(service, { dataDir, smtpUrl: 'smtp://127.0.0.1:1' })).log.filter(({ msg }) => msg === warning.msg),
    []
  )
})

t.test('without SMTP_URL, writes mails to private files and logs their names and links', async t => {
  const service = await setup(t)
  const { log } = await sendMails(service)
  const dir = join(service.config.dataDir, 'outbox')
  const [name, ...more] = readdirSync(dir)
  t.same(more, [])
  t.match(name, /^2030-01-15T12-00-00-000Z-registered-[0-9a-f]{8}\.eml$/)
  const file = join(dir, name!)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(statSync(dir).mode & 0o777, 0o700)
  const mail = readMail(readFileSync(file, 'utf8'))
  exactly(t, mail, { subject: 'An account was created with your address', headers: { to: service.account.email } })
  exactly(t, log, [{ msg: /mail written/, kind: 'registered', file, links: mail.links }])
})

t.test('the mail about a failed execution says what happened and how to stop such mails', async t => {
  const server = await mailServer(t)
  const service = await setup(t, { SMTP_URL: server.url })
  const { cue_id, execution_id } = await failure(service)
  await service.addMail({ kind: 'cue_failed', account_id: service.account.id, execution_id })
  await sendMails(service)
  const mail = server.mails.find(({ subject }) => subject === 'An execution failed')!
  for (const part of [cue_id, execution_id, '503', 'after 3 attempts', '15 January 2030, 12:00 UTC', '"on_failure": {"email": false}']) {
    t.ok(mail.text.includes(part), part)
  }
  t.ok(mail.text.includes('the receiver <b>answered</b> 503'))
  t.ok(mail.html.includes('the receiver &lt;b&gt;answered&lt;/b&gt; 503'))
})

t.test('sends ten failure mails per hour; the tenth mentions the limit, and retries do not count', async t => {
  const server = await mailServer(t)
  const service = await setup(t)
  const { execution_id } = await failure(service)
  await service.fn.confirmEmail({ account_id: service.account.id })
  await service.pool.query("delete from pgboss.job where name = 'mails'")
  const job = { kind: 'cue_failed', account_id: service.account.id, execution_id }
  for (let i = 0; i < 12; i++) await service.addMail(job)
  const away = await sendMails(service, { smtpUrl: 'smtp://127.0.0.1:1' })
  t.equal(away.errors.length, 10)
  exactly(t, away.log.at(-1), { msg: 'mail no longer needed', kind: 'cue_failed' })
  await sendMails(service, { smtpUrl: server.url })
  t.equal(server.mails.length, 10)
  service.clock.advance('1 hour')
  for (let i = 0; i < 11; i++) await service.addMail(job)
  await sendMails(service, { smtpUrl: server.url })
  t.equal(server.mails.length, 20)
  t.equal(server.mails.slice(10).filter(({ text }) => text.includes('the tenth such mail')).length, 1)
  const other = await service.register()
  const theirs = await failure({ ...service, post: service.as(other).post })
  await service.pool.query("delete from pgboss.job where name = 'mails'")
  await service.addMail({ kind: 'cue_failed', account_id: other.id, execution_id: theirs.execution_id })
  await sendMails(service, { smtpUrl: server.url })
  exactly(t, server.mails.at(-1), { recipients: [other.email] }, 'another account has ten of its own')
})

t.test('the mail about the monthly limit names the end of the grace period, and is not sent after the month', async t => {
  const server = await mailServer(t)
  const service = await setup(t, { SMTP_URL: server.url, PLANS: '{"free":{"executions_per_month":2}}' })
  const { id } = await service.post('/v1/cues', { name: 'a cue', cron: '0 9 * * *', worker: true })
  for (let i = 0; i < 3; i++) await service.post(`/v1/cues/${id}/fire`)
  await service.maintain()
  await sendMails(service)
  const mails = server.mails.filter(({ subject }) => subject === 'You have used your executions for this month')
  t.equal(mails.length, 1)
  t.match(mails[0]!.text, /Your account may run 2 executions per month.*until 16 January 2030, 12:00 UTC/s)
  await service.addMail({ kind: 'limit_reached', account_id: service.account.id })
  service.clock.advance('3 weeks')
  await sendMails(service)
  t.equal(server.mails.filter(({ subject }) => /executions/.test(subject)).length, 1)
})

t.test('the downgrade mail lists the paused cues', async t => {
  const server = await mailServer(t)
  const service = await setup(t, { SMTP_URL: server.url, PLANS: '{"free": {"cues": 200}}' })
  const one = await service.post('/v1/cues', { name: 'first & <i>foremost</i>', cron: '0 9 * * *', worker: true })
  service.clock.advance('1 minute')
  const two = await service.post('/v1/cues', { name: 'second', cron: '0 9 * * *', worker: true })
  await service.addMail({ kind: 'downgrade', account_id: service.account.id, cue_ids: [one.id, two.id, 'cue_ofsomebody'] })
  await sendMails(service)
  const mail = server.mails.find(({ subject }) => subject === 'Your plan is now free')!
  t.ok(mail.text.includes('- “second”\n- “first & <i>foremost</i>”\n'), mail.text)
  t.ok(mail.html.includes('<li>“second”</li><li>“first &amp; &lt;i&gt;foremost&lt;/i&gt;”</li>'), mail.html)

  service.clock.advance('1 minute')
  const cue = JSON.stringify(
    Array(102).fill({ name: 'n', transport: 'worker', cron: '0 9 * * *', schedule_type: 'recurring', timezone: 'UTC' })
  )
  const account_ids = Array(102).fill(service.account.id)
  const rows = await service.fn.createEachCue({ account_ids, cues: cue, next_runs: Array(102).fill(service.clock.now()) })
  const cue_ids = rows.map(({ id }) => id!)
  await service.addMail({ kind: 'downgrade', account_id: service.account.id, cue_ids: [...cue_ids, one.id] })
  await sendMails(service)
  const { text } = server.mails.findLast(({ subject }) => subject === 'Your plan is now free')!
  t.equal(text.match(/- “n”/g)?.length, 100)
  t.match(text, /\n\nAnd 3 more\.\n\nTo resume/)
})

t.test('sends no mail about deleted things', async t => {
  const server = await mailServer(t)
  const service = await setup(t, { SMTP_URL: server.url })
  await service.pool.query("delete from pgboss.job where name = 'mails'")
  const { cue_id, execution_id } = await failure(service)
  const account_id = '01b92571-ea00-7b28-ab40-bfe46301811f'
  await service.del(`/v1/cues/${cue_id}`)
  await service.addMail({ kind: 'cue_failed', account_id: service.account.id, execution_id })
  await service.addMail({ kind: 'registered', account_id, key_id: account_id })
  await service.addMail({ kind: 'downgrade', account_id, cue_ids: [] })
  await service.addMail({ kind: 'limit_reached', account_id: service.account.id })
  await service.addMail({ kind: 'deletion_requested', account_id, deletion_id: account_id })
  await service.addMail({ kind: 'magic_link', link_id: account_id })
  exactly(t, await sendMails(service), { errors: [], sent: 6 })
  t.same(server.mails, [])
})

t.test('an engine sends mails immediately and retries them', async t => {
  const server = await mailServer(t)
  const service = await build(t, undefined, { env: { ...env, SMTP_URL: server.url } })
  await startEngine(t, service.config)
  await server.received(1)
  await service.as(null).post('/v1/auth/device-code', { device_code: 'a-device-code' })
  await service.as(null).post('/v1/auth/device-code/submit-email', { device_code: 'a-device-code', email: 'grace@example.com' })
  exactly(t, await server.received(2), { recipients: ['grace@example.com'], subject: 'Your sign-in link' })
  await service.as(null).post('/v1/auth/register', { email: 'ada@example.org' })
  exactly(t, await server.received(3), { recipients: ['ada@example.org'] })
})

t.test('an engine deletes an account when it is due', async t => {
  const service = await build(t)
  await service.call('DELETE', '/v1/auth/me', undefined, { 'x-confirm-destructive': 'true' })
  await service.pool.query('update cue.deletions set due_at = now()')
  await service.pool.query("update pgboss.job set start_after = now() where name = 'deletions'")
  await startEngine(t, service.config)
  await eventually(async () => (await service.call('GET', '/v1/auth/me')).status === 401, 40_000)
  exactly(t, (await service.pool.query('select count(*) from cue.accounts')).rows, [{ count: 0 }])
})

t.test('sends three failure mails per day to an unconfirmed address, with a link to confirm it', async t => {
  const server = await mailServer(t)
  const service = await setup(t, { SMTP_URL: server.url })
  const { clock, pool, account, as } = service
  const { execution_id } = await failure(service)
  await pool.query("delete from pgboss.job where name = 'mails'")
  const add = async (count: number) => {
    for (let i = 0; i < count; i++) await service.addMail({ kind: 'cue_failed', account_id: account.id, execution_id })
    await sendMails(service)
    return server.mails.length
  }
  t.equal(await add(5), 3)
  t.same(
    server.mails.map(({ text }) => text.includes('This is the third such mail within 24 hours.')),
    [false, false, true]
  )
  clock.advance('23 hours')
  t.equal(await add(1), 3)
  clock.advance('1 hour')
  t.equal(await add(1), 4)

  const [link] = server.mails[0]!.links
  const { pathname, search, searchParams } = new URL(link!)
  const nobody = as(null)
  t.match(await nobody.get(pathname + search), /Confirm your address\?.*<button>Confirm my address/s)
  t.equal(await service.fn.isEmailConfirmed({ account_id: account.id }), false, 'looking changes nothing')
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const { status, body } = await nobody.call('POST', pathname, String(new URLSearchParams({ token: searchParams.get('token')! })), form)
  t.equal(status, 200)
  t.match(body, /Your address is confirmed/)
  t.match(await nobody.get(pathname + search), /Your address is confirmed/)
  t.equal(await add(12), 14, 'and ten an hour from then on')
  t.same(server.mails.at(-1)!.links, [])
})

t.test('quotes user text without links and never in the subject', async t => {
  const server = await mailServer(t)
  const service = await setup(t, { SMTP_URL: server.url })
  const hostile = 'Pay at https://evil.example/a.b, www.evil.example or mailto:a@evil.example\u3002com (1.5 s)'
  const { execution_id } = await failure(service, hostile)
  await service.pool.query('update cue.executions set error_message = $1', [hostile])
  await service.addMail({ kind: 'cue_failed', account_id: service.account.id, execution_id })
  const { id } = await service.post('/v1/cues', { name: hostile, cron: '@daily', worker: true })
  await service.addMail({ kind: 'downgrade', account_id: service.account.id, cue_ids: [id] })
  await sendMails(service)
  const shown = '“Pay at https[://]evil[.]example/a[.]b, www[.]evil[.]example or mailto[:]a[@]evil[.]example[\u3002]com (1[.]5 s)”'
  const mails = server.mails.filter(({ text }) => text.includes('Pay at'))
  t.same(pluck(mails, 'subject'), ['An execution failed', 'Your plan is now free'])
  for (const { text, html } of mails) {
    for (const part of [text, html]) {
      t.ok(part.includes(shown))
      t.notMatch(part.replaceAll(shown, ''), /Pay at/)
    }
  }
})

t.test('escapes values and keeps them on one line', t => {
  const hostile = 'x\r\nBcc: victim@example.org\r\n\r\n<script>alert("1")</script>\u202Egnp.exe\u2028y'
  const { subject, text, html } = layOut({
    to: 'a@example.org',
    subject: hostile,
    blocks: [{ facts: [['Name', hostile]] }, { quotes: [hostile] }, hostile, { code: '<b>' }, { link: 'https://x/?a=1&b="', label: '<i>' }],
    why: hostile
  })
  t.equal(subject, 'x Bcc: victim@example.org <script>alert("1")</script> gnp.exe y')
  t.ok(text.startsWith('Name: x Bcc: victim@example.org <script>'))
  t.notMatch(html, /<script|<i>|<b>|href="[^"]*"b/)
  t.equal(layOut({ to: '', subject: 'é'.repeat(300), blocks: [], why: '' }).subject.length, 120)
  t.end()
})
