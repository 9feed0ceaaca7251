/** OpenTelemetry traces, exported to a collector. Replicas export them from both threads: see api-thread.test.ts. */
import t, { type Test } from 'tap'
import type { WebhookRequest } from '../../src/deliveries/webhook.ts'
import { loadTraceSettings } from '../../src/traces/settings.ts'
import { startTraces } from '../../src/traces/start.ts'
import { untraced } from '../../src/traces/traces.ts'
import { collector, type Span } from '../support/collector.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, eventually, receiver } from '../support/setup.ts'

const soon = (url: string) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '20' })

/** A service and its engine with a collector. `send` makes requests over one connection. */
const serve = async (t: Test) => {
  const hub = await collector(t)
  const traces = await startTraces(soon(`${hub.url}/`))
  t.teardown(() => traces.stop())
  const log: Record<string, unknown>[] = []
  const logStream = { write: (line: string) => void log.push(JSON.parse(line)) }
  const service = await build(t, undefined, { traces, logStream, env: { LOG_LEVEL: 'info' } })
  await startEngine(t, service.config, undefined, traces)
  const baseUrl = await service.app.listen({ host: '127.0.0.1', port: 0 })
  const send = async (method: string, path: string, body?: object, headers: Record<string, string> = {}, signal?: AbortSignal) => {
    const response = await fetch(baseUrl + path, {
      method,
      signal,
      headers: { authorization: `Bearer ${service.account.api_key}`, ...(body && { 'content-type': 'application/json' }), ...headers },
      body: body && JSON.stringify(body)
    })
    return {
      status: response.status,
      request_id: response.headers.get('x-request-id'),
      body: (await response.json()) as { id?: string }
    }
  }
  /** The span of a request, with the names of those below it. */
  const spanOf = async ({ request_id }: { request_id: string | null }) => {
    const span = await hub.found(({ attributes }) => attributes['pgcue.request.id'] === request_id)
    return { ...span, calls: hub.spans().filter(({ parent }) => parent === span.id) }
  }
  return { ...service, hub, traces, log, send, spanOf }
}
const namesOf = (spans: Span[]) => spans.map(({ name }) => name)

t.test('a trace leads from a request to its SQL functions, and from its execution to the webhook', async t => {
  const { hub, send, spanOf, account, log, traces } = await serve(t)
  const hook = await receiver(t)
  const [trace, parent] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
  const cue = {
    name: 'a-secret-name',
    cron: '@yearly',
    callback: { url: `${hook.url}a-secret-path?key=a-secret-query`, headers: { 'X-Key': 'a-secret-header' } },
    payload: { text: 'a-secret-payload' }
  }
  const created = await send('POST', '/v1/cues', cue, { traceparent: `00-${trace}-${parent}-01` })
  const fired = await send('POST', `/v1/cues/${created.body.id}/fire`, {})
  const listed = await send('GET', '/v1/cues?limit=5', undefined, { traceparent: `00-${'0'.repeat(32)}-${parent}-01` })
  const id = fired.body.id!
  const [sent] = await hook.received(1)
  const delivery = await hub.found(({ attributes }) => attributes['pgcue.execution.id'] === id && 'server.port' in attributes)

  const creating = await spanOf(created)
  exactly(t, creating, {
    trace,
    parent,
    name: 'POST /v1/cues',
    kind: 'server',
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/v1/cues',
      'http.response.status_code': 201,
      'url.scheme': 'http',
      'pgcue.account.id': account.id
    },
    failed: false,
    resource: { 'service.name': 'pgcue', 'service.version': '1.0.0', 'telemetry.sdk.language': 'nodejs' },
    calls: [
      { trace, name: 'cue.admit', kind: 'client', failed: false },
      {
        trace,
        name: 'cue.create_each_cue',
        attributes: { 'db.system.name': 'postgresql', 'db.stored_procedure.name': 'cue.create_each_cue' }
      }
    ]
  })
  const lines = log.filter(({ route }) => route === '/v1/cues')
  exactly(t, lines, [
    { msg: 'request ended', request_id: created.request_id, trace_id: trace, span_id: creating.id },
    { msg: 'request ended' }
  ])
  t.same(traces.line!({ execution_id: id, attempt: 1 }), { execution_id: id, attempt: 1, trace_id: id.replaceAll('-', '') })
  t.same(traces.line!({ execution_id: 'x' }), { execution_id: 'x' })
  const firing = await spanOf(fired)
  t.not(firing.trace, trace, 'a request without traceparent begins a trace, also on a connection that was used before')
  exactly(t, firing, {
    parent: '',
    name: 'POST /v1/cues/:cue_id/fire',
    attributes: { 'pgcue.cue.id': created.body.id },
    calls: [{ name: 'cue.admit' }, { name: 'cue.fire_cue', attributes: { 'pgcue.cue.id': created.body.id, 'pgcue.execution.id': id } }]
  })
  const listing = await spanOf(listed)
  t.equal(listing.parent, '', 'an invalid traceparent is ignored')
  exactly(t, listing.calls.at(-1), {
    name: 'SELECT cue.cue_view',
    attributes: { 'db.operation.name': 'SELECT', 'db.collection.name': 'cue.cue_view' }
  })

  exactly(t, delivery, {
    trace: id.replaceAll('-', ''),
    parent: '',
    name: 'POST',
    kind: 'client',
    attributes: {
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'url.scheme': 'http',
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(hook.url).port),
      'pgcue.account.id': account.id,
      'pgcue.cue.id': created.body.id,
      'pgcue.attempt': 1
    },
    failed: false
  })
  t.notOk('http.request.resend_count' in delivery.attributes)
  exactly(t, sent!.headers, { traceparent: `00-${delivery.trace}-${delivery.id}-01`, 'x-service-execution-id': id })
  const taking = hub.spans().filter(span => delivery.links.includes(span.id))
  exactly(t, taking, [{ name: 'cue.begin_attempts', kind: 'client', parent: '' }])

  t.same([...new Set(hub.paths)], ['POST /v1/traces application/x-protobuf'])
  t.notMatch(hub.raw(), /a-secret|svc_sk_|whsec_|@example\.com/)
  t.ok(hub.raw().includes(String(delivery.attributes['pgcue.cue.id'])), 'texts are exported as they are')
})

t.test('records errors by their codes, without messages', async t => {
  const { hub, send, spanOf, log } = await serve(t)
  const hook = await receiver(t)
  hook.answer({ status: 410, body: 'a-secret-response' })
  const unknown = await spanOf(await send('POST', '/v1/executions/0191d4e8-0000-7000-8000-000000000000/replay', {}))
  exactly(t, unknown, { failed: false, attributes: { 'http.response.status_code': 404 } })
  exactly(t, unknown.calls.at(-1), {
    name: 'cue.replay_execution',
    failed: true,
    message: '',
    attributes: { 'error.type': 'QU002', 'db.response.status_code': 'QU002' }
  })
  for (const [path, name] of [
    ['/v1/nothing/a-secret-path', 'GET'],
    ['/%E0%A4%A', undefined]
  ] as const) {
    const { status, request_id } = await send('GET', path)
    t.ok(status >= 400 && status < 500)
    if (name) exactly(t, await spanOf({ request_id }), { name, failed: false, attributes: { 'http.response.status_code': status } })
  }
  const refused = await send('GET', '/v1/usage', undefined, { authorization: 'Bearer a-secret-token' })
  exactly(t, await spanOf(refused), { name: 'GET /v1/usage', failed: false, attributes: { 'http.response.status_code': 401 } })
  const failing = await send('POST', '/v1/billing/checkout', { plan: 'pro', interval: 'monthly' })
  exactly(t, await spanOf(failing), {
    failed: true,
    message: '',
    attributes: { 'http.response.status_code': 503, 'error.type': 'billing_not_configured' }
  })
  const leaving = new AbortController()
  const left = send('GET', '/v1/executions/claimable?wait=20', undefined, {}, leaving.signal)
  await hub.found(({ name }) => name === 'cue.claimable_page')
  leaving.abort()
  await t.rejects(left)
  const { trace, id } = await hub.found(({ attributes }) => attributes['error.type'] === 'aborted')
  exactly(
    t,
    log.findLast(({ msg }) => msg === 'request aborted by the client'),
    { trace_id: trace, span_id: id }
  )

  const gone = await collector(t)
  await gone.close()
  for (const [url, type, message] of [
    [hook.url, '410', 'answered 410 Gone'],
    [`${gone.url}/`, 'connection refused', 'connection refused']
  ] as const) {
    const { id } = (await send('POST', '/v1/cues', { name: 'job', cron: '@yearly', callback_url: url })).body
    await send('POST', `/v1/cues/${id}/fire`, {})
    const delivery = await hub.found(({ attributes }) => attributes['pgcue.cue.id'] === id && 'server.port' in attributes)
    exactly(t, delivery, { failed: true, message, attributes: { 'error.type': type } })
  }
  t.notMatch(hub.raw(), /a-secret/)
})

t.test('a tool call of an agent and the request that it makes are one trace', async t => {
  const { hub, send, spanOf } = await serve(t)
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_cues', arguments: {} } }
  const outer = await spanOf(await send('POST', '/mcp', call, { accept: 'application/json, text/event-stream' }))
  exactly(t, outer, { name: 'POST /mcp', attributes: { 'http.response.status_code': 200 } })
  exactly(t, namesOf(outer.calls), ['cue.admit', 'GET /v1/cues'])
  const inner = outer.calls.at(-1)!
  exactly(t, namesOf(hub.spans().filter(({ parent }) => parent === inner.id)), ['cue.admit', 'SELECT cue.cue_view', 'SELECT cue.cue_view'])
})

const request = (headers: Record<string, string> = {}): WebhookRequest => ({
  url: 'https://example.com/hook',
  method: 'POST',
  headers: { 'webhook-id': '0191d4e8-1234-7000-8000-000000000000', ...headers },
  body: '{}',
  timeoutMs: 1000
})

/** The headers of a request as sent by a client with traces. */
const sentWith = async (env: Record<string, string>, headers?: Record<string, string>) => {
  const traces = await startTraces(env)
  let sent: Record<string, string> = {}
  const client = traces.client({
    post: async given => {
      sent = given.headers
      return { ok: true, http_status: 200, duration_ms: 1 } as never
    },
    destroy: async () => {}
  })
  await client.post(request(headers))
  await traces.stop()
  return sent
}

t.test('alert and on_failure webhooks are in the trace of their alert or execution, and a header of the cue itself is kept', async t => {
  const hub = await collector(t)
  const sent = await sentWith(soon(hub.url))
  exactly(t, hub.spans(), [{ name: 'POST', trace: '0191d4e8123470008000000000000000', attributes: { 'server.port': 443 }, links: [] }])
  t.equal(sent.traceparent, `00-0191d4e8123470008000000000000000-${hub.spans()[0]!.id}-01`)
  const failure = await sentWith(soon(hub.url), { 'webhook-id': '0191d4e8-1234-7000-8000-000000000000_failed' })
  exactly(t, failure, { traceparent: /^00-0191d4e8123470008000000000000000-/ })
  t.same(await sentWith(soon(hub.url), { TraceParent: 'own' }), request({ TraceParent: 'own' }).headers)
  t.same(await sentWith({}), request().headers, 'off, nothing is added')
})

t.test('a trace that is not sampled is not exported, and receivers learn that', async t => {
  const hub = await collector(t)
  for (const sampler of ['always_off', 'parentbased_always_off', 'traceidratio', 'parentbased_traceidratio']) {
    const env = { ...soon(hub.url), OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: '0' }
    exactly(t, await sentWith(env), { traceparent: /^00-0191d4e8123470008000000000000000-\w{16}-00$/ })
  }
  t.same(hub.paths, [])
})

t.test('reads the standard variables, and refuses invalid ones', async t => {
  const url = 'http://collector:4318'
  t.equal(await startTraces({}), untraced)
  t.equal(loadTraceSettings({ OTEL_TRACES_SAMPLER: 'ignored' }), null)
  exactly(t, loadTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url }), {
    url: `${url}/v1/traces`,
    sampler: 'parentbased_always_on',
    batches: { maxQueueSize: 2048, maxExportBatchSize: 512, scheduledDelayMillis: 5000 }
  })
  t.equal(loadTraceSettings({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/own` })?.url, `${url}/own`)
  for (const [name, value, must] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317', 'must be a URL that starts with http:// or https://'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'must be http/protobuf, the protocol that pgcue sends traces with'],
    ['OTEL_TRACES_SAMPLER', 'sometimes', /^OTEL_TRACES_SAMPLER must be one of always_on, .*, parentbased_traceidratio$/],
    ['OTEL_TRACES_SAMPLER_ARG', '1.5', 'must be a number from 0 to 1'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '0', 'must be a whole number from 1 to 1000000']
  ] as const) {
    const message = typeof must === 'string' ? `${name} ${must}` : must
    t.throws(() => loadTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url, [name]: value }), { name: 'ConfigError', message }, name)
  }
})

t.test('a collector that is away or hangs holds nothing up', async t => {
  const hub = await collector(t)
  await hub.close()
  const logged: unknown[][] = []
  const log = { warn: (...line: unknown[]) => void logged.push(line) }
  // Without retries, which would take seconds.
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT = '200'
  t.teardown(() => delete process.env.OTEL_EXPORTER_OTLP_TIMEOUT)
  const away = await startTraces(soon(hub.url), log as never)
  t.teardown(() => away.stop(100))
  const { post, destroy } = away.client({ post: async () => ({ ok: true, http_status: 200 }) as never, destroy: async () => {} })
  await post(request())
  await eventually(() => logged.length > 0)
  await post(request())
  exactly(t, logged, [[{ reason: String }, 'traces lost: the collector accepts none']])
  await hub.reopen()
  await eventually(async () => {
    await post(request())
    return logged.length > 1
  })
  t.same(logged[1], ['the collector accepts traces again'])
  await destroy()

  const hanging = await collector(t, { hangs: true })
  const hung = await startTraces({ ...soon(hanging.url), OTEL_BSP_SCHEDULE_DELAY: '3600000' })
  await hung.client({ post: async () => ({ ok: true, http_status: 200 }) as never, destroy: async () => {} }).post(request())
  await hung.stop(100)
  t.same(hanging.paths, ['POST /v1/traces application/x-protobuf'], 'stops although the collector does not respond')
})
