// Breakers of gates, Retry-After, and parts that are locked.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { gatesStage } from '../support/gates-stage.ts'
import { refused } from '../support/stage.ts'

const away: typeof refused = { http_status: null, error: 'connection refused' }
const breaker = { breaker_failures: 3, breaker_open_seconds: 30, breaker_max_open_seconds: 100 }
const onePart = 'select failures, opened_at, open_until, open_seconds from cue.gate_parts'

t.test(
  'breaker: opens after failures in a row, sends one probe at a time, waits twice as long after each, and closes with a 2xx',
  async t => {
    const s = await gatesStage(t)
    await s.gate(breaker)
    const cue = await s.cue({ gate: 'g', retry_max_attempts: 1 })
    const ids = []
    for (let n = 0; n < 20; n++) {
      ids.push(await s.fire(await s.cue({ gate: 'g', retry_max_attempts: 1 })))
    }
    await s.fire(cue)
    const all = await s.begin()
    t.equal(all.length, 21, 'closed: any number')
    await s.settle(all.slice(0, 2), away)
    await s.settle(all.slice(2, 3), { http_status: 404, error: 'the callback answered 404' })
    await s.settle(all.slice(3, 4), {})
    await s.settle(all.slice(4, 6), { http_status: 429, error: 'the callback answered 429' })
    t.equal((await s.row(onePart)).opened_at, null)
    for (const n of [0, 1, 2])
      await s.fire(await s.cue({ gate: 'g', retry_max_attempts: 5, name: `later ${n}`, retry_backoff_minutes: [0.01] }))
    const more = await s.begin()
    t.equal(more.length, 3)
    await s.settle(all.slice(6, 7), refused)
    exactly(t, await s.row(onePart), { failures: 3, opened_at: s.clock.now(), open_seconds: 30 })
    const last = []
    for (let n = 0; n < 30; n++) last.push(await s.fire(await s.cue({ gate: 'g', retry_max_attempts: 5, retry_backoff_minutes: [0.01] })))
    t.same(await s.begin(), [])
    await s.settle(all.slice(7), refused)
    exactly(t, await s.row(onePart), { failures: 3, open_seconds: 30 }, 'attempts that had begun change nothing')
    s.later(30_001)
    await s.sweep()
    const probe = await s.begin()
    t.equal(probe.length, 1, 'one probe')
    await s.sweep()
    t.same(await s.begin(), [])
    await s.settle(probe, away)
    exactly(t, await s.row(onePart), { open_seconds: 60 })
    s.later(59_000)
    await s.sweep()
    t.same(await s.begin(), [])
    s.later(1001)
    const second = await s.begin()
    t.equal(second.length, 1)
    await s.settle(second, {})
    exactly(t, await s.row(onePart), { failures: 0, opened_at: null })
    const started = []
    for (let n = 0; n < 5; n++) {
      await s.sweep()
      started.push((await s.begin()).length)
      s.later(1001)
    }
    t.same(started.slice(0, 4), [1, 2, 4, 8])
    t.same(
      (await s.rows("select type from cue.new_events where type::text like 'gate.%' order by seq")).map(row => row.type),
      ['gate.opened', 'gate.closed']
    )
  }
)

t.test('a probe whose replica is lost makes room for another', async t => {
  const s = await gatesStage(t)
  await s.gate({ ...breaker, breaker_failures: 1 })
  const [a, b] = [await s.cue({ gate: 'g' }), await s.cue({ gate: 'g', retry_max_attempts: 1 })]
  await s.fire(b)
  await s.settle(await s.begin(), away)
  await s.fire(a)
  s.later(30_001)
  await s.sweep()
  t.equal((await s.begin()).length, 1)
  s.later(5000)
  await s.fn.recoverFlights({})
  t.equal((await s.begin()).length, 1)
})

t.test('Retry-After of a 429 or 503 holds the gate, for an hour at most; resuming lets it go on', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 5 })
  const cue = await s.cue({ gate: 'g', retry_max_attempts: 1 })
  await s.fire(cue)
  const [attempt] = await s.begin()
  await s.settle([attempt!], { ...refused, http_status: 503, retry_after_ms: 7_200_000 })
  const id = await s.fire(cue)
  t.same(await s.begin(), [])
  const due = (await s.execution(id)).attempt_due_at
  t.equal(Math.round((due - +s.clock.now()) / 1000), 3600)
  await s.resume()
  await s.sweep()
  t.same(await s.beginIds(), [id])
})

t.test('nobody waits for a part that is locked: results are recorded, and what would start is held until it is free', async t => {
  const s = await gatesStage(t)
  await s.gate({ ...breaker, parallel: 2 })
  const cue = await s.cue({ gate: 'g', retry_max_attempts: 1 })
  for (let n = 0; n < 3; n++) await s.fire(cue)
  const [first, second] = await s.begin()
  await s.rows('update cue.gate_parts set failures = 1')
  const { client } = await s.connect()
  await client.query('begin')
  await client.query("select cue.lock_part($1, 'g')", [s.account_id])
  t.equal(await s.settle([first!], away), 1)
  t.equal(await s.finish([second!]), 1)
  t.same(await s.begin(), [], 'the third is held')
  await client.query('rollback')
  await s.sweep()
  t.equal((await s.begin()).length, 1)
  exactly(t, await s.row(onePart), { failures: 0 })
})

t.test('releasing locks nothing of an execution that another transaction ends', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const cue = await s.cue({ gate: 'g' })
  const ids = [await s.fire(cue), await s.fire(await s.cue({ gate: 'g' })), await s.fire(await s.cue({ gate: 'g' }))]
  const begun = await s.begin()
  const [canceller, finisher] = [await s.connect(), await s.connect()]
  await canceller.client.query('begin')
  await canceller.client.query("set local lock_timeout = '2s'")
  await canceller.client.query('select from cue.executions where id = $1 for update', [ids[1]])
  await finisher.client.query('begin')
  t.equal(await s.finish(begun, finisher.fn), 1)
  await canceller.fn.cancelExecution({ account_id: s.account_id, execution_id: ids[1]! })
  await finisher.client.query('commit')
  await canceller.client.query('commit')
  exactly(t, await s.execution(ids[1]!), { status: 'failed' })
  t.same(await s.beginIds(), [ids[2]])
})

t.test('breaker: after its cue is deleted, a probe makes place for another one', async t => {
  const s = await gatesStage(t)
  await s.gate({ ...breaker, breaker_failures: 1 })
  const probed = await s.cue({ gate: 'g', retry_max_attempts: 1 })
  await s.fire(await s.cue({ gate: 'g', retry_max_attempts: 1 }))
  await s.settle(await s.begin(), away)
  const ids = [await s.fire(probed), await s.fire(await s.cue({ gate: 'g' }))]
  s.later(30_001)
  await s.sweep()
  t.same(await s.beginIds(), [ids[0]])
  await s.sweep()
  t.same(await s.beginIds(), [])
  await s.fn.deleteCue({ account_id: s.account_id, cue_id: probed })
  t.same(await s.beginIds(), [ids[1]])
})
