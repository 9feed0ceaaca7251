// Gates with three engines and real requests.
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { build, eventually, receiver } from '../support/setup.ts'

const env = { PLANS: '{"free": {"cues": 1000, "executions_per_month": 1000000, "requests_per_minute": 100000, "fires_per_hour": 10000}}' }

const stage = async (t: Test, settings: object, work: (n: number) => Promise<object>) => {
  const s = await build(t, undefined, { env })
  const rows = async (text: string, values: unknown[] = []) => (await s.pool.query(text, values)).rows
  await rows('select cue.put_gate($1, $2, $3)', [s.account.id, 'g', JSON.stringify(settings)])
  let running = 0
  let most = 0
  const ends: number[] = []
  const starts: number[] = []
  const hook = await receiver(t, async (_, n) => {
    starts.push(performance.now())
    most = Math.max(most, ++running)
    const answer = await work(n)
    running--
    ends.push(performance.now())
    return answer
  })
  const cues: string[] = []
  for (let n = 0; n < 10; n++) {
    const { id } = await s.post('/v1/cues', { name: `n${n}`, cron: '@yearly', callback: { url: hook.url } })
    cues.push(id)
  }
  await rows("update cue.cues set gate = 'g'; ")
  await rows('update cue.cue_runs set tracked = true')
  for (let n = 0; n < 3; n++) await startEngine(t, testConfig(s.url, { POLL_INTERVAL_MS: '1000' }))
  return {
    ...s,
    rows,
    fire: async (count: number) => {
      for (let n = 0; n < count; n++) await rows('select cue.fire_cue($1, $2)', [s.account.id, cues[n % cues.length]])
    },
    done: (count: number) => eventually(() => ends.length >= count, 60_000),
    ended: (count: number) =>
      eventually(async () => (await rows("select from cue.executions where status = 'success'")).length === count, 60_000),
    figures: () => ({ most, starts, ends })
  }
}

t.test('three engines never run more than the gate allows, and fill it', async t => {
  const s = await stage(t, { parallel: 5 }, () => delay(100).then(() => ({})))
  const began = performance.now()
  await s.fire(100)
  await s.done(100)
  const { most, ends } = s.figures()
  const tookMs = ends.at(-1)! - began
  t.equal(most, 5)
  await s.ended(100)
  // From the recorded end that made room until the next start.
  const [{ half, most_of_them }] = await s.rows(
    `with ends as (select ended_at as at, row_number() over (order by ended_at) as n from cue.executions),
          starts as (select started_at as at, row_number() over (order by started_at) as n from cue.executions)
     select percentile_cont(0.5) within group (order by extract(epoch from s.at - e.at) * 1000) as half,
            percentile_cont(0.99) within group (order by extract(epoch from s.at - e.at) * 1000) as most_of_them
       from starts s join ends e on s.n = e.n + 5`
  )
  t.comment(
    `took ${Math.round(tookMs)} ms; from an end to the next start: median ${Math.round(half)} ms, p99 ${Math.round(most_of_them)} ms`
  )
  t.same(await s.rows('select * from cue.held_executions'), [])
})

t.test('a rate is exact in the rows, and used', async t => {
  const s = await stage(t, { rate: 10, per: '1s' }, async () => ({}))
  await s.fire(60)
  await s.done(60)
  await s.ended(60)
  const at = (await s.rows('select (extract(epoch from started_at) * 1000000)::bigint as us from cue.executions order by 1')).map(row =>
    Number(row.us)
  )
  for (let n = 10; n < at.length; n++)
    if (at[n]! - at[n - 10]! < 1_000_000) t.fail(`starts ${n - 10} to ${n} within ${at[n]! - at[n - 10]!} us`)
  const tookMs = (at.at(-1)! - at[0]!) / 1000
  t.comment(`50 starts after the first 10 took ${tookMs} ms, at best 5,000`)
  t.ok(tookMs < 6500, `took ${tookMs} ms`)
})

t.test('an ordered gate runs them in order, whatever fails', async t => {
  const s = await stage(t, { ordered: true }, async n => (n % 7 === 3 ? { status: 500 } : {}))
  await s.rows("update cue.cues set retry_backoff_minutes = '{0.001}'")
  await s.fire(60)
  await s.ended(60)
  const wrong = await s.rows(
    `select from (select started_at, lag(ended_at) over (order by scheduled_for, id) as before from cue.executions) e where started_at < before`
  )
  t.equal(wrong.length, 0)
  t.equal(s.figures().most, 1)
})
