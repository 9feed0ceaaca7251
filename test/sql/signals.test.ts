// Signals of executions to the followers of their cues, and the runs that start on them.
import t from 'tap'
import { chainStage, unscheduled } from '../support/chain-stage.ts'
import { exactly } from '../support/exactly.ts'
import { awaiting } from '../support/stage.ts'

t.test('a follower runs once after its parent has succeeded, with the slot and the id of that run', async t => {
  const { parent, follower, ran, start, rows, run, used, signals, clock } = await chainStage(t)
  const a = await parent({ key: 'a' })
  const b = await follower({ cues: ['a'] })
  const at = clock.now()
  const id = await ran(a)
  exactly(t, await signals(b), [{ parent_id: a, execution_id: id, lineage_id: id, is_new: true, spent: false }])
  clock.advance('100 milliseconds')
  await start()
  await start()
  const executions = await rows('select * from cue.executions where cue_id = $1', [b])
  exactly(t, executions, [
    {
      triggered_by: 'chain',
      scheduled_for: at,
      status: 'pending',
      attempt_due_at: clock.now(),
      parents: [{ cue_id: a, cue_key: 'a', execution_id: id }]
    }
  ])
  exactly(t, await signals(b), [{ is_new: false, spent: true, spent_by: executions[0].id }])
  exactly(t, await run(b), { run_count: 1, fired_count: 0, next_run: null, status: 'active' })
  t.equal(await used(), 2)
})

t.test('which ends signal, by `when`', async t => {
  const { parent, follower, ran, ended, begun, settle, fn, account_id, signals, row } = await chainStage(t)
  const [a, m] = [await parent(), await parent({ verification_mode: 'manual', ...awaiting })]
  const followers = Object.fromEntries(
    await Promise.all(
      ['success', 'verified', 'failure', 'end'].map(async when => [
        when,
        [await follower({ cues: [a], when }), await follower({ cues: [m], when })]
      ])
    )
  )
  const sent = async (n: number, id: string) => {
    const names: string[] = []
    for (const [when, ids] of Object.entries<string[]>(followers))
      if ((await signals(ids[n]!)).some(({ execution_id }) => execution_id === id)) names.push(when)
    return names
  }
  t.same(await sent(0, await ran(a)), ['success', 'end'])
  const failed = await ended(a)
  t.same(await sent(0, failed), ['failure', 'end'])
  exactly(t, await row('select count(*)::int from cue.dead_letters'), { count: 1 })

  const attempt = await begun(m)
  await settle([attempt], {})
  t.same(await sent(1, attempt.execution_id), [], 'its outcome is awaited')
  await fn.reportOutcome({ account_id, execution_id: attempt.execution_id, success: true })
  t.same(await sent(1, attempt.execution_id), ['success', 'end'])
  await fn.verifyOutcome({ account_id, execution_id: attempt.execution_id, state: 'verified_success' })
  t.same(await sent(1, attempt.execution_id), ['success', 'verified', 'end'])
  const rejected = await ended(m, { report: { success: true } })
  await fn.verifyOutcome({ account_id, execution_id: rejected, state: 'verification_failed' })
  t.same(await sent(1, rejected), ['success', 'end'])
  const bad = await ended(m, { report: { success: false } })
  t.same(await sent(1, bad), ['end'])

  const cancelled = await fn.replayExecution({ account_id, execution_id: failed })
  await fn.cancelExecution({ account_id, execution_id: cancelled.id })
  t.same(await sent(0, cancelled.id), [], 'cancelled')
})

t.test('all: waits for each parent, takes the newest signal of each, and spends the older ones', async t => {
  const { parent, follower, ran, start, followed, signals } = await chainStage(t)
  const [a, b] = [await parent(), await parent()]
  const f = await follower({ cues: [a, b] })
  await ran(a)
  await start()
  t.same(await followed(f), [])
  const newer = await ran(a)
  await start()
  const other = await ran(b)
  await start()
  t.same(await followed(f), [[newer, other]])
  t.same(
    (await signals(f)).map(({ spent }) => spent),
    [true, true, true]
  )
  await ran(b)
  await start()
  t.equal((await followed(f)).length, 1, 'a has not run again')
})

t.test('all: as many runs, whether an engine looks after each signal or once', async t => {
  const { parent, follower, ran, start, followed } = await chainStage(t)
  const [a, b] = [await parent(), await parent()]
  const f = await follower({ cues: [a, b] })
  const ids: string[] = []
  for (const id of [a, b, a, a, b, b]) ids.push(await ran(id))
  await start()
  t.same(await followed(f), [
    [ids[0], ids[1]],
    [ids[3], ids[4]]
  ])
})

t.test('any: runs once per signal', async t => {
  const { parent, follower, ran, start, followed } = await chainStage(t)
  const [a, b] = [await parent(), await parent()]
  const f = await follower({ cues: [a, b], mode: 'any' })
  const ids = [await ran(a), await ran(a), await ran(b)]
  await start()
  t.same(
    await followed(f),
    ids.map(id => [id])
  )
})

t.test('a replay that succeeds after a failure carries the chain on; one of a success does not', async t => {
  const { parent, follower, ran, ended, start, followed, fn, account_id, begin, settle, rows } = await chainStage(t)
  const a = await parent()
  const f = await follower({ cues: [a] })
  const replay = async (execution_id: string, result = {}) => {
    const { id } = await fn.replayExecution({ account_id, execution_id })
    const attempts = (await begin()).filter(({ cue_id }) => cue_id === a)
    await settle(attempts, result)
    return id
  }
  const first = await ended(a)
  await start()
  t.same(await followed(f), [])
  const second = await replay(first, { http_status: 500, error: 'no' })
  const third = await replay(second)
  await start()
  t.same(await followed(f), [[third]])
  await replay(third)
  await replay(first)
  await start()
  t.same(await followed(f), [[third]], 'the lineage has signalled')
  t.same(await rows('select distinct lineage_id from cue.executions where replayed_from is not null'), [{ lineage_id: first }])
  await ran(a)
  await start()
  t.equal((await followed(f)).length, 2)
})

t.test('a person counts a failed run as good enough, once, and it is audited', async t => {
  const { parent, follower, ran, ended, start, followed, fn, account_id, rows, fireTracked } = await chainStage(t)
  void fireTracked
  const a = await parent()
  const f = await follower({ cues: [a], when: 'verified' })
  const failed = await ended(a)
  const args = { account_id, execution_id: failed, reason: 'checked by hand', actor: 'key:1' }
  exactly(t, await fn.signalExecution(args), { id: failed, status: 'failed' })
  await fn.signalExecution(args)
  await start()
  t.same(await followed(f), [[failed]])
  exactly(t, await rows("select actor, detail from cue.audit_events where event = 'execution.signalled'"), [
    { actor: 'key:1', detail: { cue_id: a, execution_id: failed, reason: 'checked by hand' } }
  ])
  await t.rejects(fn.signalExecution({ ...args, execution_id: await ran(a) }), { code: 'QU011' })
  const { id } = await fn.replayExecution({ account_id, execution_id: failed })
  await t.rejects(fn.signalExecution({ ...args, execution_id: id }), { code: 'QU011' })
})

t.test('a paused or deleted follower takes no signals', async t => {
  const { parent, follower, ran, start, signals, followed, fn, account_id, rows } = await chainStage(t)
  const a = await parent()
  const [paused, deleted, late] = [await follower({ cues: [a] }), await follower({ cues: [a] }), await follower({ cues: [a] })]
  const change = (cue_id: string, version: number, changes: object) => fn.updateCue({ account_id, cue_id, version, changes })
  await change(paused, 1, { status: 'paused' })
  await fn.deleteCue({ account_id, cue_id: deleted })
  await ran(a)
  t.same([...(await signals(paused)), ...(await signals(deleted))], [])
  await change(late, 1, { status: 'paused' })
  await start()
  await change(paused, 2, { status: 'active' })
  await start()
  for (const id of [paused, deleted, late]) t.same(await followed(id), [], 'paused before an engine came')
  t.same(await rows('select from cue.signals where is_new'), [])
})

t.test('signals that nobody spends expire and are listed as missed', async t => {
  const { parent, follower, ran, start, fn, missed, followed, clock, signals } = await chainStage(t)
  const [a, b] = [await parent(), await parent()]
  const f = await follower({ cues: [a, b], within: '1h' })
  const at = clock.now()
  await ran(a)
  await start()
  clock.advance('59 minutes')
  t.equal(await fn.expireSignals({}), 0)
  exactly(t, await fn.nextWakes({}), { deadline_at: new Date(+at + 3_600_000) })
  clock.advance('1 minute')
  t.equal(await fn.expireSignals({}), 1)
  exactly(t, await missed(f), [{ first: at, last: at, count: 1, reason: 'after' }])
  await ran(b)
  await start()
  t.same(await followed(f), [])
  exactly(t, await signals(f), [{ spent: true, spent_by: null }, { spent: false }])
})

t.test('a signal that came in time counts, however late an engine looks', async t => {
  const { parent, follower, ran, start, fn, followed, clock } = await chainStage(t)
  const [a, b] = [await parent(), await parent()]
  const f = await follower({ cues: [a, b], within: '1h' })
  await ran(a)
  clock.advance('30 minutes')
  await ran(b)
  clock.advance('1 day')
  await fn.expireSignals({})
  await start()
  t.equal((await followed(f)).length, 1)
})

t.test('verified three days later starts the follower; within counts from the verification', async t => {
  const { parent, follower, ended, fn, start, followed, clock, account_id } = await chainStage(t)
  const m = await parent({ verification_mode: 'manual', ...awaiting })
  const f = await follower({ cues: [m], when: 'verified', within: '1m' })
  const execution_id = await ended(m, { report: { success: true } })
  clock.advance('3 days')
  await start()
  t.same(await followed(f), [])
  await fn.verifyOutcome({ account_id, execution_id, state: 'verified_success' })
  await start()
  t.same(await followed(f), [[execution_id]])
})

t.test("the follower's overlap, gate and limits apply", async t => {
  const { parent, follower, ran, start, states, missed, rows, account_id, fn, clock } = await chainStage(t)
  const a = await parent()
  await fn.putGate({ account_id, key: 'g', gate: { parallel: 1 }, actor: 'test' })
  const skipping = await follower({ cues: [a] }, { overlap: 'skip' })
  const queueing = await follower({ cues: [a] }, { overlap: 'queue_all' })
  const gated = await follower({ cues: [a] }, { gate: 'g' })
  for (let n = 0; n < 2; n++) {
    await ran(a)
    await start()
    clock.advance('1 minute')
  }
  t.same(await states(skipping), ['pending'])
  exactly(t, await missed(skipping), [{ reason: 'overlap', count: 1 }])
  t.same(await states(queueing), ['pending', 'queued'])
  exactly(t, await rows('select held_by, released_at is null as held from cue.held_executions where cue_id = $1 order by place', [gated]), [
    { held_by: 'gate', held: false },
    { held_by: 'gate', held: true }
  ])
  await rows("update cue.accounts set limit_reached_at = $2::timestamptz - interval '2 days' where id = $1", [account_id, clock.now()])
  const over = await follower({ cues: [a] })
  await rows(
    'insert into cue.signals (account_id, follower_id, parent_id, execution_id, lineage_id, scheduled_for, signalled_at, expires_at) select account_id, $1, parent_id, execution_id, lineage_id, scheduled_for, signalled_at, expires_at from cue.signals where follower_id = $2',
    [over, skipping]
  )
  await start()
  t.same(await states(over), [])
  exactly(t, await missed(over), [{ reason: 'execution_limit', count: 2 }])
})

const daily = { schedule_type: 'recurring', cron: '* * * * *', after: { cues: [] as string[], when: 'success', mode: 'all', within: '5m' } }
t.test('with a schedule: a slot runs on the signals of the last `within` and spends them; otherwise it is missed', async t => {
  const { parent, ran, slot, cue, followed, missed, states, clock, signals } = await chainStage(t)
  const a = await parent()
  const f = await cue({ ...daily, after: { ...daily.after, cues: [a] } }, { next_run: new Date(+clock.now() + 60_000) })
  const id = await ran(a)
  t.equal(await slot(f), 1)
  t.same(await followed(f), [[id]])
  exactly(t, await signals(f), [{ spent: true }])
  t.equal(await slot(f), 1)
  t.same(await states(f), ['pending'])
  exactly(t, await missed(f), [{ first: clock.now(), count: 1, reason: 'after' }])
  await ran(a)
  clock.advance('4 minutes')
  t.equal(await slot(f), 1)
  t.equal((await states(f)).length, 1, 'the signal is 5 minutes old')
})

t.test('with a schedule and `wait`: slots wait in their order, go on with signals, and are missed after `wait`', async t => {
  const { parent, ran, slot, cue, followed, clock, rows, start, fn, execution, begin } = await chainStage(t)
  const a = await parent()
  const f = await cue({ ...daily, after: { ...daily.after, cues: [a], wait: '90s' } }, { next_run: new Date(+clock.now() + 60_000) })
  const ids = async () => (await rows('select id from cue.executions where cue_id = $1 order by id', [f])).map(({ id }) => id)
  await slot(f)
  await slot(f)
  const [first, second] = await ids()
  exactly(t, await rows('select held_by, expires_at from cue.held_executions order by place'), [
    { held_by: 'after', expires_at: new Date(+clock.now() + 30_000) },
    { held_by: 'after', expires_at: new Date(+clock.now() + 90_000) }
  ])
  t.same(
    (await begin()).map(({ cue_id }) => cue_id),
    []
  )
  exactly(t, await rows('select held from cue.execution_view where id = $1', [second]), [
    { held: { by: 'after', reason: 'after', ahead: 1 } }
  ])
  clock.advance('20 seconds')
  const id = await ran(a)
  await start()
  t.same(await followed(f), [[id], []])
  exactly(t, await execution(first), { status: 'pending', attempt_due_at: clock.now(), held_ms: 80_000 })
  clock.advance('70 seconds')
  t.equal(await fn.expireSignals({}), 1)
  exactly(t, await execution(second), { status: 'missed', missed_reason: 'after', attempt_due_at: null })
  exactly(t, await rows('select from cue.held_executions'), [])
})

t.test('a one-time slot whose condition is not met ends its cue as failed', async t => {
  const { parent, cue, fireTracked, fn, run, rows, clock } = await chainStage(t)
  const a = await parent()
  const at = clock.now()
  const f = await cue({ schedule_type: 'once', cron: null, at, after: { ...daily.after, cues: [a] } })
  t.equal(await fireTracked([f], fn, null), 1)
  exactly(t, await rows('select status, missed_reason from cue.executions where cue_id = $1', [f]), [
    { status: 'missed', missed_reason: 'after' }
  ])
  exactly(t, await run(f), { status: 'failed', next_run: null })
})

t.test('a cue that follows no other any more sends on what waits', async t => {
  const { parent, cue, slot, fn, account_id, execution, rows, clock } = await chainStage(t)
  const a = await parent()
  const f = await cue({ ...daily, after: { ...daily.after, cues: [a], wait: '1h' } }, { next_run: new Date(+clock.now() + 60_000) })
  await slot(f)
  const [{ id }] = await rows('select id from cue.executions where cue_id = $1', [f])
  await fn.updateCue({ account_id, cue_id: f, version: 1, changes: { after: null } })
  exactly(t, await execution(id), { status: 'pending', attempt_due_at: clock.now() })
  void unscheduled
})
