// Approvals: executions that wait until a person decides.
import t from 'tap'
import { approvalsStage, person, worker } from '../support/approvals-stage.ts'
import { exactly } from '../support/exactly.ts'
import { once, refused } from '../support/stage.ts'

const code = (expected: string) => ({ code: expected })

t.test('a slot, a fire, a replay and a late slot wait for approval, whatever the cue becomes meanwhile', async t => {
  const s = await approvalsStage(t)
  const cue_id = await s.approved({ callback_headers: { 'x-a': '1' } }, { message: 'refund?' })
  await s.fireTracked([cue_id])
  const fired = await s.fire(cue_id)
  const [slot] = await s.rows("select * from cue.executions where triggered_by = 'schedule'")
  exactly(t, slot, { status: 'pending', attempt_due_at: Number.POSITIVE_INFINITY })
  t.same(await s.held(cue_id), ['approval', 'approval'])
  exactly(t, await s.approval(fired), {
    message: 'refund?',
    on_expiry: 'skip',
    requested_by: /^\w+$/,
    expires_at: new Date('2030-01-16T09:00:00Z'),
    decision: null
  })
  t.equal((await s.approval(slot.id)).requested_by, null)
  t.same(await s.begin(), [], 'nothing begins')

  const { version } = await s.run(cue_id)
  const changes = { callback_url: 'http://127.0.0.1/evil', callback_headers: { 'x-a': '2' }, payload: '{"n": 2}' }
  await s.fn.updateCue({ account_id: s.account_id, cue_id, version, changes })
  s.clock.advance('1 hour')
  exactly(t, await s.decide(fired), { execution_id: fired, decision: 'approved', decided_by: person, decided_at: s.clock.now() })
  const [attempt, ...others] = await s.begin()
  t.same(others, [])
  exactly(t, attempt, {
    execution_id: fired,
    callback_url: 'http://127.0.0.1/hook',
    callback_headers: { 'x-a': '1' },
    payload: '{"n": 1}',
    scheduled_for: new Date('2030-01-15T09:00:00Z')
  })
  exactly(t, await s.execution(fired), { held_ms: 3_600_000 })

  await s.settle([attempt!], refused)
  t.same(await s.held(cue_id), ['approval'], 'a retry has been approved with its execution')
  await s.fn.cancelExecution({ account_id: s.account_id, execution_id: fired })
  const { id: replayed } = await s.fn.replayExecution({ account_id: s.account_id, execution_id: fired })
  t.same(await s.held(cue_id), ['approval', 'approval'])
  await s.decide(replayed)
  exactly(t, (await s.begin())[0], { execution_id: replayed, payload: '{"n": 1}', callback_url: 'http://127.0.0.1/evil' })
})

t.test('a rejection ends the execution without any consequence of a failure, and a one-time cue as failed', async t => {
  const s = await approvalsStage(t)
  const cue_id = await s.approved({ ...once, on_failure_email: true, alert_consecutive_failures: 1, alert_missed_window_multiplier: 2 })
  await s.fireTracked([cue_id], s.fn, null)
  const [{ id }] = await s.rows('select id from cue.executions')
  s.clock.advance('2 minutes')
  await s.decide(id, 'rejected', { reason: 'too much' })
  exactly(t, await s.execution(id), {
    status: 'failed',
    error_message: 'rejected: too much',
    ended_at: s.clock.now(),
    held_ms: 120_000,
    attempt_due_at: null
  })
  t.equal((await s.run(cue_id)).status, 'failed')
  t.same(await s.rows('select * from cue.dead_letters'), [])
  t.same(await s.rows('select * from cue.alerts'), [])
  exactly(t, await s.jobs('mails'), [{ data: { kind: 'approval_requested' } }])
  t.same(await s.held(cue_id), [])
  t.same(await s.events(id), ['approval.requested', 'approval.decided'])
  exactly(t, await s.row("select * from cue.audit_events where event = 'approval.decided'"), {
    actor: person,
    detail: { execution_id: id, cue_id, decision: 'rejected', via: 'call', reason: 'too much' }
  })
})

t.test('an approval that expires skips the execution or runs it; a decision after that comes too late', async t => {
  const s = await approvalsStage(t)
  const [skip, run, never] = [
    await s.approved({}, { expires: '1h' }),
    await s.approved(worker, { expires: '1h', on_expiry: 'run' }),
    await s.approved({}, { expires: null, on_expiry: 'run' })
  ]
  const [skipped, runs, waits] = [await s.fire(skip), await s.fire(run), await s.fire(never)]
  s.clock.advance('59 minutes')
  t.equal(await s.fn.meetApprovals({}), 0)
  s.clock.advance('1 minute')
  const expired = { decision: 'expired', decided_by: null, decided_at: '2030-01-15T10:00:00.000Z' }
  const late = await s.decide(skipped).catch(error => error)
  t.same([late.code, JSON.parse(late.detail)], ['QU074', expired])
  t.ok((await s.fn.meetApprovals({})) >= 2)
  exactly(t, await s.execution(skipped), { status: 'missed', missed_reason: 'approval_expired' })
  exactly(t, await s.execution(runs), { status: 'pending', claimable_at: s.clock.now() })
  exactly(t, await s.execution(waits), { status: 'pending', attempt_due_at: Number.POSITIVE_INFINITY })
  for (const id of [skipped, runs]) {
    const error = await s.decide(id, 'rejected').catch(error => error)
    t.same([error.code, JSON.parse(error.detail)], ['QU074', expired])
  }
  t.same(await s.rows('select * from cue.dead_letters'), [])
  t.same(await s.events(skipped), ['approval.requested', 'approval.decided'])
  await s.decide(waits)
})

t.test('refuses a second decision, one by the asker, and one about what does not wait', async t => {
  const s = await approvalsStage(t)
  const cue_id = await s.approved()
  const id = await s.fire(cue_id, { actor: 'key:1' })
  await t.rejects(s.decide(id, 'approved', { actor: 'key:1' }), code('QU075'))
  await t.rejects(s.decide(id, 'approved', { account_id: await s.account() }), code('QU002'))
  await s.decide(id, 'approved', { actor: 'key:2' })
  await t.rejects(s.decide(id, 'rejected'), code('QU074'))
  const own = await s.fire(cue_id, { actor: 'key:1' })
  await s.decide(own, 'rejected', { actor: 'key:1' })
  await t.rejects(s.decide(await s.fire(await s.cue()), 'approved'), code('QU011'))
  const cancelled = await s.fire(cue_id)
  await s.fn.cancelExecution({ account_id: s.account_id, execution_id: cancelled })
  await t.rejects(s.decide(cancelled), code('QU011'))
})

t.test('a session that was opened with a key is that key', async t => {
  const s = await approvalsStage(t)
  const key = '00000000-0000-4000-8000-00000000000a'
  const sessions = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
  for (const [n, id] of sessions.entries())
    await s.rows(`insert into cue.sessions (id, account_id, created_at, expires_at, key_id) values ($1, $2, now(), 'infinity', $3)`, [
      id,
      s.account_id,
      n === 0 ? key : null
    ])
  const cue_id = await s.approved()
  const id = await s.fire(cue_id, { actor: `key:${key}` })
  await t.rejects(s.decide(id, 'approved', { actor: `session:${sessions[0]}` }), code('QU075'))
  await s.decide(id, 'approved', { actor: `session:${sessions[1]}` })
  const other = await s.fire(cue_id, { actor: `session:${sessions[1]}` })
  await s.decide(other, 'approved', { actor: `session:${sessions[1]}` })
})

t.test('for overlap, an execution that waits for approval is running; approved ones follow in their order', async t => {
  const s = await approvalsStage(t)
  const skip = await s.approved({ overlap: 'skip' })
  await s.fireTracked([skip])
  await s.slot(skip)
  t.equal((await s.missed(skip))[0].reason, 'overlap')

  const one = await s.approved({ overlap: 'queue_one' })
  await s.fireTracked([one])
  await s.slot(one)
  await s.slot(one)
  t.same(await s.held(one), ['approval', 'approval'])
  t.equal((await s.missed(one))[0].reason, 'overlap')
  const [first, second] = (await s.rows('select id from cue.executions where cue_id = $1 order by id', [one])).map(({ id }) => id)
  await s.decide(second)
  t.same(await s.held(one), ['approval', 'overlap'])
  t.same(await s.begin(), [])
  await s.decide(first)
  const begun = await s.begin()
  t.same(
    begun.map(({ execution_id }) => execution_id),
    [first]
  )
  await s.finish(begun)
  exactly(t, await s.begin(), [{ execution_id: second }])

  const all = await s.approved({ overlap: 'queue_all' })
  await s.fireTracked([all])
  await s.slot(all)
  const ids = (await s.rows('select id from cue.executions where cue_id = $1 order by id', [all])).map(({ id }) => id)
  await s.decide(ids[1])
  await s.decide(ids[0], 'rejected')
  exactly(t, await s.begin(), [{ execution_id: ids[1] }], 'a rejection lets the next one run')
})

t.test('at most 100 executions of a cue wait for approval', async t => {
  const s = await approvalsStage(t)
  await s.rows(`update cue.accounts set limits = '{"fires_per_hour": null}'`)
  const cue_id = await s.approved()
  for (let n = 0; n < 99; n++) await s.fire(cue_id)
  await s.fireTracked([cue_id])
  await s.slot(cue_id)
  exactly(t, await s.missed(cue_id), [{ reason: 'queue_full', count: 1 }])
  await t.rejects(s.fire(cue_id), code('QU035'))
  const [{ execution_id }] = await s.rows('select execution_id from cue.approvals limit 1')
  await s.decide(execution_id)
  await s.fire(cue_id)
})

t.test('after its approval, an execution waits for its instant, and then passes its gate', async t => {
  const s = await approvalsStage(t)
  await s.fn.putGate({ account_id: s.account_id, key: 'g', gate: { parallel: 1 } })
  const cue_id = await s.approved({ gate: 'g' })
  const [now, second] = [await s.fire(cue_id), await s.fire(cue_id)]
  const later = await s.fire(cue_id, { send_at: new Date('2030-01-15T09:30:00Z') })
  for (const id of [now, second, later]) await s.decide(id)
  const begun = await s.begin()
  exactly(t, begun, [{ execution_id: now }])
  await s.finish(begun)
  const next = await s.begin()
  exactly(t, next, [{ execution_id: second }])
  await s.finish(next)
  t.same(await s.begin(), [])
  s.clock.set('2030-01-15T09:30:00Z')
  exactly(t, await s.begin(), [{ execution_id: later }])
})

t.test('reminders are sent after an hour and a day, each once', async t => {
  const s = await approvalsStage(t)
  const id = await s.fire(await s.approved({}, { expires: '7d' }))
  const sent = async (by: string) => {
    s.clock.advance(by)
    return (await s.fn.meetApprovals({})) + (await s.fn.meetApprovals({}))
  }
  t.same(
    [await sent('59 minutes'), await sent('1 minute'), await sent('22 hours'), await sent('1 hour'), await sent('100 hours')],
    [0, 1, 0, 1, 0]
  )
  t.equal((await s.approval(id)).reminders, 2)
  const late = await s.fire(await s.approved({}, { expires: '7d' }))
  t.equal(await sent('30 hours'), 1, 'one for both after an outage')
  await s.decide(late)
  t.equal((await s.approval(late)).remind_at, null)
})

t.test('whatever ends waiting executions of a cue or an account ends their approvals', async t => {
  const s = await approvalsStage(t)
  const cue_id = await s.approved()
  await s.fire(cue_id)
  await s.rows('select cue.cancel_waiting($1)', [s.account_id])
  t.same(await s.rows('select * from cue.approvals'), [])
  const kept = await s.fire(cue_id)
  await s.decide(kept)
  await s.fire(cue_id)
  await t.rejects(s.fn.deleteCue({ account_id: s.account_id, cue_id }), code('QU076'))
  await s.fn.deleteCue({ account_id: s.account_id, cue_id, may_approve: true })
  exactly(t, await s.rows('select * from cue.approvals'), [{ execution_id: kept }])
  while ((await s.fn.purgeCue({ cue_id })) > 0);
  t.same(await s.rows('select * from cue.approvals'), [])
})

t.test('a slot that waited for signals is missed while 100 executions wait for approval', async t => {
  const s = await approvalsStage(t)
  await s.rows(`update cue.accounts set limits = '{"fires_per_hour": null}'`)
  const parent = await s.cue({ retry_max_attempts: 1 })
  const after = { cues: [parent], when: 'success', mode: 'all', within: '24h', wait: '1h' }
  const cue_id = await s.approved({ after })
  await s.slot(cue_id)
  t.same(await s.held(cue_id), ['after'])
  const [{ id }] = await s.rows('select id from cue.executions where cue_id = $1', [cue_id])
  for (let n = 0; n < 100; n++) await s.fire(cue_id)
  await s.finish(await s.take([parent]))
  await s.fn.startFollowers({ after: '' })
  exactly(t, await s.execution(id), { status: 'missed', missed_reason: 'queue_full', attempt_due_at: null })
  t.equal((await s.held(cue_id)).length, 100)
})

t.test('the approval of an execution that is cancelled or superseded says so, and by whom', async t => {
  const s = await approvalsStage(t)
  const { account_id, fn } = s
  const cue_id = await s.approved()
  const cancelled = await s.fire(cue_id)
  s.clock.advance('1 minute')
  await fn.cancelExecution({ account_id, execution_id: cancelled, actor: person })
  const shown = async (id: string) => (await s.row('select approval from cue.execution_view where id = $1', [id])).approval
  const decided_at = '2030-01-15T09:01:00.000Z'
  exactly(t, await shown(cancelled), { decision: 'cancelled', decided_at, decided_by: person, decided_via: 'call', reason: null })
  exactly(t, await s.execution(cancelled), { held_ms: 60_000 })
  t.same(await s.events(cancelled), ['approval.requested', 'execution.cancelled'])
  await t.rejects(s.decide(cancelled), code('QU011'))

  const replacing = await s.approved({ overlap: 'cancel_previous' })
  await s.fireTracked([replacing])
  const [{ id: superseded }] = await s.rows('select id from cue.executions where cue_id = $1', [replacing])
  await s.slot(replacing)
  const reason = 'superseded by the next run'
  exactly(t, await shown(superseded), { decision: 'cancelled', decided_by: null, decided_via: null, reason })
  t.same(
    await s.rows(`select actor, detail ->> 'decision' as decision from cue.audit_events where event = 'approval.decided' order by id`),
    [
      { actor: person, decision: 'cancelled' },
      { actor: 'service', decision: 'cancelled' }
    ]
  )
})
