import { Readable } from 'node:stream'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Test } from 'tap'
import t from 'tap'
import type { Schema } from '../../src/http/schema.ts'
import { cliStage } from '../support/cli-stage.ts'
import { eventually } from '../support/eventually.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

type Content = { type: string; text: string }[]

/** The service on a port, and the SDK's own client for a key. */
const serve = async (t: Test, env: Record<string, string> = {}) => {
  const service = await build(t, undefined, { env })
  await service.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = service.app.server.address() as { port: number }
  const connect = async (key: string) => {
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${key}` } }
    })
    await client.connect(transport as never)
    t.teardown(() => client.close())
    await client.listTools() // from then on, the client compares each result with the tool's schema
    const call = async (name: string, args: object = {}) => {
      const { content, structuredContent, isError } = await client.callTool({ name, arguments: args as Record<string, unknown> })
      const { text } = (content as Content)[0]!
      if (isError) return { failed: text }
      t.strictSame(structuredContent, JSON.parse(text), `${name}: both forms of the result`)
      return JSON.parse(text)
    }
    return { client, call }
  }
  return { ...service, connect, port }
}

t.test('an agent previews, creates, fires, reads and deletes a cue', async t => {
  const { connect, account } = await serve(t)
  const { call, client } = await connect(account.api_key)
  exactly(t, client.getServerVersion(), { name: 'pgcue' })
  exactly(t, await call('preview_schedule', { cron: '0 9 * * 1-5', timezone: 'Europe/London', count: 2 }), {
    next: [{ at: /Z$/ }, { at: /Z$/ }]
  })
  const cue = await call('create_cue', { name: 'report', cron: '0 9 * * *', payload: { task: 'report' } })
  exactly(t, cue, { cue_id: /^cue_/, status: 'active', transport: 'worker', next_step: String })
  const { id } = await call('fire_cue', { cue_id: cue.cue_id, payload_override: { n: 1 } })
  exactly(t, await call('list_executions', { cue_id: cue.cue_id }), { executions: [{ execution_id: id, status: 'pending' }], total: 1 })
  exactly(t, await call('get_execution', { execution_id: id }), { payload: { task: 'report', n: 1 } })
  exactly(t, await call('report_outcome', { execution_id: id, success: true }), { failed: /^invalid_state/ })
  const history = await call('get_cue_history', { cue_id: cue.cue_id, days: 2 })
  const today = { date: history.until, succeeded: 0, failed: 0, missed: 0, running: 1 }
  t.strictSame(history, { ...history, timezone: 'UTC', complete_from: null, days: [today], gaps: [], next_step: history.next_step })
  exactly(t, await call('get_cue_history', { cue_id: cue.cue_id, until: 'soon' }), { failed: /^validation_error: .*until/ })
  exactly(t, await call('get_cue_history', { cue_id: cue.cue_id, days: 367 }), { failed: /^Invalid input for get_cue_history: days / })
  exactly(t, await call('pause_cue', { cue_id: cue.cue_id }), { status: 'paused', next_run: null })
  exactly(t, await call('pause_cue', { cue_id: cue.cue_id, reason: 'broken', until: '2100-01-01T00:00:00Z' }), {
    status: 'paused',
    paused_by: 'user',
    pause_reason: 'broken',
    paused_until: '2100-01-01T00:00:00.000Z'
  })
  exactly(t, await call('update_cue', { cue_id: cue.cue_id, name: 'other', cron: '@hourly' }), { name: 'other' })
  exactly(t, await call('update_cue', { cue_id: cue.cue_id, overlap: 'skip' }), { overlap: 'skip' })
  exactly(t, await call('fire_cue', { cue_id: cue.cue_id, overlap: 'skip' }), { failed: /^overlap_skipped: Cue \w+ is running/ })
  exactly(t, await call('put_calendar', { name: 'holidays', dates: ['12-25'] }), { name: 'holidays', dates: ['12-25'], ranges: [] })
  exactly(t, await call('list_calendars'), { calendars: [{ name: 'holidays' }], total: 1 })
  const excluded = { cue_id: cue.cue_id, exclude_calendars: ['holidays'], window: '5m' }
  exactly(t, await call('update_cue', excluded), { schedule: { exclude_calendars: ['holidays'], window: '5m' } })
  exactly(t, await call('delete_calendar', { name: 'holidays' }), { failed: /^calendar_in_use/ })
  await call('update_cue', { cue_id: cue.cue_id, exclude_calendars: null, window: null })
  exactly(t, await call('delete_calendar', { name: 'holidays' }), { name: 'holidays', deleted: true })
  const bounded = { cue_id: cue.cue_id, crons: ['@hourly', '@daily'], max_runs: 3 }
  exactly(t, await call('update_cue', bounded), { schedule: { crons: ['@hourly', '@daily'], max_runs: 3 } })
  exactly(t, await call('update_cue', { cue_id: cue.cue_id, every: '1h', max_runs: null }), {
    schedule: { every: '1h', max_runs: undefined }
  })
  const soon = await call('update_cue', { cue_id: cue.cue_id, at: '+10m' })
  t.ok(Math.abs(Date.parse(soon.schedule.at) - Date.now() - 600_000) < 60_000, `${soon.schedule.at} is in ten minutes`)
  exactly(t, await call('update_cue', { cue_id: cue.cue_id, at: '+soon' }), { failed: /whole number and a unit/ })
  await call('update_cue', { cue_id: cue.cue_id, every: '1h' })
  exactly(t, await call('resume_cue', { cue_id: cue.cue_id }), { status: 'active' })
  exactly(t, await call('list_alerts'), { alerts: [], total: 0 })
  exactly(t, await call('delete_cue', { cue_id: cue.cue_id }), { deleted: true })
  exactly(t, await call('get_cue', { cue_id: cue.cue_id }), { failed: /^cue_not_found/ })
})

t.test('an agent looks at the overview, searches, and pages by cursor', async t => {
  const { connect, account } = await serve(t)
  const { call } = await connect(account.api_key)
  for (const task of ['billing', 'cleanup']) await call('create_cue', { name: task, cron: '* * * * *', payload: { task } })
  const overview = await call('get_overview')
  exactly(t, overview, { running: 0, failing: [], upcoming: [{ cue_id: String }, { cue_id: String }], next_step: String })
  t.notOk('per_minute' in overview)
  exactly(t, await call('list_cues', { search: 'BILL' }), { cues: [{ name: 'billing' }], total: 1, next_step: /^get_cue/ })
  const first = await call('list_cues', { limit: 1, count_to: 1 })
  exactly(t, first, { cues: [{ name: 'cleanup' }], total: 1, total_exact: false, next_cursor: String, next_step: 'use cursor for more' })
  const last = await call('list_cues', { limit: 1, cursor: first.next_cursor })
  exactly(t, last, { cues: [{ name: 'billing' }], total: 2, next_step: /^get_cue/ })
  t.notOk('next_cursor' in last)
  const { cue_id } = last.cues[0]
  for (const _ of [1, 2]) await call('fire_cue', { cue_id })
  const { executions, next_cursor: cursor } = await call('list_executions', { limit: 1 })
  exactly(t, await call('list_executions', { limit: 1, cursor }), {
    executions: [{ cue_id, status: 'pending' }],
    total: 2,
    next_step: /^get_execution/
  })
  t.not((await call('list_executions', { cursor })).executions[0].execution_id, executions[0].execution_id)
})

t.test('an agent reads events, and continues from the cursor', async t => {
  const { connect, account, post, fn } = await serve(t)
  const { call } = await connect(account.api_key)
  const { id } = await post('/v1/cues', { name: 'report', key: 'daily', cron: '@yearly', worker: true })
  await fn.publishEvents({})
  const page = await call('list_events', { types: 'cue.*' })
  exactly(t, page, { events: [{ type: 'cue.created', cue_id: id, cue_key: 'daily', about: 'report' }], has_more: false })
  exactly(t, await call('list_events', { after: page.cursor }), { events: [], cursor: page.cursor })
  exactly(t, await call('list_events', { after: 'x' }), { failed: /Not a cursor of this account/ })
})

t.test('an agent upserts a cue by its own key', async t => {
  const { connect, account } = await serve(t)
  const { call } = await connect(account.api_key)
  const definition = { key: 'agents/report', name: 'report', cron: '0 9 * * *', payload: { task: 'report' }, tags: ['agent'] }
  const cue = await call('upsert_cue', definition)
  exactly(t, cue, { key: 'agents/report', changed: true, version: 1, transport: 'worker' })
  exactly(t, await call('upsert_cue', definition), { cue_id: cue.cue_id, changed: false, version: 1 })
  exactly(t, await call('upsert_cue', { ...definition, name: 'other' }), { cue_id: cue.cue_id, changed: true, name: 'other' })
  exactly(t, await call('update_cue', { cue_id: cue.cue_id, name: 'x', if_version: 1 }), { failed: /^version_conflict/ })
  exactly(t, await call('list_cues', { tag: ['agent'] }), { cues: [{ cue_id: cue.cue_id }], total: 1 })
  const once = { name: 'once', cron: '@daily', idempotency_key: 'k' }
  exactly(t, await call('create_cue', once), { cue_id: (await call('create_cue', once)).cue_id })
  exactly(t, await call('upsert_cue', { name: 'x', cron: '@daily' }), { failed: /^Invalid input for upsert_cue/ })
})

t.test('an agent replays what failed, after a dry run', async t => {
  const { connect, account, post, call: http } = await serve(t)
  const { call } = await connect(account.api_key)
  const { id: cue_id } = await post('/v1/cues', { name: 'report', cron: '@yearly', worker: true })
  const { id } = await post(`/v1/cues/${cue_id}/fire`)
  const { claim_token } = await post(`/v1/executions/${id}/claim`, { worker_id: 'w' })
  await http('POST', `/v1/executions/${id}/outcome`, { success: false, error: 'no disk' }, { 'x-claim-token': claim_token })
  exactly(t, await call('list_executions', { dead: true, error: 'DISK' }), { executions: [{ execution_id: id }], total: 1 })
  exactly(t, await call('replay_failed', { cue_id }), { dry_run: true, total: 1, sample: [{ id }], next_step: /dry_run: false/ })
  exactly(t, await call('replay_failed', { error: 'network' }), { total: 0 })
  const operation = await call('replay_failed', { cue_id, dry_run: false, idempotency_key: 'k' })
  exactly(t, operation, { dry_run: false, id: /^op_/, type: 'replay', total: 1, next_step: /get_operation/ })
  exactly(t, await call('get_operation', { operation_id: operation.id }), { status: 'running', errors: [] })
  exactly(t, await call('replay_failed', { dry_run: false }), { failed: /^operation_running/ })
})

t.test('an agent makes a chain, lists it, and has a failed run count', async t => {
  const { connect, account, post, fn, call: http } = await serve(t)
  const { call } = await connect(account.api_key)
  const { cue_id } = await call('create_cue', { name: 'Extract', key: 'extract', cron: '@yearly' })
  const follower = await call('upsert_cue', { name: 'Load', key: 'load', after: { cues: ['extract'], when: 'end' } })
  exactly(t, follower, { schedule: null, after: { cues: ['extract'], when: 'end', mode: 'all', within: '24h' } })
  exactly(t, await call('update_cue', { cue_id: follower.cue_id, after: { when: 'success' } }), { after: { when: 'success' } })
  await call('create_cue', { name: 'Other', cron: '@yearly' })
  exactly(t, await call('list_cues', { chain: 'extract' }), { total: 2 })
  const { id: execution_id } = await post(`/v1/cues/${cue_id}/fire`)
  const { claim_token } = await post(`/v1/executions/${execution_id}/claim`, { worker_id: 'w' })
  await http('POST', `/v1/executions/${execution_id}/outcome`, { success: false }, { 'x-claim-token': claim_token })
  exactly(t, await call('signal_execution', { execution_id, reason: 'good enough' }), { execution_id, next_step: /get_execution/ })
  await fn.startFollowers({})
  exactly(t, await call('get_execution', { execution_id }), { followers: [{ cue_key: 'load', status: 'pending' }] })
  exactly(t, await call('get_cue', { cue_id: follower.cue_id }), { executions: [{ status: 'pending' }], pending_signals: [] })
})

t.test('an agent applies declared cues, first as a dry run', async t => {
  const { connect, account, get } = await serve(t)
  const { call } = await connect(account.api_key)
  const given = { set: 's', cues: [{ key: 'a', name: 'a', cron: '@daily', worker: true, payload: { n: 1 } }] }
  exactly(t, await call('apply', given), { dry_run: true, created: ['a'], next_step: /dry_run: false/ })
  exactly(t, await get('/v1/cues'), { total: 0 })
  exactly(t, await call('apply', { ...given, dry_run: false }), { dry_run: false, created: ['a'] })
  exactly(t, await call('apply', { ...given, cues: [{ ...given.cues[0], payload: { n: 2 } }] }), {
    updated: [{ key: 'a', changes: { payload: { from: { n: 1 }, to: { n: 2 } } } }]
  })
  exactly(t, await call('apply', { ...given, cues: [{ key: 'a' }] }), { failed: /^validation_error: cues\.a\.name: / })
  exactly(t, await call('apply', { set: 's', cues: [], prune: true, dry_run: false }), { pruned: ['a'] })
})

t.test('an agent that has only MCP finishes the work of its cue', async t => {
  const { connect, account, pool } = await serve(t)
  const { call } = await connect(account.api_key)
  const { cue_id } = await call('create_cue', { name: 'job', cron: '@yearly', payload: { task: 'go', n: 1 } })
  exactly(t, await call('claim_next', { worker_id: 'agent', task: 'go' }), { claimed: false, next_step: /wait: 30/ })
  const waiting = call('claim_next', { worker_id: 'agent', task: 'go', wait: 30 })
  const { execution_id } = await call('fire_cue', { cue_id })
  const first = await waiting
  exactly(t, first, { claimed: true, execution_id, cue_id, payload: { task: 'go', n: 1 }, attempt: 1, claim_token: String })
  exactly(t, await call('release_execution', first), { released: true, execution_id, status: 'pending' })
  const { claim_token } = await call('claim_next', { tasks: ['go'] })
  exactly(t, await call('heartbeat_execution', { execution_id, claim_token: first.claim_token }), { failed: /^claim_lost/ })
  exactly(t, await call('heartbeat_execution', { execution_id, claim_token }), { execution_id, lease_extended_until: /Z$/ })
  exactly(t, await call('report_outcome', { execution_id, claim_token: first.claim_token, success: true }), { failed: /^claim_lost/ })
  exactly(t, await call('report_outcome', { execution_id, claim_token, success: true, result: 'done' }), { execution_id })
  const summary = 'ü'.repeat(501)
  exactly(t, await call('report_outcome', { execution_id, claim_token, success: true, summary }), { failed: /summary/ })
  exactly(t, await call('attach_evidence', { execution_id, claim_token, summary }), { execution_id, evidence_updated: true })
  exactly(t, await call('get_execution', { execution_id }), { status: 'success', outcome: { result: 'done', summary: 'ü'.repeat(500) } })

  exactly(
    t,
    await call('verify_execution', { execution_id, reason: 'r'.repeat(2001) }),
    { failed: /reason/ },
    'limits are those of the API'
  )
  exactly(t, await call('verify_execution', { execution_id, valid: false, reason: 'no' }), { outcome_state: 'verification_failed' })
  exactly(t, await call('replay_execution', { execution_id }), { execution_id: String, replayed_from: execution_id })
  exactly(t, await call('list_executions', { limit: 100 }), { total: 2 })
  exactly(t, await call('list_executions', { limit: 101 }), { failed: /limit/ })
  exactly(t, await call('list_executions', { agent: 'x' }), {
    failed: /^validation_error: agent: Unknown query parameter\. This route has cue_id/
  })
  exactly(t, await call('get_usage'), { executions: { used: 2 } })
  const raise = "select cue.raise_alert(c, 'outcome_timeout', 'warning', 'no outcome', '{}', $2) from cue.cues c where id = $1"
  await pool.query(raise, [cue_id, execution_id])
  const { alerts } = await call('list_alerts')
  exactly(t, await call('get_overview'), { alerts: [{ alert_id: alerts[0].alert_id, execution_id }] })
  exactly(t, await call('acknowledge_alert', alerts[0]), { alert_id: alerts[0].alert_id, acknowledged: true })
})

t.test('gives a claim back whose agent has gone', async t => {
  const { port, account, post, get, connect } = await serve(t)
  await connect(account.api_key) // the first request takes longer
  const { id } = await post('/v1/cues', { name: 'job', cron: '@yearly', worker: true })
  const request = fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.api_key}`, 'content-type': 'application/json' },
    body: message('claim_next', '{"wait": 30}'),
    signal: AbortSignal.timeout(1000)
  })
  await t.rejects(request, { name: 'TimeoutError' })
  const { id: execution_id } = await post(`/v1/cues/${id}/fire`)
  const released = (attempts: { error: string }[]) => attempts.some(({ error }) => error === 'released by worker')
  await eventually(async () => released((await get(`/v1/executions/${execution_id}`)).attempt_log))
})

t.test('every argument and every item of a list has a type, and every tool a schema of its result', async t => {
  const { connect, account } = await serve(t)
  const { tools } = await (await connect(account.api_key)).client.listTools()
  const check = (schema: Schema, path: string): void => {
    t.ok(schema.type ?? schema.anyOf, `${path} has a type`)
    for (const branch of schema.anyOf ?? []) check(branch, path)
    if ([schema.type].flat().includes('array')) check(schema.items ?? {}, `${path}[]`)
    for (const [name, member] of Object.entries(schema.properties ?? {})) check(member, `${path}.${name}`)
  }
  for (const { name, inputSchema, outputSchema } of tools) {
    check(inputSchema as Schema, name)
    t.ok(Object.keys(outputSchema?.properties ?? {}).length > 0, `${name} has a schema of its result`)
  }
})

t.test('reads a string that is a JSON object as that object, and keeps other strings', async t => {
  const { connect, account, pool } = await serve(t)
  const { call } = await connect(account.api_key)
  const cue = { name: 'a', cron: '@yearly' }
  const stored = async (cue_id: string) => (await pool.query('select payload, task from cue.cues where id = $1', [cue_id])).rows[0]
  const { cue_id } = await call('create_cue', { ...cue, payload: '{"task": "go"}' })
  t.same(await stored(cue_id), { payload: '{"task": "go"}', task: 'go' })
  for (const text of ['{"n": 12345678901234567890, "task": "go"}', ' {"task": "go"}\n']) {
    await call('update_cue', { cue_id, payload: text })
    t.same(await stored(cue_id), { payload: text.trim(), task: 'go' })
  }
  for (const payload of ['text', '', '{', '{task: go}', '[1]', '5', 'null', '"{}"', '{} {}']) {
    await call('update_cue', { cue_id, payload })
    t.same(await stored(cue_id), { payload: JSON.stringify(payload), task: null }, payload)
  }
  await call('update_cue', { cue_id, payload: '{"task": "go", "a": 1}' })
  const { execution_id } = await call('fire_cue', { cue_id, payload_override: '{"b": 2}' })
  exactly(t, await call('claim_next'), { execution_id, payload: { task: 'go', a: 1, b: 2 } })
  await call('report_outcome', { execution_id, success: true, metadata: '{"m": 1}', artifacts: '["x"]' })
  exactly(t, await call('get_execution', { execution_id }), { outcome: { metadata: { m: 1 }, artifacts: ['x'] } })
  exactly(t, await call('apply', { set: 's', cues: JSON.stringify([{ ...cue, key: 'k', worker: true }]) }), { created: ['k'] })
  exactly(t, await call('apply', { set: 's', cues: 'k' }), { failed: /^validation_error: cues: Input should be a list/ })
})

t.test('a key sees the tools its scopes allow', async t => {
  const { connect, post } = await serve(t)
  const { api_key } = await post('/v1/auth/keys', { label: 'reader', scopes: ['read'] })
  const { client, call } = await connect(api_key)
  const { tools } = await client.listTools()
  t.ok(tools.length > 3)
  for (const tool of tools) t.equal(tool.annotations?.readOnlyHint, true, tool.name)
  t.ok(tools.some(({ name }) => name === 'get_execution'))
  exactly(t, await call('create_cue', { name: 'x', cron: '@daily' }), { failed: /^Tool create_cue not found for this key\./ })
})

t.test('reports what is wrong with invalid input', async t => {
  const { connect, account } = await serve(t)
  const { call } = await connect(account.api_key)
  exactly(t, await call('create_cue', { cron: '@daily' }), { failed: /^Invalid input for create_cue: / })
  exactly(t, await call('create_cue', { name: 'x', cron: '61 * * * *' }), { failed: /^invalid_schedule/ })
})

/** Sends raw text: JSON.stringify cannot write such numbers. */
const digits = '{"float": 1.0, "long": -12345678901234567890}'
const message = (name: string, args: string, id = 1) =>
  `{"jsonrpc": "2.0", "id": ${id}, "method": "tools/call", "params": {"name": "${name}", "arguments": ${args}}}`

t.test('omits large payloads and evidence, and nothing else', async t => {
  const text = 'x'.repeat(100_000)
  const trap = '","retry":{"a":1},"payload":' // as in a response, but within a string
  const { connect, account, post } = await serve(t)
  const { call } = await connect(account.api_key)
  const cue = { name: 'a', cron: '@daily', worker: true }
  const large = await post('/v1/cues', { ...cue, payload: { task: 'go', trap, text } })
  const small = await post('/v1/cues', { ...cue, payload: { trap } })
  exactly(t, await call('get_cue', { cue_id: large.id }), { id: large.id, payload: null, retry: large.retry })
  exactly(t, await call('get_cue', { cue_id: small.id }), { payload: { trap } })
  exactly(t, await call('list_cues', {}), { total: 2, cues: [{ cue_id: small.id }, { cue_id: large.id }] })
  const { id } = await post(`/v1/cues/${large.id}/fire`)
  await post(`/v1/executions/${id}/claim`)
  const artifacts = [`${'y'.repeat(60_000)}${trap}`]
  await post(`/v1/executions/${id}/outcome`, { success: true, metadata: { trap }, artifacts, summary: 'done' })
  const execution = await call('get_execution', { execution_id: id })
  exactly(t, execution, {
    id,
    payload: null,
    payload_omitted: true,
    outcome: { success: true, metadata: { trap }, artifacts, summary: 'done' }
  })
})

t.test('payloads, metadata and artifacts keep all digits in both directions', async t => {
  const { app, call, get, pool, account } = await build(t)
  const accept = { accept: 'application/json, text/event-stream' }
  const ask = async (name: string, args: string) => {
    const { body } = await call('POST', '/mcp', message(name, args), accept)
    const { text } = body.result.content[0]
    t.notOk(body.result.isError, text)
    return text as string
  }
  const created = await ask('create_cue', `{"name": "a", "cron": "@daily", "payload": ${digits}}`)
  const { cue_id } = JSON.parse(created)
  const stored = async () => (await pool.query('select payload from cue.cues where id = $1', [cue_id])).rows[0].payload
  t.equal(await stored(), digits)
  await ask('update_cue', `{"cue_id": "${cue_id}", "payload": [${digits}]}`)
  t.equal(await stored(), `[${digits}]`)
  const shown = await ask('get_cue', `{"cue_id": "${cue_id}"}`)
  t.ok(shown.replace(/(?<=[:,]) /g, '').includes('"payload":[{"float":1.0,"long":-12345678901234567890}]'))
  const headers = { authorization: `Bearer ${account.api_key}`, 'content-type': 'application/json' }
  const raw = await app.inject({ method: 'POST', url: '/mcp', payload: message('get_cue', `{"cue_id": "${cue_id}"}`), headers })
  t.match(raw.body, /"structuredContent":{.*"payload":\[{"float":1\.0,"long":-12345678901234567890}\]/)
  const { id } = JSON.parse(await ask('fire_cue', `{"cue_id": "${cue_id}", "payload_override": ${digits}}`))
  const execution = async () => (await pool.query('select payload, metadata::text, artifacts::text from cue.executions')).rows[0]
  exactly(t, await execution(), { payload: digits })
  const claim = await call('POST', `/v1/executions/${id}/claim`)
  t.equal(claim.status, 200)
  await ask('report_outcome', `{"execution_id": "${id}", "success": true, "metadata": ${digits}, "artifacts": [12345678901234567891]}`)
  await ask('attach_evidence', `{"execution_id": "${id}", "artifacts": [12345678901234567892]}`)
  exactly(t, await execution(), {
    metadata: '{"long": -12345678901234567890, "float": 1.0}',
    artifacts: '[12345678901234567891, 12345678901234567892]'
  })
  exactly(t, await get('/v1/cues'), { total: 1 })

  const batch = [
    message('list_cues', '{"limit": 1.0}', 1),
    message('create_cue', `{"name": "b", "cron": "@daily", "payload": ${digits}}`, 2)
  ]
  const { body } = await call('POST', '/mcp', `[${batch}]`, accept)
  exactly(t, body, [{ id: 1, result: { content: [{ text: /"total":/ }] } }, { id: 2 }], 'a number that is no free JSON is one')
  const { rows } = await pool.query('select payload from cue.cues where account_id = $1 order by name', [account.id])
  t.strictSame(pluck(rows, 'payload'), [`[${digits}]`, digits])

  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  const deep = (levels: number) => message('update_cue', `{"cue_id": "${cue_id}", "payload": ${nested(levels)}}`)
  await call('POST', '/mcp', `[${deep(64)}]`, accept)
  t.equal(await stored(), nested(64), 'as deep as elsewhere')
  exactly(t, (await call('POST', '/mcp', deep(65), accept)).body, { result: { isError: true } })
  for (const odd of ['[null]', 'null', '5', '[[]]']) t.equal((await call('POST', '/mcp', odd, accept)).status, 400, odd)
  for (const odd of ['null', '[]']) {
    const { status, body } = await call('POST', '/mcp', message('create_cue', odd), accept)
    t.same([status, body.id, body.error.code], [200, 1, -32602], odd)
  }
})

t.test('a tool call counts as one request, and each further one in the same message as another', async t => {
  const { connect, account, call, pool } = await serve(t, { RATE_LIMIT: 'on' })
  const used = async () => {
    const { rows } = await pool.query("select sum(cue.requests_used(subject)) as used from cue.rate_windows where subject like 'key:%'")
    return Number(rows[0].used)
  }
  const { call: callTool } = await connect(account.api_key)
  // initialize, its notification, the list of tools, and the client's attempt to open a stream, which it doesn't await.
  await eventually(async () => (await used()) === 4)
  const before = await used()
  await callTool('list_alerts')
  t.equal(await used(), before + 1, 'the call')
  const message = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'list_alerts', arguments: {} } }
  const accept = { accept: 'application/json, text/event-stream' }
  const { body } = await call(
    'POST',
    '/mcp',
    [1, 2, 3].map(id => ({ ...message, id })),
    accept
  )
  t.equal(body.length, 3)
  t.equal(await used(), before + 4, 'three calls')
  const headers = { 'x-pgcue-counted': 'undefined' }
  await call('GET', '/v1/alerts', undefined, headers)
  t.equal(await used(), before + 5, 'clients cannot set the internal header')
})

t.test('rejects a wrong key, no key and other methods like the API', async t => {
  const { connect, as, call } = await serve(t)
  await t.rejects(connect('svc_sk_wrong'))
  exactly(t, await as(null).call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }), { status: 401 })
  exactly(t, await call('GET', '/mcp'), { status: 405 })
})

t.test('the command line serves the same on standard input and output', async t => {
  const { account, port } = await serve(t)
  const client = new Client({ name: 'test', version: '1' })
  const main = new URL('../../src/cli/main.ts', import.meta.url).pathname
  const env = { PATH: process.env.PATH ?? '', PGCUE_API_KEY: account.api_key, PGCUE_BASE_URL: `http://127.0.0.1:${port}` }
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [main, 'mcp'], env }) as never)
  t.teardown(() => client.close())
  t.ok((await client.listTools()).tools.some(({ name }) => name === 'create_cue'))
  const { content } = await client.callTool({ name: 'create_cue', arguments: { name: 'report', cron: '@daily' } })
  exactly(t, JSON.parse((content as Content)[0]!.text), { cue_id: /^cue_/ })
})

t.test('skips a byte order mark, and responds to an invalid line and to the next one', async t => {
  const { cli } = await cliStage(t)
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const { code, out } = await cli(['mcp'], { stdin: `\ufeff${ping}\nnull\n5\n{\n${ping}\n` })
  t.equal(code, 0)
  const answers = out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line)) // in any order
  t.same(answers.map(({ error }) => error?.code ?? 0).sort(), [-32600, -32600, -32700, 0, 0])
})

t.test('rejects an unacceptable request before reading it, a call without params, and too many messages', async t => {
  const { app, call, account } = await build(t)
  const stream = new Readable({ read() {} }) // never ends
  const { statusCode, body } = await app.inject({
    method: 'POST',
    url: '/mcp',
    payload: stream,
    headers: { authorization: `Bearer ${account.api_key}`, 'content-type': 'application/json', accept: 'application/json' }
  })
  const message = 'Not Acceptable: Client must accept both application/json and text/event-stream'
  t.same([statusCode, JSON.parse(body)], [406, { jsonrpc: '2.0', error: { code: -32000, message }, id: null }])

  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  for (const accept of [undefined, '', '*/*', 'Application/JSON;q=0.9, TEXT/Event-Stream', 'text/html, */*;q=0.8', 'application/*, text/*'])
    exactly(t, await call('POST', '/mcp', ping, accept === undefined ? {} : { accept }), { status: 200, body: { id: 1, result: {} } })
  for (const accept of ['application/json', 'text/event-stream', 'text/html', 'application/jsonp, text/event-stream'])
    t.equal((await call('POST', '/mcp', ping, { accept })).status, 406, accept)

  const accept = { accept: 'application/json, text/event-stream' }
  for (const params of [{}, { params: {} }, { params: { name: 5 } }]) {
    const answer = await call('POST', '/mcp', { jsonrpc: '2.0', id: 7, method: 'tools/call', ...params }, accept)
    t.same([answer.status, answer.body.id, answer.body.error.code], [200, 7, -32602])
  }
  const pings = (count: number) => Array.from({ length: count }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }))
  t.same((await call('POST', '/mcp', pings(20), accept)).body.length, 20)
  const answer = await call('POST', '/mcp', pings(21), accept)
  t.same([answer.status, answer.body.error], [400, { code: -32600, message: 'Send at most 20 messages in a request.' }])
})
