/** Requests for approval: to whom they are sent, and the page that their link leads to. */
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { startNotices } from '../../src/channels/send.ts'
import { createWebhookClient } from '../../src/deliveries/webhook.ts'
import type { Jobs } from '../../src/jobs/boss.ts'
import { exactly } from '../support/exactly.ts'
import { receiver } from '../support/setup.ts'
import { buildWithMail } from '../support/sign-in.ts'

const start = '2030-01-15T09:00:00Z'
const refund = {
  name: 'refund <b>',
  cron: '0 9 * * *',
  worker: true,
  payload: { html: '<script>' },
  approval: { expires: '48h', message: 'Refund "$50"?' }
}

/** The service with a mailbox, a receiver for channels, and the handler of their notices. */
const stage = async (t: Test) => {
  const service = await buildWithMail(t, start)
  const { app, fn, config, account, addKey, as, post, pool, clock } = service
  const approver = as(await addKey(account, ['read', 'write', 'account', 'approve']))
  await pool.query('update cue.accounts set email_confirmed_at = now()')
  const hook = await receiver(t)
  const client = createWebhookClient({ rules: app.rules })
  t.teardown(() => client.destroy())
  const handlers: ((data: { notice_id: string }) => Promise<unknown>)[] = []
  const jobs = { work: async (_: string, run: never) => void handlers.push(run) } as unknown as Jobs
  await startNotices({ jobs, fn, client, config, now: () => +clock.now(), log: pino({ level: 'silent' }) })
  /** Sends the notices that are due, and returns the bodies of their requests. */
  const notices = async () => {
    const before = hook.requests.length
    const { rows } = await pool.query('select id from cue.notices where due_at <= $1 order by id', [clock.now()])
    for (const { id } of rows) await handlers[0]!({ notice_id: id })
    return hook.requests.slice(before).map(({ body }) => JSON.parse(body))
  }
  const { id: cue_id } = await post('/v1/cues', refund)
  const fire = async (): Promise<string> => {
    clock.advance('1 second')
    return (await post(`/v1/cues/${cue_id}/fire`)).id
  }
  const open = (url: string) => app.inject({ method: 'GET', url: url.replace(config.baseUrl, ''), headers: { accept: 'text/html' } })
  const submit = (url: string, fields: Record<string, string>) =>
    app.inject({
      method: 'POST',
      url: '/approval',
      headers: { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' },
      payload: `${new URLSearchParams({ token: new URL(url).searchParams.get('token')!, ...fields })}`
    })
  return { ...service, approver, hook, notices, cue_id, fire, open, submit }
}

const titleOf = ({ body }: { body: string }) => /<h1>(.*?)<\/h1>/.exec(body)?.[1]

t.test('without a channel, a mail asks with a link, whose page shows the run and decides once', async t => {
  const { fire, mails, open, submit, get, config } = await stage(t)
  const [id, other] = [await fire(), await fire()]
  const links = (await mails()).map(mail => mail.links[0]!)
  t.equal(links.length, 2)
  t.ok(links[0]!.startsWith(`${config.baseUrl}/approval?token=`))
  for (let n = 0; n < 100; n++) await open(links[0]!)
  const page = await open(links[0]!)
  t.equal(page.statusCode, 200)
  t.equal(titleOf(page), 'Approve this run?')
  t.match(page.body, /refund &lt;b&gt;[\s\S]*15 January 2030, 09:00 UTC[\s\S]*\{&quot;html&quot;: &quot;&lt;script&gt;&quot;\}/)
  t.match(page.body, /Refund &quot;\$50&quot;\?/)
  t.notMatch(page.body, /<script/)
  exactly(t, page.headers, { 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
  t.equal((await get(`/v1/executions/${id}`)).approval.decision, null, '100 openings change nothing')

  t.equal(titleOf(await submit(links[0]!, { decision: 'rejected', reason: ' ' })), 'A reason is missing')
  t.equal(titleOf(await submit(links[0]!, { decision: 'approved', reason: '' })), 'Approved')
  exactly(t, await get(`/v1/executions/${id}`), {
    held: null,
    approval: { decision: 'approved', decided_by: 'link', decided_via: 'link', reason: null }
  })
  const again = await submit(links[0]!, { decision: 'rejected', reason: 'late' })
  t.strictSame([again.statusCode, titleOf(again)], [409, 'Approved'])
  t.equal(titleOf(await open(links[0]!)), 'Approved')
  exactly(t, await get(`/v1/executions/${other}`), { approval: { decision: null } }, 'a link is for one run')
  t.equal(titleOf(await submit(links[1]!, { decision: 'rejected', reason: 'no' })), 'Rejected')
  exactly(t, await get(`/v1/executions/${other}`), { status: 'failed', error_message: 'rejected: no' })
  const [entry] = (await get('/v1/auth/audit')).events.filter(({ event }: { event: string }) => event === 'approval.decided')
  exactly(t, entry, { actor: 'link', ip: '127.0.0.1', detail: { decision: 'rejected', via: 'link', reason: 'no' } })
})

t.test('the page of a link shows the payload of a template as it is sent', async t => {
  const { post, mails, open } = await stage(t)
  const { id } = await post('/v1/cues', { ...refund, template: true, payload: { day: '{{scheduled_date}}' } })
  await post(`/v1/cues/${id}/fire`)
  const [link] = (await mails()).map(mail => mail.links[0]!)
  t.match((await open(link!)).body, /&quot;day&quot;: &quot;2030-01-15&quot;/)
})

t.test('a forged or dead link decides nothing, nor one for an account that signs in to decide', async t => {
  const { fire, mails, open, submit, approver, call, get, post } = await stage(t)
  const id = await fire()
  const [link] = (await mails()).map(mail => mail.links[0]!)
  const forged = link!.replace(/.$/, last => (last === 'A' ? 'B' : 'A'))
  t.equal((await open(forged)).statusCode, 404)
  t.equal((await submit(forged, { decision: 'approved' })).statusCode, 404)
  t.equal((await submit(link!, { decision: 'maybe' })).statusCode, 422)
  await approver.patch('/v1/auth/me', { approvals_by_link: false })
  t.equal(titleOf(await open(link!)), 'Sign in to decide')
  const refused = await submit(link!, { decision: 'approved' })
  t.strictSame([refused.statusCode, titleOf(refused)], [403, 'Sign in to decide'])
  const later = await fire()
  t.strictSame(
    (await mails()).map(mail => mail.links[0]!.endsWith(`/dashboard/executions/${later}`)),
    [true]
  )
  await approver.patch('/v1/auth/me', { approvals_by_link: true })
  await post(`/v1/executions/${id}/cancel`)
  t.equal((await open(link!)).statusCode, 404)
  t.equal((await submit(link!, { decision: 'approved' })).statusCode, 404)
  exactly(t, await get(`/v1/executions/${id}`), { status: 'failed', error_message: 'cancelled' })
  await call('POST', `/v1/executions/${later}/cancel`)
})

t.test('channels are asked with the link only if a caller with approve wrote them last', async t => {
  const { fire, mails, notices, call, approver, hook, get, clock, fn } = await stage(t)
  const channel = { type: 'webhook', target: `${hook.url}ops`, default: true }
  exactly(t, await call('PUT', '/v1/channels/ops', channel), { status: 201 })
  const id = await fire()
  const [first, ...others] = await notices()
  t.strictSame(others, [])
  exactly(t, first, { type: 'approval.requested', execution_id: id, data: { approval: { message: 'Refund "$50"?' }, reminder: 0 } })
  t.notOk('link' in first)
  t.strictSame(await mails(), [])
  exactly(t, await approver.call('PUT', '/v1/channels/ops', channel), { status: 200 })
  await fire()
  t.match((await notices())[0].link, /\/approval\?token=/)
  await call('PUT', '/v1/channels/ops', channel)
  await fire()
  t.match((await notices())[0].link, /\/approval\?token=/, 'the same settings are no change')
  await call('PUT', '/v1/channels/ops', { ...channel, target: `${hook.url}mine` })
  const last = await fire()
  t.notOk('link' in (await notices())[0])

  clock.advance('1 hour')
  await fn.meetApprovals({})
  const reminders = await notices()
  t.strictSame(
    reminders.map(({ data }) => data.reminder),
    [1, 1, 1, 1]
  )
  await fn.meetApprovals({})
  t.strictSame(await notices(), [])
  clock.advance('23 hours')
  await approver.post(`/v1/executions/${last}/approve`)
  await fn.meetApprovals({})
  t.equal((await notices()).length, 3, 'a decision ends the reminders')
  while ((await fn.publishEvents({})) > 0);
  t.strictSame(await notices(), [], 'the event adds no message')
  t.equal((await get('/v1/executions?held=approval')).total, 3)
})

t.test('each service gets a button that leads to the decision', async t => {
  const { fire, notices, approver, hook } = await stage(t)
  for (const type of ['slack', 'discord', 'teams', 'pagerduty']) {
    const target = type === 'pagerduty' ? `${hook.url}?routing_key=k` : `${hook.url}${type}`
    exactly(t, await approver.call('PUT', `/v1/channels/${type}`, { type, target, default: true }), { status: 201 })
  }
  await fire()
  const bodies = await notices()
  t.equal(bodies.length, 4)
  for (const body of bodies) {
    const text = JSON.stringify(body)
    t.match(text, /\/approval\?token=/)
    t.match(text, /Waits for approval[\\]*: refund/)
  }
})
