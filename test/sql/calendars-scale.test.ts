// A calendar that many cues use: its change reaches all of them, and due cues keep firing. SCALE=4 makes 10,000. The limits are many times what a
// quiet machine takes: a busy one must not fail.
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { startEngine } from '../support/engine.ts'
import { scaled, spelled } from '../support/scale.ts'
import { build, receiver } from '../support/setup.ts'

t.test(`${spelled(2500)} cues follow a change of their calendar, and others fire meanwhile`, async t => {
  const service = await build(t, undefined, { env: { PLANS: '{"free":{"cues":1000000,"executions_per_month":1000000}}' } })
  const { config, fn, pool, register, as } = service
  const account = await register()
  const { call } = as(account)
  const hooks = await receiver(t)
  await call('PUT', '/v1/calendars/holidays', { dates: [] })
  const add = async (count: number, columns: object, next_run: Date) => {
    for (let left = count; left > 0; left -= 500) {
      const n = Math.min(left, 500)
      const cue = { name: 'n', transport: 'webhook', callback_url: hooks.url, schedule_type: 'recurring', timezone: 'UTC', ...columns }
      await fn.createEachCue({
        account_ids: Array(n).fill(account.id),
        cues: JSON.stringify(Array(n).fill(cue)),
        next_runs: Array(n).fill(next_run)
      })
    }
  }
  const year = new Date().getUTCFullYear() + 1
  const uses = { schedule_rules: { exclude_calendars: ['holidays'] } }
  await add(scaled(2500), { cron: '0 9 1 1 *', ...uses }, new Date(Date.UTC(year, 0, 1, 9)))
  const soon = new Date(Math.ceil(Date.now() / 1000) * 1000 + 2000)
  await add(20, { cron: '* * * * * *', ...uses }, soon)
  await add(20, { cron: '* * * * * *' }, soon)
  await pool.query('analyze')
  await startEngine(t, config)
  await hooks.received(120)
  const lateSince = (first: number) =>
    hooks.requests
      .slice(first)
      .map(({ at, headers }) => +at - Date.parse(String(headers['x-service-scheduled-for'])))
      .sort((a, b) => a - b)
  const textOf = (late: number[]) => `${late.length} requests, late by ${late[late.length >> 1]} ms, at most ${late.at(-1)} ms`
  const before = hooks.requests.length
  const changes: number[] = []
  for (const dates of [[`${year}-01-01`], [`${year}-06-01`], [`${year}-01-01`]]) {
    const since = performance.now()
    const { status } = await call('PUT', '/v1/calendars/holidays', { dates })
    t.equal(status, 200)
    changes.push(performance.now() - since)
    const { rows } = await pool.query(
      `select next_run, count(*)::int from cue.cue_runs where next_run > now() + interval '1 day' group by 1`
    )
    t.equal(rows.length, 1)
    t.equal(rows[0].count, scaled(2500))
    t.equal(rows[0].next_run.getUTCFullYear() > year, dates[0] === `${year}-01-01`)
    await delay(1200)
  }
  const late = lateSince(before)
  t.comment(`changes took ${changes.map(Math.round).join(', ')} ms; meanwhile ${textOf(late)}`)
  t.ok(Math.max(...changes) < 30_000)
  t.ok(late.length >= 100)
  t.ok(late.at(-1)! < 5000)
})
