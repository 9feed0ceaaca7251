/**
 * The examples of the API reference: real exchanges, in scripts/openapi/examples.json. Every request is sent again here; its status is the
 * documented one, and both bodies fit the description. `tap --snapshot test/api/examples.test.ts` writes the file.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { faultsOf, paths, pointerTo } from '../support/openapi.ts'
import { receiver } from '../support/receiver.ts'
import { buildWithMail, newDeviceCode } from '../support/sign-in.ts'
import { refused, resultsOf } from '../support/stage.ts'
import { eventOf, signatureOf, standIn } from '../support/stripe.ts'

type Exchange = { request?: unknown; status: number; response?: unknown }

const file = new URL('../../scripts/openapi/examples.json', import.meta.url)
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path }))
)

const start = '2030-01-15T09:00:00.000Z'
const operator_token = 'the-token-of-the-operator'

/** Sends a request to every operation, in an order in which each of them succeeds. */
const exchangeAll = async (t: Parameters<typeof buildWithMail>[0]) => {
  const stripe = await standIn(t)
  const service = await buildWithMail(t, start, { ...stripe.env, OPERATOR_TOKEN: operator_token, MCP_CLIENT_IDS: 'my-agent' })
  const { account, as, clock, fn, pool, requestLink, confirm, signIn, register } = service
  const exchanges: Record<string, Exchange> = {}
  type Options = { as?: ReturnType<typeof as>; query?: string; headers?: Record<string, string>; sent?: string; id?: string }
  const send = async (operationId: string, params: string[] = [], body?: unknown, options: Options = {}) => {
    const { method, path } = operations.find(operation => operation.operationId === operationId)!
    const { as: caller = service, query = '', headers = {}, sent } = options
    const values = [...params]
    const url = path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(values.shift()!)) + query
    const { status, body: response } = await caller.call(method.toUpperCase(), url, sent ?? body, headers)
    const isJson = typeof response !== 'string'
    exchanges[operationId] = { ...(body !== undefined && { request: body }), status, ...(isJson && { response }) }
    return response
  }
  const nobody = as(null)
  const operator = { as: as({ id: '', email: '', api_key: operator_token }) }
  const confirmed = { headers: { 'x-confirm-destructive': 'true' } }

  await send('getDescription', [], undefined, { as: nobody })
  delete exchanges.getDescription!.response // it would contain itself
  await fn.beatEngine({ engine_id: randomUUID(), version: '1.0.0', lateness_ms: 3, open_deliveries: 0, missed_after: '1 day' })
  for (const name of ['getStatus', 'getHealth', 'getMetrics', 'listPosts', 'getRss']) await send(name, [], undefined, { as: nobody })
  await send('getPost', ['what-pgcue-is'], undefined, { as: nobody })
  await send('sendEcho', ['my-first-echo-token'], { greeting: 'hello' })
  await send('getEcho', ['my-first-echo-token'])

  // Cues
  const hook = 'https://example.com/hook'
  await send('putCalendar', ['holidays'], { dates: ['12-25', '2030-04-22'], description: 'Days off' })
  await send('listCalendars')
  await send('getCalendar', ['holidays'])
  await send('putGate', ['openai'], { parallel: 5, rate: 60, per: '10s', description: 'The model' })
  await send('listGates')
  await send('pauseGate', ['openai'], { reason: 'Outage of the model' })
  await send('resumeGate', ['openai'], {})
  await send('getGate', ['openai'])
  await send('deleteGate', ['openai'])
  await send('previewSchedule', [], { schedule: { cron: '0 9 * * MON-FRI', timezone: 'Europe/London' }, count: 2 })
  const cue = await send('createCue', [], {
    name: 'report',
    cron: '0 9 * * 1-5',
    timezone: 'Europe/London',
    callback_url: hook,
    payload: { rows: 3 }
  })
  await send('updateCue', [cue.id], { schedule: { cron: '0 8 * * 1-5' } })
  await send('pauseCue', [cue.id], { reason: 'The partner is migrating' })
  await send('resumeCue', [cue.id])
  const { url } = await receiver(t)
  await send('previewPayload', [], {
    name: 'report',
    cron: '0 9 * * *',
    callback_url: url,
    template: true,
    payload: { day: '{{scheduled_date}}' }
  })
  await send('testCue', [], { url, payload: { rows: 3 } })
  await send('putChannel', ['ops'], {
    type: 'slack',
    target: 'https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX',
    default: true
  })
  await send('listChannels')
  await send('getChannel', ['ops'])
  await service.call('PUT', '/v1/channels/probe', { type: 'webhook', target: url })
  await send('testChannel', ['probe'])
  await send('putCueByKey', ['billing/report'], { name: 'billing report', schedule: { every: '6h' }, callback_url: hook })
  await send('getCueByKey', ['billing/report'])
  await send('deleteCueByKey', ['billing/report'])
  await send('applyCues', [], {
    set: 'ops',
    cues: [{ key: 'ops/backup', name: 'backup', cron: '0 2 * * *', worker: true, payload: { task: 'backup' } }]
  })
  const worker = {
    name: 'publish',
    cron: '@daily',
    worker: true,
    payload: { task: 'publish' },
    verification: { mode: 'manual' },
    delivery: { await_outcome: true }
  }
  clock.advance('1 second') // the latest cue is the first of lists
  const work = await service.post('/v1/cues', worker)
  const backup = await service.get('/v1/cues/by-key/ops%2Fbackup')
  clock.advance('1 second')
  const failing = await service.post('/v1/cues', {
    name: 'import',
    cron: '@hourly',
    callback_url: hook,
    retry: { max_attempts: 1 },
    alerts: { consecutive_failures: 1 }
  })

  // Executions and workers
  await send('heartbeatWorker', [], { worker_id: 'laptop', handlers: ['publish'] })
  await send('listWorkers')
  const fired = await send('fireCue', [work.id], { payload_override: { draft: 7 } })
  await send('listClaimable')
  const claim = await send('claimNext', [], { worker_id: 'laptop', tasks: ['publish'] })
  const held = { headers: { 'x-claim-token': claim.claim_token } }
  await send('heartbeatExecution', [fired.id], undefined, held)
  await send('releaseExecution', [fired.id], undefined, held)
  const again = await send('claimExecution', [fired.id], { worker_id: 'laptop' })
  await send(
    'reportOutcome',
    [fired.id],
    { success: true, result: 'published', external_id: 'post-7', costs: [{ amount: '0.12', unit: 'usd' }] },
    { headers: { 'x-claim-token': again.claim_token } }
  )
  clock.advance('1 second')
  await send('readCosts', [], undefined, { query: '?by=cue' })
  await send('attachEvidence', [fired.id], { result_url: 'https://example.com/posts/7' })
  await send('verifyExecution', [fired.id], { valid: true, reason: 'Read it' })
  const plain = await service.post(`/v1/cues/${backup.id}/fire`)
  const { claim_token } = await service.post(`/v1/executions/${plain.id}/claim`, { worker_id: 'laptop' })
  await service.post(`/v1/executions/${plain.id}/outcome`, { success: true }, { 'x-claim-token': claim_token })
  await send('requestVerification', [plain.id])
  await service.post(`/v1/cues/${failing.id}/fire`)
  clock.advance('1 second')
  await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 10 }), { ...refused, gone: true }, clock.now()))
  const [dead] = (await service.get('/v1/executions?dead=true')).executions
  await send('listExecutions', [], undefined, { query: `?cue_id=${failing.id}&limit=1` })
  await send('getExecution', [dead.id])
  const { alerts } = await send('listAlerts')
  await send('snoozeAlert', [alerts[0].id], { until: '2030-01-15T12:00:00Z' })
  await send('acknowledgeAlert', [alerts[0].id])
  await fn.publishEvents({})
  const endpoint = await send('createEventEndpoint', [], {
    url: 'https://example.com/events',
    types: ['execution.failed', 'alert.*'],
    description: 'The data warehouse'
  })
  await send('listEventEndpoints')
  await send('getEventEndpoint', [endpoint.id])
  await send('enableEventEndpoint', [endpoint.id], { from: 'failure' })
  await send('deleteEventEndpoint', [endpoint.id])
  const probe = await service.post('/v1/event-endpoints', { url, types: ['cue.*'] })
  await send('testEventEndpoint', [probe.id])
  await send('listEvents', [], undefined, { query: '?after=start&types=alert.*&limit=1' })
  await send('listErrors')
  await send('listDestinations')
  await send('getOverview')
  const replayed = await send('replayExecution', [dead.id])
  await send('cancelExecution', [replayed.execution_id ?? replayed.id])
  await service.post(`/v1/cues/${failing.id}/fire`)
  clock.advance('1 second')
  await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 10 }), { ...refused, gone: true }, clock.now()))
  await send('signalExecution', [(await service.get('/v1/executions?dead=true')).executions[0].id], { reason: 'checked by hand' })
  await send('dismissExecution', [(await service.get('/v1/executions?dead=true')).executions[0].id])
  await send('listCues', [], undefined, { query: '?limit=1' })
  await send('getCue', [cue.id])
  await send('getCueHistory', [work.id], undefined, { query: '?days=7' })
  const operation = await send('createOperation', [], {
    type: 'pause',
    filter: { transport: 'worker' },
    rate_per_minute: 60,
    reason: 'Maintenance'
  })
  await send('listOperations')
  await send('getOperation', [operation.id])
  await send('abortOperation', [operation.id])

  // The account
  await send('register', [], { email: 'grace@example.com' }, { as: nobody })
  await send('getAccount')
  await send('updateAccount', [], { memory_block_enabled: true })
  await send('getMemoryBlock')
  await send('subscribeToMemoryBlock', [], { callback_url: 'https://example.com/memory', agent_id: 'claude' })
  await send('getUsage')
  const key = await send('createKey', [], { label: 'claude', scopes: ['read', 'write'] })
  await send('listKeys')
  await send('renameKey', [key.id], { label: 'Claude' })
  await send('revokeKey', [key.id])
  for (const name of ['getWebhookSecret', 'getAlertWebhookSecret']) await send(name)
  await send('regenerateWebhookSecret', [], undefined, { ...confirmed, query: '?overlap_seconds=3600' })
  await send('regenerateAlertWebhookSecret', [], undefined, confirmed)
  await send('listAuditEvents', [], undefined, { query: '?limit=1' })
  const device_code = newDeviceCode()
  await send('createDeviceCode', [], { device_code }, { as: nobody })
  await send('submitEmail', [], { device_code, email: account.email }, { as: nobody })
  await send('showDevicePage', [], undefined, { as: nobody, query: `?code=${device_code}` })
  const link = await requestLink(account.email)
  await send('showVerifyPage', [], undefined, { as: nobody, query: link.link.search })
  await confirm(link.fields)
  const { session_token: token } = await send('pollDeviceCode', [], { device_code: link.device_code }, { as: nobody })
  const { session_token } = await send('openSession', [], { token }, { as: nobody })
  const session = as({ id: '', email: '', api_key: session_token })
  await send('revealKey', [], undefined, { as: session })
  const refunds = await service.post('/v1/cues', { ...worker, name: 'refund', approval: { message: 'Refund $50?' } })
  for (const name of ['approveExecution', 'rejectExecution']) {
    const { id } = await service.post(`/v1/cues/${refunds.id}/fire`)
    await send(name, [id], { reason: name === 'approveExecution' ? 'The customer is right' : 'Too much' }, { as: session })
  }
  await send('exchangeToken', [], { session_token: (await signIn(account.email)).session_token, client_id: 'my-agent' }, { as: nobody })
  clock.advance('1 second')
  await send('openBrowserSession', [], { api_key: account.api_key }, { as: nobody })
  await send('createDashboardLink')
  const { sessions } = await send('listSessions')
  await send('deleteSession', [sessions.find((entry: { key_id: string | null }) => entry.key_id !== null).id])
  const renewed = await send('refreshSession', [], undefined, { as: session })
  await send('endSession', [], undefined, { as: as({ id: '', email: '', api_key: renewed.session_token }) })
  const { detail: _, ...call } = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_usage', arguments: {} }, detail: 0 }
  await send('callMcp', [], call, { headers: { accept: 'application/json, text/event-stream' } })
  await pool.query("update cue.accounts set created_at = created_at - interval '1 day' where id = $1", [account.id])
  const ticket = await send('createTicket', [], { subject: 'The report is late', message: 'It was due at 9:00 and came at 9:20.' })
  await send('listTickets')
  await send('getTicket', [String(ticket.ticket_id)])
  await send('createCheckout', [], { plan: 'pro', interval: 'monthly' })
  await send('createPortalLink')
  const event = JSON.stringify(eventOf('customer.created', { id: 'cus_1' }, clock.now().getTime() / 1000))
  await send('receiveStripeEvent', [], undefined, {
    as: nobody,
    sent: event,
    headers: { 'stripe-signature': signatureOf(event, clock.now()) }
  })

  // The operator
  await send('getOperator', [], undefined, operator)
  await send('hold', [], { reason: 'The partner is down' }, operator)
  await send('release', [], undefined, operator)
  await send('answerOnCall', ['holds'], undefined, operator)
  const grace = await register('ada@example.com')
  await send('listAccounts', [], undefined, { ...operator, query: '?search=ada' })
  await send('changeAccount', [grace.id], { plan: 'pro', limits: { cues: 50 } }, operator)
  await send('openOperatorSession', [], { operator_token }, { as: nobody })
  await send('endOperatorSession', [], undefined, operator)

  // What ends things
  await send('deleteCues', [], { ids: [cue.id] }, confirmed)
  await send('deleteCue', [work.id])
  await send('deleteWorker', ['laptop'])
  await send('deleteCalendar', ['holidays'])
  await send('deleteChannel', ['ops'])
  const lone = await register()
  await send('regenerateKey', [], undefined, { as: as(lone), ...confirmed })
  await send('deleteAccount', [], undefined, confirmed)
  const [mail] = (await service.mails()).filter(({ links }) => links.some(url => url.includes('cancel-deletion')))
  await send('cancelDeletion', [], { token: new URL(mail!.links[0]!).searchParams.get('token') }, { as: nobody })
  return exchanges
}

/** Lists with their first item only, and the beginning of long texts. */
const minimal = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.slice(0, 1).map(minimal)
  if (typeof value === 'string' && value.length > 250) return `${value.slice(0, 200)}…`
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, minimal(member)]))
}

/** Names, ids, secrets and times as a reader expects them, instead of random ones. */
const asShown = (exchanges: Record<string, Exchange>): Record<string, Exchange> => {
  const ids = new Map<string, string>()
  const nth = (id: string, length: number) => {
    if (!ids.has(id)) ids.set(id, String(ids.size + 1).padStart(length, '0'))
    return ids.get(id)!
  }
  const text = JSON.stringify(exchanges)
    .replaceAll(/[0-9a-f-]{36}@example\.com/g, 'ada@example.com')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, id => `01a21dce-31db-7050-ad2f-${nth(id, 12)}`)
    .replaceAll(/http:\/\/127.0.0.1:\d+\//g, 'https://example.com/hook')
    .replaceAll(/v1(=[0-9a-f]{64}|,[\w+/]{43}=)/g, 'v1…')
    .replaceAll(/cue_[0-9A-Za-z]{12}\b/g, id => `cue_dPXIaTDC${nth(id, 4)}`)
    .replaceAll(/(svc_sk_|whsec_)[\w+/=-]{20,}/g, '$1…')
    .replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'eyJ…')
    .replaceAll(/\b[\w-]{43,44}\b/g, 'dG9rZW4gZm9yIG9uZSB1c2U')
    .replaceAll(/"20(?!30)\d\d-\d\d-\d\dT[\d:.]+Z"/g, `"${start}"`)
  const shown: Record<string, Exchange> = JSON.parse(text)
  for (const exchange of Object.values(shown)) if (exchange.response !== undefined) exchange.response = minimal(exchange.response)
  return shown
}

/** The names and types of all members. */
const shapeOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]))
}

t.test('every operation has an example, whose request gets the documented status', async t => {
  const exchanges = asShown(await exchangeAll(t))
  if (process.env.TAP_SNAPSHOT === '1') writeFileSync(file, `${JSON.stringify(exchanges, null, 1)}\n`)
  for (const { operationId, method, path, responses, requestBody } of operations) {
    const { status, request, response } = exchanges[operationId] ?? { status: 0 }
    t.ok(status < 300 && String(status) in responses, `${operationId} gets ${status}`, { response })
    for (const [part, value] of [
      ['requestBody', request],
      [`responses/${status}`, response]
    ] as const)
      if (value !== undefined) t.same(faultsOf(pointerTo(path, method, part), value), null, `${operationId}: ${part}`, { value })
    if (request === undefined && method !== 'get' && requestBody) t.notOk(requestBody.required, `${operationId} needs no body`)
  }
  t.strictSame(Object.keys(exchanges).sort(), operations.map(({ operationId }) => operationId).sort())
  t.strictSame(shapeOf(exchanges), shapeOf(JSON.parse(readFileSync(file, 'utf8'))), 'the file is up to date')
})
