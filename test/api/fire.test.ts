import t, { type Test } from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const base = { name: 'n', schedule: { cron: '0 * * * *' }, callback: { url: 'http://127.0.0.1:5555/hook' } }
const refused = (status: number, code: string) => ({ status, body: { error: { code, status } } })

/** The service with a cue, and members of an execution that responses don't contain. */
const setup = async (t: Test, cue: object = {}, env: Record<string, string> = {}) => {
  const built = await build(t, start, { env })
  const { id } = await built.post('/v1/cues', { ...base, ...cue })
  const fire = (body?: object | string) => built.call('POST', `/v1/cues/${id}/fire`, body)
  const stored = async (execution_id: string) =>
    (
      await built.pool.query(
        `select v.payload, e.task, e.attempt_due_at, e.claimable_at, e.transport
           from cue.executions e join cue.execution_view v using (id) where e.id = $1`,
        [execution_id]
      )
    ).rows[0]
  return { ...built, id, fire, stored }
}

t.test('firing creates a pending execution', async t => {
  for (const transport of ['webhook', 'worker']) {
    const { id, fire, stored, get, pool } = await setup(t, { transport, payload: { task: 'sync', n: 1 } })
    const { status, body } = await fire()
    t.strictSame(
      [status, body],
      [200, { id: body.id, cue_id: id, scheduled_for: '2030-01-07T08:30:00.000Z', status: 'pending', triggered_by: 'manual_fire' }]
    )
    const now = new Date(start)
    const waits = transport === 'worker' ? { attempt_due_at: null, claimable_at: now } : { attempt_due_at: now, claimable_at: null }
    t.strictSame(await stored(body.id), { payload: '{"n": 1, "task": "sync"}', task: 'sync', transport, ...waits })
    const { rows: jobs } = await pool.query("select id from pgboss.job where name = 'attempts'")
    t.same(jobs, transport === 'worker' ? [] : [{ id: body.id }])
    exactly(t, await get(`/v1/cues/${id}`), {
      run_count: 1,
      fired_count: 0,
      next_run: '2030-01-07T09:00:00.000Z',
      executions: [{ id: body.id }]
    })
  }
})

t.test('a paused cue can be fired', async t => {
  const { id, fire, patch } = await setup(t)
  await patch(`/v1/cues/${id}`, { status: 'paused' })
  t.equal((await fire({})).status, 200)
})

t.test('an override is merged into the payload or replaces it', async t => {
  const { fire, stored } = await setup(t, { payload: { task: 'sync', deep: { a: 1 }, kept: true } })
  const cases: [string, string, string | null][] = [
    [
      '{"payload_override":{"deep":{"b":1.0},"big":12345678901234567890}}',
      '{"big": 12345678901234567890, "deep": {"b": 1.0}, "kept": true, "task": "sync"}',
      'sync'
    ],
    ['{"payload_override":{"task":"other"},"merge_strategy":"merge"}', '{"deep": {"a": 1}, "kept": true, "task": "other"}', 'other'],
    ['{"payload_override":{"task":7},"merge_strategy":"replace"}', '{"task": 7}', null],
    ['{"payload_override":[1],"merge_strategy":"merge"}', '[1]', null],
    ['{"payload_override":null,"merge_strategy":"replace"}', '{"deep": {"a": 1}, "kept": true, "task": "sync"}', 'sync'],
    ['{"merge_strategy":"replace"}', '{"deep": {"a": 1}, "kept": true, "task": "sync"}', 'sync']
  ]
  for (const [body, payload, task] of cases) exactly(t, await stored((await fire(body)).body.id), { payload, task }, body)
})

t.test('merges an override with the payload of the version that runs', async t => {
  const { app, id, fire, stored, patch } = await setup(t, { payload: { version: 1 } })
  const { fireCue } = app.fn
  app.fn.fireCue = async args => {
    app.fn.fireCue = fireCue
    await patch(`/v1/cues/${id}`, { payload: { version: 2 } }) // between reading and firing
    return fireCue(args)
  }
  const { status, body } = await fire({ payload_override: { extra: true } })
  t.equal(status, 200)
  t.equal((await stored(body.id)).payload, '{"extra": true, "version": 2}')
})

t.test('responds with 503 if the cue keeps changing during a fire', async t => {
  const { app, id, fire, patch, get } = await setup(t)
  const { fireCue } = app.fn
  let tries = 0
  app.fn.fireCue = async args => {
    await patch(`/v1/cues/${id}`, { name: `n${++tries}` })
    return fireCue(args)
  }
  exactly(t, await fire({ payload_override: { a: 1 } }), { ...refused(503, 'unavailable'), headers: { 'retry-after': /^\d+$/ } })
  t.equal(tries, 6)
  exactly(t, await get(`/v1/cues/${id}`), { run_count: 0, execution_total: 0 })
})

t.test('a deferred fire waits until send_at', async t => {
  const { fire, fn, clock } = await setup(t)
  const { body } = await fire({ send_at: '2030-01-07T10:00:00+01:00' })
  exactly(t, body, { scheduled_for: '2030-01-07T09:00:00.000Z', status: 'pending' })
  clock.advance('29 minutes')
  t.same(await beginWaiting(fn, { limit: 10 }), [])
  clock.advance('1 minute')
  const begun = await beginWaiting(fn, { limit: 10 })
  exactly(t, begun, [{ execution_id: body.id, plain: true }])
})

t.test('a past send_at fires now', async t => {
  const { fire } = await setup(t)
  exactly(t, (await fire({ send_at: '2020-01-01T00:00:00Z' })).body, { scheduled_for: '2030-01-07T08:30:00.000Z' })
})

t.test('rejects invalid requests and fires nothing', async t => {
  const { id, fire, get } = await setup(t, { payload: { text: 'x'.repeat(600_000) } })
  const cases: [object | string, number, string][] = [
    [{ payload: {} }, 422, 'validation_error'],
    [{ merge_strategy: 'deep' }, 422, 'validation_error'],
    [{ send_at: '2030-01-08T00:00:00' }, 422, 'validation_error'],
    [{ send_at: 'soon' }, 422, 'validation_error'],
    [{ send_at: '2031-01-09T00:00:00Z' }, 422, 'validation_error'],
    [{ send_at: '9999-12-31T23:59:59-01:00' }, 422, 'validation_error'],
    [{ idempotency_key: '' }, 422, 'validation_error'],
    [{ idempotency_key: 'x'.repeat(256) }, 422, 'validation_error'],
    [{ idempotency_key: 5 }, 422, 'validation_error'],
    ['[]', 422, 'validation_error'],
    ['{"idempotency_key":"\\u0000"}', 400, 'validation_error'],
    ['{"payload_override":{"a":"\\ud800"}}', 400, 'validation_error'],
    [{ payload_override: 'x'.repeat(1024 * 1024) }, 400, 'invalid_payload_size'],
    [{ payload_override: 'x'.repeat(1024 * 1024), merge_strategy: 'replace' }, 400, 'invalid_payload_size'],
    [{ payload_override: { more: 'x'.repeat(600_000) } }, 400, 'invalid_payload_size']
  ]
  for (const [body, status, code] of cases) exactly(t, await fire(body), refused(status, code), JSON.stringify(body).slice(0, 80))
  exactly(t, await get(`/v1/cues/${id}`), { run_count: 0, execution_total: 0 })
})

t.test('an idempotency key creates one execution, however often and however formatted the request is', async t => {
  const { fire, fn, account } = await setup(t)
  const first = (await fire('{"idempotency_key":"k","payload_override":{"a":1,"b":2},"send_at":"2030-01-08T00:00:00Z"}')).body
  for (const again of [
    '{"idempotency_key":"k","payload_override":{"a":1,"b":2},"send_at":"2030-01-08T00:00:00Z"}',
    '{"send_at":"2030-01-08T01:00:00.000+01:00","payload_override":{ "b":2, "a":1 },"merge_strategy":"merge","idempotency_key":"k"}'
  ]) {
    exactly(t, await fire(again), { status: 200, body: first })
  }
  for (const other of [
    { idempotency_key: 'k' },
    { idempotency_key: 'k', payload_override: { a: 1, b: 3 }, send_at: '2030-01-08T00:00:00Z' },
    { idempotency_key: 'k', payload_override: { a: 1, b: 2 }, send_at: '2030-01-08T00:00:01Z' },
    { idempotency_key: 'k', payload_override: { a: 1, b: 2 }, send_at: '2030-01-08T00:00:00Z', merge_strategy: 'replace' }
  ]) {
    exactly(t, await fire(other), refused(409, 'idempotency_key_conflict'))
  }
  t.equal(await fn.executionsUsed({ account_id: account.id }), 1)
})

t.test('an idempotency key is valid for its cue and for 24 hours', async t => {
  const { id, fire, post, call, clock } = await setup(t)
  const other = (await post('/v1/cues', base)).id
  const ids = [(await fire({ idempotency_key: 'k' })).body.id]
  ids.push((await call('POST', `/v1/cues/${other}/fire`, { idempotency_key: 'k', payload_override: { a: 1 } })).body.id)
  clock.advance('24 hours')
  ids.push((await fire({ idempotency_key: 'k', payload_override: { a: 2 } })).body.id)
  t.equal(new Set(ids).size, 3)
  t.not(id, other)
})

t.test('of 20 simultaneous fires with one key, one creates the execution that all return', async t => {
  const { id, fire, get, fn, account } = await setup(t)
  const answers = await Promise.all(Array.from({ length: 20 }, () => fire({ idempotency_key: 'k', payload_override: { a: 1 } })))
  t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
  exactly(t, await get(`/v1/cues/${id}`), { run_count: 1, execution_total: 1 })
  t.equal(await fn.executionsUsed({ account_id: account.id }), 1)
})

t.test('allows exactly ten manual fires per cue per hour', async t => {
  const { id, fire, post, call, clock, get } = await setup(t)
  const keyed = await fire({ idempotency_key: 'k' })
  clock.advance('20 minutes')
  const answers = await Promise.all(Array.from({ length: 15 }, () => fire()))
  t.equal(answers.filter(({ status }) => status === 200).length, 9)
  const late = answers.filter(({ status }) => status !== 200)
  t.equal(late.length, 6)
  for (const answer of late) exactly(t, answer, { ...refused(429, 'rate_limit_exceeded'), headers: { 'retry-after': '2400' } })
  t.equal((await fire({ idempotency_key: 'k' })).body.id, keyed.body.id, 'a repeated key is not counted')
  const other = (await post('/v1/cues', base)).id
  t.equal((await call('POST', `/v1/cues/${other}/fire`)).status, 200, 'another cue has its own ten')
  t.equal((await get(`/v1/cues/${id}`)).run_count, 10)
  clock.advance('40 minutes')
  t.equal((await fire()).status, 200, 'the first is an hour old')
  exactly(t, await fire(), { status: 429, headers: { 'retry-after': '1200' } })
})

t.test('allows a day of grace above the monthly limit, then refuses', async t => {
  const { fire, clock } = await setup(t, {}, { PLANS: '{"free":{"executions_per_month":2}}' })
  for (let i = 0; i < 3; i++) t.equal((await fire()).status, 200)
  clock.advance('24 hours')
  exactly(t, await fire(), refused(403, 'execution_limit_exceeded'))
  clock.set('2030-02-01T00:00:00Z')
  t.equal((await fire()).status, 200)
})
