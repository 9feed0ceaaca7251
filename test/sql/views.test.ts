// The views for psql. They use now(), so the tests set times in the past.
import t, { type Test } from 'tap'
import { exactly } from '../support/exactly.ts'
import { awaiting, refused, stage } from '../support/stage.ts'

const hours = (count: number) => new Date(Date.now() - count * 3_600_000)
const ago = (t: Test, count: number) => stage(t, hours(count).toISOString())
const worker = { transport: 'worker', callback_url: null }

/** An execution in each waiting state since an hour ago; its cue is named after what it waits for. */
const waiting = async (t: Test) => {
  const staged = await ago(t, 1)
  const { fn, account_id, cue, take, settle } = staged
  const queued = async (name: string, columns: object = {}, send_at?: Date) =>
    fn.fireCue({ account_id, cue_id: await cue({ name, ...columns }, { next_run: null }), send_at })
  const begun = async (columns: object) => (await take([await cue(columns)], { next: hours(-1) }))[0]!
  const ended = async (columns: object, result: object) => {
    const attempt = await begun(columns)
    await settle([attempt], result)
    await fn.endFlights({ flight_ids: [attempt.flight_id] })
  }
  await cue({ name: 'due' })
  await queued('pending')
  await queued('deferred', {}, hours(-1))
  await queued('deferred worker', worker, hours(-2))
  await ended({ name: 'retrying' }, refused)
  await ended({ name: 'pending_outcome', ...awaiting }, {})
  await begun({ name: 'delivering' })
  await take([await cue({ name: 'pending_worker', ...worker })], { next: hours(-1) })
  const claimed = await queued('claimed', worker)
  await fn.claimExecutions({ account_id, worker_id: 'w1', execution_id: claimed.id })
  await ended({ name: 'finished' }, {})
  return staged
}

t.test('due_cues shows due slots and their lateness', async t => {
  const { cue, rows } = await ago(t, 1)
  const id = await cue()
  await cue({}, { next_run: hours(-1) })
  await cue({}, { next_run: null })
  t.strictSame(await rows("select id, transport, late_by between '1 hour' and '2 hours' as late from cue.due_cues"), [
    { id, transport: 'webhook', late: true }
  ])
})

t.test('queue_depth counts waiting and running work', async t => {
  const { rows } = await waiting(t)
  t.strictSame(await rows('select queue, waiting::int, oldest < now() as since from cue.queue_depth'), [
    { queue: 'due', waiting: 1, since: true },
    { queue: 'pending', waiting: 1, since: true },
    { queue: 'retrying', waiting: 1, since: true },
    { queue: 'delivering', waiting: 1, since: true },
    { queue: 'pending_outcome', waiting: 1, since: true },
    { queue: 'pending_worker', waiting: 1, since: true },
    { queue: 'claimed', waiting: 1, since: true },
    { queue: 'deferred', waiting: 2, since: false },
    { queue: 'queued', waiting: 0, since: null }
  ])
})

t.test('stuck_executions shows overdue executions and why', async t => {
  const { rows } = await waiting(t)
  const stuck = () =>
    rows(
      "select c.name, s.why, s.stuck_for > '1 minute' as late from cue.stuck_executions s join cue.cues c on c.id = s.cue_id order by 1, 2"
    )
  t.strictSame(await stuck(), [
    { name: 'claimed', why: 'lease expired', late: true },
    { name: 'delivering', why: 'flight lease expired', late: true },
    { name: 'pending', why: 'attempt overdue', late: true },
    { name: 'pending_outcome', why: 'outcome overdue', late: true },
    { name: 'pending_worker', why: 'claim overdue', late: true },
    { name: 'retrying', why: 'attempt overdue', late: true }
  ])
  await rows("select cue.delete_cues(account_id, array_agg(id)) from cue.cues where name <> 'pending' group by account_id")
  exactly(t, await stuck(), [{ name: 'pending' }], 'deleted cues are excluded')
})

t.test('stuck_executions is empty while nothing is overdue', async t => {
  const { rows, settle, begun, take, cue } = await ago(t, 0)
  await settle([await begun()], refused)
  await settle([await begun(awaiting)])
  await begun()
  await take([await cue(worker)])
  t.strictSame(await rows('select * from cue.stuck_executions'), [])
})

t.test('cue_health and recent_failures cover the last day', async t => {
  const { fn, account_id, clock, rows, cue, take, settle, finish } = await ago(t, 30)
  const id = await cue({ retry_max_attempts: 1 })
  const run = async () => {
    const [attempt] = await take([id], { next: hours(0) })
    await rows('update cue.cue_runs set next_run = $1 where cue_id = $2', [new Date(clock.now().getTime() + 1000), id])
    clock.advance('1 second')
    return attempt!
  }
  await settle([await run()], refused)
  clock.set(hours(1))
  await rows('update cue.cue_runs set next_run = $1 where cue_id = $2', [clock.now().toISOString(), id])
  await finish([await run()])
  const refusedNow = await run()
  await settle([refusedNow], refused)
  const reported = await run()
  await finish([reported])
  await fn.reportOutcome({ account_id, execution_id: reported.execution_id, success: false, error: 'the disk is full' })
  exactly(
    t,
    await rows('select id, runs_24h::int, failures_24h::int, failed_deliveries, failed_outcomes, open_alerts::int from cue.cue_health'),
    [{ id, runs_24h: 3, failures_24h: 2, failed_deliveries: 0, failed_outcomes: 1, open_alerts: 0 }]
  )
  exactly(t, await rows('select * from cue.recent_failures'), [
    {
      id: reported.execution_id,
      cue_name: 'a cue',
      status: 'success',
      outcome_state: 'reported_failure',
      error_message: 'the disk is full'
    },
    { id: refusedNow.execution_id, status: 'failed', attempts: 1, http_status: 500, error_message: refused.error }
  ])
})

t.test("account_usage shows each account's use of its plan", async t => {
  const { rows, account, cue, take } = await ago(t, 0)
  const account_id = await account({ plan: 'free' })
  const id = await cue({}, { account_id })
  await cue({ status: 'paused' }, { account_id, next_run: null })
  await take([id])
  exactly(t, await rows('select * from cue.account_usage where account_id = $1', [account_id]), [
    { account_id, plan: 'free', executions_used: 1, executions_per_month: 300, cues_used: 2, cues: 10, limit_reached_at: null }
  ])
})
