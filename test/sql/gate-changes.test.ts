// Gates whose settings, pause or cues change while executions wait there.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { gatesStage } from '../support/gates-stage.ts'
import { refused } from '../support/stage.ts'

const minuteMs = 60_000

t.test('an open breaker that is removed holds nothing any more', async t => {
  const s = await gatesStage(t)
  await s.gate({ breaker_failures: 1, breaker_open_seconds: 3600, breaker_max_open_seconds: 3600 })
  const cue = await s.cue({ gate: 'g', retry_max_attempts: 1 })
  await s.fire(cue)
  await s.settle(await s.begin(), refused)
  for (let n = 0; n < 3; n++) await s.fire(cue)
  t.same(await s.begin(), [])
  await s.gate({})
  await s.sweep()
  t.equal((await s.begin()).length, 3)
  exactly(t, await s.row('select * from cue.gate_parts'), { opened_at: null, open_until: null })
  t.same(await s.held(), [])
})

t.test('max_wait: also of an execution that would start when a pause ends', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1, max_wait: '2h' })
  const cue = await s.cue({ gate: 'g' })
  await s.pause('x', new Date(s.clock.now().getTime() + 90 * minuteMs))
  const [first, second] = [await s.fire(cue), await s.fire(cue)]
  t.equal((await s.execution(first)).attempt_due_at.getTime() - s.clock.now().getTime(), 90 * minuteMs - 2)
  await s.gate({ parallel: 1, max_wait: '1h' })
  s.later(59 * minuteMs)
  await s.sweep()
  exactly(t, await s.execution(first), { status: 'pending' })
  s.later(2 * minuteMs)
  await s.sweep()
  for (const id of [first, second]) {
    exactly(t, await s.execution(id), { status: 'missed', missed_reason: 'gate', attempt_due_at: null })
    t.ok(Math.abs((await s.execution(id)).held_ms - 61 * minuteMs) < 10)
  }
  t.same(await s.jobs(), [])
  t.same(await s.rows('select * from cue.held_executions'), [])
})

t.test('a cue that leaves a paused gate takes along the execution that would start when the pause ends', async t => {
  const s = await gatesStage(t)
  await s.gate({ parallel: 1 })
  const cue = await s.cue({ gate: 'g' })
  await s.pause('x', new Date(s.clock.now().getTime() + 600 * minuteMs))
  for (let n = 0; n < 3; n++) await s.fire(cue)
  t.same(await s.begin(), [])
  const { version } = await s.run(cue)
  await s.fn.updateCue({ account_id: s.account_id, cue_id: cue, version, changes: { gate: null } })
  const begun = await s.begin()
  t.equal(begun.length, 3)
  for (const row of await s.rows('select held_ms from cue.executions')) t.ok(row.held_ms < 10)
  t.same(await s.rows('select * from cue.held_executions'), [])
  t.same(await s.jobs(), [])
})

t.test('on_failure pause: again after a pause that has ended by itself', async t => {
  const s = await gatesStage(t)
  await s.gate({ ordered: true, on_failure: 'pause' })
  const cue = await s.cue({ gate: 'g', retry_max_attempts: 1 })
  await s.pause('x', new Date(s.clock.now().getTime() + minuteMs))
  const [first, second] = [await s.fire(cue), await s.fire(cue)]
  s.later(minuteMs + 1)
  const begun = await s.begin()
  t.same(
    begun.map(({ execution_id }) => execution_id),
    [first]
  )
  await s.settle(begun, refused)
  t.same(await s.begin(), [])
  exactly(t, await s.row('select * from cue.gates'), { paused_by: 'service', paused_until: null, paused_at: s.clock.now() })
  t.same(await s.held(), [second])
})

t.test('a sweep ends before it has released very many, and the next one goes on', async t => {
  const s = await gatesStage(t)
  await s.rows('create or replace function cue.sweep_limit() returns int language sql immutable as $$ select 20 $$')
  await s.gate({ parallel: 1000 })
  await s.pause('x')
  for (let n = 0; n < 5; n++) {
    const cue = await s.cue({ gate: `g#${n}` })
    for (let k = 0; k < 9; k++) await s.fire(cue)
  }
  await s.rows('update cue.gates set paused_at = null, paused_by = null, pause_reason = null')
  const released = async () => (await s.row('select count(*)::int as n from cue.held_executions where released_at is not null')).n
  const after = await s.fn.admitHeld({ after: '' })
  t.equal(await released(), 27)
  t.match(after, /g#2$/)
  await s.fn.admitHeld({ after: after! })
  t.equal(await released(), 45)
})

t.test('parts where nothing has started for a month are pruned, unless something runs or waits there', async t => {
  const s = await gatesStage(t)
  await s.gate({ ordered: true })
  const worker = {
    transport: 'worker',
    callback_url: null,
    claim_timeout_seconds: 604_800,
    timeout_seconds: 30,
    outcome_deadline_seconds: 300
  }
  const parts = async () => (await s.rows('select gate from cue.gate_parts order by gate')).map(row => row.gate)
  for (const part of ['idle', 'running', 'waiting']) await s.fire(await s.cue({ gate: `g#${part}` }))
  const begun = await s.begin()
  await s.finish(begun.slice(0, 1))
  await s.settle(begun.slice(2), { http_status: 404, error: 'the callback answered 404' })
  await s.fire(await s.cue({ gate: 'g#recent', ...worker }))
  s.later(31 * 24 * 60 * minuteMs)
  await s.fn.prune({})
  t.same(await parts(), ['g#idle', 'g#running', 'g#waiting'])
  s.later(24 * 60 * minuteMs)
  await s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' })
  await s.fn.prune({})
  t.same(await parts(), ['g#recent', 'g#running', 'g#waiting'])
})
