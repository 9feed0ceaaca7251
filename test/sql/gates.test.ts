// Gates: limits that executions of several cues share.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { gatesStage } from '../support/gates-stage.ts'
import { setLockTimeout } from '../support/patient.ts'
import { refused } from '../support/stage.ts'

const worker = { transport: 'worker', callback_url: null }

t.test('parallel: as many run as there are places, and an end starts the next in the order of the gate', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 2 })
  const [a, b] = [await s.cue({ gate: 'g' }), await s.cue({ gate: 'g' })]
  const ids: string[] = []
  for (const cue of [a, b, a, b, a]) {
    ids.push(await s.fire(cue))
  }
  const first = await s.begin()
  t.same(first.map(({ execution_id }) => execution_id).sort(), ids.slice(0, 2))
  t.same(await s.held(), ids.slice(2))
  exactly(t, await s.execution(ids[2]!), { status: 'pending', attempt_due_at: Number.POSITIVE_INFINITY })
  t.same(await s.beginIds(), [])
  s.later(100)
  await s.finish([first[0]!])
  t.same(await s.beginIds(), [ids[2]])
  exactly(t, await s.execution(ids[2]!), { status: 'delivering', held_ms: 102 })
  await s.finish([first[1]!])
  t.same(await s.beginIds(), [ids[3]])
})

t.test('parallel: a place counts while the row of its execution says that it runs', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const cue = await s.cue({ gate: 'g', retry_backoff_minutes: [60] })
  const [first, second] = [await s.fire(cue), await s.fire(cue)]
  const [attempt] = await s.begin()
  s.later(5000)
  t.equal(await s.fn.recoverFlights({}), 1)
  await s.sweep()
  t.equal((await s.begin()).length, 1, 'one of them')
  t.equal((await s.rows("select * from cue.executions where status = 'delivering'")).length, 1)
  t.equal(await s.finish([attempt!]), 0)
  const running = (await s.rows("select * from cue.executions where status = 'delivering'"))[0]
  t.ok([first, second].includes(running.id))
})

t.test('parallel: a retry gives its place up while it waits', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const cue = await s.cue({ gate: 'g', retry_backoff_minutes: [1] })
  const [first, second] = [await s.fire(cue), await s.fire(cue)]
  t.equal(await s.settle(await s.begin(), refused), 1)
  const attempts = await s.begin()
  t.same(
    attempts.map(a => a.execution_id),
    [second]
  )
  s.later(70_000)
  t.same(await s.begin(), [])
  exactly(t, await s.execution(first), { status: 'retrying', attempt_due_at: Number.POSITIVE_INFINITY })
  await s.finish(attempts)
  t.same(await s.beginIds(), [first])
})

// The clock has microseconds, and executions are due in whole milliseconds.
t.test('rate: no interval of its length has more starts, and the next is due at the instant at which it may start', async t => {
  const s = await gatesStage(t)
  await s.gate({ rate: 2, per: '10s' })
  const cue = await s.cue({ gate: 'g' })
  const ids = []
  for (let n = 0; n < 5; n++) {
    ids.push(await s.fire(cue))
    s.later(1000)
  }
  const began = s.clock.now()
  t.same(await s.beginIds(), ids.slice(0, 2))
  t.same(await s.held(), ids.slice(3))
  exactly(t, await s.execution(ids[2]!), { attempt_due_at: new Date(began.getTime() + 10_001) })
  s.later(10_000)
  await s.sweep()
  t.same(await s.beginIds(), [])
  s.later(1)
  t.same(await s.beginIds(), ids.slice(2, 4))
  s.later(10_000)
  await s.sweep()
  t.same(await s.beginIds(), [])
  s.later(1)
  t.same(await s.beginIds(), ids.slice(4))
})

t.test('order: the first due holds the others until it has ended, with its retries', async t => {
  const s = await gatesStage(t)
  await s.gate({ ordered: true })
  const [a, b] = [await s.cue({ gate: 'g' }), await s.cue({ gate: 'g' })]
  const ids = []
  for (const cue of [a, b, a]) {
    ids.push(await s.fire(cue))
  }
  t.equal(await s.settle(await s.begin(), refused), 1)
  t.same(await s.beginIds(), [])
  s.later(70_000)
  const again = await s.begin()
  t.same(
    again.map(x => x.execution_id),
    [ids[0]]
  )
  await s.finish(again)
  const second = await s.begin()
  t.same(
    second.map(x => x.execution_id),
    [ids[1]]
  )
  await s.fn.cancelExecution({ account_id: s.account_id, execution_id: ids[1]!, running: true })
  t.same(await s.beginIds(), [ids[2]])
})

t.test('on_failure pause: a failure pauses the gate with its reason', async t => {
  const s = await gatesStage(t)
  await s.gate({ ordered: true, on_failure: 'pause' })
  const cue = await s.cue({ gate: 'g', retry_max_attempts: 1 })
  const ids = [await s.fire(cue), await s.fire(cue)]
  await s.settle(await s.begin(), refused)
  t.same(await s.beginIds(), [])
  const { paused_by, pause_reason } = await s.row('select * from cue.gates')
  t.equal(paused_by, 'service')
  t.match(pause_reason, /^Execution .* of a cue failed: the callback answered 500$/)
  t.same(await s.held(), [ids[1]])
  await s.resume()
  await s.sweep()
  t.same(await s.beginIds(), [ids[1]])
})

t.test('a paused gate starts nothing until it is resumed, or its pause ends', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 5 })
  const cue = await s.cue({ gate: 'g' })
  const until = new Date(s.clock.now().getTime() + 60_000)
  await s.pause('broken', until)
  const id = await s.fire(cue)
  t.same(await s.begin(), [])
  exactly(t, await s.execution(id), { attempt_due_at: until })
  s.later(60_000)
  t.same(await s.beginIds(), [id])
})

t.test('parts are counted by themselves, with the settings of their gate, and changes apply to waiting executions', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const [a, b] = [await s.cue({ gate: 'g#a' }), await s.cue({ gate: 'g#b' })]
  for (const cue of [a, a, a, b, b]) await s.fire(cue)
  t.equal((await s.begin()).length, 2)
  await s.gate({ parallel: 2 })
  await s.sweep()
  t.equal((await s.begin()).length, 2)
  t.equal((await s.held()).length, 1)
})

t.test('max_wait: an execution that waits longer is missed', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1, max_wait: '10s' })
  const cue = await s.cue({ gate: 'g' })
  await s.fire(cue)
  const second = await s.fire(cue)
  await s.begin()
  s.later(10_000)
  await s.sweep()
  exactly(t, await s.execution(second), { status: 'pending' })
  s.later(1)
  await s.sweep()
  exactly(t, await s.execution(second), {
    status: 'missed',
    missed_reason: 'gate',
    held_ms: 10_001,
    error_message: 'waited at gate g for longer than 10s'
  })
  t.same(await s.held(), [])
})

t.test('workers: a held execution cannot be claimed, and a place is held from the claim', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const cue = await s.cue({ gate: 'g', ...worker })
  const ids = [await s.fire(cue), await s.fire(cue)]
  const claim = () => s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w', limit: 5 })
  const [first, ...others] = await claim()
  t.equal(first!.execution_id, ids[0])
  t.same(others, [])
  t.same(await claim(), [])
  t.same(await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w', execution_id: ids[1] }), [])
  await s.fn.reportOutcome({ account_id: s.account_id, execution_id: ids[0]!, success: true })
  t.equal((await claim())[0]?.execution_id, ids[1])
})

t.test('slots of a herd wait at their gate in one statement', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 3 })
  const cues = []
  for (let n = 0; n < 20; n++) cues.push(await s.cue({ gate: 'g' }))
  t.equal(await s.fireTracked(cues), 20)
  t.equal((await s.held()).length, 17)
  t.equal((await s.begin()).length, 3)
  t.same(await s.rows('select * from cue.open_executions'), [])
})

t.test('overlap comes before the gate: an execution waits for one thing at a time', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const other = await s.cue({ gate: 'g' })
  const id = await s.running({ gate: 'g', overlap: 'queue_all' })
  await s.slot(id)
  const held = () => s.rows('select held_by, released_at is not null as released from cue.held_executions order by since, execution_id')
  const first = await s.begin()
  t.same(await held(), [{ held_by: 'overlap', released: false }])
  await s.fire(other)
  await s.finish(first)
  t.equal((await s.begin()).length, 1)
  t.equal((await s.held()).length, 1)
})

t.test('a full gate refuses requests, and records slots as missed', async t => {
  const s = await gatesStage(t)
  await s.rows('create or replace function cue.gate_limit() returns int language sql immutable as $$ select 2 $$')
  await s.gate({ parallel: 1 })
  const slot = s.clock.now()
  const cue = await s.cue({ gate: 'g' })
  for (let n = 0; n < 3; n++) await s.fire(cue)
  await t.rejects(s.fire(cue), { code: 'QU046' })
  await s.fireTracked([cue])
  t.same(await s.missed(cue), [{ first: slot, last: slot, count: 1, policy: 'run_once_if_missed', reason: 'queue_full' }])
})

t.test('three engines begin the same attempts: one of them gets each', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 3 })
  const cue = await s.cue({ gate: 'g' })
  for (let n = 0; n < 9; n++) await s.fire(cue)
  const engines = [s.fn, (await s.connect()).fn, (await s.connect()).fn]
  let left = 9
  for (let round = 0; left > 0 && round < 50; round++) {
    await s.sweep()
    const begun = (await Promise.all(engines.map(by => s.begin(by)))).flat()
    const running = (await s.rows("select from cue.executions where status = 'delivering'")).length
    if (running > 3) t.fail(`${running} run`)
    t.equal(running, begun.length)
    if (begun.length > 0) left -= await s.finish(begun)
  }
  t.equal(left, 0)
})

t.test('a cue that leaves its gate takes its waiting executions along, and one that changes it has them wait there', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  await s.gate({ parallel: 1 }, 'h')
  const cue = await s.cue({ gate: 'g' })
  for (let n = 0; n < 4; n++) await s.fire(cue)
  const first = await s.begin()
  const change = async (gate: string | null) => {
    const { version } = await s.run(cue)
    await s.fn.updateCue({ account_id: s.account_id, cue_id: cue, version, changes: { gate } })
  }
  await change('h')
  const second = await s.begin()
  t.equal(second.length, 1)
  t.equal((await s.held()).length, 2)
  await change(null)
  t.equal((await s.begin()).length, 2)
  t.same(await s.rows('select * from cue.held_executions'), [])
  exactly(t, await s.run(cue), { tracked: false })
  t.equal(await s.finish([...first, ...second]), 2)
})

t.test('executions of an absent worker hold up no webhooks of their gate, and are missed', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const id = await s.fire(
    await s.cue({ gate: 'g', ...worker, claim_timeout_seconds: 60, timeout_seconds: 30, outcome_deadline_seconds: 300 })
  )
  const webhook = await s.fire(await s.cue({ gate: 'g' }))
  t.same(await s.beginIds(), [webhook])
  s.later(61_000)
  await s.fn.missUnclaimed({})
  exactly(t, await s.execution(id), { status: 'missed', missed_reason: null })
  t.same(await s.rows('select * from cue.held_executions'), [])
})

t.test('executions show what holds them, and gates what they do', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const cue = await s.cue({ gate: 'g#a' })
  for (let n = 0; n < 3; n++) await s.fire(cue)
  await s.begin()
  const [, , last] = await s.rows('select id, held from cue.execution_view order by id')
  exactly(t, last.held, { by: 'gate', key: 'g#a', reason: 'parallel', ahead: 1 })
  exactly(t, await s.row('select * from cue.gate_state($1, $2, $3)', [s.account_id, 'g#a', s.clock.now()]), {
    running: 1,
    waiting: 2,
    breaker_state: null
  })
  const all = await s.row('select * from cue.gate_states($1, $2, $3)', [s.account_id, 'g', s.clock.now()])
  exactly(t, all, { running: 1, waiting: 2, parts: [{ part: 'a', running: 1, waiting: 2 }] })
  t.same(await s.rows("select * from cue.gate_states($1, 'unknown')", [s.account_id]), [])
  const held = await s.rows('select * from cue.held_seconds($1)', [s.clock.now()])
  t.same(
    held.filter(row => row.seconds > 0).map(row => row.reason),
    ['parallel']
  )
})

t.test('workers get other work than that which a gate holds back', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 5 })
  const cue = await s.cue({ gate: 'g', ...worker })
  for (let n = 0; n < 5; n++) await s.fire(cue)
  await s.pause('broken')
  const plain = await s.fire(await s.cue(worker))
  const request = { account_id: s.account_id, worker_id: 'w', tasks: null, limit: 1 }
  const claims = await s.fn.claimNext({ claims: JSON.stringify([request, request]) })
  t.same(
    claims.map(({ execution_id }) => execution_id),
    [plain]
  )
  t.equal((await s.held()).length, 5)
})

for (const settings of [
  { parallel: 1 },
  { ordered: true },
  { parallel: 2, budget_limit: '1', budget_unit: 'usd', budget_period: 'day', budget_timezone: 'UTC', budget_reserve: '1' }
])
  t.test(`a deleted cue frees its places at once: ${Object.keys(settings)}`, async t => {
    const s = await gatesStage(t)
    await s.gate(settings)
    const [a, b] = [await s.cue({ gate: 'g', retry_backoff_minutes: [60] }), await s.cue({ gate: 'g' })]
    const ids = [await s.fire(a), await s.fire(b)]
    const begun = await s.begin()
    t.same(
      begun.map(({ execution_id }) => execution_id),
      [ids[0]]
    )
    if ('ordered' in settings) await s.settle(begun, refused)
    t.same(await s.beginIds(), [])
    await s.fn.deleteCue({ account_id: s.account_id, cue_id: a })
    t.same(await s.beginIds(), [ids[1]])
  })

t.test('batches whose failures pause the same gates in another order do not deadlock', async t => {
  const s = await gatesStage(t)
  await setLockTimeout(s.rows, 'short', '10s')
  for (const key of ['g', 'h', 'x']) await s.gate({ ordered: true, on_failure: 'pause' }, key)
  const begun = []
  for (const gate of ['g#1', 'x#1', 'h#1', 'h#2', 'g#2']) {
    await s.fire(await s.cue({ gate, retry_max_attempts: 1 }))
    begun.push(...(await s.begin()))
  }
  const [other, one, two] = [await s.connect(), await s.connect(), await s.connect()]
  await other.client.query("begin; select from cue.gates where key = 'x' for no key update")
  const first = s.settle(begun.slice(0, 3), refused, one.fn)
  await one.blocked()
  const second = s.settle(begun.slice(3), refused, two.fn)
  await two.blocked()
  await other.client.query('commit')
  t.same(await Promise.all([first, second]), [3, 2])
  exactly(t, await s.rows('select key, paused_by from cue.gates order by key'), [
    { key: 'g', paused_by: 'service' },
    { key: 'h', paused_by: 'service' },
    { key: 'x', paused_by: 'service' }
  ])
})
