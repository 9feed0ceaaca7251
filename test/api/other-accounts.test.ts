/** What belongs to another account looks exactly like what doesn't exist. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { paths } from '../support/openapi.ts'
import { build } from '../support/setup.ts'

const worker = { name: 'work', cron: '0 9 * * *', worker: true }
const uuids = [
  randomUUID(),
  '00000000-0000-0000-0000-000000000000',
  'x',
  `${randomUUID()}0`,
  `{${randomUUID()}}`,
  "'; --",
  'x'.repeat(3000)
]

/** By the parameter of the path: the refusal, and ids of nothing. */
const unknown: Record<string, [code: string, ids: string[]]> = {
  cue_id: ['cue_not_found', ['cue_000000000000', 'cue_1', '😀', "cue_'; select 1"]],
  key: ['cue_not_found', ['none', ' ', '😀']],
  execution_id: ['execution_not_found', uuids],
  alert_id: ['alert_not_found', uuids],
  key_id: ['key_not_found', uuids],
  session_id: ['session_not_found', uuids],
  operation_id: ['operation_not_found', ['op_000000000000', 'x']],
  ticket_id: ['ticket_not_found', ['999999', '0', '-1', 'x', '1.5', '99999999999', '2147483648', '1e3', "1' or '1'='1", '../1']],
  worker_id: ['worker_not_found', ['w2', '😀']],
  name: ['calendar_not_found', ['none', ' ']],
  channel_name: ['channel_not_found', ['none', ' ']],
  endpoint_id: ['event_endpoint_not_found', uuids]
}
/** What a call needs to get as far as looking for its subject. */
const bodies: Record<string, object> = {
  'PATCH /v1/auth/keys/{key_id}': { label: 'mine' },
  'POST /v1/executions/{execution_id}/outcome': { success: true },
  'POST /v1/executions/{execution_id}/signal': { reason: 'mine' },
  'POST /v1/executions/{execution_id}/reject': { reason: 'mine' },
  'POST /v1/alerts/{alert_id}/snooze': { until: '2030-02-01T09:00:00Z' },
  'POST /v1/event-endpoints/{endpoint_id}/enable': { from: 'now' }
}
const headers = { 'x-claim-token': randomUUID(), 'x-worker-id': 'w1' }
// They create what they don't find.
const exempt = ['PUT /v1/cues/by-key/{key}', 'PUT /v1/calendars/{name}', 'PUT /v1/channels/{channel_name}']

t.test('what belongs to another account is not found', async t => {
  const { call, post, get, pool, account, as, addKey, register, clock, fn } = await build(t, '2030-01-15T09:00:00Z')
  const cue = await post('/v1/cues', { ...worker, key: 'mine' })
  const execution = await post(`/v1/cues/${cue.id}/fire`)
  await fn.heartbeatWorker({ account_id: account.id, worker_id: 'w1', handlers: [] })
  await post(`/v1/executions/${execution.id}/claim`, { worker_id: 'w1' })
  await call('PUT', '/v1/calendars/holidays', { dates: ['12-25'] })
  await call('PUT', '/v1/channels/ops', { type: 'webhook', target: 'https://example.com/alerts' })
  await pool.query("select cue.raise_alert(c, 'missed_window', 'high', 'late', '{}', $2) from cue.cues c where id = $1", [
    cue.id,
    execution.id
  ])
  await post('/v1/auth/browser-session', { api_key: account.api_key })
  const operation = await post('/v1/operations', { type: 'cancel', ids: [execution.id], rate_per_minute: 1 })
  clock.advance('2 hours')
  const ticket = await post('/v1/support', { subject: 'The report is late', message: 'Since Monday the report has come an hour late.' })
  const mine: Record<string, string> = {
    cue_id: cue.id,
    key: 'mine',
    execution_id: execution.id,
    alert_id: (await get('/v1/alerts')).alerts[0].id,
    key_id: (await get('/v1/auth/keys')).keys[0].id,
    session_id: (await get('/v1/auth/sessions')).sessions[0].id,
    operation_id: operation.id,
    ticket_id: String(ticket.ticket_id),
    worker_id: 'w1',
    name: 'holidays',
    channel_name: 'ops',
    endpoint_id: (await post('/v1/event-endpoints', { url: 'https://example.com/events', types: ['cue.*'] })).id
  }
  const state = async () =>
    JSON.stringify(await Promise.all(['cues', 'executions', 'operations', 'auth/keys'].map(path => get(`/v1/${path}`))))
  const before = await state()
  const other = as(await register())
  const approver = as(await addKey(await register('third@example.com'), ['approve']))
  const tried = new Set<string>()
  for (const [path, methods] of Object.entries(paths))
    for (const [method, { security = [] }] of Object.entries(methods)) {
      const [, parameter = ''] = /{(\w+)}/.exec(path) ?? []
      const name = `${method.toUpperCase()} ${path}`
      if (!unknown[parameter] || security.length === 0 || exempt.includes(name)) continue
      tried.add(parameter)
      const [code, ids] = unknown[parameter]
      const expected = name.endsWith('{execution_id}/claim') ? [409, 'already_claimed'] : [404, code]
      const messages: string[] = []
      for (const id of [mine[parameter]!, ...ids]) {
        const url = path.replace(/{\w+}/, encodeURIComponent(id))
        const caller = /(approve|reject)$/.test(path) ? approver : other
        const { status, body } = await caller.call(method.toUpperCase(), url, bodies[name], headers)
        t.same([status, body.error?.code], expected, `${name} of ${id.slice(0, 50)}`)
        messages.push(body.error?.message.replaceAll(id, '…'))
      }
      t.equal(messages[0], messages[1], `${name} says the same about both`)
    }
  t.same([...tried].sort(), Object.keys(unknown).sort())
  t.equal(await state(), before)
  for (const list of ['cues', 'executions', 'alerts', 'operations', 'calendars', 'channels', 'event-endpoints', 'workers', 'support'])
    t.equal((await other.get(`/v1/${list}`)).total, 0, list)
  exactly(t, await other.get('/v1/auth/audit'), { total: 1, events: [{ event: 'account.registered' }] })
  exactly(t, await other.get('/v1/auth/keys'), { keys: [{ label: 'default' }] })
})
