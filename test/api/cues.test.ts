import t from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { lookAhead } from '../support/firing-stage.ts'
import { build, error } from '../support/setup.ts'
import { cueDefaults } from '../support/stage.ts'

const start = '2030-01-07T08:30:00Z'
const url = 'http://127.0.0.1:5555/hook'
const hourly = { name: 'Hourly', schedule: { cron: '0 * * * *' }, callback: { url } }

t.test('creating a cue returns all members, with defaults', async t => {
  const { call, get } = await build(t, start)
  const { status, body } = await call('POST', '/v1/cues', hourly)
  t.equal(status, 201)
  t.match(body.id, /^cue_[0-9A-Za-z]{12}$/)
  t.strictSame(body, {
    id: body.id,
    paused_at: null,
    paused_by: null,
    pause_reason: null,
    paused_until: null,
    completed_reason: null,
    key: null,
    name: 'Hourly',
    description: null,
    tags: [],
    managed_by: null,
    status: 'active',
    transport: 'webhook',
    schedule: { type: 'recurring', cron: '0 * * * *', timezone: 'UTC' },
    callback: { url, method: 'POST', headers: {} },
    payload: {},
    retry: { max_attempts: 3, backoff_minutes: [1, 2, 4] },
    on_failure: { email: true, webhook: null, pause: false },
    delivery: null,
    alerts: null,
    catch_up: 'run_once_if_missed',
    overlap: 'allow',
    gate: null,
    after: null,
    approval: null,
    template: false,
    verification: null,
    next_run: '2030-01-07T09:00:00.000Z',
    next_slot: '2030-01-07T09:00:00.000Z',
    last_run: null,
    run_count: 0,
    fired_count: 0,
    version: 1,
    warning: null,
    created_at: '2030-01-07T08:30:00.000Z',
    updated_at: '2030-01-07T08:30:00.000Z'
  })
  t.strictSame(await get(`/v1/cues/${body.id}`), {
    ...body,
    executions: [],
    execution_total: 0,
    missed: [],
    followers: [],
    pending_signals: []
  })
  t.strictSame((await get('/v1/cues')).cues, [body])
})

t.test('every member reads back as it was sent', async t => {
  const { post, get } = await build(t, start)
  const given = {
    name: 'Grüße 中文 😀 \u0001 "quoted" \\',
    description: 'line one\nline two',
    key: 'a/b:c',
    tags: ['billing', 'größer als\n🙂'],
    transport: 'webhook',
    schedule: { type: 'once', at: '2030-06-01T09:00:00.123+02:00', timezone: 'europe/berlin' },
    callback: { url: `${url}?a=1&b=%20#part`, method: 'PATCH', headers: { 'X-Token': 'secret', 'x-empty': '' } },
    payload: { task: 'sync', list: [1, 'two', null, { deep: [[]] }] },
    retry: { max_attempts: 10, backoff_minutes: [0, 0.1, 2.5, 1440] },
    on_failure: { email: false, webhook: 'http://127.0.0.1:5555/failed', pause: true },
    delivery: { timeout_seconds: 3600, outcome_deadline_seconds: 1, claim_timeout_seconds: 604_800, await_outcome: false },
    alerts: { consecutive_failures: 100, missed_window_multiplier: 10 },
    catch_up: 'replay_all_missed',
    overlap: 'queue_one',
    verification: { mode: 'require_artifacts' }
  }
  const created = await post('/v1/cues', given)
  const expected = {
    ...given,
    schedule: { type: 'once', at: '2030-06-01T07:00:00.123Z', timezone: 'Europe/Berlin' },
    callback: { ...given.callback, headers: { 'X-Token': '********', 'x-empty': '********' } },
    next_run: '2030-06-01T07:00:00.123Z'
  }
  exactly(t, created, expected)
  exactly(t, await get(`/v1/cues/${created.id}`), expected)
})

t.test('the flat shorthand creates the same cues', async t => {
  const { post, call } = await build(t, start)
  exactly(
    t,
    await post('/v1/cues', { name: 'a', cron: '0 9 * * 1', timezone: 'Asia/Tokyo', callback_url: url, payload: [1], description: 'd' }),
    {
      transport: 'webhook',
      schedule: { type: 'recurring', cron: '0 9 * * 1', timezone: 'Asia/Tokyo' },
      callback: { url },
      payload: [1],
      description: 'd'
    }
  )
  exactly(t, await post('/v1/cues', { name: 'b', at: '2031-01-01T00:00:00Z', worker: true }), {
    transport: 'worker',
    schedule: { type: 'once', at: '2031-01-01T00:00:00.000Z', timezone: 'UTC' },
    callback: { url: null }
  })
  t.equal(
    (await call('POST', '/v1/cues', { ...hourly, id: 'cue_mine', status: 'failed', run_count: 7, retry: { unknown: 1 } })).status,
    201
  )
})

t.test('a payload keeps all digits', async t => {
  const { app, account, call } = await build(t, start)
  const headers = { authorization: `Bearer ${account.api_key}` }
  const cases: [string, string][] = [
    ['12345678901234567890123', '12345678901234567890123'],
    ['{"id":9007199254740993,"n":-0,"x":1.0,"y":1.5e-7}', '{"id": 9007199254740993, "n": 0, "x": 1.0, "y": 1.5e-07}'],
    ['"\\ud83d\\ude00 \\u007f é"', '"\\ud83d\\ude00 \\u007f \\u00e9"'],
    ['{"b":1,"a":2,"__proto__":{"c":3}}', '{"__proto__": {"c": 3}, "a": 2, "b": 1}'],
    ['[]', '[]'],
    ['false', 'false'],
    ['null', '{}']
  ]
  for (const [given, expected] of cases) {
    const { status, body } = await call('POST', '/v1/cues', `{"name":"p","cron":"@daily","worker":true,"payload":${given}}`)
    t.equal(status, 201, given)
    for (const path of ['/v1/cues?limit=1', `/v1/cues/${body.id}`]) {
      t.ok((await app.inject({ url: path, headers })).body.includes(`"payload":${expected},"retry"`), `${given} at ${path}`)
    }
    await call('DELETE', `/v1/cues/${body.id}`)
  }
})

t.test('the detail shows the last ten executions and missed slots', async t => {
  const { post, get, clock, fn, account } = await build(t, start)
  const { id } = await post('/v1/cues', { ...hourly, transport: 'worker' })
  const fired: string[] = []
  for (let i = 0; i < 12; i++) {
    clock.advance('10 minutes')
    fired.unshift((await post(`/v1/cues/${id}/fire`)).id)
  }
  await fn.cancelExecution({ account_id: account.id, execution_id: fired[0]! })
  await fn.catchUpCues({
    cues: JSON.stringify([
      {
        cue_id: id,
        version: 1,
        expected: '2030-01-07T09:00:00Z',
        next_run: '2030-01-07T11:00:00Z',
        dropped: { first: '2030-01-07T09:00:00Z', last: '2030-01-07T10:00:00Z', count: 2 }
      }
    ])
  })
  const detail = await get(`/v1/cues/${id}`)
  exactly(t, detail, {
    execution_total: 12,
    run_count: 12,
    fired_count: 0,
    last_run: null,
    next_run: '2030-01-07T11:00:00.000Z'
  })
  t.same(pluck(detail.executions, 'id'), fired.slice(0, 10))
  const { payload, response_body, attempt_log, ...whole } = await get(`/v1/executions/${fired[1]}`)
  t.strictSame(detail.executions[1], whole)
  t.equal(detail.executions[0].status, 'failed')
  t.strictSame(detail.missed, [
    {
      first: '2030-01-07T09:00:00.000Z',
      last: '2030-01-07T10:00:00.000Z',
      count: 2,
      policy: 'run_once_if_missed',
      reason: 'service_away',
      recorded_at: '2030-01-07T10:30:00.000Z'
    }
  ])
})

t.test('an execution in the detail has its outcome with all evidence and digits', async t => {
  const { app, post, get, account } = await build(t, start)
  const { id } = await post('/v1/cues', { ...hourly, transport: 'worker' })
  const execution = await post(`/v1/cues/${id}/fire`)
  await post(`/v1/executions/${execution.id}/claim`)
  const report = '{"success": true, "result": "done", "external_id": "x-1", "artifacts": ["a"], "metadata": {"n": 12345678901234567890}}'
  await post(`/v1/executions/${execution.id}/outcome`, report)
  const { payload, response_body, attempt_log, ...whole } = await get(`/v1/executions/${execution.id}`)
  const { body } = await app.inject({ url: `/v1/cues/${id}`, headers: { authorization: `Bearer ${account.api_key}` } })
  t.strictSame(JSON.parse(body).executions, [whole])
  t.equal(/"metadata":(.*?\})/.exec(body)?.[1]?.replaceAll(' ', ''), '{"n":12345678901234567890}')
})

t.test('the plan allows exactly 10 of 25 simultaneous creations', async t => {
  const { call, get, del } = await build(t, start)
  const answers = await Promise.all(Array.from({ length: 25 }, () => call('POST', '/v1/cues', hourly)))
  t.same(
    [201, 403].map(wanted => answers.filter(({ status }) => status === wanted).length),
    [10, 15]
  )
  exactly(t, answers.find(({ status }) => status === 403)?.body, { error: { code: 'cue_limit_exceeded', status: 403 } })
  const { total, cues } = await get('/v1/cues')
  t.equal(total, 10)
  await del(`/v1/cues/${cues[0].id}`)
  t.equal((await call('POST', '/v1/cues', hourly)).status, 201, 'a deleted cue makes room')
})

t.test('cached room for cues never exceeds the limit, nor refuses a cue within it', async t => {
  const { fn, pool } = await build(t, start)
  const { rows } = await pool.query('select id, (select cues from cue.plans where plan = $1) as usual from cue.accounts', ['free'])
  const account_id = rows[0].id
  const counted: string[] = []
  let limit = rows[0].usual
  let seed = 11
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  for (let step = 0; step < 150; step++) {
    const what = random(10)
    if (what < 6) {
      const n = 1 + random(4)
      const made = await fn.createEachCue({
        account_ids: Array(n).fill(account_id),
        cues: JSON.stringify(Array(n).fill(cueDefaults)),
        next_runs: Array(n).fill(null)
      })
      const ids = made.flatMap(({ id }) => id ?? [])
      t.equal(ids.length, Math.min(n, Math.max(0, limit - counted.length)), `step ${step}: ${counted.length} of ${limit}, and ${n} more`)
      counted.push(...ids)
    } else if (what < 8 && counted.length > 0) {
      const [id] = counted.splice(random(counted.length), 1)
      if (what === 6) await fn.deleteCues({ account_id, cue_ids: [id!] })
      else await pool.query("update cue.cues set status = 'completed' where id = $1", [id])
    } else if (what === 8) {
      limit = 5 + random(12)
      await pool.query("update cue.plans set cues = $1 where plan = 'free'", [limit])
    } else await pool.query('truncate cue.cue_rooms') // as a crash does
  }
})

t.test('simultaneous reads and creations each get their own result', async t => {
  const { call, get, as, register, account, post } = await build(t, start)
  const other = await register()
  const [mine, theirs] = [await post('/v1/cues', hourly), await as(other).post('/v1/cues', hourly)]
  const answers = await Promise.all(
    [account, other].flatMap(who => [mine, theirs].flatMap(({ id }) => [1, 2, 3].map(() => as(who).call('GET', `/v1/cues/${id}`))))
  )
  t.same(
    answers.map(({ status, body }) => body.id ?? status),
    [mine.id, 404, 404, theirs.id].flatMap(one => [one, one, one])
  )
  const names = Array.from({ length: 18 }, (_, n) => `at once ${n}`)
  const made = await Promise.all(names.map((name, n) => as(n % 2 ? other : account).call('POST', '/v1/cues', { ...hourly, name })))
  t.same(
    made.map(({ status, body }) => [status, body.name]),
    names.map(name => [201, name])
  )
  exactly(t, await Promise.all([get('/v1/cues'), as(other).get('/v1/cues')]), [{ total: 10 }, { total: 10 }])
  t.equal((await call('POST', '/v1/cues', hourly)).status, 403)
})

t.test('a deleted cue disappears at once, with its history and waiting executions', async t => {
  const { call, post, get, fn, db, clock } = await build(t, start)
  const { id } = await post('/v1/cues', hourly)
  await post(`/v1/cues/${id}/fire`)
  t.equal((await call('DELETE', `/v1/cues/${id}`)).status, 204)
  clock.advance('1 hour')
  t.strictSame(await lookAhead(fn, { until: clock.now() }), [], 'never due again')
  t.strictSame(await beginWaiting(fn, { limit: 10 }), [], 'waiting attempts are not begun')
  t.strictSame(await db.selectFrom('execution_view').selectAll().execute(), [], 'its history is hidden')
  exactly(t, await get('/v1/cues'), { cues: [], total: 0 })
  for (const [method, path, body] of [
    ['GET', ''],
    ['PATCH', '', { name: 'x' }],
    ['DELETE', ''],
    ['POST', '/fire', {}]
  ] as const) {
    exactly(t, await call(method, `/v1/cues/${id}${path}`, body), error('cue_not_found', 404), method + path)
  }
})

t.test('deletes several cues and names those not found', async t => {
  const { call, post, get, register, as } = await build(t, start)
  const other = await register()
  const foreign = (await as(other).post('/v1/cues', hourly)).id
  const ids = await Promise.all([1, 2, 3].map(async () => (await post('/v1/cues', hourly)).id))
  const unknown = ['cue_000000000000', 'nonsense', '']
  const body = { ids: [ids[0], foreign, ids[1], ...unknown, ids[0]] }
  for (const headers of [{}, { 'x-confirm-destructive': 'yes' }] as Record<string, string>[]) {
    exactly(t, await call('POST', '/v1/cues/bulk-delete', body, headers), error('confirmation_required', 400))
  }
  const answer = await call('POST', '/v1/cues/bulk-delete', body, { 'x-confirm-destructive': 'true' })
  t.strictSame([answer.status, answer.body], [200, { deleted: [ids[0], ids[1]], skipped: [foreign, ...unknown] }])
  exactly(t, await get('/v1/cues'), { total: 1, cues: [{ id: ids[2] }] })
  t.equal((await as(other).get('/v1/cues')).total, 1)
})
