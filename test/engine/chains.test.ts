// Chains with engines and real requests.
import t, { type Test } from 'tap'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { build, eventually, receiver } from '../support/setup.ts'

const env = { PLANS: '{"free": {"cues": 1000, "executions_per_month": 1000000, "requests_per_minute": 100000, "fires_per_hour": 10000}}' }

const stage = async (t: Test, engines: number) => {
  const s = await build(t, undefined, { env })
  const rows = async (text: string, values: unknown[] = []) => (await s.pool.query(text, values)).rows
  const hook = await receiver(t, () => ({}))
  const cue = async (key: string, more: object) => {
    const { status, body } = await s.call('POST', '/v1/cues', { name: key, key, callback: { url: `${hook.url}/${key}` }, ...more })
    if (status !== 201) throw new Error(JSON.stringify(body))
    return body.id as string
  }
  const running = []
  for (let n = 0; n < engines; n++) running.push(await startEngine(t, testConfig(s.url, { POLL_INTERVAL_MS: '1000' })))
  return { ...s, rows, hook, cue, running, yearly: { cron: '@yearly' } }
}

/** Milliseconds from the end of the last parent to the first attempt. */
const waits = `
  select extract(epoch from e.started_at - (
           select max(p.ended_at) from jsonb_array_elements(e.parents) x join cue.executions p on p.id = (x ->> 'execution_id')::uuid)) * 1000 as ms
    from cue.executions e where e.triggered_by = 'chain' and e.status = 'success' order by 1`

t.test('a chain of webhooks runs by itself, each link soon after the one before it', async t => {
  const { cue, rows, post, yearly } = await stage(t, 2)
  const first = await cue('c0', yearly)
  for (let n = 1; n < 20; n++) await cue(`c${n}`, { after: { cues: [`c${n - 1}`] } })
  for (let n = 0; n < 5; n++) await post(`/v1/cues/${first}/fire`)
  const count = async () => (await rows("select from cue.executions where status = 'success'")).length
  await eventually(async () => (await count()) === 100, 60_000)
  t.equal(await count(), 100)
  const ms = (await rows(waits)).map(row => Number(row.ms))
  t.comment(`median ${ms[Math.floor(ms.length / 2)]} ms, p99 ${ms[Math.floor(ms.length * 0.99)]} ms`)
  t.ok(ms[Math.floor(ms.length / 2)]! < 200)
})

t.test('50 followers of one parent start together', async t => {
  const { cue, rows, post, yearly } = await stage(t, 2)
  const first = await cue('parent', yearly)
  for (let n = 0; n < 50; n++) await cue(`f${n}`, { after: { cues: ['parent'] } })
  await post(`/v1/cues/${first}/fire`)
  await eventually(
    async () => (await rows("select from cue.executions where triggered_by = 'chain' and status = 'success'")).length === 50,
    30_000
  )
  const last = Number((await rows(waits)).at(-1).ms)
  t.comment(`the last after ${last} ms`)
  t.ok(last < 2000)
})

t.test('a follower that is paused until a time takes no signals before', async t => {
  const { cue, rows, post, yearly } = await stage(t, 1)
  const parent = await cue('parent', yearly)
  const follower = await cue('follower', { after: { cues: ['parent'] } })
  await post(`/v1/cues/${follower}/pause`, { until: new Date(Date.now() + 1500).toISOString() })
  const fire = async (count: number) => {
    await post(`/v1/cues/${parent}/fire`)
    await eventually(
      async () => (await rows("select from cue.executions where cue_id = $1 and status = 'success'", [parent])).length === count
    )
  }
  await fire(1)
  await eventually(async () => (await rows("select from cue.cues where id = $1 and status = 'active'", [follower])).length === 1, 15_000)
  await fire(2)
  await eventually(async () => (await rows("select from cue.executions where cue_id = $1 and status = 'success'", [follower])).length === 1)
  t.equal((await rows('select from cue.signals')).length, 1)
})

t.test('slots wait for signals, and are missed at the end of their wait', async t => {
  const { cue, rows, post, yearly } = await stage(t, 1)
  const parent = await cue('parent', yearly)
  await cue('waiting', { every: '10s', after: { cues: ['parent'], within: '1s', wait: '2s' } })
  await rows(
    "update cue.cue_runs r set next_run = date_trunc('milliseconds', now()) from cue.cues c where c.id = r.cue_id and c.key = 'waiting'"
  )
  await rows("select pg_notify('cue_due', '0')")
  await eventually(async () => (await rows("select from cue.held_executions where held_by = 'after'")).length === 1, 10_000)
  await post(`/v1/cues/${parent}/fire`)
  const ended = (status: string) =>
    eventually(
      async () =>
        (await rows("select from cue.executions e join cue.cues c on c.id = e.cue_id where c.key = 'waiting' and e.status = $1", [status]))
          .length === 1,
      20_000
    )
  await ended('success')
  await ended('missed')
  t.pass('the next one')
})
