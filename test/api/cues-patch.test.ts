import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const url = 'http://127.0.0.1:5555/hook'
const hourly = { name: 'Hourly', schedule: { cron: '0 * * * *' }, callback: { url } }

t.test('merges objects one level deep, and replaces lists, headers and payload', async t => {
  const { post, call, get } = await build(t, start)
  const { id } = await post('/v1/cues', {
    ...hourly,
    callback: { url, method: 'PUT', headers: { A: '1', B: '2' } },
    payload: { a: { x: 1 }, b: 2 },
    retry: { max_attempts: 5, backoff_minutes: [1, 2, 3] },
    on_failure: { email: false, webhook: url, pause: true },
    delivery: { timeout_seconds: 7 },
    alerts: { consecutive_failures: 9 }
  })
  const changes: [object, object][] = [
    [{ callback: { headers: { C: '3' } } }, { callback: { url, method: 'PUT', headers: { C: '********' } } }],
    [{ callback: { method: 'GET' } }, { callback: { url, method: 'GET', headers: { C: '********' } } }],
    [{ payload: { a: { y: 1 } } }, { payload: { a: { y: 1 } } }],
    [{ retry: { backoff_minutes: [9] } }, { retry: { max_attempts: 5, backoff_minutes: [9] } }],
    [{ on_failure: { pause: false } }, { on_failure: { email: false, webhook: url, pause: false } }],
    [
      { delivery: { claim_timeout_seconds: 60 } },
      { delivery: { timeout_seconds: 7, outcome_deadline_seconds: 300, claim_timeout_seconds: 60, await_outcome: false } }
    ],
    [
      { delivery: { outcome_deadline_seconds: 8 } },
      { delivery: { timeout_seconds: 7, outcome_deadline_seconds: 8, claim_timeout_seconds: 60, await_outcome: true } }
    ],
    [{ delivery: { await_outcome: false } }, { delivery: { await_outcome: false } }],
    [{ delivery: { outcome_deadline_seconds: 9 } }, { delivery: { outcome_deadline_seconds: 9, await_outcome: false } }],
    [{ alerts: { missed_window_multiplier: 4 } }, { alerts: { consecutive_failures: 9, missed_window_multiplier: 4 } }],
    [
      { name: 'New', description: 'd' },
      { name: 'New', description: 'd' }
    ],
    [{ catch_up: 'replay_all' }, { catch_up: 'replay_all_missed' }],
    [{ overlap: 'queue_all' }, { overlap: 'queue_all' }],
    [{ name: 'Newer' }, { name: 'Newer', overlap: 'queue_all' }],
    [{ overlap: null }, { overlap: 'allow' }],
    [{ verification: { mode: 'manual' } }, { verification: { mode: 'manual' } }],
    [
      { verification: null, delivery: null, alerts: null, description: null, payload: null },
      { verification: null, delivery: null, alerts: null, description: null, payload: {} }
    ]
  ]
  for (const [change, expected] of changes) {
    const { status, body } = await call('PATCH', `/v1/cues/${id}`, change)
    t.equal(status, 200, JSON.stringify(change))
    exactly(t, body, expected)
    t.strictSame(await get(`/v1/cues/${id}`), {
      ...body,
      executions: [],
      execution_total: 0,
      missed: [],
      followers: [],
      pending_signals: []
    })
  }
})

t.test('accepts an empty change', async t => {
  const { post, call, clock } = await build(t, start)
  const cue = await post('/v1/cues', hourly)
  clock.advance('1 minute')
  for (const change of [{}, { retry: {}, callback: {}, schedule: {} }, { schedule: cue.schedule }]) {
    const { status, body } = await call('PATCH', `/v1/cues/${cue.id}`, change)
    t.strictSame([status, body], [200, cue], JSON.stringify(change))
  }
  exactly(t, await call('PATCH', `/v1/cues/${cue.id}`, { name: 'n' }), { status: 200, body: { updated_at: '2030-01-07T08:31:00.000Z' } })
})

t.test('keeps masked headers when a cue is sent back as read', async t => {
  const { post, patch, pool } = await build(t, start)
  const { id } = await post('/v1/cues', { ...hourly, callback: { url, headers: { 'X-Token': 'one', 'X-Other': 'two' } } })
  const stored = async () => (await pool.query('select callback_headers from cue.cues where id = $1', [id])).rows[0].callback_headers
  await patch(`/v1/cues/${id}`, { callback: { headers: { 'x-token': '********', 'X-New': 'three' } } })
  t.strictSame(await stored(), { 'x-token': 'one', 'X-New': 'three' })
  const { callback } = await patch(`/v1/cues/${id}`, { name: 'n' })
  await patch(`/v1/cues/${id}`, { callback })
  t.strictSame(await stored(), { 'x-token': 'one', 'X-New': 'three' })
})

t.test('rejects a change computed before a slot ran, so that it is computed again', async t => {
  const { post, pool, fn, account } = await build(t, start)
  const { id } = await post('/v1/cues', hourly)
  await pool.query(`update cue.cue_runs set next_run = '2030-01-07T11:00:00Z', last_slot = '2030-01-07T10:00:00Z' where cue_id = $1`, [id])
  const changes = { cron: '*/30 * * * *' }
  const change = (version: number, next_run: string) =>
    fn.updateCue({ account_id: account.id, cue_id: id, version, changes, next_run: new Date(next_run) })
  await t.rejects(change(1, '2030-01-07T10:00:00Z'), { code: 'QU014' })
  await t.rejects(change(0, '2030-01-07T10:30:00Z'), { code: 'QU014' })
  await t.resolves(change(1, '2030-01-07T10:30:00Z'))
})

t.test('an ended cue keeps its status, whatever else is changed', async t => {
  const { post, patch, call, fn, account, pool } = await build(t, start)
  const { id } = await post('/v1/cues', { name: 'once', at: '2030-01-07T09:00:00Z', callback_url: url })
  const execution = await post(`/v1/cues/${id}/fire`)
  await fn.cancelExecution({ account_id: account.id, execution_id: execution.id })
  for (const ended of ['failed', 'completed']) {
    await pool.query('update cue.cues set status = $2 where id = $1', [id, ended])
    for (const status of ['active', 'paused']) {
      exactly(t, await call('PATCH', `/v1/cues/${id}`, { status }), error('invalid_state', 409))
    }
    exactly(t, await call('POST', `/v1/cues/${id}/fire`), error('invalid_state', 409))
    exactly(t, await patch(`/v1/cues/${id}`, { name: ended, schedule: { cron: '@daily' } }), { name: ended, status: ended, next_run: null })
  }
})
