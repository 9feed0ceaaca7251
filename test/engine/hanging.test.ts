/** Hanging receivers: their effect on other accounts, the limits of plans, and how their requests end. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { build, eventually, receiver } from '../support/setup.ts'
import { cueDefaults } from '../support/stage.ts'

const allowed = 5
const patient = { timeout_seconds: 3600, outcome_deadline_seconds: 300, claim_timeout_seconds: 900, await_outcome: false }
const PLANS = JSON.stringify({ free: { cues: 1000, executions_per_month: 1_000_000, open_deliveries: allowed } })
const soon = (ms = 300) => new Date(Date.now() + ms)

/** The service with an engine, a hanging and a working receiver, and accounts with cues created directly. */
const serve = async (t: Test, env: Record<string, string> = {}) => {
  const service = await build(t, undefined, { env: { PLANS, ...env } })
  const { fn, pool } = service
  const metrics = createMetrics()
  const held: (() => void)[] = []
  const hook = await receiver(t)
  const hanging = await receiver(t, () => new Promise(resolve => held.push(() => resolve({}))))
  await startEngine(t, testConfig(service.url, { POLL_INTERVAL_MS: '500', PLANS, ...env }), metrics)
  /** Responds to the oldest request. */
  const answer = () => held.shift()!()
  // A stopping engine waits for open requests.
  t.teardown(() => {
    hanging.answer({})
    for (const end of held) end()
  })
  const cues = (account_id: string, count: number, columns: object, next_run = soon()) =>
    Promise.all(
      Array.from({ length: count }, () =>
        fn.createCue({ account_id, next_run, cue: { ...cueDefaults, cron: '0 0 1 1 *', callback_url: hanging.url, ...columns } })
      )
    )
  const count = async (where: string, values: unknown[] = []): Promise<number> =>
    (await pool.query(`select count(*)::int as count from cue.executions where ${where}`, values)).rows[0].count
  const delivering = (account_id: string) => count("status = 'delivering' and account_id = $1", [account_id])
  const measured = async (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await metrics.text(null, new Date()))![1])
  return { ...service, answer, held, cues, count, delivering, measured, hook, hanging }
}

t.test("accounts with hanging receivers hold what their plan allows, and another account's deliveries are all sent", async t => {
  const { register, cues, delivering, measured, hook, hanging, account } = await serve(t, { DELIVERY_CONCURRENCY: '4' })
  const attackers = await Promise.all(Array.from({ length: 6 }, () => register()))
  for (const { id } of attackers) await cues(id, 10, { ...patient, cron: '* * * * * *' })
  await hanging.received(6 * allowed)
  for (let n = 0; n < 30; n++) await cues(account.id, 1, { callback_url: hook.url }, soon(100 * n))
  t.equal((await hook.received(30, 20_000)).length, 30)
  t.same(await Promise.all(attackers.map(({ id }) => delivering(id))), Array(6).fill(allowed))
  t.equal(hanging.requests.length, 6 * allowed)
  t.equal(await eventually(async () => (await measured('pgcue_open_deliveries')) === 6 * allowed), true)
  t.equal(await measured('pgcue_open_deliveries_limit'), 6000)
  t.ok((await measured('pgcue_held_deliveries')) > 0)
})

t.test("deliveries above a plan's limit are sent once each, as others end", async t => {
  const { cues, count, answer, held, hanging, account } = await serve(t)
  await cues(account.id, 12, patient)
  await hanging.received(allowed)
  for (let ended = 0; ended < 12; ended++) {
    await eventually(() => held.length > 0)
    t.ok(hanging.requests.length - ended <= allowed)
    answer()
  }
  await eventually(async () => (await count("status = 'success'")) === 12)
  t.equal(hanging.requests.length, 12)
})

t.test("replays and fires above a plan's limit wait without delaying another account's", async t => {
  const { fn, cues, register, count, delivering, hook, hanging, account } = await serve(t)
  const hog = await register()
  const far = soon(3_600_000)
  for (const cue_id of await cues(hog.id, 8, patient, far)) for (let n = 0; n < 5; n++) await fn.fireCue({ account_id: hog.id, cue_id })
  await hanging.received(allowed)
  for (const cue_id of await cues(account.id, 10, { callback_url: hook.url }, far)) await fn.fireCue({ account_id: account.id, cue_id })
  t.equal((await hook.received(10)).length, 10)
  t.equal(await delivering(hog.id), allowed)
  t.equal(await count("status = 'pending' and account_id = $1", [hog.id]), 40 - allowed)
})

t.test('deleting a cue aborts its request, ignores the result and frees its capacity', async t => {
  const { cues, del, count, measured, hook, hanging, account, pool } = await serve(t)
  const ids = await cues(account.id, allowed, patient)
  await hanging.received(allowed)
  const [waiting] = await cues(account.id, 1, { callback_url: hook.url })
  await delay(500)
  t.equal(hook.requests.length, 0, 'there is no room for it')
  await del(`/v1/cues/${ids[0]}`)
  await hook.received(1)
  t.equal(await measured('pgcue_attempts_total\\{result="aborted"\\}'), 1)
  await eventually(async () => (await count("cue_id = $1 and status = 'success'", [waiting])) === 1)
  t.equal(
    (await pool.query('select from cue.attempt_view a join cue.executions e on e.id = a.execution_id where e.cue_id = $1', [ids[0]]))
      .rowCount,
    0
  )
  await pool.query('select cue.delete_cues($1, $2)', [account.id, ids.slice(1)])
  await eventually(async () => (await measured('pgcue_open_deliveries')) === 0)
  await eventually(async () => (await pool.query('select from cue.flights')).rowCount === 0)
})

t.test('disowning an account aborts its requests, which are not sent again', async t => {
  const { fn, register, cues, count, measured, hanging, pool } = await serve(t)
  const { id } = await register()
  await cues(id, allowed, patient)
  await hanging.received(allowed)
  await fn.disownAccount({ account_id: id, ip: '127.0.0.1' })
  await eventually(async () => (await measured('pgcue_open_deliveries')) === 0)
  t.equal(await count("status = 'failed' and error_message = 'cancelled'"), allowed)
  const { rows } = await pool.query('select distinct result, error from cue.attempt_view')
  t.same(rows, [{ result: 'failed', error: 'cancelled' }])
  t.equal(await measured('pgcue_attempts_total\\{result="aborted"\\}'), allowed)
})

t.test("the API enforces a plan's maximum timeout, and older cues are limited when sent", async t => {
  const limited = JSON.stringify({ free: { max_timeout_seconds: 1 } })
  const { cues, call, count, hook, hanging, account, post } = await serve(t, { PLANS: limited })
  const webhook = { name: 'job', cron: '@daily', callback_url: hook.url }
  const refused = {
    status: 422,
    body: { error: { message: 'delivery.timeout_seconds: Input should be less than or equal to 1, the maximum on your plan' } }
  }
  exactly(t, await call('POST', '/v1/cues', { ...webhook, delivery: { timeout_seconds: 2 } }), refused)
  const { id } = await post('/v1/cues', { ...webhook, delivery: { timeout_seconds: 1 } })
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { delivery: { timeout_seconds: 3600 } }), refused)
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { delivery: { outcome_deadline_seconds: 60 } }), { status: 200 })
  await cues(account.id, 1, { ...patient, retry_max_attempts: 2, retry_backoff_minutes: [0.001] })
  await hanging.received(2)
  await eventually(async () => (await count("status = 'failed' and error_message = 'timed out after 1 s: no response'")) === 1)
})
