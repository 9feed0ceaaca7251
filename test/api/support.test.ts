/** Support tickets, and the issues created from them in a tracker. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { issueOf, marker, withoutSecrets } from '../../src/support/issue.ts'
import { startEngine } from '../support/engine.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { always } from '../support/seed.ts'
import { build, error, eventually } from '../support/setup.ts'

const noon = '2030-01-15T12:00:00Z'
const ticket = { subject: 'The report is late', message: 'Since Monday the report has come an hour late every day.' }
const worker = { name: 'work', cron: '0 9 * * *', worker: true }

/** An account that may open tickets. */
const entitled = async (t: Test, env: Record<string, string> = {}) => {
  const service = await build(t, noon, { env })
  const { id } = await service.post('/v1/cues', worker)
  service.clock.advance('61 minutes')
  return { ...service, cue_id: id as string }
}

t.test('creates, lists and shows a ticket', async t => {
  const { call, get, clock } = await entitled(t)
  const made = await call('POST', '/v1/support', { ...ticket, severity: 'high', type: 'feature-request' })
  exactly(t, made, { status: 200, body: { status: 'received', ticket_id: Number, ticket_status: 'open', message: /\w/ } })
  const { ticket_id } = made.body
  const at = clock.now().toISOString()
  const shown = {
    ticket_id,
    subject: ticket.subject,
    severity: 'high',
    type: 'feature-request',
    status: 'open',
    created_at: at,
    updated_at: at
  }
  t.same(await get(`/v1/support/${ticket_id}`), { ...shown, message: ticket.message })
  t.same(await get('/v1/support'), { tickets: [shown], total: 1, limit: 20, offset: 0 })
})

t.test('severity and type are optional', async t => {
  const { post, get } = await entitled(t)
  const { ticket_id } = await post('/v1/support', ticket)
  exactly(t, await get(`/v1/support/${ticket_id}`), { severity: 'medium', type: 'bug' })
})

t.test('rejects values that are too short, too long, unknown or missing', async t => {
  const { call } = await entitled(t)
  for (const [name, change] of [
    ['subject', { subject: 'x'.repeat(9) }],
    ['subject', { subject: 'x'.repeat(201) }],
    ['message', { message: 'x'.repeat(29) }],
    ['message', { message: 'x'.repeat(5001) }],
    ['subject', { subject: ' \n\t\u00a0'.repeat(10) }],
    ['message', { message: ' '.repeat(40) }],
    ['severity', { severity: 'critical' }],
    ['type', { type: 'question' }],
    ['priority', { priority: 1 }],
    ['subject', { subject: undefined }],
    ['message', { message: null }]
  ] as const) {
    const answer = await call('POST', '/v1/support', { ...ticket, ...change })
    exactly(
      t,
      answer,
      { status: 422, body: { error: { code: 'validation_error' }, detail: [{ loc: ['body', name] }] } },
      JSON.stringify(change).slice(0, 40)
    )
  }
  for (const [subject, message] of [
    ['x'.repeat(10), 'x'.repeat(30)],
    ['💥'.repeat(200), '💥'.repeat(5000)]
  ]) {
    exactly(t, await call('POST', '/v1/support', { subject, message }), { status: 200 })
  }
})

t.test('requires an account older than an hour with an active cue', async t => {
  const { call, clock, post, patch, cue_id } = await entitled(t)
  clock.set(noon)
  clock.advance('59 minutes')
  exactly(t, await call('POST', '/v1/support', ticket), error('account_too_new', 403))
  clock.advance('1 minute')
  await patch(`/v1/cues/${cue_id}`, { status: 'paused' })
  exactly(t, await call('POST', '/v1/support', ticket), error('no_active_cue', 403))
  await patch('/v1/auth/me', { memory_block_enabled: true })
  exactly(t, await call('POST', '/v1/support', ticket), error('no_active_cue', 403), "the memory block's weekly cue does not count")
  await post('/v1/cues', worker)
  exactly(t, await call('POST', '/v1/support', ticket), { status: 200 })
})

t.test('allows five tickets per hour, even with simultaneous requests', async t => {
  const { call, clock, register, as } = await entitled(t)
  const many = await Promise.all(Array.from({ length: 12 }, () => call('POST', '/v1/support', ticket)))
  t.equal(many.filter(({ status }) => status === 200).length, 5)
  for (const answer of many.filter(({ status }) => status !== 200)) {
    exactly(t, answer, { ...error('rate_limit_exceeded', 429), headers: { 'retry-after': /^\d+$/ } })
  }
  clock.advance('59 minutes')
  exactly(t, await call('POST', '/v1/support', ticket), { status: 429, headers: { 'retry-after': '60' } })
  clock.advance('61 seconds')
  exactly(t, await call('POST', '/v1/support', ticket), { status: 200 })
  const other = as(await register())
  exactly(t, await other.call('POST', '/v1/support', ticket), error('account_too_new', 403), 'each account is judged separately')
})

t.test('set_ticket_status changes a ticket from psql', async t => {
  const { post, get, clock, pool } = await entitled(t)
  const { ticket_id } = await post('/v1/support', ticket)
  clock.advance('1 day')
  await pool.query("select cue.set_ticket_status($1, 'in_progress', $2)", [ticket_id, clock.now()])
  exactly(t, await get(`/v1/support/${ticket_id}`), { status: 'in_progress', updated_at: clock.now().toISOString() })
  await t.rejects(pool.query("select cue.set_ticket_status(0, 'closed')"), { code: 'QU006' })
})

// The tracker -------------------------------------------------------------------------------------------------------------------------

type Asked = { method: string; url: string; authorization: string | undefined; body: { title: string; body: string; labels: string[] } }

/** The part of GitHub's API that the service uses. `lose` creates issues but loses the response. */
const tracker = async (t: Test) => {
  const asked: Asked[] = []
  const issues: { html_url: string; body: string }[] = []
  const state = { status: 201, lose: false }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const body = text ? JSON.parse(text) : null
    asked.push({ method: request.method!, url: request.url!, authorization: request.headers.authorization, body })
    const answer = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (request.method === 'GET') return answer(200, issues)
    if (state.status !== 201) return answer(state.status, { message: 'no' })
    const issue = { html_url: `https://tracker.example.com/${issues.length + 1}`, body: body.body }
    issues.push(issue)
    if (state.lose) return request.socket.destroy()
    answer(201, issue)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { asked, issues, state, env: { SUPPORT_GITHUB_REPO: 'acme/support', SUPPORT_GITHUB_TOKEN: 'ghp_1', GITHUB_API_BASE: url } }
}

/** A service in real time, with an account old enough for support. */
const tracked = async (t: Test) => {
  const { env, ...rest } = await tracker(t)
  const service = await build(t, undefined, { env })
  await service.post('/v1/cues', worker)
  await service.pool.query("update cue.accounts set created_at = created_at - interval '2 hours'")
  const urlOf = async (ticket_id: number) =>
    (await service.pool.query('select issue_url from cue.tickets where id = $1', [ticket_id])).rows[0].issue_url
  /** Makes all waiting retries due now. */
  const hurry = () => service.pool.query("update pgboss.job set start_after = now() where name = 'tickets'")
  return { ...service, ...rest, urlOf, hurry }
}

t.test('without a tracker, stores the ticket and queues no job', async t => {
  const { post, pool } = await entitled(t)
  await post('/v1/support', ticket)
  t.same((await pool.query("select id from pgboss.job where name = 'tickets'")).rows, [])
})

t.test("creates an issue from a ticket, without the account's address or key", async t => {
  const { post, config, asked, urlOf, account } = await tracked(t)
  await startEngine(t, config)
  const { ticket_id } = await post('/v1/support', { ...ticket, severity: 'high' })
  await eventually(() => urlOf(ticket_id))
  t.equal(await urlOf(ticket_id), 'https://tracker.example.com/1')
  exactly(t, asked, [
    {
      method: 'POST',
      url: '/repos/acme/support/issues',
      authorization: 'Bearer ghp_1',
      body: { title: '[high] The report is late', labels: ['support', 'bug'] }
    }
  ])
  const { body } = asked[0]!.body
  t.ok(body.includes(`Ticket ${ticket_id} of account \`${account.id}\` (free)`), body)
  t.ok(body.includes(ticket.message), body)
  t.notOk(body.includes(account.email))
  t.notOk(body.includes(account.api_key))
})

t.test('retries when the tracker fails, also in a process started later', async t => {
  const { post, config, asked, state, urlOf, hurry, issues } = await tracked(t)
  state.status = 503
  const first = await startEngine(t, config)
  const { ticket_id } = await post('/v1/support', ticket)
  await eventually(() => asked.length === 1)
  await first.stop()
  state.status = 201
  await hurry()
  await startEngine(t, config)
  await eventually(() => urlOf(ticket_id))
  t.equal(issues.length, 1)
})

t.test('finds an issue whose response was lost instead of creating another', async t => {
  const { post, config, asked, state, urlOf, hurry, issues } = await tracked(t)
  state.lose = true
  issues.push({ html_url: 'https://tracker.example.com/0', body: `somebody says ${marker(1)}, and more` })
  const first = await startEngine(t, config)
  const { ticket_id } = await post('/v1/support', { ...ticket, message: `${ticket.message} ${marker(2)}` })
  await eventually(() => issues.length === 2)
  await first.stop()
  await hurry()
  await startEngine(t, config)
  await eventually(() => urlOf(ticket_id))
  t.equal(await urlOf(ticket_id), 'https://tracker.example.com/2')
  t.same(pluck(asked, 'method'), ['POST', 'GET'])
})

const given = {
  ticket_id: 7,
  account_id: '01900000-0000-7000-8000-000000000001',
  plan: 'free' as const,
  ...ticket,
  severity: 'low' as const,
  type: 'bug' as const,
  created_at: new Date(noon),
  tried: false
}

t.test('user text stays plain text in the issue', async t => {
  const message = 'Hi @everyone, fixes #1\n```\n</details><img src=x onerror=alert(1)>\n````\r\n<!-- pgcue-ticket-1 -->\n\u202ethe end\0'
  const { title, body } = issueOf({ ...given, subject: 'One\nline @admin #12 \u202e`code`', message })
  t.equal(title, '[low] One line @\u200badmin #\u200b12 `code`')
  const fence = '`````'
  t.equal(
    body,
    [
      `Ticket 7 of account \`${given.account_id}\` (free), 2030-01-15T12:00:00.000Z`,
      '',
      `${fence}text`,
      'Hi @everyone, fixes #1\n```\n</details><img src=x onerror=alert(1)>\n````\n<!-- pgcue-ticket-1 -->\nthe end',
      fence,
      '',
      '<!-- pgcue-ticket-7 -->'
    ].join('\n')
  )
})

t.test('user text cannot end its code block', async t => {
  const nasty = fc.string({ unit: fc.constantFrom('`', '~', '\n', ' ', '\r', 'a', '@', '<', '\t', '\u2028'), maxLength: 60 })
  always(
    fc.property(nasty, message => {
      const { body } = issueOf({ ...given, message })
      const [, fence, text] = /^(`{3,})text\n(.*)\n\1\n\n<!-- pgcue-ticket-7 -->$/ms.exec(body) ?? []
      return fence !== undefined && text !== undefined && !text.split('\n').some(line => new RegExp(`^ *${fence}\`* *$`).test(line))
    })
  )
  t.pass()
})

t.test('sends no keys or secrets to the tracker', async t => {
  const { account } = await build(t)
  for (const secret of [
    account.api_key,
    `svc_sk_x_${'A-_9'.repeat(11)}`,
    `whsec_${'0123456789abcdef'.repeat(4)}`,
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLWl0'
  ]) {
    for (const text of [
      secret,
      `key=${secret}.`,
      `(${secret})`,
      `Authorization: Bearer ${secret}`,
      `"${secret}"\n${secret}`,
      `?key=%20${secret}`,
      `"the log\\n${secret}\\n"`,
      `key_${secret}`,
      `Authorization=Bearer%20${secret}`
    ]) {
      t.notOk(withoutSecrets(text).includes(secret.slice(12)), text)
    }
  }
  t.equal(withoutSecrets('Basic dXNlcjpwYXNzd29yZA== and the rest'), 'Basic *** and the rest')
  for (const text of ['Bearer%20', 'bearer%2520', 'Basic+', '\\nBearer ', '%0ABearer%20', 'Bearer\\t']) {
    t.notOk(withoutSecrets(`${text}ghp_0123456789`).includes('ghp_'), text)
  }
  t.equal(withoutSecrets('nothing to hide here'), 'nothing to hide here')
})
