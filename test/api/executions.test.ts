import t from 'tap'
import { exactly, pluck } from '../support/exactly.ts'
import { service, start, webhook } from '../support/executions-stage.ts'
import { error } from '../support/setup.ts'
import { refused, resultsOf } from '../support/stage.ts'

t.test('lists executions with all members, newest first', async t => {
  const { get, cue, ran, fire, clock } = await service()
  const id = await cue()
  const first = await ran(id)
  clock.advance('1 minute')
  const second = await fire(id)
  const list = await get('/v1/executions')
  exactly(t, list, { total: 2, total_exact: true, limit: 20, offset: 0, has_more: false })
  t.same(list.executions[1], {
    id: first,
    cue_id: id,
    cue_name: 'backup',
    scheduled_for: start,
    due_at: start,
    status: 'success',
    outcome_state: null,
    outcome_success: null,
    triggered_by: 'manual_fire',
    replayed_from: null,
    attempts: 1,
    http_status: 200,
    error_message: null,
    started_at: start,
    last_attempt_at: start,
    delivered_at: start,
    next_retry: null,
    claimed_by_worker: null,
    claimed_at: null,
    last_heartbeat_at: null,
    lease_expires_at: null,
    outcome: null,
    costs: [],
    held: null,
    held_ms: null,
    missed_reason: null,
    approval: null,
    parents: [],
    template_truncated: false,
    created_at: start,
    updated_at: start
  })
  exactly(t, list.executions[0], { id: second, status: 'pending', attempts: 0, started_at: null })
})

t.test('an execution shows its payload, the response and its attempts', async t => {
  const { get, cue, ran, begin, fn, clock } = await service()
  const id = await ran(await cue({ ...webhook, payload: { n: 1 }, retry: { max_attempts: 2, backoff_minutes: [1] } }), refused)
  const { next_retry } = await get(`/v1/executions/${id}`)
  t.ok(Date.parse(next_retry) >= Date.parse(start) + 60_000)
  clock.advance('2 minutes')
  await fn.settleAttempts(resultsOf(await begin(), { body: '{"fine": true}' }, clock.now()))
  const second = clock.now().toISOString()
  const execution = await get(`/v1/executions/${id}`)
  exactly(t, execution, { id, status: 'success', attempts: 2, payload: { n: 1 }, response_body: '{"fine": true}', next_retry: null })
  const attempt = { http_status: 500, duration_ms: 5, worker_id: null, response_headers: null, response_body: null }
  const response = { response_headers: refused.headers, response_body: refused.body }
  t.same(execution.attempt_log, [
    {
      ...attempt,
      attempt: 1,
      result: 'failed',
      error: refused.error,
      started_at: start,
      finished_at: '2030-01-15T09:00:00.005Z',
      ...response
    },
    {
      ...attempt,
      attempt: 2,
      result: 'success',
      error: null,
      http_status: 200,
      started_at: second,
      finished_at: second.replace('.000', '.005')
    }
  ])
})

t.test('payloads, metadata and artifacts keep all digits and nulls', async t => {
  const { app, account, cue, fire, set, call } = await service()
  const payload = '{"big": 123456789012345678901234567890, "float": 1.0, "none": null}'
  const id = await fire(await cue(), { payload_override: { replaced: true }, merge_strategy: 'replace' })
  await set(
    id,
    `payload = '${payload}', outcome_success = true, outcome_recorded_at = created_at, outcome_state = 'reported_success', result = 'done',
     metadata = '${payload}', artifacts = '[{"id": 98765432109876543210, "url": null}]'`
  )
  for (const path of [`/v1/executions/${id}`, '/v1/executions']) {
    const answer = await app.inject({ url: path, headers: { authorization: `Bearer ${account.api_key}` } })
    t.ok(answer.body.includes('123456789012345678901234567890'), answer.body)
    t.ok(answer.body.includes('[{"id": 98765432109876543210, "url": null}]'), answer.body)
    t.ok(answer.body.includes('"none": null'), answer.body)
  }
  exactly(t, (await call('GET', `/v1/executions/${id}`)).body.outcome, { success: true, result: 'done', recorded_at: start })
})

// Each filter, with a column by which one of two executions matches.
const filters: [query: string, columns: string | null][] = [
  ['status=missed', `status = 'missed', ended_at = now(), attempt_due_at = null`],
  ['status=retry_ready', `status = 'retry_ready', started_at = now()`],
  ['status=delivering', `status = 'delivering', started_at = now(), attempt_due_at = null, flight_id = 1`],
  [
    'outcome_state=unknown',
    `status = 'outcome_timeout', outcome_state = 'unknown', started_at = now(), ended_at = now(), attempt_due_at = null`
  ],
  ['outcome_state=verified_success', `outcome_state = 'verified_success', outcome_success = true, outcome_recorded_at = now()`],
  ['result_type=pull_request', `result_type = 'pull_request'`],
  ['has_evidence=true', `external_id = 'x'`],
  ['has_evidence=true', `result_url = 'https://example.com'`],
  ['has_evidence=true', `result_ref = 'x'`],
  ['has_evidence=true', `artifacts = '[1]'`],
  ['triggered_by=replay', `triggered_by = 'replay'`],
  ['triggered_by=schedule', `triggered_by = 'schedule'`],
  ['worker_id=host-1', `claimed_by_worker = 'host-1'`],
  ['since=2030-01-15T09:30:00Z', null],
  ['since=2030-01-15T10:30:00%2B01:00', null]
]
t.test('each filter returns and counts the matching executions', async t => {
  const { get, cue, fire, set, clock, pool, account } = await service()
  const id = await cue()
  for (const [query, columns] of filters) {
    await pool.query('delete from cue.executions where account_id = $1', [account.id])
    await pool.query('delete from cue.fires where account_id = $1', [account.id])
    await fire(id)
    if (columns === null) clock.advance('30 minutes')
    const match = await fire(id)
    if (columns !== null) await set(match, columns)
    else t.equal(clock.now().toISOString(), '2030-01-15T09:30:00.000Z')
    const list = await get(`/v1/executions?${query}`)
    t.same(pluck(list.executions, 'id'), [match], query)
    exactly(t, list, { total: 1, has_more: false }, query)
    clock.set(start)
  }
  t.equal((await get('/v1/executions?has_evidence=false')).total, 2)
})

t.test('since is inclusive and until exclusive; both compare created_at', async t => {
  const { get, cue, fire, clock } = await service()
  const id = await cue()
  const made: string[] = []
  for (let i = 0; i < 3; i++) {
    made.push(await fire(id))
    clock.advance('1 second')
  }
  const ids = async (query: string) => (await get(`/v1/executions?${query}`)).executions.map((execution: { id: string }) => execution.id)
  t.same(await ids('since=2030-01-15T09:00:01Z'), [made[2], made[1]])
  t.same(await ids('since=2030-01-15T09:00:01.001Z'), [made[2]])
  t.same(await ids('until=2030-01-15T09:00:01Z'), [made[0]])
  t.same(await ids('until=2030-01-15T09:00:01.001Z'), [made[1], made[0]])
  t.same(await ids('since=2030-01-15T09:00:01Z&until=2030-01-15T09:00:02Z'), [made[1]])
  t.same(await ids('since=2031-01-01T00:00:00Z'), [])
  t.same(await ids('until=1969-01-01T00:00:00Z'), [])
  t.same(await ids('since=0001-01-01T00:00:00Z&until=9999-12-31T23:59:59Z'), made.toReversed())
})

t.test("returns no executions for a cue_id that is unknown, malformed or another account's", async t => {
  const { get, as, register, cue, fire } = await service()
  const id = await cue()
  await fire(id)
  t.equal((await get(`/v1/executions?cue_id=${id}`)).total, 1)
  const other = as(await register())
  for (const cue_id of [id, 'cue_000000000000', 'x', '', '%2F', '\u{1f600}']) {
    exactly(t, await other.get(`/v1/executions?cue_id=${encodeURIComponent(cue_id)}`), { executions: [], total: 0, has_more: false })
  }
})

t.test('totals are exact up to 10,000, and has_more beyond', async t => {
  const { get, cue, pool, account } = await service()
  const id = await cue()
  const add = (count: number) =>
    pool.query(
      `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, started_at, ended_at, created_at, updated_at)
       select cue.uuid_v7($4), $1, $2, 'webhook', 'success', 'schedule', $4, '{}', $4, $4, $4, $4 from generate_series(1, $3)`,
      [account.id, id, count, start]
    )
  await add(10_000)
  for (const filter of ['', `cue_id=${id}`, 'status=success']) {
    exactly(t, await get(`/v1/executions?${filter}`), { total: 10_000, total_exact: true, has_more: true }, filter)
    exactly(t, await get(`/v1/executions?${filter}&offset=9980`), { total: 10_000, total_exact: true, has_more: false }, filter)
  }
  await add(30)
  for (const filter of ['', `cue_id=${id}`, 'status=success']) {
    exactly(t, await get(`/v1/executions?${filter}`), { total: 10_000, total_exact: false, has_more: true }, filter)
    exactly(t, await get(`/v1/executions?${filter}&offset=10000`), { total: 10_000, total_exact: false, has_more: true }, filter)
    exactly(t, await get(`/v1/executions?${filter}&offset=10010`), { total: 10_000, total_exact: false, has_more: false }, filter)
    exactly(
      t,
      await get(`/v1/executions?${filter}&offset=20000`),
      { executions: [], total: 10_000, total_exact: false, has_more: false },
      filter
    )
  }
})

t.test('executions of a deleted cue disappear at once from every response', async t => {
  const { get, call, del, cue, ran, fire } = await service()
  const [gone, kept] = [await cue(), await cue()]
  const id = await ran(gone, { ...refused, gone: true })
  const other = await fire(kept)
  await del(`/v1/cues/${gone}`)
  exactly(t, await get('/v1/executions'), { total: 1, has_more: false, executions: [{ id: other }] })
  exactly(t, await get(`/v1/executions?cue_id=${gone}`), { total: 0, executions: [] })
  exactly(t, await get('/v1/executions?status=failed'), { total: 0, executions: [] })
  for (const [method, path] of [
    ['GET', ''],
    ['POST', '/replay'],
    ['POST', '/cancel']
  ] as const) {
    exactly(t, await call(method, `/v1/executions/${id}${path}`), error('execution_not_found', 404))
  }
})
