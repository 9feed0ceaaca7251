// The cap on payload bytes per UTC day: exact for requests; schedules may exceed it by the batch being taken.
import t, { type Test } from 'tap'
import { exactly } from '../support/exactly.ts'
import { lookAhead } from '../support/firing-stage.ts'
import { stage as bareStage, dueCues } from '../support/stage.ts'

const cap = 10_000
const json = (bytes: number) => `"${'x'.repeat(bytes - 2)}"`

const stage = async (t: Test, bytes: number | null = cap) => {
  const s = await bareStage(t, '2030-01-15T23:00:00Z')
  await s.rows('update cue.plans set payload_bytes_per_day = $1, executions_per_month = 50000', [bytes])
  const bytesUsed = async () => Number((await s.row('select cue.payload_bytes_used($1, $2) as bytes', [s.account_id, s.clock.now()])).bytes)
  const idle = (bytes: number, columns: object = {}) => s.cue({ payload: json(bytes), ...columns }, { next_run: null })
  const fire = (cue_id: string, payload?: string, by = s.fn) =>
    by.fireCue({ account_id: s.account_id, cue_id, ...(payload && { payload }) })
  const counters = () => s.rows('select day::text from cue.payload_counters where account_id = $1', [s.account_id])
  return { ...s, bytesUsed, counters, idle, fire }
}

t.test('counts the payload of each execution, even if it is stored once', async t => {
  const { idle, cue, take, fire, fn, rows, account_id, bytesUsed, clock } = await stage(t)
  const id = await idle(3000)
  const { id: execution_id } = await fire(id)
  await fire(id, json(100))
  t.equal(await bytesUsed(), 3100)
  await rows(`update cue.executions set status = 'failed', ended_at = now(), attempt_due_at = null where id = $1`, [execution_id])
  await fn.replayExecution({ account_id, execution_id })
  t.equal(await bytesUsed(), 6100)
  await take([await cue({ payload: json(50) }), await cue({ payload: json(2500), transport: 'worker', callback_url: null })])
  t.equal(await bytesUsed(), 8650)
  const caughtUp = await cue({ payload: json(40) })
  const slots = [clock.now(), new Date(clock.now().getTime() + 1000)]
  await fn.catchUpCues({
    cues: JSON.stringify([{ cue_id: caughtUp, version: 1, expected: clock.now(), next_run: '2030-01-16T00:00:00Z', slots, dropped: null }])
  })
  t.equal(await bytesUsed(), 8730)
})

t.test('an account may have a cap, and a maximum timeout, of its own', async t => {
  const { cue, take, fire, idle, rows, account_id, bytesUsed } = await stage(t, null)
  const id = await cue({ payload: json(3000) })
  await rows(`select cue.set_limits($1, '{"payload_bytes_per_day": 5000, "max_timeout_seconds": 7}')`, [account_id])
  exactly(t, await take([id]), [{ timeout_seconds: 7 }])
  t.equal(await bytesUsed(), 3000)
  await t.rejects(fire(await idle(3000)), { code: 'QU032' })
})

t.test('counts nothing without a limit', async t => {
  const { idle, cue, take, fire, counters } = await stage(t, null)
  await fire(await idle(3000))
  t.equal((await take([await cue({ payload: json(3000) })])).length, 1)
  t.same(await counters(), [])
})

t.test('refuses fires and replays that would exceed the limit, but not smaller ones', async t => {
  const { idle, fire, fn, rows, account_id, bytesUsed } = await stage(t)
  const id = await idle(6000)
  const { id: execution_id } = await fire(id)
  await rows(`update cue.executions set status = 'failed', ended_at = now(), attempt_due_at = null where id = $1`, [execution_id])
  const message =
    'Payload limit reached: the plan allows 10000 bytes per UTC day, and this payload has 6000 bytes. Change the plan, or wait until the next day.'
  await t.rejects(fire(id), { code: 'QU032', message })
  await t.rejects(fn.replayExecution({ account_id, execution_id }), { code: 'QU032', message })
  t.equal(await bytesUsed(), 6000)
  await fire(id, json(4000))
  t.equal(await bytesUsed(), cap)
  await t.rejects(fire(id, json(3)), { code: 'QU032' })
})

t.test('of simultaneous fires, only those within the limit succeed', async t => {
  const { idle, fire, connect, bytesUsed } = await stage(t)
  const cues = await Promise.all(Array.from({ length: 8 }, () => idle(3000)))
  const connections = await Promise.all(cues.map(() => connect()))
  const results = await Promise.allSettled(connections.map(({ fn }, i) => fire(cues[i]!, undefined, fn)))
  t.equal(results.filter(result => result.status === 'fulfilled').length, 3)
  t.ok(results.every(result => result.status === 'fulfilled' || result.reason.code === 'QU032'))
  t.equal(await bytesUsed(), 9000)
})

t.test('refuses a slot above the limit: one failed execution per hour, the others recorded as dropped', async t => {
  const { idle, cue, fire, take, fn, clock, rows, used, bytesUsed } = await stage(t)
  await fire(await idle(9000))
  const [large, small] = [await cue({ payload: json(2500) }), await cue({ payload: json(500) })]
  const seen = await lookAhead(fn, { until: clock.now() })
  t.same(
    new Map(seen.map(row => [row.cue_id, row.over_limit])),
    new Map([
      [large, true],
      [small, false]
    ])
  )
  t.same(
    (await take([large, small])).map(attempt => attempt.cue_id),
    [small]
  )
  const refuse = async () => {
    const due = await rows('select * from cue.cue_runs where next_run <= $1', [clock.now()])
    return fn.refuseDueCues(dueCues(due, new Date(clock.now().getTime() + 600_000)))
  }
  t.equal(await refuse(), 1)
  clock.advance('10 minutes')
  t.equal(await refuse(), 1)
  t.same(await rows(`select cue_id, status, error_message from cue.executions where status = 'failed'`), [
    { cue_id: large, status: 'failed', error_message: 'execution_limit_exceeded: daily payload limit of the plan reached' }
  ])
  t.same(await rows('select cue_id, count, reason from cue.missed_slots'), [{ cue_id: large, count: 1, reason: 'execution_limit' }])
  t.equal(await used(), 2)
  t.equal(await bytesUsed(), 9500)
})

t.test('starts anew each UTC day and prunes old counters', async t => {
  const { idle, fire, fn, clock, bytesUsed, counters } = await stage(t)
  const id = await idle(cap)
  await fire(id)
  clock.set('2030-01-15T23:59:59.999Z')
  await t.rejects(fire(id), { code: 'QU032' })
  clock.set('2030-01-16T00:00:00Z')
  await fire(id)
  t.equal(await bytesUsed(), cap)
  clock.set('2030-01-17T00:00:00Z')
  await fn.prune({})
  t.same(await counters(), [{ day: '2030-01-16' }])
})

t.test('taking cues waits neither for a held counter nor for a held account', async t => {
  const { cue, take, connect, bytesUsed, counters, account_id } = await stage(t)
  const [first, second, third] = await Promise.all([1, 2, 3].map(() => cue({ payload: json(50) })))
  t.equal((await take([first!])).length, 1)
  const { client } = await connect()
  await client.query('begin')
  await client.query('select from cue.payload_counters where account_id = $1 for update', [account_id])
  await client.query('select from cue.accounts where id = $1 for update', [account_id])
  t.equal((await take([second!, third!])).length, 2)
  await client.query('rollback')
  t.equal(await bytesUsed(), 150)
  t.equal((await counters()).length, 2, 'on a spare row')
})

t.test('an erased account leaves no counters', async t => {
  const { cue, take, rows, account_id, counters } = await stage(t)
  await take([await cue({ payload: json(50) })])
  t.equal((await counters()).length, 1)
  await rows('select cue.erase_account($1)', [account_id])
  t.same(await counters(), [])
})
