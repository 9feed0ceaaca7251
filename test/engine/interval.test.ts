// The minimum interval between slots that a plan requires.
import t from 'tap'
import { parseCron } from '../../src/schedule/cron.ts'
import { isTighterThan } from '../../src/schedule/interval.ts'
import { cronTimetable } from '../../src/schedule/next-run.ts'
import { nextRuns } from '../../src/schedule/runs.ts'
import { build } from '../support/setup.ts'

const minute = 60
const hour = 3600
const day = 86_400

/** Expressions with the minimum seconds between two of their slots. */
const gaps: [cron: string, seconds: number][] = [
  ['* * * * * *', 1],
  ['*/7 * * * * *', 4], // 56, 0
  ['30 * * * * *', minute],
  ['10,50 * * * * *', 20],
  ['0,45 0 * * * *', 45],
  ['* * * * *', minute],
  ['*/7 * * * *', 4 * minute],
  ['*/15 * * * *', 15 * minute],
  ['*/45 * * * *', 15 * minute],
  ['0 * * * *', hour],
  ['0,50 */6 * * *', 50 * minute],
  ['59 0-8/2 * * *', 2 * hour],
  ['0,59 * * * *', minute],
  ['0 0,23 * * *', hour],
  ['0,59 0,23 * * *', minute],
  ['59 0,23 * * *', hour],
  ['*/5 9-17 * * 1-5', 5 * minute],
  ['0 0 * * *', day],
  ['0 1,3 * * *', 2 * hour],
  ['0 0,12 1 * *', 12 * hour],
  ['0 0 */2 * *', day], // the 31st and the 1st
  ['0 0 2-30/2 * *', 2 * day],
  ['0 0 29-31/2 * *', 2 * day],
  ['0 0 1,31 * *', day],
  ['0 0 28 2 *', 365 * day],
  ['0 0 1 3 *', 365 * day],
  ['0 0 29 2 *', 1461 * day],
  ['0 0 1 * *', 28 * day],
  ['0 0 29 * *', 29 * day],
  ['0 0 31 * *', 31 * day],
  ['0 0 31 1,3 *', 59 * day],
  ['0 0 * * 1', 7 * day],
  ['0 0 * * 1,5', 3 * day],
  ['0 0 * * 0,6', day],
  ['0 0 13 * 5', day], // either day field is enough: Thursday the 13th
  ['0 0 */30 * 1', 28 * day], // both must match: Monday the 1st or 31st
  ['0 23 * * *', day],
  ['0,30 0,23 * * *', 30 * minute],
  ['30 0,23 * * 1', 23 * hour],
  ['0 1,23 * * 1,2', 2 * hour]
]
for (const [cron, seconds] of gaps) {
  t.test(`${cron} has slots ${seconds} s apart, and none closer`, async t => {
    t.equal(isTighterThan([parseCron(cron)], seconds), false)
    t.equal(isTighterThan([parseCron(cron)], seconds + 1), true)
  })
}

t.test('computed intervals match the actual slots over years', async t => {
  for (const cron of ['*/7 3,4,23 */3 * *', '13 0,5 28-31 * *', '0 0 1,15 * 2', '30 6 29,30 */2 *', '0 22,2 */10 * */3']) {
    const slots = nextRuns(cronTimetable(parseCron(cron), 'UTC'), new Date('2001-01-01T00:00:00Z'), 6000)
    const least = slots.slice(1).reduce((gap, slot, n) => Math.min(gap, (+slot - +slots[n]!) / 1000), Infinity)
    t.equal(isTighterThan([parseCron(cron)], least), false, cron)
    t.equal(isTighterThan([parseCron(cron)], least + 1), true, cron)
  }
})

/** Several expressions with the minimum seconds between two of their slots; one that several name is one slot. */
const together: [crons: string[], seconds: number][] = [
  [['0 9 * * *', '0 9 * * *'], day],
  [['0 9 * * *', '30 9 * * *'], 30 * minute],
  [['0 9 * * MON', '30 9 * * TUE'], day + 30 * minute],
  [['0 9 * * MON', '30 8 * * TUE'], day - 30 * minute],
  [['59 23 31 * *', '0 0 1 * *'], minute],
  [['59 23 30 * *', '0 0 1 * *'], minute],
  [['0 12 29 2 *', '15 12 29 2 *'], 15 * minute],
  [['0 12 1 1 *', '0 12 1 7 *'], 181 * day],
  [['0 0 * * 1', '0 0 * * 4', '30 23 * * 6'], day + 30 * minute],
  [['*/20 * * * *', '5 12 * * *'], 5 * minute],
  [['0 12 13 * *', '10 12 * * FRI'], 10 * minute]
]
for (const [crons, seconds] of together) {
  t.test(`${crons.join('; ')} have slots ${seconds} s apart, and none closer`, async t => {
    t.equal(isTighterThan(crons.map(parseCron), seconds), false)
    t.equal(isTighterThan(crons.map(parseCron), seconds + 1), true)
  })
}

const url = 'http://127.0.0.1:5555/hook'
const limits = { free: { min_interval_seconds: 3600 } }
const stage = (t: Parameters<typeof build>[0]) => build(t, '2030-01-07T08:30:00Z', { env: { PLANS: JSON.stringify(limits) } })
const refusal = {
  status: 400,
  body: {
    error: {
      code: 'invalid_schedule',
      status: 400,
      message: 'schedule.cron: your plan requires at least 3600 seconds between slots; choose a longer interval, or upgrade'
    }
  }
}

t.test('rejects a cue whose slots are too close, on creation and on PATCH', async t => {
  const { call, post } = await stage(t)
  t.strictSame(pick(await call('POST', '/v1/cues', { name: 'n', cron: '*/59 * * * *', callback_url: url })), refusal)
  const { id } = await post('/v1/cues', { name: 'n', cron: '0 * * * *', callback_url: url })
  t.strictSame(pick(await call('PATCH', `/v1/cues/${id}`, { schedule: { cron: '0,30 9 * * *' } })), refusal)
  t.equal((await call('PATCH', `/v1/cues/${id}`, { schedule: { cron: '0 9 * * *' } })).status, 200)
  t.equal((await call('PATCH', `/v1/cues/${id}`, { schedule: { at: '2030-01-07T08:30:01Z' } })).status, 200)
})

// At clock changes, these have closer or repeated slots; on the local clock, they are an hour apart.
for (const [cron, timezone] of [
  ['0 * * * *', 'Europe/Berlin'],
  ['0 1-3 * * *', 'America/New_York'],
  ['30 * * * *', 'Australia/Lord_Howe'],
  ['30 1,3 * * *', 'Europe/London'],
  ['59 1,2 * * *', 'Europe/Berlin']
]) {
  t.test(`accepts ${cron} in ${timezone} with a minimum of one hour, despite clock changes`, async t => {
    const { call } = await stage(t)
    t.equal((await call('POST', '/v1/cues', { name: 'n', cron, timezone, callback_url: url })).status, 201)
  })
}

t.test('a cue from a larger plan can be changed and resumed, but not get a new time zone', async t => {
  const { call, post, pool, fn, account } = await stage(t)
  await pool.query("update cue.accounts set plan = 'pro'")
  const { id } = await post('/v1/cues', { name: 'n', cron: '* * * * *', callback_url: url })
  await pool.query("update cue.accounts set plan = 'free'")
  for (const change of [
    { name: 'm' },
    { schedule: { cron: '* * * * *' } },
    { payload: { n: 1 } },
    { status: 'paused' },
    { status: 'active' }
  ]) {
    t.equal((await call('PATCH', `/v1/cues/${id}`, change)).status, 200, JSON.stringify(change))
  }
  t.strictSame(pick(await call('PATCH', `/v1/cues/${id}`, { schedule: { timezone: 'Europe/Berlin' } })), refusal)
  t.equal((await call('POST', `/v1/cues/${id}/fire`, {})).status, 200)
  t.equal((await call('POST', `/v1/cues/${id}/fire`, {})).status, 200)
  t.equal(await fn.executionsUsed({ account_id: account.id }), 2)
})

const pick = ({ status, body }: { status: number; body: unknown }) => ({ status, body })
