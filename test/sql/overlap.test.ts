// Overlap: what becomes of a slot while an execution of the cue has not ended.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { minuteMs, overlapStage } from '../support/overlap-stage.ts'
import { awaiting, once, refused } from '../support/stage.ts'

const start = Date.parse('2030-01-15T09:00:00Z')
const at = (minutes: number) => new Date(start + minutes * minuteMs)
const worker = { transport: 'worker', callback_url: null }

t.test('allow: cues are not tracked, and slots run side by side', async t => {
  const { cue, take, clock, fireTracked, row, open } = await overlapStage(t)
  const id = await cue()
  t.equal((await take([id], { next: at(1) })).length, 1)
  clock.set(at(1))
  t.equal(await fireTracked([id]), 0, 'not for fire_tracked_cues')
  t.equal((await take([id])).length, 1)
  t.same(await open(id), [])
  exactly(t, await row('select overlap, tracked from cue.cues where id = $1', [id]), { overlap: 'allow', tracked: false })
})

t.test('take_due_cues leaves tracked cues alone', async t => {
  const { cue, take, run } = await overlapStage(t)
  const id = await cue({ overlap: 'skip' })
  t.same(await take([id]), [])
  exactly(t, await run(id), { next_run: at(0), run_count: 0, tracked: true })
})

t.test('a slot of a cue that is not running fires on time, counted like any other', async t => {
  const { running, execution, run, open, used, jobs, row } = await overlapStage(t)
  const id = await running({ overlap: 'skip' })
  const [own] = await open(id)
  exactly(t, await execution(own!.id), {
    status: 'pending',
    triggered_by: 'schedule',
    scheduled_for: at(0),
    attempt_due_at: at(0),
    attempts: 0
  })
  exactly(t, await run(id), { next_run: at(1), last_slot: at(0), run_count: 1, fired_count: 1 })
  t.equal(await used(), 1)
  t.same(
    (await jobs()).map(job => job.id),
    [own!.id]
  )
  exactly(t, await row('select count(*)::int from cue.executions'), { count: 1 })
})

const ends: [string, object, (s: Awaited<ReturnType<typeof overlapStage>>, id: string) => Promise<unknown>][] = [
  ['waits for its attempt', {}, async () => {}],
  ['is being sent', {}, s => s.begin()],
  ['waits for a retry', {}, async s => s.settle(await s.begin(), refused)],
  ['awaits its outcome', awaiting, async s => s.settle(await s.begin())],
  ['can be claimed', worker, async () => {}],
  ['is claimed', worker, s => s.fn.claimExecutions({ account_id: s.account_id, worker_id: 'w' })]
]

for (const [what, columns, reach] of ends) {
  t.test(`cancel_previous: a slot ends an execution that ${what}, and runs`, async t => {
    const s = await overlapStage(t)
    const id = await s.running({ overlap: 'cancel_previous', retry_backoff_minutes: [60], on_failure_email: true, ...columns })
    await reach(s, id)
    const [old] = await s.open(id)
    const { attempts, started_at } = await s.execution(old!.id)
    t.equal(await s.slot(id), 1)
    exactly(t, await s.execution(old!.id), {
      status: 'failed',
      error_message: 'superseded by the next run',
      attempts,
      started_at,
      ended_at: at(1),
      attempt_due_at: null,
      claimable_at: null,
      claim_deadline_at: null,
      flight_id: null,
      lease_expires_at: null,
      claim_token: null,
      outcome_deadline_at: null
    })
    t.equal((await s.attempts(old!.id)).length, attempts, 'the attempt is in the log')
    const [own, ...others] = await s.open(id)
    t.same(others, [])
    exactly(t, await s.execution(own!.id), { status: 'pending', scheduled_for: at(1) })
    t.same(await s.missed(id), [])
    t.same(await s.jobs('mails'), [], 'no mail')
    t.same(await s.rows('select * from cue.alerts'), [], 'no alert')
    exactly(t, await s.run(id), { failed_deliveries: 0, run_count: 2, fired_count: 2 })
    const due = columns === worker ? [] : [own!.id]
    t.same(
      (await s.jobs()).map(job => job.id),
      due,
      'one job, for the new one'
    )
  })
}

t.test('cancel_previous: the engine is told to abort the request, and its response is ignored', async t => {
  const { running, slot, begin, fn, settle, finish, execution } = await overlapStage(t)
  const id = await running({ overlap: 'cancel_previous' })
  const [attempt] = await begin()
  const asked = { execution_ids: [attempt!.execution_id], attempts: [attempt!.attempt] }
  t.same(await fn.goneAttempts(asked), [])
  await slot(id)
  t.same(await fn.goneAttempts(asked), [attempt!.execution_id])
  t.equal(await settle([attempt!]), 0)
  t.equal(await settle([attempt!], refused), 0)
  t.equal(await finish([attempt!]), 0)
  exactly(t, await execution(attempt!.execution_id), { status: 'failed', error_message: 'superseded by the next run', http_status: null })
})

t.test('cancel_previous: a worker loses its claim, whatever it calls next', async t => {
  const { running, slot, fn, account_id, execution } = await overlapStage(t)
  const id = await running({ overlap: 'cancel_previous', ...worker })
  const [claim] = await fn.claimExecutions({ account_id, worker_id: 'w' })
  const { execution_id, claim_token } = claim!
  const ids = { account_id, execution_id }
  await slot(id)
  const before = await execution(execution_id)
  const lost = { code: 'QU016', message: `Claim lost: execution ${execution_id} was superseded by the next run. Stop working on it.` }
  for (const token of [claim_token, undefined]) {
    await t.rejects(fn.heartbeatExecution({ ...ids, worker_id: 'w', claim_token: token }), lost, 'heartbeat')
    await t.rejects(fn.reportOutcome({ ...ids, success: true, claim_token: token }), lost, 'outcome')
    await t.rejects(fn.attachEvidence({ ...ids, external_id: 'x', claim_token: token }), lost, 'evidence')
  }
  await t.rejects(fn.releaseExecution({ ...ids, claim_token }), lost, 'release')
  t.same(await execution(execution_id), before)
  t.equal((await fn.claimExecutions({ account_id, worker_id: 'w' })).length, 1, 'the next run can be claimed')
})

t.test('queue_all: up to 100 slots wait, in their order; those beyond are recorded', async t => {
  const { running, slot, begin, settle, states, missed, open, used } = await overlapStage(t)
  const id = await running({ overlap: 'queue_all' })
  for (let n = 1; n <= 103; n++) await slot(id)
  t.equal((await states(id)).filter(state => state === 'queued').length, 100)
  exactly(t, await missed(id), [{ first: at(101), last: at(103), count: 3, policy: 'run_once_if_missed', reason: 'queue_full' }])
  t.equal(await used(), 101)
  for (let n = 0; n <= 100; n++) {
    const attempts = await begin()
    t.same(
      attempts.map(attempt => attempt.scheduled_for),
      [at(n)]
    )
    await settle(attempts)
  }
  t.same(await begin(), [])
  t.same(await open(id), [])
})

t.test('slots in a row share a row of missed; a slot that runs, or another reason, starts a new one', async t => {
  const { running, slot, begin, settle, missed } = await overlapStage(t)
  const id = await running({ overlap: 'skip' })
  await slot(id)
  await slot(id)
  await settle(await begin())
  await slot(id)
  await slot(id)
  exactly(
    t,
    (await missed(id)).map(({ first, last, count }) => ({ first, last, count })),
    [
      { first: at(1), last: at(2), count: 2 },
      { first: at(4), last: at(4), count: 1 }
    ]
  )
})

t.test('a queued execution survives a pause and the end of the cue', async t => {
  const { running, slot, begin, settle, states, rows, run, fn, account_id, clock } = await overlapStage(t)
  const id = await running({ overlap: 'queue_one' })
  await slot(id)
  await rows("select cue.pause_cues(array[$1], 'user', p_now => $2)", [id, clock.now()])
  await settle(await begin())
  t.same(await states(id), ['success', 'pending'])
  const [second] = await begin()
  await settle([second!])

  const oneTime = await running({ ...once, overlap: 'queue_all', at: clock.now() })
  clock.advance('1 second')
  await fn.fireCue({ account_id, cue_id: oneTime, overlap: 'queue_all' })
  await settle(await begin())
  exactly(t, await run(oneTime), { status: 'completed' })
  t.same(await states(oneTime), ['success', 'pending'])
  t.equal((await begin()).length, 1)
})

t.test('a tracked cue without a further slot completes', async t => {
  const { running, clock, fireTracked, fn, run } = await overlapStage(t)
  const id = await running({ overlap: 'skip', schedule_rules: { ends_at: '2030-01-15T09:01:00Z' } })
  clock.advance('1 minute')
  await fireTracked([id], fn, null)
  exactly(t, await run(id), { status: 'completed', completed_reason: 'ended', fired_count: 1, next_run: null })
})

t.test('catching up with a tracked cue, only slots that run count for max_runs', async t => {
  const { running, clock, fn, run, begin, settle } = await overlapStage(t)
  const catchUp = async (id: string, slots: Date[], next_run: Date) => {
    const { version, next_run: expected } = await run(id)
    await fn.catchUpCues({ cues: JSON.stringify([{ cue_id: id, version, expected, next_run, slots, dropped: null }]) })
  }
  const id = await running({ overlap: 'skip', schedule_rules: { max_runs: 3 } })
  clock.advance('3 minutes')
  await catchUp(id, [at(1), at(2)], at(4))
  exactly(t, await run(id), { status: 'active', fired_count: 1, next_run: at(4) })
  await settle(await begin())
  clock.advance('2 minutes')
  await catchUp(id, [at(4), at(5)], at(6))
  exactly(t, await run(id), { status: 'active', fired_count: 2, next_run: at(6) })
  await settle(await begin())
  clock.advance('1 minutes')
  await catchUp(id, [at(6)], at(7))
  exactly(t, await run(id), { status: 'completed', completed_reason: 'max_runs', fired_count: 3, next_run: null })
})
