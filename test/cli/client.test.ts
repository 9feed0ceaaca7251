import t, { type Test } from 'tap'
import { type Client, createClient, PgcueError, verifyWebhook } from '../../src/client/index.ts'
import { signHeaders } from '../../src/deliveries/signature.ts'
import { freePort } from '../../src/embedded-postgres/embedded-postgres.ts'
import { exactly } from '../support/exactly.ts'
import { build, eventually, receiver } from '../support/setup.ts'

const service = async (t: Test) => {
  const stage = await build(t)
  const baseUrl = await stage.app.listen({ host: '127.0.0.1', port: 0 })
  return { ...stage, baseUrl, client: createClient({ baseUrl, apiKey: stage.account.api_key }) }
}
const workerCue = { name: 'backup', schedule: { cron: '@daily' }, transport: 'worker', payload: { task: 'backup' } } as const

const thrown = async (call: Promise<unknown>): Promise<PgcueError> =>
  call.then(
    () => {
      throw new Error('this should have been refused')
    },
    error => error
  )

t.test('creates, lists, shows, changes, fires and deletes cues', async t => {
  const { client } = await service(t)
  const cue = await client.cues.create({ name: 'report', schedule: { cron: '0 9 * * *' }, callback: { url: 'http://127.0.0.1:8099/' } })
  exactly(t, cue, { id: /^cue_/, schedule: { type: 'recurring', cron: '0 9 * * *', timezone: 'UTC' }, status: 'active' })
  exactly(t, await client.cues.list({ status: 'active', limit: 1 }), { cues: [{ id: cue.id }], total: 1, limit: 1 })
  exactly(t, await client.cues.update(cue.id, { name: 'other', schedule: { timezone: 'Europe/London' } }), { name: 'other' })
  exactly(t, await client.cues.pause(cue.id), { status: 'paused', next_run: null })
  exactly(t, await client.cues.pause(cue.id, { reason: 'broken', until: '2100-01-01T00:00:00Z' }), {
    pause_reason: 'broken',
    paused_until: '2100-01-01T00:00:00.000Z'
  })
  exactly(t, await client.cues.resume(cue.id), { status: 'active', next_run: /Z$/ })
  const fired = await client.cues.fire(cue.id, { payload_override: { n: 1 }, idempotency_key: 'once' })
  exactly(t, await client.cues.fire(cue.id, { payload_override: { n: 1 }, idempotency_key: 'once' }), { id: fired.id })
  exactly(t, await client.cues.get(cue.id), { name: 'other', executions: [{ id: fired.id }], execution_total: 1 })
  exactly(t, await client.executions.list({ cue_id: cue.id, triggered_by: 'manual_fire' }), {
    executions: [{ id: fired.id }],
    has_more: false
  })
  exactly(t, await client.executions.cancel(fired.id), { status: 'failed' })
  exactly(t, await client.executions.replay(fired.id), { replayed_from: fired.id })
  const preview = await client.cues.preview({ schedule: { cron: '0 9 * * *' }, from: '2030-01-01T00:00:00Z', count: 1 })
  exactly(t, preview, { description: /09:00/, next: [{ at: '2030-01-01T09:00:00.000Z' }] })
  t.equal(await client.cues.delete(cue.id), undefined)
  exactly(t, await thrown(client.cues.get(cue.id)), { code: 'cue_not_found', status: 404 })
  t.same(await client.cues.bulkDelete([cue.id]), { deleted: [], skipped: [cue.id] })
})

t.test('iterates over all pages of a list', async t => {
  const { client, pool, account } = await service(t)
  const names = async (list: AsyncIterable<{ name: string }>) => {
    const seen: string[] = []
    for await (const { name } of list) seen.push(name)
    return seen
  }
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    await client.cues.create({ ...workerCue, name })
    await client.calendars.put(name, { dates: ['12-25'] })
    await client.channels.put(name, { type: 'webhook', target: 'https://example.com/' })
  }
  t.strictSame(await names(client.cues.list({ limit: 2 })), ['e', 'd', 'c', 'b', 'a'])
  t.strictSame(await names(client.cues.list({ limit: 2, offset: 2 })), ['c', 'b', 'a'])
  t.strictSame(await names(client.cues.list({ limit: 5 })), ['e', 'd', 'c', 'b', 'a'])
  t.strictSame(await names(client.calendars.list({ limit: 2 })), ['a', 'b', 'c', 'd', 'e'])
  t.strictSame(await names(client.calendars.list({ limit: 2, offset: 3 })), ['d', 'e'])
  t.strictSame(await names(client.channels.list({ limit: 2, offset: 3 })), ['d', 'e'])
  await client.channels.delete('a')
  const endpoint = await client.eventEndpoints.create({ url: 'https://example.com/', types: ['cue.*'] })
  exactly(t, await client.eventEndpoints.enable(endpoint.id, 'now'), { id: endpoint.id, truncated: false })
  t.strictSame((await client.eventEndpoints.list()).total, 1)
  await client.eventEndpoints.delete(endpoint.id)
  exactly(t, await client.channels.get('b'), { name: 'b', target: 'https://example.com/********' })
  await pool.query("update cue.cues set name = 'x' where account_id = $1 and name = 'a'", [account.id])
  t.strictSame(await names(client.cues.list({ name: 'x', limit: 1 })), ['x'])
  for await (const key of client.keys.list()) t.equal(key.label, 'default')
  for await (const _ of client.executions.list()) t.fail('there is none')
})

t.test('types reject what the service would refuse, and name payloads', async t => {
  type Payload = { task: 'report'; rows: number }
  const uncalled = async ({ cues, executions }: Client) => {
    const report = { name: 'report', worker: true, payload: { task: 'report', rows: 3 } as Payload }
    const rows: number = (await cues.create({ ...report, cron: '@daily', timezone: 'UTC' })).payload.rows
    await cues.create({ ...report, at: '2030-01-15T09:00:00Z' })
    await cues.put('key', { ...report, schedule: { every: '6h', anchor: '2030-01-15T09:00:00Z' } })
    // @ts-expect-error: no schedule
    await cues.create({ ...report })
    // @ts-expect-error: an empty schedule
    await cues.create({ ...report, schedule: { timezone: 'UTC' } })
    // @ts-expect-error: two schedules
    await cues.create({ ...report, cron: '@daily', at: '2030-01-15T09:00:00Z' })
    // @ts-expect-error: two schedules in one
    await cues.put('key', { ...report, schedule: { cron: '@daily', every: '6h' } })
    // @ts-expect-error: inside and beside
    await cues.create({ ...report, cron: '@daily', schedule: { every: '6h' } })
    const { payload } = await executions.get<Payload>('id')
    // @ts-expect-error: not a member of the payload
    return [rows, payload.columns, (await cues.get('id')).payload satisfies unknown]
  }
  t.type(uncalled, 'function')
})

t.test('puts cues by key, expects versions, filters by tags', async t => {
  const { client } = await service(t)
  const cue = await client.cues.put('a/b', { ...workerCue, tags: ['x', 'y&z'] })
  exactly(t, cue, { key: 'a/b', changed: true, version: 1 })
  exactly(t, await client.cues.put('a/b', { ...workerCue, tags: ['x', 'y&z'] }), { id: cue.id, changed: false })
  exactly(t, await client.cues.getByKey('a/b'), { id: cue.id, executions: [] })
  exactly(t, await client.cues.list({ tag: ['x', 'y&z'] }), { total: 1 })
  exactly(t, await client.cues.list({ tag: ['x', 'y'] }), { total: 0 })
  exactly(t, await client.cues.update(cue.id, { name: 'b' }, { ifVersion: 1 }), { version: 2 })
  exactly(t, await thrown(client.cues.pause(cue.id, { ifVersion: 1 })), { code: 'version_conflict', status: 412 })
  exactly(t, await thrown(client.cues.deleteByKey('a/b', { ifVersion: 1 })), { code: 'version_conflict' })
  t.equal(await client.cues.deleteByKey('a/b'), undefined)
})

t.test('retries a create whose response is lost, if it has an idempotency key', async t => {
  const { baseUrl, account, client } = await service(t)
  let lost = 1
  const losing: typeof fetch = async (url, init) => {
    const response = await fetch(url, init)
    if (init?.method === 'POST' && lost-- > 0) throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } })
    return response
  }
  const unlucky = createClient({ baseUrl, apiKey: account.api_key, fetch: losing })
  exactly(t, await unlucky.cues.create(workerCue, { idempotencyKey: 'k' }), { name: 'backup' })
  exactly(t, await client.cues.list(), { total: 1 })
  lost = 1
  exactly(t, await thrown(unlucky.cues.create(workerCue)), { code: 'unreachable' })
  exactly(t, await client.cues.list(), { total: 2 }, 'without a key, it is not repeated')
})

t.test('creates operations after a dry run, lists and aborts them, and dismisses', async t => {
  const { client } = await service(t)
  const cue = await client.cues.create(workerCue)
  const body = { type: 'delete', filter: { name: 'backup' }, rate_per_minute: 1 } as const
  exactly(t, await client.operations.dryRun(body), { total: 1, sample: [{ id: cue.id, name: 'backup' }] })
  const operation = await client.operations.create(body, { idempotencyKey: 'k' })
  exactly(t, operation, { type: 'delete', status: 'running', total: 1 })
  exactly(t, await client.operations.create(body, { idempotencyKey: 'k' }), { id: operation.id })
  exactly(t, await client.operations.list({ type: 'delete' }), { operations: [{ id: operation.id }], total: 1 })
  exactly(t, await client.operations.abort(operation.id), { status: 'aborted' })
  exactly(t, await client.operations.get(operation.id), { status: 'aborted', errors: [] })
  const fired = await client.cues.fire(cue.id)
  await client.executions.cancel(fired.id)
  exactly(t, await client.executions.dismiss(fired.id), { id: fired.id, dead: false })
})

t.test('a worker waits, claims, sends heartbeats, and reports with evidence', async t => {
  const { client } = await service(t)
  t.same(await client.executions.claimNext({ worker_id: 'w1' }), [], 'returns an empty list if nothing is claimable')
  await client.workers.heartbeat({ worker_id: 'w1', handlers: ['backup'] })
  const cue = await client.cues.create({ ...workerCue, verification: { mode: 'manual' } })
  t.equal(cue.warning, null)
  const waiting = client.executions.claimNext({ worker_id: 'w1', tasks: ['backup'], wait: 20 })
  await client.cues.fire(cue.id)
  const [claim] = await waiting
  const { execution_id: id, claim_token: claimToken, execution_token: apiKey } = claim!
  exactly(t, claim, { task: 'backup', payload: { task: 'backup' }, attempt: 1, lease_seconds: 900 })
  exactly(t, await client.executions.heartbeat(id, { workerId: 'w1' }), { acknowledged: true })
  exactly(t, await client.executions.heartbeat(id, { apiKey }), { acknowledged: true }, 'the execution token suffices')
  exactly(t, await client.executions.reportOutcome(id, { success: true, result: 'done' }, { claimToken }), { outcome_recorded: true })
  exactly(t, await client.executions.attachEvidence(id, { external_id: 'x1' }), { evidence_updated: true })
  exactly(t, await client.executions.verify(id), { outcome_state: 'verified_success' })
  exactly(t, await client.executions.get(id), { outcome: { result: 'done', external_id: 'x1' }, claimed_by_worker: 'w1' })
  exactly(t, await client.workers.list(), { workers: [{ worker_id: 'w1', heartbeat_status: 'active' }], total: 1 })
  await client.workers.delete('w1')
  exactly(t, await client.workers.list(), { total: 0 })
})

t.test('claimNext returns a list, even if the limit is undefined', async t => {
  const { client } = await service(t)
  const { id } = await client.cues.fire((await client.cues.create(workerCue)).id)
  exactly(t, await client.executions.claimNext({ limit: undefined } as never), [{ execution_id: id }])
  t.same(await client.executions.claimNext({ limit: undefined } as never), [])
})

t.test('finds an execution, claims it by id, and releases it', async t => {
  const { client } = await service(t)
  const { id } = await client.cues.fire((await client.cues.create(workerCue)).id)
  exactly(t, await client.executions.claimable({ task: 'backup' }), [{ id, attempt: 1 }])
  const { claim_token } = await client.executions.claim(id, { worker_id: 'w1' })
  exactly(t, await thrown(client.executions.claim(id, { worker_id: 'w2' })), { code: 'already_claimed', status: 409 })
  exactly(t, await client.executions.release(id, claim_token), { released: true })
  exactly(t, await client.executions.claimable(), [{ id, attempt: 2 }])
})

t.test('reads and changes the account, its keys and secrets', async t => {
  const { client, account } = await service(t)
  exactly(t, await client.me(), { email: account.email, plan: 'free' })
  const key = await client.keys.create({ label: 'ci', scopes: ['read'] })
  exactly(t, await client.keys.rename(key.id, 'builds'), { label: 'builds' })
  const limited = { apiKey: key.api_key }
  exactly(t, await thrown(client.cues.create(workerCue, limited)), { code: 'insufficient_scope', status: 403 })
  exactly(t, await client.keys.revoke(key.id), { id: key.id })
  exactly(t, await client.keys.list(), [{ id: key.id, revoked_at: /Z$/ }, { revoked_at: null }])
  exactly(t, await client.secrets.webhook(), { webhook_secret: /^whsec_/ })
  exactly(t, await client.secrets.regenerateAlertWebhook({ overlap_seconds: 60 }), { previous_secret_revoked: false })
  exactly(t, await client.alerts.list({ acknowledged: false }), { alerts: [], total: 0 })
})

t.test('an error has code, status, details and request id', async t => {
  const { client } = await service(t)
  const error = await thrown(client.cues.update('cue_000000000000', { nmae: 'x' } as never))
  t.ok(error instanceof PgcueError)
  exactly(t, error, {
    code: 'validation_error',
    status: 422,
    detail: [{ type: 'extra_forbidden', loc: ['body', 'nmae'] }],
    requestId: /\w{8}/
  })
  t.match(error.message, /nmae/)
  exactly(t, await thrown(client.me({ apiKey: 'svc_sk_wrong' })), { code: 'invalid_api_key', status: 401, sent: true })
})

const refusal = (status: number, code: string, headers = {}) => ({ status, headers, body: { error: { code, message: 'not now', status } } })

t.test('reports a key with characters not allowed in headers, without showing it', async t => {
  const { baseUrl, client, account } = await service(t)
  for (const apiKey of ['svc_sk_53wic9w…', 'svc_sk_\nsecret', 'svc_sk_\0secret', 'svc_sk_\x7fsecret']) {
    const error = await thrown(client.me({ apiKey }))
    exactly(t, error, { code: 'unsendable', status: 0, sent: false, message: /API key/ })
    t.notMatch(`${error.message}${error.cause}`, /svc_sk/)
    t.throws(() => createClient({ baseUrl, apiKey }), { code: 'unsendable' })
  }
  exactly(t, await thrown(client.me({ headers: { 'x-a': 'snow ☃' } })), {
    code: 'unsendable',
    message: /^The value of the header x-a contains a character that is not allowed in headers/
  })
  exactly(t, await createClient({ baseUrl, apiKey: `${account.api_key}\n` }).me(), { email: account.email })
})

t.test('a worker whose name is not allowed in headers proves its claim with the token', async t => {
  const { client } = await service(t)
  const { id } = await client.cues.fire((await client.cues.create(workerCue)).id)
  const { claim_token: claimToken } = await client.executions.claim(id, { worker_id: '東京' })
  exactly(t, await thrown(client.executions.heartbeat(id, { workerId: '東京' })), {
    code: 'unsendable',
    message: /x-worker-id .*claimToken/
  })
  exactly(t, await client.executions.heartbeat(id, { claimToken }), { acknowledged: true })
})

t.test('retries a read when the service says so', async t => {
  const { url, requests } = await receiver(t, (_, n) =>
    n === 0 ? refusal(503, 'unavailable', { 'retry-after': '0' }) : n === 1 ? { status: 502, body: 'a proxy' } : { body: { cues: [] } }
  )
  exactly(t, await createClient({ baseUrl: url }).cues.list(), { cues: [] })
  t.equal(requests.length, 3)
})

t.test('does not retry a creation, except after a rate limit', async t => {
  const { url, requests, answer } = await receiver(t, () => refusal(503, 'unavailable', { 'retry-after': '0' }))
  const client = createClient({ baseUrl: url })
  exactly(t, await thrown(client.cues.create(workerCue)), { code: 'unavailable', status: 503, retryAfter: 0 })
  t.equal(requests.length, 1)
  answer((_, n) => (n < 3 ? refusal(429, 'rate_limit_exceeded', { 'retry-after': '0' }) : { status: 201, body: { id: 'cue_1' } }))
  exactly(t, await client.cues.create(workerCue), { id: 'cue_1' })
  t.equal(requests.length, 4)
})

t.test('retries a fire with an idempotency key', async t => {
  const { url, requests } = await receiver(t, (_, n) => (n === 0 ? { status: 502, body: '' } : { body: { id: 'e1' } }))
  const client = createClient({ baseUrl: url })
  exactly(t, await client.cues.fire('cue_1', { idempotency_key: 'k' }), { id: 'e1' })
  t.equal(requests.length, 2)
})

t.test('throws instead of waiting if Retry-After is long', async t => {
  const { url, requests } = await receiver(t, () => refusal(429, 'rate_limit_exceeded', { 'retry-after': '3000' }))
  exactly(t, await thrown(createClient({ baseUrl: url }).cues.fire('cue_1')), { code: 'rate_limit_exceeded', retryAfter: 3000 })
  t.equal(requests.length, 1)
})

t.test('retries any request that was never sent', async t => {
  const { baseUrl, account } = await service(t)
  let tries = 0
  const flaky: typeof fetch = async (input, init) => {
    if (tries++ < 1) throw new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) })
    return fetch(input, init)
  }
  const client = createClient({ baseUrl, apiKey: account.api_key, fetch: flaky })
  exactly(t, await client.cues.create(workerCue), { name: 'backup' })
  exactly(t, await client.cues.list(), { total: 1 })
})

t.test('a deletion whose response was lost has succeeded if the cue is gone', async t => {
  const { baseUrl, account, client } = await service(t)
  const { id } = await client.cues.create(workerCue)
  let tries = 0
  const lossy: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init)
    if (tries++ === 0) throw new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) })
    return answer
  }
  const clumsy = createClient({ baseUrl, apiKey: account.api_key, fetch: lossy })
  t.equal(await clumsy.cues.delete(id), undefined)
  t.equal(tries, 2)
  exactly(t, await thrown(clumsy.cues.delete(id)), { code: 'cue_not_found' })
})

t.test('times out without a response, and can be aborted', async t => {
  const { url, requests } = await receiver(t, () => new Promise(() => {}))
  const client = createClient({ baseUrl: url, retries: 0 })
  exactly(t, await thrown(client.me({ timeoutMs: 50 })), { code: 'timeout', status: 0, sent: true })
  const controller = new AbortController()
  const call = thrown(client.cues.get('cue_1', { signal: controller.signal }))
  await eventually(() => requests.some(({ path }) => path === '/v1/cues/cue_1')) // on a busy machine, the other may never arrive
  controller.abort(new Error('no longer needed'))
  exactly(t, await call, { message: 'no longer needed' })
  exactly(t, await thrown(client.me({ signal: AbortSignal.abort(new Error('too late')) })), { message: 'too late' })
})

t.test('aborting also ends the wait between two attempts', async t => {
  const { url, requests } = await receiver(t, () => refusal(503, 'unavailable', { 'retry-after': '50' }))
  const controller = new AbortController()
  const call = thrown(createClient({ baseUrl: url }).me({ signal: controller.signal }))
  await eventually(() => requests.length === 1)
  controller.abort(new Error('enough'))
  exactly(t, await call, { message: 'enough' })
})

t.test('reports a server that is not pgcue, and one that is unreachable', async t => {
  const { url } = await receiver(t, () => ({ body: '<html>' }))
  exactly(t, await thrown(createClient({ baseUrl: url }).me()), { code: 'unexpected_answer', status: 200, message: /address/ })
  const nobody = createClient({ baseUrl: `http://127.0.0.1:${await freePort()}`, retries: 0 })
  exactly(t, await thrown(nobody.me()), {
    code: 'unreachable',
    status: 0,
    sent: false,
    message: /^http:\/\/127\.0\.0\.1:\d+ is unreachable: ECONNREFUSED$/
  })
  t.throws(() => createClient({ baseUrl: 'localhost:8080' }), /baseUrl/)
})

const secret = `whsec_${'0123456789abcdef'.repeat(4)}`
const former = `whsec_${'fedcba9876543210'.repeat(4)}`
const message = {
  secrets: [secret],
  executionId: '01900000-0000-7000-8000-000000000001',
  timestamp: 1_700_000_000,
  body: '{"a": "\\u00e9"}'
}
const now = 1_700_000_100
const about = {
  'X-Service-Execution-Id': message.executionId,
  'X-Service-Cue-Id': 'cue_1',
  'X-Service-Attempt': '2',
  'X-Service-Scheduled-For': '2030-01-01T00:00:00.000Z'
}

t.test('accepts a genuine webhook in every form of headers and body', async t => {
  const headers = { ...signHeaders(message), ...about }
  const expected = {
    payload: { a: 'é' },
    id: message.executionId,
    executionId: message.executionId,
    cueId: 'cue_1',
    attempt: 2,
    scheduledFor: '2030-01-01T00:00:00.000Z',
    timestamp: message.timestamp
  }
  t.same(await verifyWebhook(message.body, headers, secret, { now }), expected)
  t.same(await verifyWebhook(Buffer.from(message.body), new Headers(headers), secret, { now: new Date(now * 1000) }), expected)
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value]]))
  t.same(await verifyWebhook(message.body, lower, [former, secret], { now }), expected)
  const empty = { ...message, body: '' }
  exactly(t, await verifyWebhook('', signHeaders(empty), secret, { now }), { payload: null })
})

t.test('accepts either signature scheme alone; if both are present, both must be valid', async t => {
  const headers: Record<string, string> = signHeaders(message)
  const only = (prefix: string) => Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase().startsWith(prefix)))
  exactly(t, await verifyWebhook(message.body, only('x-service'), secret, { now }), { payload: { a: 'é' } })
  exactly(t, await verifyWebhook(message.body, only('webhook'), secret, { now }), { executionId: message.executionId })
  for (const name of ['X-Service-Signature', 'webhook-signature'] as const) {
    const forged = { ...headers, [name]: signHeaders({ ...message, secrets: [former] })[name] }
    await t.rejects(verifyWebhook(message.body, forged, secret, { now }), { name: 'WebhookError', code: 'wrong_signature' })
  }
})

t.test('webhooks that are not callbacks have their own id for deduplication, and no fields of a callback', async t => {
  const alert = { ...message, executionId: 'alert_1' }
  for (const header of ['X-Service-Alert-Id', 'X-Service-Event']) {
    const verified = await verifyWebhook(alert.body, { ...signHeaders(alert), [header]: 'alert_1' }, secret, { now })
    exactly(t, verified, { id: 'alert_1', executionId: '', cueId: '', scheduledFor: '', attempt: 0 })
  }
})

t.test('during an overlap, a receiver with either secret accepts', async t => {
  const headers = signHeaders({ ...message, secrets: [secret, former] })
  t.ok(await verifyWebhook(message.body, headers, secret, { now }))
  t.ok(await verifyWebhook(message.body, headers, former, { now }))
  await t.rejects(verifyWebhook(message.body, headers, `whsec_${'00'.repeat(32)}`, { now }), { code: 'wrong_signature' })
})

t.test('rejects changed, old and unsigned webhooks', async t => {
  const headers: Record<string, string> = { ...signHeaders(message), ...about }
  const refused = (code: string, body: string, change: Record<string, string | undefined>, at = now) =>
    t.rejects(verifyWebhook(body, { ...headers, ...change }, secret, { now: at }), { name: 'WebhookError', code })
  await refused('wrong_signature', '{"a": "e"}', {})
  await refused('wrong_signature', message.body, { 'X-Service-Timestamp': '1700000001' })
  await refused('wrong_signature', message.body, { 'X-Service-Execution-Id': '01900000-0000-7000-8000-000000000002' })
  await refused('wrong_signature', message.body, { 'webhook-timestamp': '1700000001' })
  await refused('wrong_signature', message.body, { 'webhook-id': 'another' })
  for (const name of ['X-Service-Signature', 'webhook-signature'])
    await refused('wrong_signature', message.body, { [name]: headers[name]!.slice(0, 20) })
  await refused('wrong_signature', message.body, { 'X-Service-Signature': 'v1=00' })
  await refused('stale_timestamp', message.body, {}, message.timestamp + 301)
  await refused('stale_timestamp', message.body, {}, message.timestamp - 301)
  for (const seconds of [300, -300]) t.ok(await verifyWebhook(message.body, headers, secret, { now: message.timestamp + seconds }))
  await refused('stale_timestamp', message.body, { 'webhook-timestamp': '' })
  await refused('stale_timestamp', message.body, { 'X-Service-Timestamp': 'x' })
  await refused('no_signature', message.body, { 'X-Service-Signature': undefined, 'webhook-signature': undefined })
  t.ok(await verifyWebhook(message.body, headers, secret, { now: message.timestamp + 301, tolerance: 400 }))
  await t.rejects(verifyWebhook(message.body, headers, '', { now }), TypeError)
  await t.rejects(verifyWebhook(message.body, headers, [], { now }), TypeError)
})

t.test('reads the feed of events, to its end or on and on, and says where to continue', async t => {
  const { client, fn } = await service(t)
  const publish = () => fn.publishEvents({})
  const ids: string[] = []
  for (let n = 0; n < 3; n++) ids.push((await client.cues.create(workerCue)).id)
  await publish()
  exactly(t, await client.events({ after: 'start', types: ['cue.created', 'cue.paused'], limit: 2 }), { events: [{}, {}], has_more: true })
  const past = client.events({ after: 'start', types: 'cue.*', limit: 2, wait: 0 })
  const seen = []
  for await (const { cue_id } of past) seen.push(cue_id)
  t.same(seen, ids)
  t.equal(past.truncated, false)
  const stopping = new AbortController()
  const feed = client.events({ after: past.cursor! }, { signal: stopping.signal })
  const types = []
  setTimeout(async () => {
    await client.cues.pause(ids[0]!)
    await publish()
  })
  for await (const { type, cue_id } of feed) {
    t.equal(cue_id, ids[0])
    types.push(type)
    if (type === 'cue.resumed') break
    await client.cues.resume(ids[0]!)
    await publish()
  }
  t.same(types, ['cue.paused', 'cue.resumed'])
  const waiting = client.events({}, { signal: stopping.signal })
  setTimeout(() => stopping.abort(), 200)
  for await (const _ of waiting) t.fail('nothing happens')
  exactly(t, await thrown(client.events({ after: 'x' })), { code: 'validation_error', status: 422 })
})
