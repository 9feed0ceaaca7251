/** Bulk operations on executions and cues. */
import t from 'tap'
import { exactly, pluck } from '../support/exactly.ts'
import { start as noon, once, webhook, worker } from '../support/executions-stage.ts'
import { operationsStage } from '../support/operations-stage.ts'
import { error } from '../support/setup.ts'

const confirmed = { 'x-confirm-destructive': 'true' }
const sorted = (ids: string[]) => [...ids].sort()

t.test('an operation replays what its filter matches, once each, and says what it did', async t => {
  const { start, finish, failing, failures, ran, cue, get, call, replaysOf, clock } = await operationsStage()
  const cue_id = await failing()
  const failed = await failures(cue_id, 5)
  await ran(cue_id)
  const other = await failing()
  await failures(other, 2)
  const body = { type: 'replay', filter: { cue_id, status: 'failed' }, name: 'last night' }
  const dry = await start({ ...body, dry_run: true })
  t.equal(dry.status, 200)
  t.same(pluck(dry.body.sample, 'id'), sorted(failed))
  t.equal(dry.body.total, 5)
  exactly(t, dry.body.sample[0], { cue_id, cue_name: 'backup', status: 'failed', error_message: /500/, scheduled_for: /Z$/ })
  t.same(await get('/v1/operations'), { operations: [], total: 0, limit: 20, offset: 0 })
  const created = await start(body)
  t.equal(created.status, 202)
  const { id, created_by } = created.body
  t.match(id, /^op_[0-9A-Za-z]{12}$/)
  t.match(created_by, /^key:/)
  const running = {
    id,
    type: 'replay',
    name: 'last night',
    status: 'running',
    total: 5,
    created_by,
    created_at: clock.now().toISOString(),
    ended_at: null
  }
  t.same(created.body, { ...running, done: 0, succeeded: 0, failed: 0, skipped: 0 })
  t.same((await get('/v1/operations?status=running&type=replay')).operations, [created.body])
  const done = await finish(id)
  t.same(done, { ...running, status: 'completed', done: 5, succeeded: 5, failed: 0, skipped: 0, ended_at: done.ended_at, errors: [] })
  t.same(sorted((await replaysOf(cue_id)).map((one: { replayed_from: string }) => one.replayed_from)), sorted(failed))
  exactly(t, await get(`/v1/cues/${cue_id}`), { run_count: 11 })
  t.same(await replaysOf(other), [])
  exactly(t, await get('/v1/executions?dead=true'), { total: 2 })
  t.same((await get('/v1/operations?status=running')).operations, [])
  exactly(t, await call('POST', `/v1/operations/${id}/abort`), error('invalid_state', 409))
  const nothing = await start({ type: 'replay', filter: { cue_id: await cue(), status: 'failed' } })
  exactly(t, nothing, { status: 202, body: { status: 'completed', total: 0, done: 0, ended_at: clock.now().toISOString() } })
})

t.test('what has changed in the meantime is skipped, and what a single call refuses has failed', async t => {
  const { start, finish, failing, failures, fire, call, cue, operate, del } = await operationsStage()
  const cue_id = await failing()
  const [first, second, third] = await failures(cue_id, 3)
  const gone = await failing()
  await failures(gone, 1)
  const { body } = await start({ type: 'replay', filter: { status: 'failed' } })
  t.equal(body.total, 4)
  await call('POST', `/v1/executions/${first}/replay`)
  await call('POST', `/v1/executions/${second}/dismiss`)
  await del(`/v1/cues/${gone}`)
  exactly(t, await finish(body.id), { total: 4, succeeded: 1, skipped: 3, failed: 0, errors: [] })
  const running = await fire(await cue(worker))
  const foreign = '0190a5e0-0000-7000-8000-000000000000'
  exactly(t, await operate({ type: 'replay', ids: [running, third, foreign, 'nonsense', third, third!.toUpperCase()] }), {
    total: 4,
    done: 4,
    succeeded: 1,
    failed: 3,
    errors: [
      { target: foreign, code: 'execution_not_found' },
      { target: 'nonsense', code: 'execution_not_found' },
      { target: running, code: 'execution_in_flight' }
    ]
  })
})

t.test('what changes between the choice of the targets and the creation is skipped', async t => {
  const { app, operate, failing, failures, fire, cue, call, patch, del, clock } = await operationsStage()
  const { createOperation } = app.fn
  const cue_id = await cue(worker)
  const active = async (at?: string) => cue(at ? { ...worker, cron: undefined, schedule: undefined, at } : worker)
  const complete = async (id: string) => call('POST', `/v1/executions/${await fire(id)}/cancel`)
  const at = new Date(+clock.now() + 86_400_000).toISOString()
  const paused = async () => {
    const id = await active(at)
    await patch(`/v1/cues/${id}`, { status: 'paused' })
    return id
  }
  const cases: [type: string, targets: () => Promise<string[]>, change: (id: string) => Promise<unknown>][] = [
    ['cancel', () => Promise.all([fire(cue_id), fire(cue_id)]), id => call('POST', `/v1/executions/${id}/cancel`)],
    ['dismiss', async () => failures(await failing(), 2), id => call('POST', `/v1/executions/${id}/dismiss`)],
    ['replay', async () => failures(await failing(), 2), id => call('POST', `/v1/executions/${id}/replay`)],
    ['fire', () => Promise.all([active(at), active(at)]), complete],
    ['pause', () => Promise.all([active(at), active(at)]), complete],
    ['resume', () => Promise.all([paused(), paused()]), complete],
    ['delete', () => Promise.all([active(), active()]), id => del(`/v1/cues/${id}`)]
  ]
  for (const [type, targets, change] of cases) {
    const ids = await targets()
    app.fn.createOperation = async args => {
      for (const id of ids) await change(id)
      return createOperation(args)
    }
    const done = await operate({ type, ids, ...(type === 'pause' && { reason: 'a' }) }, { 'x-confirm-destructive': 'true' })
    exactly(t, done, { total: 2, skipped: 2, failed: 0, succeeded: 0, errors: [] }, type)
    app.fn.createOperation = createOperation
  }
  const id = await active(at)
  await complete(id)
  for (const type of ['fire', 'pause', 'resume'])
    exactly(t, await operate({ type, ids: [id] }), { failed: 1, errors: [{ target: id, code: 'invalid_state' }] }, type)
})

t.test('cancels and dismisses', async t => {
  const { operate, failing, failures, fire, cue, get, call } = await operationsStage()
  const cue_id = await cue(worker)
  const waiting = [await fire(cue_id), await fire(cue_id)]
  const claimed = await fire(cue_id)
  await call('POST', `/v1/executions/${claimed}/claim`, { worker_id: 'w' })
  exactly(t, await operate({ type: 'cancel', filter: { cue_id, status: 'pending' } }), { total: 2, succeeded: 2 })
  for (const id of waiting) exactly(t, await get(`/v1/executions/${id}`), { status: 'failed', error_message: 'cancelled' })
  exactly(t, await get(`/v1/executions/${claimed}`), { status: 'delivering' })
  exactly(t, await operate({ type: 'cancel', filter: { cue_id } }), { total: 1, succeeded: 1 }, 'also one that is running')
  exactly(t, await get(`/v1/executions/${claimed}`), { status: 'failed', error_message: 'cancelled' })
  exactly(t, await operate({ type: 'cancel', ids: [claimed] }), { failed: 1, errors: [{ target: claimed, code: 'invalid_state' }] })
  const failed = await failures(await failing(), 3)
  exactly(t, await operate({ type: 'dismiss', filter: { error: '500' } }), { total: 3, succeeded: 3 })
  exactly(t, await get('/v1/executions?dead=true'), { total: 0 })
  exactly(t, await operate({ type: 'dismiss', ids: failed.slice(0, 1) }), { total: 1, succeeded: 1 })
  exactly(t, await operate({ type: 'dismiss', ids: [claimed] }), { total: 1, succeeded: 1 })
  const pending = await fire(cue_id)
  exactly(t, await operate({ type: 'dismiss', ids: [pending] }), { failed: 1, errors: [{ target: pending, code: 'invalid_state' }] })
})

t.test('pauses, resumes, fires and deletes cues', async t => {
  const { operate, start, get, cue, clock, account, pool, fn } = await operationsStage()
  const tagged = { ...webhook, tags: ['nightly', 'x'] }
  const first = await cue({ ...tagged, cron: '0 0 * * *' })
  clock.advance('1 second')
  const second = await cue({ ...tagged, cron: '30 0 * * *' })
  clock.advance('1 second')
  const last = await cue({ ...once, tags: ['nightly'] })
  const other = await cue({ ...webhook, tags: ['x'] })
  const of = (id: string) => get(`/v1/cues/${id}`)
  const filter = { tag: ['nightly'] }
  exactly(t, (await start({ type: 'pause', filter, dry_run: true })).body, {
    total: 3,
    sample: [
      { id: first, name: 'backup', key: null, status: 'active' },
      { id: second, status: 'active' },
      { id: last, status: 'active' }
    ]
  })
  exactly(t, await operate({ type: 'pause', filter: { tag: 'nightly', transport: 'webhook' }, reason: 'maintenance' }), {
    total: 3,
    succeeded: 3
  })
  exactly(t, await of(first), { status: 'paused', paused_by: 'user', pause_reason: 'maintenance', paused_until: null, next_run: null })
  exactly(
    t,
    await operate({ type: 'pause', filter }),
    { total: 3, succeeded: 0, skipped: 3 },
    'they are paused already, and keep their reason'
  )
  exactly(t, await of(first), { pause_reason: 'maintenance' })
  exactly(t, await operate({ type: 'pause', filter, until: '2030-03-01T00:00:00Z' }), {
    succeeded: 2,
    failed: 1,
    errors: [{ target: last, code: 'invalid_state' }]
  })
  exactly(t, await of(second), { paused_until: '2030-03-01T00:00:00.000Z', pause_reason: null })
  clock.set('2030-02-01T12:00:00Z')
  exactly(t, await operate({ type: 'resume', filter }), {
    total: 3,
    succeeded: 2,
    failed: 1,
    errors: [{ target: last, code: 'invalid_schedule' }]
  })
  exactly(t, await of(first), { status: 'active', next_run: '2030-02-02T00:00:00.000Z', paused_at: null })
  exactly(t, await of(second), { status: 'active', next_run: '2030-02-02T00:30:00.000Z' })
  exactly(t, await operate({ type: 'resume', ids: [first] }), { succeeded: 0, skipped: 1 })
  exactly(t, await operate({ type: 'fire', filter }), { total: 3, succeeded: 3 })
  exactly(t, (await of(first)).executions, [{ triggered_by: 'manual_fire', status: 'pending' }])
  clock.advance('2 hours')
  const gone = await start({ type: 'delete', filter })
  exactly(t, gone, error('confirmation_required', 400))
  exactly(t, await start({ type: 'delete', filter, dry_run: true }), { status: 200, body: { total: 3 } })
  exactly(t, await operate({ type: 'delete', filter }, confirmed), { total: 3, succeeded: 3 })
  exactly(t, await get('/v1/cues'), { cues: [{ id: other }], total: 1 })
  const limited = await cue(webhook)
  for (let n = 0; n < 10; n++) await fn.fireCue({ account_id: account.id, cue_id: limited })
  exactly(t, await operate({ type: 'fire', ids: [limited, other] }), {
    succeeded: 1,
    errors: [{ target: limited, code: 'rate_limit_exceeded', message: /10 per cue per hour/ }]
  })
  await pool.query('update cue.plans set cues = 1')
  exactly(t, await operate({ type: 'pause', filter: { name: 'BACK' } }), { total: 2, succeeded: 2 })
  exactly(t, await operate({ type: 'resume', filter: { paused_by: 'user' } }), {
    succeeded: 1,
    failed: 1,
    errors: [{ code: 'cue_limit_exceeded' }]
  })
  await fn.setPlans({ plans: { free: { requests_per_minute: 60, cues: 10, executions_per_month: 300, open_deliveries: 50 } } as never })
})

t.test('resumes and backfills cues with calendars and windows', async t => {
  const { operate, start, cue, call, get, clock } = await operationsStage()
  await call('PUT', '/v1/calendars/holidays', { dates: ['2030-01-16'] })
  const schedule = { cron: '0 0 * * *', exclude_calendars: ['holidays'], window: '30m' }
  const id = await cue({ ...webhook, cron: null, schedule })
  exactly(t, await operate({ type: 'pause', ids: [id] }), { succeeded: 1 })
  exactly(t, await operate({ type: 'resume', ids: [id] }), { succeeded: 1, errors: [] })
  exactly(t, await get(`/v1/cues/${id}`), { status: 'active', next_slot: '2030-01-17T00:00:00.000Z', next_run: /^2030-01-17T00:[0-2]/ })
  clock.set('2030-01-20T00:00:00Z')
  await call('POST', `/v1/cues/${id}/pause`)
  exactly(
    t,
    (await start({ type: 'backfill', cue_id: id, from: '2030-01-15T00:00:00Z', to: '2030-01-19T00:00:00Z', dry_run: true })).body,
    {
      sample: ['15', '17', '18'].map(day => ({ scheduled_for: `2030-01-${day}T00:00:00.000Z` }))
    }
  )
})

t.test('keeps to its rate, evenly and without catching up', async t => {
  const { start, batch, failing, failures, clock, get } = await operationsStage()
  await failures(await failing(), 8)
  const { body } = await start({ type: 'dismiss', filter: { dead: true }, rate_per_minute: 60 })
  const done = async () => (await get(`/v1/operations/${body.id}`)).done
  const step = async () => ({ wait: (await batch(body.id))!.wait_ms, done: await done() })
  t.same(await step(), { wait: 1000, done: 1 })
  t.same(await step(), { wait: 1000, done: 1 })
  clock.advance('400 milliseconds')
  t.same(await step(), { wait: 600, done: 1 })
  clock.advance('600 milliseconds')
  t.same(await step(), { wait: 1000, done: 2 })
  clock.advance('1.2 seconds')
  t.same(await step(), { wait: 800, done: 3 })
  clock.advance('10 minutes')
  t.same(await step(), { wait: 1000, done: 4 })
})

t.test('one of each type runs at a time, ten may be created per hour, and an aborted one stops', async t => {
  const { start, call, failing, failures, batch, get, clock, as, register, pool } = await operationsStage()
  const cue_id = await failing()
  await failures(cue_id, 3)
  const replay = { type: 'replay', filter: { cue_id }, rate_per_minute: 1 }
  const { body } = await start(replay)
  const refused = await start(replay)
  exactly(t, refused, { status: 409, body: { error: { code: 'operation_running', operation_id: body.id } } })
  clock.advance('1 second')
  exactly(t, await start({ type: 'dismiss', filter: { cue_id } }), { status: 202 }, 'of another type')
  const other = as(await register())
  exactly(t, await other.call('POST', '/v1/operations', { type: 'pause', filter: { status: 'active' } }), { status: 202 })
  await batch(body.id)
  const aborted = await call('POST', `/v1/operations/${body.id}/abort`)
  exactly(t, aborted, { status: 200, body: { status: 'aborted', total: 3, done: 1, succeeded: 1, ended_at: clock.now().toISOString() } })
  clock.advance('1 minute')
  exactly(t, await batch(body.id), { status: 'aborted' })
  exactly(t, await get(`/v1/operations/${body.id}`), { done: 1, status: 'aborted' })
  t.same((await call('POST', `/v1/operations/${body.id}/abort`)).body, aborted.body, 'repeated')
  t.same((await pool.query('select from cue.operation_targets where operation_id = $1', [body.id])).rows, [])
  for (let n = 0; n < 8; n++) exactly(t, await start({ type: 'cancel', filter: { cue_id: 'cue_000000000000' } }), { status: 202 })
  const eleventh = await start({ type: 'cancel', filter: { cue_id } })
  exactly(t, eleventh, {
    status: 429,
    headers: { 'retry-after': '3539' },
    body: { error: { code: 'rate_limit_exceeded', message: /10 per hour/ } }
  })
  exactly(t, await start({ type: 'cancel', filter: { cue_id }, dry_run: true }), { status: 200 })
  exactly(t, await get('/v1/operations?limit=3&offset=8'), { total: 10, operations: [{ type: 'dismiss' }, { id: body.id }] })
  clock.advance('1 hour')
  exactly(t, await start({ type: 'cancel', filter: { cue_id } }), { status: 202 })
})

t.test('without a status, takes what the type can act on, of the last seven days', async t => {
  const { start, failing, failures, fire, ran, cue, clock } = await operationsStage()
  const cue_id = await failing()
  const [old] = await failures(cue_id, 1)
  clock.advance('8 days')
  const [failed] = await failures(cue_id, 1)
  const fine = await ran(cue_id)
  const waiting = await fire(await cue(worker))
  const found = async (type: string, filter: object) => pluck((await start({ type, filter, dry_run: true })).body.sample, 'id')
  const any = { triggered_by: 'manual_fire' }
  t.same(await found('replay', any), sorted([failed!, fine]))
  t.same(await found('cancel', any), [waiting])
  t.same(await found('dismiss', any), [failed])
  t.same(await found('dismiss', { ...any, from: noon }), [old, failed])
  t.same(await found('replay', { ...any, from: noon, to: clock.now().toISOString() }), [old])
})

t.test('refuses what is not an operation, and names the field', async t => {
  const { start } = await operationsStage()
  const filter = { status: 'failed' }
  const cases: [object, (string | number)[]][] = [
    [{}, ['body', 'type']],
    [{ type: 'explode', filter }, ['body', 'type']],
    [{ type: 'replay' }, ['body', 'filter']],
    [{ type: 'replay', filter: null }, ['body', 'filter']],
    [{ type: 'replay', filter: {} }, ['body', 'filter']],
    [{ type: 'replay', filter, ids: ['x'] }, ['body', 'ids']],
    [{ type: 'replay', ids: [] }, ['body', 'ids']],
    [{ type: 'replay', ids: ['x'.repeat(65)] }, ['body', 'ids', 0]],
    [{ type: 'replay', ids: [''] }, ['body', 'ids', 0]],
    [{ type: 'replay', ids: Array.from({ length: 10_001 }, (_, n) => `${n}`) }, ['body', 'ids']],
    [{ type: 'replay', filter: { stat: 'failed' } }, ['body', 'filter', 'stat']],
    [{ type: 'replay', filter: { transport: 'worker' } }, ['body', 'filter', 'transport']],
    [{ type: 'replay', filter: { status: 'active' } }, ['body', 'filter', 'status']],
    [{ type: 'pause', filter: { status: 'success' } }, ['body', 'filter', 'status']],
    [{ type: 'pause', filter: { dead: true } }, ['body', 'filter', 'dead']],
    [{ type: 'replay', filter: { from: 'yesterday' } }, ['body', 'filter', 'from']],
    [{ type: 'replay', filter: { tag: [''] } }, ['body', 'filter', 'tag', 0]],
    [{ type: 'replay', filter, rate_per_minute: 0 }, ['body', 'rate_per_minute']],
    [{ type: 'replay', filter, name: '' }, ['body', 'name']],
    [{ type: 'replay', filter, dry_run: 'yes' }, ['body', 'dry_run']],
    [{ type: 'replay', filter, reason: 'x' }, ['body', 'reason']],
    [{ type: 'resume', filter: { name: 'x' }, until: '2031-01-01T00:00:00Z' }, ['body', 'until']],
    [{ type: 'pause', filter: { name: 'x' }, until: noon }, ['body', 'until']],
    [{ type: 'pause', filter: { name: 'x' }, colour: 1 }, ['body', 'colour']]
  ]
  for (const [body, loc] of cases)
    exactly(t, await start(body), { status: 422, body: { detail: [{ loc }] } }, JSON.stringify(body).slice(0, 80))
  exactly(t, await start({ type: 'replay', filter: { cue_id: 'nonsense' }, dry_run: true }), { status: 200, body: { total: 0 } })
  exactly(t, await start({ type: 'replay', filter: { worker_id: 'a\0b' } }), { status: 400 })
  exactly(t, await start({ type: 'replay', ids: Array(40_000).fill('0190a5e0-0000-7000-8000-000000000000') }), { status: 413 })
})

t.test('at a high rate, no minute has more targets than that', async t => {
  const { start, batch, failing, failures, clock, get } = await operationsStage()
  await failures(await failing(), 40)
  const { body } = await start({ type: 'dismiss', filter: { dead: true }, rate_per_minute: 1205 })
  /** Runs batches until the rate allows no more at this instant. */
  const done = async () => {
    while ((await batch(body.id))!.wait_ms === 0);
    return (await get(`/v1/operations/${body.id}`)).done
  }
  clock.advance('10 minutes')
  t.equal(await done(), 6, 'at most a quarter of a second at once')
  clock.advance('100 milliseconds')
  t.equal(await done(), 8)
})
