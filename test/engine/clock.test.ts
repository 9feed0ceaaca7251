import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { build as buildApp } from '../../src/app.ts'
import { type Clock, createClock } from '../../src/database/clock.ts'
import { createPool } from '../../src/database/pool.ts'
import { createHeartbeat } from '../../src/engine/heartbeat.ts'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { always } from '../support/seed.ts'
import { build, eventually } from '../support/setup.ts'

t.test("the service uses the database's clock", async t => {
  const { app, pool } = await build(t, undefined, { isNew: true })
  const sql =
    "create or replace function cue.database_time() returns float8 language sql as 'select extract(epoch from timestamptz ''2040-07-01'') * 1000'"
  await pool.query(sql)
  await app.ready()
  t.equal(app.now().getUTCFullYear(), 2040)
  t.equal((await build(t, '2030-01-15T09:00:00Z')).app.now().toISOString(), '2030-01-15T09:00:00.000Z', "a test's clock takes precedence")
})

t.test("an engine reads the database's clock before it fires, and again with each heartbeat", async t => {
  const { config } = await build(t)
  const clock = createClock()
  const learned = t.capture(clock, 'learn', clock.learn)
  await startEngine(t, config, undefined, undefined, clock)
  const calls = learned()
  t.ok(calls.length >= 4, 'by the first heartbeat, and three times by itself')
  for (const { args } of calls) {
    const [databaseNow, askedAt] = args
    const ms = databaseNow - performance.timeOrigin - askedAt
    t.ok(Math.abs(ms) < 2000, `read ${ms} ms after it was requested, on the same host`)
  }
})

t.test("uses the host's clock while the database is unreachable, then asks again", async t => {
  const config = testConfig('postgres://nobody@127.0.0.1:1/none')
  const pool = createPool(config)
  const connect = t.captureFn(pool.connect.bind(pool))
  Object.assign(pool, { connect })
  const app = await buildApp({ config, pool })
  t.teardown(() => app.close().then(() => pool.end()))
  await app.ready()
  t.ok(Math.abs(app.now().getTime() - Date.now()) < 1000)
  await eventually(() => connect.calls.length > 1)
})

type Answer = { idle: number; before: number; after: number }
const answer = fc.record({ idle: fc.nat(20_000), before: fc.nat(400), after: fc.nat(400) })

/** Passes answers on from a clock that is `ahead` of ours. Returns how far the clock that learned is off, in milliseconds. */
const learning = (clock: Clock, answers: Answer[], ahead: number, start = 0) => {
  let at = start
  for (const { idle, before, after } of answers) {
    const askedAt = at + idle
    at = askedAt + before + after
    clock.learn(askedAt + before + ahead, askedAt, at)
  }
  return { at, off: clock.now().getTime() - performance.now() - ahead }
}

t.test("knows as much about the database's clock as all answers together tell", async t => {
  always(
    fc.property(fc.array(answer, { minLength: 1, maxLength: 20 }), fc.integer({ min: 1e9, max: 1e12 }), (answers, ahead) => {
      const { at, off } = learning(createClock(), answers, ahead)
      // Each has become vaguer since, by 0.02 ms per second.
      let then = 0
      const bounds = answers.map(({ idle, before, after }) => {
        then += idle + before + after
        return { before: before + (at - then) / 5e4, after: after + (at - then) / 5e4 }
      })
      const least = (key: 'before' | 'after') => Math.min(...bounds.map(bound => bound[key]))
      t.ok(Math.abs(off - (least('before') - least('after')) / 2) <= 1.5, 'to the millisecond of a Date')
    })
  )
})

t.test("follows when the database's clock is set", async t => {
  always(
    fc.property(
      fc.array(answer, { maxLength: 20 }),
      answer,
      fc.integer({ min: 1000, max: 1e9 }),
      fc.boolean(),
      (answers, last, step, back) => {
        const clock = createClock()
        const { at } = learning(clock, answers, 1e10)
        const { off } = learning(clock, [last], 1e10 + (back ? -step : step), at)
        t.ok(Math.abs(off - (last.before - last.after) / 2) <= 1.5)
      }
    )
  )
})

t.test("names a jump of the database's clock, and not the first answer or a slow one", async t => {
  const jumps: number[] = []
  const clock = createClock(undefined, ms => jumps.push(ms))
  const hour = 3_600_000
  clock.learn(hour, 0, 4)
  clock.learn(hour + 1000, 1000, 5000)
  t.same(jumps, [])
  clock.learn(3 * hour + 6000, 6000, 6004)
  clock.learn(3 * hour + 7000, 7000, 7004)
  clock.learn(2 * hour + 8000, 8000, 8004)
  t.same(
    jumps.map(ms => Math.round(ms / 1000)),
    [7200, -3600]
  )
})

t.test('an outage that only a jump of the clock made is named as such', async t => {
  const lines: string[] = []
  const answer = { database_now: new Date(), outage_recorded: true, engines: 1 }
  const { beat } = createHeartbeat({
    fn: { beatEngine: async () => answer },
    engineId: '',
    name: '',
    missedAfterMs: 60_000,
    pump: { lateness: null, open: 0, fullAccounts: () => [] },
    ahead: { passedOver: () => [], reset: () => {} },
    clock: createClock(),
    log: { warn: (line: string) => lines.push(line) } as never
  })
  await beat()
  await beat()
  t.same(
    lines.map(line => line.split(':')[0]),
    ['no engine was running', "the database's clock jumped"]
  )
})

const idle = { name: 'idle', callback_url: 'http://127.0.0.1:5555/' }
const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
/** A cue of each kind of schedule, none of which is due soon. */
const kinds: object[] = [
  { cron: '0 0 1 1 *' },
  { schedule: { every: '300d', anchor: tomorrow } },
  { schedule: { crons: ['0 0 1 1 *', '0 0 2 1 *'] } },
  { at: tomorrow },
  { schedule: { every: '1d', anchor: tomorrow, exclude: [{ dates: [tomorrow.slice(5, 10)] }] } },
  { schedule: { every: '300d', anchor: tomorrow, exclude_calendars: ['holidays'], max_runs: 5, ends_at: '2100-01-01T00:00:00Z' } },
  { schedule: { every: '300d', anchor: tomorrow, window: '1h' } },
  { schedule: { every: '1d', anchor: tomorrow }, overlap: 'queue_all' },
  { cron: '0 0 1 1 *', callback_url: undefined, worker: true }
]

t.test(
  'an idle service with a cue of each kind of schedule does at most twice the transactions of one without cues',
  { timeout: 120_000 },
  async t => {
    const { config, pool, call } = await build(t)
    await startEngine(t, config)
    const count = async (): Promise<number> =>
      (await pool.query('select (xact_commit + xact_rollback)::int as count from pg_stat_database where datname = current_database()'))
        .rows[0].count
    const transactions = async () => {
      await delay(11_000) // idle connections report what they did within ten seconds
      const before = await count()
      await delay(8000)
      return (await count()) - before
    }
    const without = await transactions()
    await call('PUT', '/v1/calendars/holidays', { dates: [tomorrow.slice(0, 10), '12-25'] })
    for (const kind of kinds) t.equal((await call('POST', '/v1/cues', { ...idle, ...kind })).status, 201, JSON.stringify(kind))
    const { body } = await call('POST', '/v1/cues', { ...idle, cron: '0 0 1 1 *' })
    t.equal((await call('POST', `/v1/cues/${body.id}/pause`, { until: tomorrow })).status, 200)
    const all = await transactions()
    t.ok(all <= 2 * without, `${without} without cues, ${all} with them`)
  }
)
