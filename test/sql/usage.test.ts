// Counting executions against the plan: counters, folding, and the monthly limit.
import t, { type Test } from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { lookAhead } from '../support/firing-stage.ts'
import { refused, stage } from '../support/stage.ts'

const limit = 5

/** An account on a plan of five executions a month. */
const limited = async (t: Test) => {
  const s = await stage(t)
  await s.rows('update cue.plans set executions_per_month = $1', [limit])
  const cues: string[] = []
  for (let i = 0; i < 4; i++) cues.push(await s.cue({}, { next_run: null }))
  let fired = 0
  /** Manual fires of several cues in turn, because of the limit of ten per hour and cue. */
  const fire = (by = s.fn) => by.fireCue({ account_id: s.account_id, cue_id: cues[fired++ % cues.length]! })
  const use = async (count: number) => {
    for (let i = 0; i < count; i++) await fire()
  }
  const reachedAt = async () => (await s.row('select limit_reached_at as at from cue.accounts where id = $1', [s.account_id])).at
  return { ...s, fire, use, reachedAt }
}

t.test('counts every execution once, however it was triggered', async t => {
  const { fire, use, cue, take, fn, account_id, used, settle, clock } = await limited(t)
  await use(1)
  t.equal(await used(), 1)
  const [attempt] = await take([await cue()])
  t.equal(await used(), 2)
  await settle([attempt!], { error: 'gone', gone: true })
  await fn.replayExecution({ account_id, execution_id: attempt!.execution_id })
  t.equal(await used(), 3)
  clock.advance('1 hour')
  await beginWaiting(fn, { limit: 10 })
  t.equal(await used(), 3, 'an attempt is not an execution')
  await fire()
  t.equal(await used(), 4)
})

t.test('does not count idempotent repeats and refused fires', async t => {
  const { fn, cue, account_id, used } = await limited(t)
  const request = { account_id, cue_id: await cue(), idempotency_key: 'k', request_hash: 'h' }
  await fn.fireCue(request)
  await fn.fireCue(request)
  t.equal(await used(), 1)
  await t.rejects(fn.fireCue({ ...request, request_hash: 'other' }), { code: 'QU013' })
  await t.rejects(fn.fireCue({ account_id, cue_id: 'cue_000000000000' }), { code: 'QU001' })
  t.equal(await used(), 1)
})

t.test('counts usage by UTC month', async t => {
  const { clock, use, used, fn } = await limited(t)
  clock.set('2030-01-31T23:59:59.999Z')
  await use(2)
  t.equal(await used(), 2)
  clock.set('2030-02-01T00:00:00Z')
  t.equal(await used(), 0)
  await use(1)
  await fn.foldUsage({})
  t.equal(await used(), 1)
  clock.set('2030-01-31T00:00:00Z')
  t.equal(await used(), 2)
})

t.test('exceeding the limit starts a day of grace, with one mail', async t => {
  const { use, fire, used, reachedAt, jobs, clock, account_id } = await limited(t)
  await use(limit)
  t.equal(await reachedAt(), null, 'the limit itself is allowed')
  t.same(await jobs('mails'), [])
  await fire()
  const reached = clock.now()
  t.same(await reachedAt(), reached)
  exactly(t, await jobs('mails'), [{ data: { kind: 'limit_reached', account_id } }])
  clock.advance('23 hours')
  await fire()
  t.equal(await used(), limit + 2)
  t.same(await reachedAt(), reached)
  t.equal((await jobs('mails')).length, 1)
})

t.test('refuses fires and replays after the day of grace, without side effects', async t => {
  const { use, fire, used, clock, fn, rows, account_id, jobs } = await limited(t)
  await use(limit + 1)
  const [{ id: execution_id }] = await rows(`update cue.executions set status = 'failed', ended_at = now(), attempt_due_at = null
    where id = (select id from cue.executions limit 1) returning id`)
  clock.advance('24 hours')
  const before = { used: await used(), jobs: await jobs(), fires: await rows('select * from cue.fires order by id') }
  await t.rejects(fire(), { code: 'QU032' })
  await t.rejects(fn.replayExecution({ account_id, execution_id }), { code: 'QU032' })
  t.same({ used: await used(), jobs: await jobs(), fires: await rows('select * from cue.fires order by id') }, before)
  clock.set('2030-02-01T00:00:00Z')
  await fire()
  t.equal(await used(), 1, 'a new month starts at zero')
})

t.test('the grace ends at exactly twice the limit for fires and replays', async t => {
  const { use, fire, used, fn, rows, account_id } = await limited(t)
  await use(2 * limit - 1)
  const [{ id: execution_id }] = await rows(`update cue.executions set status = 'failed', ended_at = now(), attempt_due_at = null
    where id = (select id from cue.executions limit 1) returning id`)
  await fn.replayExecution({ account_id, execution_id })
  t.equal(await used(), 2 * limit)
  await t.rejects(fire(), { code: 'QU032' })
  await t.rejects(fn.replayExecution({ account_id, execution_id }), { code: 'QU032' })
  t.equal(await used(), 2 * limit)
})

for (const [what, before, later, accepted] of [
  ['near twice the limit, only those within it succeed', 2 * limit - 2, '1 second', 2],
  ['that reach the limit, all start one grace period', limit - 1, '1 second', 6],
  ['right at the end of the grace, none succeeds', limit + 1, '24 hours', 0]
] as const)
  t.test(`of simultaneous fires ${what}`, async t => {
    const { use, cue, connect, account_id, jobs, used, clock } = await limited(t)
    await use(before)
    clock.advance(later)
    const cues = await Promise.all(Array.from({ length: 6 }, () => cue({}, { next_run: null })))
    const connections = await Promise.all(cues.map(() => connect()))
    const results = await Promise.allSettled(connections.map(({ fn }, i) => fn.fireCue({ account_id, cue_id: cues[i]! })))
    const refusals = results.flatMap(result => (result.status === 'rejected' ? result.reason.code : []))
    t.same(refusals, Array(6 - accepted).fill('QU032'))
    t.equal(await used(), before + accepted)
    t.equal((await jobs('mails')).length, 1)
  })

t.test('refuses slots from twice the limit on, even within the day of grace', async t => {
  const { use, cue, take, fn, clock, used } = await limited(t)
  await use(2 * limit - 1)
  const [last, over] = [await cue(), await cue()]
  t.equal((await take([last!])).length, 1)
  t.same(
    (await lookAhead(fn, { until: clock.now() })).filter(row => row.next_run <= clock.now()).map(row => [row.cue_id, row.over_limit]),
    [[over, true]]
  )
  t.same(await take([over!]), [])
  t.equal(await used(), 2 * limit)
})

t.test('refuses slots from the next fold on if they exceeded twice the limit before the grace began', async t => {
  const { cue, take, fn, used } = await limited(t)
  await take(await Promise.all(Array.from({ length: 2 * limit + 1 }, () => cue())))
  const next = await cue()
  await fn.foldUsage({})
  t.same(await take([next]), [])
  t.equal(await used(), 2 * limit + 1)
})

t.test('slots that exceed the limit start the grace at the next fold', async t => {
  const { cue, take, fn, reachedAt, clock, jobs, used } = await limited(t)
  await take(await Promise.all(Array.from({ length: limit + 2 }, () => cue())))
  t.equal(await used(), limit + 2)
  t.equal(await reachedAt(), null, 'firing only counts')
  await fn.foldUsage({})
  t.same(await reachedAt(), clock.now())
  t.equal((await jobs('mails')).length, 1)
  await fn.foldUsage({})
  t.equal((await jobs('mails')).length, 1)
})

t.test('a new month has its own grace', async t => {
  const { use, fire, clock, reachedAt, jobs } = await limited(t)
  await use(limit + 1)
  clock.set('2030-02-10T00:00:00Z')
  await use(limit)
  await fire()
  t.same(await reachedAt(), clock.now())
  t.equal((await jobs('mails')).length, 2)
})

t.test('a higher limit applies at once, and a lower one refuses only after a grace of its own', async t => {
  const { use, fire, fn, reachedAt, clock, account_id, rows } = await limited(t)
  const plans = (count: number) => ({ scale: { requests_per_minute: 500, cues: 500, executions_per_month: count } })
  await use(limit + 1)
  clock.advance('25 hours')
  await t.rejects(fire(), { code: 'QU032' })
  // set_plans counts the current month.
  await rows(`update cue.usage_counters set month = cue.usage_month(now()) where account_id = $1`, [account_id])
  await fn.setPlans({ plans: plans(100) })
  t.equal(await reachedAt(), null)
  await fire()
  await fn.setPlans({ plans: plans(2) })
  t.equal(await reachedAt(), null)
  await fire()
  await fire()
  t.not(await reachedAt(), null)
})

t.test('setting the same plans changes nothing', async t => {
  const { use, fn, reachedAt, clock } = await limited(t)
  await use(limit + 1)
  clock.advance('1 hour')
  const before = await reachedAt()
  await fn.setPlans({ plans: { scale: { requests_per_minute: 500, cues: 500, executions_per_month: limit } } })
  t.same(await reachedAt(), before)
})

// Folding -----------------------------------------------------------------------------------------------------------------------------

t.test('folding sums the counts of all connections per month', async t => {
  const { connect, account_id, cue, take, fn, rows, clock, used, account } = await limited(t)
  const other = await account()
  const [a, b] = [await connect(), await connect()]
  for (const by of [a.fn, b.fn]) await take([await cue(), await cue({}, { account_id: other })], { by })
  clock.set('2030-02-01T00:00:00Z')
  await take([await cue()], { by: a.fn })
  const sums = () =>
    rows(
      `select account_id, month, sum(executions)::int as n, count(*)::int as rows from cue.usage_counters
                            where account_id = any ($1) group by 1, 2 order by 3, 2`,
      [[account_id, other]]
    )
  t.equal(
    (await sums()).reduce((sum, row) => sum + row.rows, 0),
    5
  )
  await fn.foldUsage({})
  const folded = await sums()
  t.same(
    folded.map(row => [row.n, row.rows]),
    [
      [1, 1],
      [2, 1],
      [2, 1]
    ]
  )
  t.same(await rows('select distinct slot from cue.usage_counters'), [{ slot: 0 }])
  await fn.foldUsage({})
  t.same(await sums(), folded)
  t.equal(await used(), 1)
})

t.test('a fold skips counters locked by a taker, and neither waits for the other', async t => {
  const { connect, cue, take, fn, rows, used } = await limited(t)
  const a = await connect()
  await take([await cue()], { by: a.fn })
  await a.client.query('begin')
  await take([await cue()], { by: a.fn })
  await fn.foldUsage({})
  t.equal((await rows('select from cue.usage_counters where slot <> 0')).length, 1, 'locked by the taker')
  await a.client.query('commit')
  t.equal(await used(), 2)
  await fn.foldUsage({})
  exactly(t, await rows('select slot, executions from cue.usage_counters'), [{ slot: 0, executions: 2 }])
})

t.test('a taker counts into another row while its own is locked, and loses nothing', async t => {
  const { connect, cue, take, fn, used, rows } = await limited(t)
  const [a, b] = [await connect(), await connect()]
  await take([await cue()], { by: a.fn })
  await b.client.query('begin')
  await b.fn.foldUsage({})
  await take([await cue()], { by: a.fn })
  await b.client.query('commit')
  t.equal(await used(), 2)
  t.same(await rows('select sign(slot) as slot, executions from cue.usage_counters order by 1'), [
    { slot: -1, executions: 1 },
    { slot: 0, executions: 1 }
  ])
  await fn.foldUsage({})
  t.same(await rows('select slot, executions from cue.usage_counters'), [{ slot: 0, executions: 2 }])
})

t.test('a taker that found its row locked once keeps counting into another row, without waiting again', async t => {
  const { connect, cue, take, rows } = await limited(t)
  const [a, b] = [await connect(), await connect()]
  await take([await cue()], { by: a.fn })
  await b.client.query('begin; select from cue.usage_counters for update')
  for (let n = 0; n < 3; n++) await take([await cue()], { by: a.fn })
  await b.client.query('commit')
  t.same(await rows('select sign(slot) as slot, executions from cue.usage_counters order by 1'), [
    { slot: -1, executions: 3 },
    { slot: 1, executions: 1 }
  ])
})

t.test('a result counts into another row while its own is locked', async t => {
  const { connect, cue, take, settle, rows } = await limited(t)
  const [a, b] = [await connect(), await connect()]
  const [first] = await take([await cue({ retry_max_attempts: 1 })], { by: a.fn })
  await b.client.query('begin; select from cue.usage_counters for update')
  await settle([first!], refused, a.fn)
  await b.client.query('commit')
  t.same(await rows('select sign(slot) as slot, executions, failed from cue.usage_counters order by 1'), [
    { slot: -1, executions: 0, failed: 1 },
    { slot: 1, executions: 1, failed: 0 }
  ])
})

t.test('only one fold runs at a time; another returns at once', async t => {
  const { connect, cue, take, fn } = await limited(t)
  await take([await cue()])
  const a = await connect()
  await a.client.query('begin')
  t.equal(await a.fn.foldUsage({}), 1)
  t.equal(await fn.foldUsage({}), 0)
  await a.client.query('commit')
})

t.test('concurrent takers and folds lose no count', async t => {
  const { connect, cue, rows, used, fn, clock, account_id } = await limited(t)
  await rows('update cue.plans set executions_per_month = 1000')
  const ids = await Promise.all(Array.from({ length: 4 }, () => cue()))
  const takers = await Promise.all(ids.map(() => connect()))
  const folder = await connect()
  const rounds = 40
  let taking = true
  const folding = (async () => {
    let folds = 0
    while (taking) folds += await folder.fn.foldUsage({})
    return folds
  })()
  const slot = clock.now().getTime()
  await Promise.all(
    takers.map(async ({ fn: by }, i) => {
      for (let round = 0; round < rounds; round++) {
        const at = (n: number) => new Date(slot - (rounds - n) * 1000)
        if (round === 0) await rows('update cue.cue_runs set next_run = $1 where cue_id = $2', [at(0), ids[i]])
        await by.takeDueCues({ cue_ids: [ids[i]!], versions: [1], expected: [at(round)], next: [at(round + 1)], missed_after: '100 years' })
      }
    })
  )
  taking = false
  t.ok((await folding) > 0)
  const [{ made }] = await rows('select count(*)::int as made from cue.executions where account_id = $1', [account_id])
  t.equal(made, 4 * rounds)
  t.equal(await used(), made)
  await fn.foldUsage({})
  t.equal(await used(), made)
})
