/** The operator's stop button: while the service or an account is held, nothing of it is taken, sent or claimed. */
import t, { type Test } from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { catchUpRow, lookAhead } from '../support/firing-stage.ts'
import { overlapStage } from '../support/overlap-stage.ts'
import { build, error, eventually, receiver } from '../support/setup.ts'
import { dueCues, once, type Row, stage } from '../support/stage.ts'

const OPERATOR_TOKEN = 'operator-token-0123456789'
const operator = { authorization: `Bearer ${OPERATOR_TOKEN}` }
const worker = { transport: 'worker', callback_url: null }

/** A stage with a second account, and what an engine and workers would do for each of the two: all must be nothing while it is held. */
const twoAccounts = async (t: Test) => {
  const s = await overlapStage(t)
  const { fn, rows, clock } = s
  const other = await s.account()
  const due = new Date(clock.now())
  const make = (columns: object) => Promise.all([s.account_id, other].map(account_id => s.cue(columns, { account_id, next_run: due })))
  const [plain, tracked, work, last, fired] = await Promise.all([
    make({}),
    make({ overlap: 'skip' }),
    make(worker),
    make({ schedule_rules: { max_runs: 1 } }),
    make({ ...worker, name: 'fired' })
  ])
  const retried = await make({ cron: '0 0 1 1 *' })
  for (const [n, account_id] of [s.account_id, other].entries())
    for (const cue_id of [fired[n]!, retried[n]!]) await fn.fireCue({ account_id, cue_id })
  const runsOf = (ids: string[]) => rows('select * from cue.cue_runs where cue_id = any ($1) and next_run <= $2', [ids, clock.now()])
  const done = async (run: Promise<Row[] | number>) => {
    const result = await run
    return typeof result === 'number' ? result : result.length
  }
  const each: Record<string, () => Promise<Row[] | number>> = {
    look: async () => (await lookAhead(fn, { until: due })).filter(row => row.next_run <= due),
    take: () => s.take([...plain, ...work]),
    'take last': async () => fn.takeLastSlots({ ...dueCues(await runsOf(last), null), missed_after: '1 day' }),
    'fire tracked': () => s.fireTracked(tracked),
    begin: () => beginWaiting(fn, { limit: 100 })
  }
  const act = async () => Object.fromEntries(await Promise.all(Object.entries(each).map(async ([name, run]) => [name, await done(run())])))
  return { ...s, other, act, each }
}

t.test('nothing is taken or begun while the service is held, and all of it afterwards', async t => {
  const { fn, act } = await twoAccounts(t)
  await fn.hold({ reason: 'flood', actor: 'operator' })
  t.same(await act(), { look: 0, take: 0, 'take last': 0, 'fire tracked': 0, begin: 0 })
  t.equal(await fn.release({}), true)
  t.equal(await fn.release({}), false)
  // A tracked cue's execution waits, and is begun with the two that were fired.
  const { look, take, 'take last': last, 'fire tracked': tracked } = await act()
  t.same({ look, take, last, tracked }, { look: 12, take: 2, last: 2, tracked: 2 })
})

t.test('while an account is held, only its own is left', async t => {
  const { fn, act, each, account_id, other, rows } = await twoAccounts(t)
  await fn.hold({ reason: 'flood', account_id, actor: 'operator' })
  t.same(new Set(((await each.look!()) as Row[]).map(row => row.account_id)), new Set([other]))
  await act()
  await each.begin!()
  const accounts = await rows("select distinct account_id from cue.executions where triggered_by = 'schedule' or status = 'delivering'")
  t.same(accounts, [{ account_id: other }])
})

t.test('a claim is refused while its account or the service is held; claims of others in the same statement are not', async t => {
  const { fn, account_id, other } = await twoAccounts(t)
  const refused = { code: 'QU027' }
  const claims = JSON.stringify([account_id, other, account_id].map(account_id => ({ account_id, worker_id: 'w', tasks: null, limit: 1 })))
  await fn.hold({ reason: 'flood', account_id, actor: 'operator' })
  await t.rejects(fn.claimExecutions({ account_id, worker_id: 'w' }), { ...refused, message: 'The operator holds this account: flood.' })
  t.same(
    (await fn.claimNext({ claims })).map(({ claim, execution_id }) => [claim, execution_id !== null]),
    [
      [1, false],
      [3, false],
      [2, true]
    ]
  )
  await fn.hold({ reason: 'all', actor: 'operator' })
  await t.rejects(fn.claimExecutions({ account_id: other, worker_id: 'w' }), {
    ...refused,
    message: 'The operator holds the service: all.'
  })
  await fn.release({})
  await t.rejects(fn.claimExecutions({ account_id, worker_id: 'w' }), refused, 'the two are independent')
  await fn.release({ account_id })
  t.equal((await fn.claimExecutions({ account_id, worker_id: 'w' })).length, 1)
})

t.test('a repeated hold replaces the reason and keeps its begin; an unknown account cannot be held', async t => {
  const { fn, clock, rows } = await stage(t)
  const since = clock.now()
  await fn.hold({ reason: 'first', actor: 'a' })
  clock.advance('1 minute')
  t.same(await fn.hold({ reason: 'second', actor: 'b' }), { account_id: null, reason: 'second', by: 'b', since })
  t.same(await rows('select * from cue.current_holds'), [{ account_id: null, email: null, reason: 'second', by: 'b', since }])
  await t.rejects(fn.hold({ reason: 'x', account_id: '00000000-0000-7000-8000-000000000000' }), { code: 'QU007' })
})

/** A cue of each policy, due every minute from 09:01 on, and what an engine does with them. */
const held = async (t: Test) => {
  const s = await stage(t)
  const { fn, clock } = s
  await s.beat('60 seconds')
  const next_run = new Date('2030-01-15T09:01:00Z')
  const run = async () => {
    const ahead = (await lookAhead(fn, { until: clock.now() })).filter(row => row.next_run <= clock.now())
    await fn.catchUpCues({ cues: JSON.stringify(ahead.filter(row => row.outage_until).map(catchUpRow)) })
    return ahead
  }
  return { ...s, run, minutely: (columns: object = {}) => s.cue(columns, { next_run }) }
}

t.test('slots of a long hold follow catch_up, and are recorded as held', async t => {
  const { fn, clock, rows, minutely, run, cue, execution } = await held(t)
  const kept = await minutely()
  const skipped = await minutely({ catch_up: 'skip_missed' })
  const single = await cue({ ...once, at: '2030-01-15T09:05:00Z', catch_up: 'skip_missed' }, { next_run: new Date('2030-01-15T09:05:00Z') })
  await fn.hold({ reason: 'flood', actor: 'operator' })
  clock.set('2030-01-15T09:10:00Z')
  t.same(await run(), [])
  await fn.release({})
  await run()
  exactly(t, await rows('select cue_id, first, last, count, policy, reason from cue.missed_slots order by count'), [
    { cue_id: kept, first: new Date('2030-01-15T09:01:00Z'), last: new Date('2030-01-15T09:09:00Z'), count: 9, reason: 'held' },
    { cue_id: skipped, first: new Date('2030-01-15T09:01:00Z'), last: new Date('2030-01-15T09:10:00Z'), count: 10, reason: 'held' }
  ])
  const [ran] = await rows('select scheduled_for from cue.executions where cue_id = $1', [kept])
  t.same(ran, { scheduled_for: clock.now() })
  const [{ id }] = await rows('select id from cue.executions where cue_id = $1', [single])
  exactly(t, await execution(id), { status: 'missed', error_message: 'came due during a hold, and catch_up is skip_missed' })
  exactly(t, await rows('select next_run from cue.cue_runs where cue_id = $1', [kept]), [{ next_run: new Date('2030-01-15T09:11:00Z') }])
})

t.test('slots of a short hold run late, and so do those that were due before a long one', async t => {
  const { fn, clock, rows, minutely, take, run, beat, cue } = await held(t)
  await beat('5 minutes')
  const before = await cue()
  const during = await minutely()
  clock.advance('1 second')
  await fn.hold({ reason: 'flood', actor: 'operator' })
  clock.set('2030-01-15T09:05:00Z')
  await fn.release({})
  t.same(
    (await run()).map(row => row.outage_until),
    [null, null],
    'engines say that an outage is one after five minutes'
  )
  t.equal((await take([before, during])).length, 2)
  t.same(await rows('select * from cue.missed_slots'), [])
  const again = await cue()
  clock.advance('1 second')
  await fn.hold({ reason: 'flood', actor: 'operator' })
  clock.advance('1 hour')
  await fn.release({})
  t.equal((await take([again])).length, 1)
})

t.test('a look that a hold overtakes runs nothing', async t => {
  const { fn, clock, rows, minutely } = await held(t)
  await minutely({ catch_up: 'replay_all_missed' })
  await rows("insert into cue.outages values ('2030-01-15T09:00:00Z', '2030-01-15T09:03:00Z')")
  clock.set('2030-01-15T09:03:00Z')
  const [missed] = await lookAhead(fn, { until: clock.now() })
  await fn.hold({ reason: 'flood', actor: 'operator' })
  t.equal(await fn.catchUpCues({ cues: JSON.stringify([catchUpRow(missed!)]) }), 0)
  t.same(await rows('select * from cue.executions'), [])
})

t.test('an execution that nobody could claim during a hold is not missed, and can be claimed as long as a new one', async t => {
  const { fn, account_id, clock, cue, row } = await stage(t)
  const other = await cue(worker, { next_run: null })
  const { id } = await fn.fireCue({ account_id, cue_id: other })
  const status = async () => (await row('select status from cue.executions where id = $1', [id])).status
  clock.advance('14 minutes')
  await fn.hold({ reason: 'flood', actor: 'operator' })
  clock.advance('1 hour')
  t.equal(await fn.missUnclaimed({}), 0)
  t.ok((await fn.nextWakes({})).deadline_at! > clock.now(), 'sweeps rest meanwhile')
  clock.advance('10 minutes')
  await fn.release({})
  clock.advance('14 minutes')
  await fn.missUnclaimed({})
  t.equal(await status(), 'pending')
  clock.advance('61 seconds')
  t.equal(await fn.missUnclaimed({}), 1)
  t.equal(await status(), 'missed')
})

t.test('operations that run cues wait, those that stop them go on, and slots can be looked for', async t => {
  const { fn, account_id, cue, clock, rows } = await stage(t)
  const cue_id = await cue(worker)
  const start = async (type: 'fire' | 'pause') => (await fn.createOperation({ account_id, type, targets: JSON.stringify([cue_id]) })).id
  const [fire, pause] = [await start('fire'), await start('pause')]
  await fn.hold({ reason: 'flood', account_id, actor: 'operator' })
  exactly(t, await fn.runOperation({ operation_id: fire }), { status: 'running', wait_ms: 5000 })
  exactly(t, await fn.runOperation({ operation_id: pause }), { status: 'completed' })
  t.same(await fn.slotsWithoutExecution({ cue_id, slots: [clock.now()] }), [clock.now()])
  await fn.release({ account_id })
  exactly(t, await fn.runOperation({ operation_id: fire }), { status: 'completed' })
  t.equal((await rows('select from cue.executions')).length, 1)
})

t.test('the operator holds and releases by the API; /status says so, and everything but claims goes on', async t => {
  const service = await build(t, undefined, { env: { OPERATOR_TOKEN } })
  const { as, call, fn, register } = service
  const byOperator = (path: string, body?: object) => as(null).call('POST', `/v1/operator/${path}`, body, operator)
  await fn.beatEngine({ engine_id: '00000000-0000-0000-0000-000000000001', version: 'v', missed_after: '1 day' })
  exactly(t, await call('POST', '/v1/operator/hold', { reason: 'x' }), error('insufficient_scope', 403))
  exactly(t, await byOperator('hold', {}), error('validation_error', 422))
  exactly(t, await byOperator('hold', { reason: '  ' }), error('validation_error', 422))
  for (const account_id of ['nobody', '00000000-0000-7000-8000-000000000000', null]) {
    exactly(t, await byOperator('hold', { reason: 'x', account_id }), error('not_found', 404))
    exactly(t, await byOperator('release', { account_id }), error('not_found', 404))
  }
  const waiting = call('POST', '/v1/executions/claim', { worker_id: 'w', wait: 8 })
  exactly(t, await byOperator('hold', { reason: 'a flood' }), {
    status: 200,
    body: { account_id: null, reason: 'a flood', by: 'operator', since: /Z$/ }
  })
  exactly(t, await call('GET', '/status'), { status: 200, body: { status: 'degraded', reason: 'held: a flood' } })
  exactly(t, await call('GET', '/health'), { body: { status: 'degraded', reason: 'held: a flood' } })
  exactly(t, await as(null).call('GET', '/v1/operator', undefined, operator), {
    body: { hold: { reason: 'a flood', by: 'operator', since: /Z$/ } }
  })
  const { body: cue } = await call('POST', '/v1/cues', { name: 'w', cron: '0 9 * * *', worker: true })
  const { status, body: execution } = await call('POST', `/v1/cues/${cue.id}/fire`)
  t.equal(status, 200)
  t.equal((await call('GET', '/v1/executions/claimable')).body.executions.length, 1)
  const refused = error('service_held', 409)
  exactly(t, await call('POST', '/v1/executions/claim', { worker_id: 'w' }), refused)
  exactly(t, await call('POST', `/v1/executions/${execution.id}/claim`, { worker_id: 'w' }), refused)
  exactly(t, await Promise.all([1, 2, 3].map(() => call('POST', '/v1/executions/claim', { worker_id: 'w' }))), [refused, refused, refused])
  exactly(t, await waiting, refused)
  exactly(t, await byOperator('release'), { status: 200, body: { released: true } })
  exactly(t, await byOperator('release', {}), { body: { released: false } })
  exactly(t, await call('POST', '/v1/executions/claim', { worker_id: 'w' }), { status: 200, body: { execution_id: execution.id } })

  const other = await register()
  exactly(t, await byOperator('hold', { reason: 'spam', account_id: other.id }), { body: { account_id: other.id, reason: 'spam' } })
  exactly(t, await as(other).call('POST', '/v1/executions/claim', {}), refused)
  exactly(t, await call('POST', '/v1/executions/claim', {}), error('nothing_claimable', 409))
  exactly(t, await as(null).call('GET', '/v1/operator', undefined, operator), {
    body: { hold: null, held_accounts: [{ account_id: other.id, email: other.email, reason: 'spam', by: 'operator' }] }
  })
})

t.test('a page of another origin cannot hold the service with the operator’s cookie', async t => {
  const { as } = await build(t, undefined, { env: { OPERATOR_TOKEN } })
  const opened = await as(null).call('POST', '/v1/operator/session', { operator_token: OPERATOR_TOKEN }, { origin: 'http://localhost:0' })
  const cookie = String(opened.headers['set-cookie']).split(';')[0]!
  const hold = (origin: string) => as(null).call('POST', '/v1/operator/hold', { reason: 'x' }, { cookie, origin })
  exactly(t, await hold('https://evil.example'), error('cross_origin_refused', 403))
  exactly(t, await hold('http://localhost:0'), { status: 200, body: { by: 'operator' } })
})

t.test('engines stop within two seconds, and go on within two of the release', async t => {
  const env = { MISSED_AFTER_SECONDS: '3', POLL_INTERVAL_MS: '60000' }
  const { config, get, post, fn } = await build(t, undefined, { env })
  const hook = await receiver(t)
  await Promise.all([startEngine(t, config), startEngine(t, config)])
  const ticks = await post('/v1/cues', { name: 'ticks', cron: '* * * * * *', callback_url: hook.url, catch_up: 'skip_missed' })
  const idle = await post('/v1/cues', { name: 'idle', cron: '0 0 1 1 *', callback_url: hook.url })
  await hook.received(2)
  await fn.hold({ reason: 'flood', actor: 'operator' })
  const heldAt = Date.now()
  await post(`/v1/cues/${idle.id}/fire`)
  await new Promise(resolve => setTimeout(resolve, 6000))
  t.same(
    hook.requests.filter(({ at }) => Number(at) > heldAt + 2000),
    []
  )
  const count = hook.requests.length
  await fn.release({})
  const releasedAt = Date.now()
  await hook.received(count + 2)
  t.ok(Date.now() - releasedAt < 3000, `the fired cue and the next slot run ${Date.now() - releasedAt} ms later`)
  const { missed } = await eventually(async () => {
    const detail = await get(`/v1/cues/${ticks.id}`)
    return detail.missed.length > 0 && detail
  })
  exactly(t, missed, [{ reason: 'held', policy: 'skip_missed', count: Number }])
})
