/** GET /v1/usage: the plan, its use, and the projection for the month. */
import t from 'tap'
import { billingPeriod, projected, share } from '../../src/usage/period.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { build, receiver } from '../support/setup.ts'
import { type Result, refused, resultsOf } from '../support/stage.ts'

const worker = { name: 'work', cron: '0 9 * * *', worker: true, payload: { task: 'x' } }

t.test('a new account has used nothing', async t => {
  const { call } = await build(t, '2030-02-10T12:00:00Z', { env: { BASE_URL: 'https://cue.example.com' } })
  const { status, body } = await call('GET', '/v1/usage')
  t.equal(status, 200)
  t.same(body, {
    plan: 'free',
    billing_period: { start: '2030-02-01', end: '2030-02-28', days_remaining: 18 },
    cues: { used: 0, limit: 10, remaining: 10, percent_used: 0, active: 0 },
    executions: {
      used: 0,
      limit: 300,
      remaining: 300,
      percent_used: 0,
      projected_month_end: 0,
      scheduled_until_month_end: 0,
      will_exceed_limit: false
    },
    outcomes: { reported: 0, succeeded: 0, failed: 0 },
    rate_limit: { requests_per_minute: 60, limit: 60, current_usage: 0 },
    upgrade_url: 'https://cue.example.com/dashboard#billing'
  })
})

t.test("counts active and paused cues, but not ended, deleted or other accounts' cues", async t => {
  const { get, post, patch, del, register, as, fn, account } = await build(t, '2030-02-10T12:00:00Z')
  const made = []
  for (let n = 0; n < 4; n++) made.push(await post('/v1/cues', worker))
  await patch(`/v1/cues/${made[0].id}`, { status: 'paused' })
  await del(`/v1/cues/${made[1].id}`)
  const once = await post('/v1/cues', { ...worker, cron: undefined, at: '2030-03-01T00:00:00Z' })
  const { id } = await post(`/v1/cues/${once.id}/fire`)
  await fn.cancelExecution({ account_id: account.id, execution_id: id })
  await as(await register()).post('/v1/cues', worker)
  exactly(t, (await get('/v1/usage')).cues, { used: 3, active: 2, limit: 10, remaining: 7, percent_used: 30 })
})

t.test('counts executions per UTC month, with a projection that may exceed the limit', async t => {
  const { get, post, clock, pool, account } = await build(t, '2030-01-31T23:59:00Z')
  const { id } = await post('/v1/cues', worker)
  await post(`/v1/cues/${id}/fire`)
  exactly(t, (await get('/v1/usage')).executions, { used: 1, projected_month_end: 1, will_exceed_limit: false })
  clock.set('2030-02-01T00:00:00Z')
  exactly(t, await get('/v1/usage'), {
    billing_period: { start: '2030-02-01', end: '2030-02-28', days_remaining: 27 },
    executions: { used: 0, remaining: 300 }
  })
  clock.set('2030-02-07T08:00:00Z')
  await pool.query("insert into cue.usage_counters (account_id, month, slot, executions) values ($1, '2030-02-01', 7, 76)", [account.id])
  exactly(t, (await get('/v1/usage')).executions, { used: 76, percent_used: 25, projected_month_end: 304, will_exceed_limit: true })
  await pool.query('update cue.usage_counters set executions = 400 where slot = 7')
  exactly(t, (await get('/v1/usage')).executions, { used: 400, limit: 300, remaining: 0, percent_used: 100 })
})

t.test('estimates what schedules will add until the end of the month', async t => {
  const { get, post, pool, account } = await build(t, '2030-02-10T12:00:00Z', { env: { PLANS: '{"free": {"cues": 5000}}' } })
  const expected = async (schedule: object) => {
    const { id, error } = await post('/v1/cues', { name: 'a', worker: true, schedule })
    t.equal(error, undefined)
    const { scheduled_until_month_end } = (await get('/v1/usage')).executions
    await post(`/v1/cues/${id}/pause`, {})
    return scheduled_until_month_end
  }
  t.equal(await expected({ cron: '0 9 * * *' }), 18, 'today’s is over')
  t.equal(await expected({ cron: '0 21 * * *' }), 19)
  t.equal(await expected({ cron: '* * * * *' }), 18.5 * 1440, 'the remaining half of today')
  t.equal(await expected({ cron: '*/15 9-10 * * 1-5' }), 14 * 8, 'on weekdays')
  t.equal(await expected({ cron: '0 22 * * *', timezone: 'America/New_York' }), 18, 'from 03:00 UTC tomorrow')
  t.equal(await expected({ crons: ['0 9 * * *', '30 9 * * *'] }), 36)
  t.equal(await expected({ every: '6h' }), 74)
  t.equal(await expected({ every: '3d' }), 6)
  t.equal(await expected({ at: '2030-02-20T00:00:00Z' }), 1)
  t.equal(await expected({ at: '2030-03-01T00:00:00Z' }), 0)
  t.equal(await expected({ cron: '0 9 * * *', max_runs: 5 }), 5)
  t.equal(await expected({ cron: '0 9 * * *', ends_at: '2030-02-13T00:00:00Z' }), 2)
  t.equal(await expected({ cron: '0 9 * * *', exclude: [{ dates: ['2030-02-14', '02-15'] }] }), 16)
  await pool.query(
    `insert into cue.cues (id, account_id, name, transport, schedule_type, cron, payload)
     select 'cue_' || lpad(n::text, 12, '0'), $1, 'c', 'worker', 'recurring', '0 9 * * *', '{}' from generate_series(1, 3000) n`,
    [account.id]
  )
  t.equal((await get('/v1/usage')).executions.scheduled_until_month_end, 3000 * 18, 'of more than are looked at')
})

t.test('counts reported outcomes and, in addition, failed deliveries', async t => {
  const { get, post, fn, clock, maintain } = await build(t, '2030-02-10T12:00:00Z')
  const { id } = await post('/v1/cues', worker)
  const claim = async () => {
    await post(`/v1/cues/${id}/fire`)
    return (await post('/v1/executions/claim', { worker_id: 'w', task: 'x' })).execution_id
  }
  const outcomes = async () => (await get('/v1/usage')).outcomes
  await post(`/v1/executions/${await claim()}/outcome`, { success: true })
  t.same(await outcomes(), { reported: 1, succeeded: 1, failed: 0 })
  await post(`/v1/executions/${await claim()}/outcome`, { success: false, error: 'no' })
  t.same(await outcomes(), { reported: 2, succeeded: 1, failed: 1 }, 'a worker’s failure is one failure')
  await post(`/v1/cues/${id}/fire`)
  clock.advance('16 minutes')
  await fn.missUnclaimed({})
  t.same(await outcomes(), { reported: 2, succeeded: 1, failed: 2 }, 'a miss')
  const fired = await post(`/v1/cues/${id}/fire`)
  await post(`/v1/executions/${fired.id}/cancel`)
  t.same(await outcomes(), { reported: 2, succeeded: 1, failed: 2 }, 'a cancellation is no failure')
  await maintain()
  t.same(await outcomes(), { reported: 2, succeeded: 1, failed: 2 }, 'folding counters changes nothing')
  clock.set('2030-03-01T00:00:00Z')
  t.same(await outcomes(), { reported: 0, succeeded: 0, failed: 0 }, 'of this month')
})

t.test('counts an exhausted webhook as one failure, and an outcome in the response as a report', async t => {
  const { get, post, fn } = await build(t, '2030-02-10T12:00:00Z')
  const hook = await receiver(t)
  await fn.beatEngine({ engine_id: '00000000-0000-0000-0000-000000000001', version: '1', missed_after: '1 year' })
  const deliver = async (cue: object, result: Result) => {
    const { id } = await post('/v1/cues', { name: 'hook', cron: '0 9 * * *', callback_url: hook.url, ...cue })
    await post(`/v1/cues/${id}/fire`)
    await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 1 }), result, new Date('2030-02-10T12:00:00Z')))
  }
  const outcomes = async () => (await get('/v1/usage')).outcomes
  await deliver({}, refused)
  t.same(await outcomes(), { reported: 0, succeeded: 0, failed: 0 }, 'it is tried again')
  await deliver({ retry: { max_attempts: 1 } }, refused)
  t.same(await outcomes(), { reported: 0, succeeded: 0, failed: 1 })
  await deliver({ delivery: { await_outcome: true } }, { report: { success: true } })
  t.same(await outcomes(), { reported: 1, succeeded: 1, failed: 1 })
  await deliver({}, {})
  t.same(await outcomes(), { reported: 1, succeeded: 1, failed: 1 }, 'a delivery is no outcome')
})

t.test('counts the requests of the calling key in the last minute', async t => {
  const { get, post, clock, account, as } = await build(t, '2030-02-10T12:00:00Z', { env: { RATE_LIMIT: 'on' } })
  const { api_key } = await post('/v1/auth/keys', { label: 'another' })
  for (let n = 0; n < 3; n++) await get('/v1/auth/me')
  t.equal((await get('/v1/usage')).rate_limit.current_usage, 5)
  t.equal((await as({ ...account, api_key }).get('/v1/usage')).rate_limit.current_usage, 1)
  clock.advance('59 seconds')
  t.equal((await get('/v1/usage')).rate_limit.current_usage, 6)
  clock.advance('2 seconds')
  t.equal((await get('/v1/usage')).rate_limit.current_usage, 2)
})

t.test('counts correctly where a window entry stands for several hits', async t => {
  const { get } = await build(t, '2030-02-10T12:00:00Z', {
    env: { RATE_LIMIT: 'on', PLANS: '{"free":{"requests_per_minute":1200}}' }
  })
  for (let n = 1; n <= 7; n++) t.equal((await get('/v1/usage')).rate_limit.current_usage, n)
})

t.test('computes months, projections and shares', async t => {
  t.same(billingPeriod(new Date('2028-02-29T23:59:59Z')), { start: '2028-02-01', end: '2028-02-29', days_remaining: 0 })
  t.same(billingPeriod(new Date('2030-12-01T00:00:00Z')), { start: '2030-12-01', end: '2030-12-31', days_remaining: 30 })
  t.equal(projected(10, new Date('2030-12-01T00:00:01Z')), 310)
  t.equal(projected(10, new Date('2030-12-31T23:00:00Z')), 10)
  exactly(t, share(299, 300), { percent_used: 99, remaining: 1 }, '100 means that the limit is reached')
  exactly(t, share(0, 0), { percent_used: 100, remaining: 0 })
})

t.test('a plan may allow as much as an integer can hold', async t => {
  const { call, fn, config } = await build(t, undefined, { env: { RATE_LIMIT: 'on' } })
  const most = 2 ** 31 - 1
  await fn.setPlans({ plans: { ...config.plans, free: { requests_per_minute: most, cues: most, executions_per_month: most } } })
  exactly(t, await call('GET', '/v1/usage'), {
    status: 200,
    body: { cues: { limit: most, percent_used: 0 }, executions: { limit: most, will_exceed_limit: false } }
  })
})
