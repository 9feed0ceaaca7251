/** Alert webhooks: durable jobs with five attempts, signed with a secret of their own. */
import { createHmac } from 'node:crypto'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { verifyWebhook } from '../../src/client/webhook.ts'
import { startNotifications } from '../../src/deliveries/notifications.ts'
import { createWebhookClient } from '../../src/deliveries/webhook.ts'
import type { Jobs } from '../../src/jobs/boss.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { exactly, pluck } from '../support/exactly.ts'
import type { Received } from '../support/receiver.ts'
import { serviceAt } from '../support/service.ts'
import { build, eventually, receiver } from '../support/setup.ts'
import { refused, resultsOf } from '../support/stage.ts'

const service = serviceAt('2030-01-15T09:00:00Z')

/** The service with a receiver of alerts, a cue whose failures each raise one, and the job handler that pg-boss would call. */
const serve = async (t: Test) => {
  const built = await service()
  const { app, fn, cue, fire, clock, patch, jobs, get, call } = built
  const hook = await receiver(t)
  await patch('/v1/auth/me', { alert_webhook_url: `${hook.url}alerts` })
  const cue_id = await cue({ callback: { url: 'http://127.0.0.1/hook' }, alerts: { consecutive_failures: 1 } })
  const fail = async () => {
    const id = await fire(cue_id)
    clock.advance('1 second')
    await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 1 }), { ...refused, gone: true }, clock.now()))
    return id
  }
  const client = createWebhookClient({ rules: app.rules })
  t.teardown(() => client.destroy())
  const handlers = new Map<string, (data: object, id: string) => Promise<void>>()
  await startNotifications({
    jobs: {
      work: async (queue: string, handle: (data: never, id: string) => Promise<void>) => handlers.set(queue, handle as never)
    } as unknown as Jobs,
    fn,
    client,
    baseUrl: 'http://localhost',
    now: () => clock.now().getTime(),
    log: pino({ level: 'silent' })
  })
  return {
    ...built,
    hook,
    cue_id,
    fail,
    /** Runs the latest job. */
    work: async (queue = 'alerts') => handlers.get(queue)!((await jobs(queue)).at(-1)!.data, 'a job'),
    open: async () => (await get('/v1/alerts?acknowledged=false')).alerts[0],
    acknowledge: (id: string) => call('POST', `/v1/alerts/${id}/acknowledge`)
  }
}

t.test('posts an alert, signed with a newly created secret, with all headers', async t => {
  const { fail, work, hook, open, jobs, row, account, get, clock } = await serve(t)
  exactly(t, await row('select alert_webhook_secret from cue.accounts where id = $1', [account.id]), { alert_webhook_secret: null })
  await fail()
  const alert = await open()
  t.strictSame(pluck(await jobs('alerts'), 'data'), [{ alert_id: alert.id, account_id: account.id }])
  await work()
  const { acknowledged, acknowledged_at, resolved_at, resolution, snoozed_until, notices, id, ...told } = alert
  const [{ method, path, headers, body }] = (await hook.received()) as [(typeof hook.requests)[number]]
  t.strictSame([method, path, JSON.parse(body)], ['POST', '/alerts', { alert_id: id, ...told }])

  const secret: string = (await get('/v1/auth/alert-webhook-secret')).alert_webhook_secret
  t.match(secret, /^[0-9a-f]{64}$/)
  const timestamp = String(Math.floor(clock.now().getTime() / 1000))
  const signature = `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`
  exactly(t, headers, {
    'content-type': 'application/json',
    'user-agent': /^pgcue\//,
    'x-service-alert-signature': signature,
    'x-service-alert-timestamp': timestamp,
    'x-service-signature': signature,
    'x-service-timestamp': timestamp,
    'x-service-alert-id': id,
    'x-service-alert-type': 'consecutive_failure'
  })
  exactly(t, await get('/v1/auth/audit'), { events: [{ event: 'alert_webhook_secret.created', actor: 'service' }, {}, {}, {}] })
})

t.test('retries a rejected webhook four times, after 10 seconds, 1, 5 and 30 minutes', async t => {
  const { fail, work, hook, jobs, clock } = await serve(t)
  hook.answer({ status: 500 })
  await fail()
  const waits: number[] = []
  for (let n = 0; n < 5; n++) {
    const before = (await jobs('alerts')).length
    await work()
    const after = await jobs('alerts')
    if (after.length > before) waits.push((after.at(-1)!.start_after.getTime() - clock.now().getTime()) / 1000)
    t.equal(hook.requests.length, n + 1)
  }
  t.strictSame(waits, [10, 60, 300, 1800])
  for (const name of ['x-service-alert-id', 'webhook-id'])
    t.equal(new Set(hook.requests.map(({ headers }) => headers[name])).size, 1, 'one alert')
})

t.test("retries an on_failure webhook by the cue's own attempts and backoff", async t => {
  const { work, hook, jobs, clock, get, patch, cue_id, fail } = await serve(t)
  await patch(`/v1/cues/${cue_id}`, { on_failure: { webhook: `${hook.url}failed` }, retry: { max_attempts: 3, backoff_minutes: [5, 20] } })
  await fail()
  const waits: number[] = []
  for (const [status, headers] of [
    [500, {}],
    [503, { 'retry-after': '3000' }],
    [500, {}]
  ] as const) {
    hook.answer({ status, headers })
    const before = (await jobs('notifications')).length
    await work('notifications')
    const after = await jobs('notifications')
    if (after.length > before) waits.push((after.at(-1)!.start_after.getTime() - clock.now().getTime()) / 60_000)
  }
  t.equal(hook.requests.length, 3)
  t.equal(waits.length, 2)
  t.ok(waits[0]! >= 5 && waits[0]! <= 5.5, String(waits[0]))
  t.equal(waits[1], 50, 'Retry-After is later than 22 minutes')
  const { execution_id } = JSON.parse(hook.requests[0]!.body)
  t.same(
    new Set(hook.requests.map(({ headers }) => headers['webhook-id'])),
    new Set([`${execution_id}_failed`]),
    'not that of the callback'
  )
  const { webhook_secret } = await get('/v1/auth/webhook-secret')
  const [{ body, headers }] = hook.requests as [Received]
  exactly(t, await verifyWebhook(body, headers, webhook_secret, { now: clock.now() }), { id: `${execution_id}_failed`, executionId: '' })
})

t.test('stops retrying after a 2xx or a 410', async t => {
  const { fail, work, hook, jobs, open, acknowledge } = await serve(t)
  for (const status of [204, 410]) {
    hook.answer({ status })
    await fail()
    const count = (await jobs('alerts')).length
    await work()
    t.equal((await jobs('alerts')).length, count, String(status))
    await acknowledge((await open()).id)
  }
})

t.test('sends a webhook for new alerts only, and mentions the previous acknowledgement', async t => {
  const { fail, work, hook, jobs, open, acknowledge, clock } = await serve(t)
  await fail()
  await fail()
  t.equal((await jobs('alerts')).length, 1, 'one that grows is no news')
  const first = await open()
  clock.advance('1 hour')
  await acknowledge(first.id)
  await fail()
  t.equal((await jobs('alerts')).length, 2)
  await work()
  exactly(t, JSON.parse((await hook.received())[0]!.body), {
    alert_id: (await open()).id,
    metadata: { failure_count: 3, first_failure_at: '2030-01-15T09:00:01.000Z', previous_acknowledged_at: '2030-01-15T10:00:02.000Z' }
  })
})

t.test('signs with both secrets during an overlap', async t => {
  const { fail, work, hook, post, get } = await serve(t)
  const confirmed = { 'x-confirm-destructive': 'true' }
  const { alert_webhook_secret: old } = await get('/v1/auth/alert-webhook-secret')
  await post('/v1/auth/alert-webhook-secret/regenerate?overlap_seconds=60', undefined, confirmed)
  const { alert_webhook_secret: current } = await get('/v1/auth/alert-webhook-secret')
  await fail()
  await work()
  const [{ headers, body }] = (await hook.received()) as [(typeof hook.requests)[number]]
  const sign = (secret: string) => `v1=${createHmac('sha256', secret).update(`${headers['x-service-timestamp']}.${body}`).digest('hex')}`
  t.equal(headers['x-service-alert-signature'], `${sign(current)},${sign(old)}`)
})

t.test('sends no webhook without a URL, or after the cue is deleted', async t => {
  const { fail, work, hook, jobs, patch, del, cue_id, open, acknowledge } = await serve(t)
  await fail()
  await patch('/v1/auth/me', { alert_webhook_url: '' })
  await work()
  await acknowledge((await open()).id)
  await fail()
  t.equal((await jobs('alerts')).length, 1, 'without an address there is no job')
  await patch('/v1/auth/me', { alert_webhook_url: hook.url })
  await del(`/v1/cues/${cue_id}`)
  await work()
  t.equal(hook.requests.length, 0)
})

t.test('an engine sends the webhook of an alert and retries it', async t => {
  const { post, patch, get, url, pool } = await build(t)
  const hook = await receiver(t, ({ path }, n) => ({ status: path === '/hook' || n < 2 ? 500 : 200 }))
  await startEngine(t, testConfig(url))
  await patch('/v1/auth/me', { alert_webhook_url: `${hook.url}alerts` })
  const cue = {
    name: 'broken',
    cron: '@yearly',
    callback: { url: `${hook.url}hook` },
    retry: { max_attempts: 1 },
    on_failure: { email: false }
  }
  const { id } = await post('/v1/cues', { ...cue, alerts: { consecutive_failures: 1 } })
  await post(`/v1/cues/${id}/fire`)
  await hook.received(2)
  // The second attempt would wait ten seconds.
  const now = "update pgboss.job set start_after = now() where name = 'alerts' and state = 'created' and start_after > now()"
  await eventually(async () => (await pool.query(now)).rowCount)
  await pool.query("select pg_notify('cue_jobs', 'alerts')")
  const requests = await hook.received(3)
  t.strictSame(pluck(requests, 'path'), ['/hook', '/alerts', '/alerts'])
  exactly(t, await get('/v1/alerts'), { alerts: [{ id: requests[2]!.headers['x-service-alert-id'] }], total: 1 })
})

t.test('an alert is not sent while the service or its account is held, and uses up no try', async t => {
  const { fail, work, hook, jobs, fn, account, clock } = await serve(t)
  await fail()
  for (const account_id of [undefined, account.id]) {
    await fn.hold({ reason: 'flood', account_id, actor: 'operator' })
    await work()
    t.equal(hook.requests.length, 0)
    exactly(t, (await jobs('alerts')).at(-1), { start_after: new Date(clock.now().getTime() + 10_000) })
    await fn.release({ account_id })
  }
  hook.answer({ status: 500 })
  await work()
  exactly(t, (await jobs('alerts')).at(-1), { data: { tries: 1 } })
})
