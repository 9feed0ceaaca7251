/** Metrics of attempts, outcomes and jobs. */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createMetrics } from '../src/metrics/metrics.ts'
import { startEngine } from './engine.ts'
import { build, eventually, receiver } from './setup.ts'

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

t.test('counts failed jobs by queue', async t => {
  const { config, fn, metrics, sample } = await scraped(t)
  await startEngine(t, config, metrics)
  await fn.addJob({ queue: 'tickets', data: { ticket_id: 1 } })
  await eventually(async () => (await sample('pgcue_job_failures_total{queue="tickets"}')) === 1)
  t.equal(await sample('pgcue_job_failures_total{queue="mails"}'), undefined)
})

t.test('shows the release as labels', async t => {
  const { get, sample } = await scraped(t)
  const { version } = await get('/health')
  t.equal(await sample(`pgcue_build_info{version="${version}",node_version="${process.version}"}`), 1)
})
