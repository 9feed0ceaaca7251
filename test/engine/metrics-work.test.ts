/** Metrics of attempts, outcomes and jobs. */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { startEngine } from '../support/engine.ts'
import { build, eventually, receiver } from '../support/setup.ts'

/** The value of a sample, by its name and labels; undefined if there is none. */
const scraped = async (t: Test) => {
  const metrics = createMetrics()
  const service = await build(t, undefined, { metrics })
  const sample = async (name: string) => {
    const { body } = await service.as(null).call('GET', '/metrics')
    const line = body.split('\n').find((line: string) => line.startsWith(`${name} `))
    return line === undefined ? undefined : Number(line.slice(name.length))
  }
  return { ...service, metrics, sample }
}

t.test('measures the duration of attempts by result', async t => {
  const { config, metrics, post, sample } = await scraped(t)
  const hook = await receiver(t)
  hook.answer(() => delay(300, {}))
  await startEngine(t, config, metrics)
  const { id } = await post('/v1/cues', { name: 'slow', cron: '0 9 * * *', callback_url: hook.url })
  await post(`/v1/cues/${id}/fire`)
  await eventually(async () => (await sample('pgcue_attempt_duration_seconds_count{result="success"}')) === 1)
  t.equal(await sample('pgcue_attempt_duration_seconds_bucket{le="0.25",result="success"}'), 0)
  t.equal(await sample('pgcue_attempt_duration_seconds_bucket{le="+Inf",result="success"}'), 1)
  t.equal(await sample('pgcue_attempt_duration_seconds_count{result="failed"}'), undefined)
})

t.test('counts reported outcomes by transport and result, without rejected reports', async t => {
  const { post, sample } = await scraped(t)
  const { id } = await post('/v1/cues', { name: 'work', cron: '0 9 * * *', worker: true })
  for (const success of [true, false, false]) {
    await post(`/v1/cues/${id}/fire`)
    const { execution_id } = await post('/v1/executions/claim', { worker_id: 'w' })
    for (let time = 0; time < 2; time++) await post(`/v1/executions/${execution_id}/outcome`, { success })
  }
  t.equal(await sample('pgcue_outcomes_total{transport="worker",result="success"}'), 1)
  t.equal(await sample('pgcue_outcomes_total{transport="worker",result="failure"}'), 2)
  t.equal(await sample('pgcue_outcomes_total{transport="webhook",result="success"}'), 0)
})

t.test('counts waiting jobs by queue, without running and finished ones', async t => {
  const { fn, pool, sample } = await scraped(t)
  await pool.query('delete from pgboss.job')
  const later = new Date(Date.now() + 3_600_000)
  for (let job = 0; job < 4; job++) await fn.addJob({ queue: 'mails', data: {}, start_after: later })
  await fn.addJob({ queue: 'alerts', data: {} })
  await pool.query(
    `update pgboss.job j set state = s.state::pgboss.job_state
       from (select id, (array['active', 'completed'])[row_number() over ()] as state from pgboss.job where name = 'mails' limit 2) s
      where j.id = s.id`
  )
  t.equal(await sample('pgcue_jobs_waiting{queue="mails"}'), 2)
  t.equal(await sample('pgcue_jobs_waiting{queue="alerts"}'), 1)
  t.equal(await sample('pgcue_jobs_waiting{queue="tickets"}'), 0)
  t.same(
    (await fn.jobCounts({ limit: 1 })).find(({ queue }) => queue === 'mails'),
    { queue: 'mails', waiting: 1 },
    'up to a limit'
  )
})

t.test('counts failed tries of jobs by queue, and whether another one follows', async t => {
  const { config, fn, metrics, pool, post, patch, sample } = await scraped(t)
  const failures = (queue: string, final: boolean) => sample(`pgcue_job_failures_total{queue="${queue}",final="${final}"}`)
  const hook = await receiver(t, ({ path }) => ({ status: path === '/gone' ? 410 : 500 }))
  await startEngine(t, config, metrics)
  await patch('/v1/auth/me', { alert_webhook_url: `${hook.url}alerts` })
  const { id } = await post('/v1/cues', {
    name: 'failing',
    cron: '@yearly',
    callback_url: `${hook.url}gone`,
    on_failure: { email: false, webhook: hook.url },
    retry: { max_attempts: 2, backoff_minutes: [0] },
    alerts: { consecutive_failures: 1 }
  })
  await fn.addJob({ queue: 'tickets', data: { ticket_id: 1 } })
  await post(`/v1/cues/${id}/fire`)
  await eventually(async () => (await failures('tickets', false)) === 1)
  await eventually(async () => (await failures('alerts', false)) === 1)
  await eventually(async () => (await failures('notifications', true)) === 1)
  t.equal(await failures('notifications', false), 1)
  t.same(
    [await failures('tickets', true), await failures('alerts', true), await failures('mails', false)],
    [undefined, undefined, undefined]
  )

  const { retry_limit } = (await pool.query("select retry_limit from pgboss.queue where name = 'tickets'")).rows[0]
  await pool.query("update pgboss.job set retry_count = $1, start_after = now() where name = 'tickets' and state = 'retry'", [
    retry_limit - 1
  ])
  await eventually(async () => (await failures('tickets', true)) === 1, 15_000)
  await patch('/v1/auth/me', { alert_webhook_url: `${hook.url}gone` })
  await fn.addJob({ queue: 'alerts', data: (await pool.query("select data from pgboss.job where name = 'alerts' limit 1")).rows[0].data })
  await eventually(async () => (await failures('alerts', true)) === 1)
})

t.test('shows the release as labels', async t => {
  const { get, sample } = await scraped(t)
  const { version } = await get('/health')
  t.equal(await sample(`pgcue_build_info{version="${version}",node_version="${process.version}"}`), 1)
})
