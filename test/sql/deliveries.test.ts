// Recording results of attempts: finish_attempts and settle_attempts.
import t from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { awaiting, once, type Result, refused, stage } from '../support/stage.ts'

t.test('a plain success ends the execution and logs the attempt', async t => {
  const { begun, finish, execution, attempts, rows, clock, account_id } = await stage(t)
  const attempt = await begun()
  t.equal(attempt.plain, true)
  t.equal(await finish([attempt]), 1)
  exactly(t, await execution(attempt.execution_id), {
    status: 'success',
    attempts: 1,
    http_status: 200,
    response_body: 'ok',
    error_message: null,
    flight_id: null,
    delivered_at: clock.now(),
    ended_at: clock.now(),
    outcome_state: null
  })
  const first = { attempt: 1, result: 'success', http_status: 200, duration_ms: 5, error: null, worker_id: null }
  exactly(t, await attempts(attempt.execution_id), [
    { ...first, account_id, started_at: clock.now(), finished_at: new Date(clock.now().getTime() + 5) }
  ])
  const [detail] = await rows('select attempt_log from cue.execution_detail_view where id = $1', [attempt.execution_id])
  exactly(t, detail.attempt_log, [{ ...first, started_at: clock.now().toISOString() }])
  t.same(await rows('select * from cue.attempts'), [], 'a first attempt that succeeds adds no row')
})

for (const [what, act] of [
  ['finish_attempts', (s, attempt) => s.finish([attempt])],
  ['settle_attempts with a success', (s, attempt) => s.settle([attempt])],
  ['settle_attempts with a refusal', (s, attempt) => s.settle([attempt], refused)]
] as [string, (s: Awaited<ReturnType<typeof stage>>, attempt: Awaited<ReturnType<typeof s.begun>>) => Promise<number>][]) {
  t.test(`${what} drops the result of a superseded attempt`, async t => {
    const s = await stage(t)
    const attempt = await s.begun()
    s.clock.advance('5 seconds')
    t.equal(await s.fn.recoverFlights({}), 1)
    t.equal(await act(s, attempt), 0, 'while waiting for the next attempt')
    const [second] = await beginWaiting(s.fn, { limit: 10 })
    t.equal(second!.attempt, 2)
    t.equal(await act(s, attempt), 0, 'during the next attempt')
    exactly(t, await s.execution(attempt.execution_id), { status: 'delivering', attempts: 2, flight_id: second!.flight_id })
    t.equal(await s.finish([second!, second!]), 1, 'although it ended twice')
    t.equal(await act(s, second!), 0, 'after the end')
    exactly(t, await s.attempts(attempt.execution_id), [
      { attempt: 1, result: 'lost' },
      { attempt: 2, result: 'success' }
    ])
  })
}

t.test('records results of many attempts in one call, dropping superseded ones', async t => {
  const { cue, take, fn, finish, rows, clock } = await stage(t)
  const ids = await Promise.all(Array.from({ length: 5 }, () => cue()))
  const taken = await take(ids)
  clock.advance('5 seconds')
  await fn.recoverFlights({})
  t.equal(await finish(taken.slice(0, 2)), 0)
  const again = await beginWaiting(fn, { limit: 3 })
  t.equal(await finish([...again, ...taken]), 3)
  t.same(await rows('select status, count(*) from cue.executions group by 1 order by 1'), [
    { status: 'success', count: 3 },
    { status: 'retry_ready', count: 2 }
  ])
})

// A nested loop would compare each row with each result.
t.test('records many results without comparing each with each', async t => {
  const { cue, take, finish, settle, connect, rows, account_id, clock } = await stage(t)
  const attempts = await take(await Promise.all(Array.from({ length: 200 }, () => cue())))
  // As in a service that has run for a while, with partitions for three months: tests have more.
  await rows(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                 created_at, updated_at)
     select cue.uuid_v7(at - n * interval '1 s'), $1, 'cue_x', 'webhook', 'success', 'schedule', at, '{}', 1, at, at, at, at
       from generate_series(1, 10000) n, (select $2::timestamptz as at) q`,
    [account_id, clock.now()]
  )
  await rows('analyze cue.executions')
  const partitions = await rows(`select inhrelid::regclass::text as name from pg_inherits where inhparent = 'cue.executions'::regclass`)
  const others = partitions.map(({ name }) => name).filter(name => !/2030_0[123]$/.test(name))
  await rows(`drop table ${others}`)
  const { client, fn } = await connect()
  await client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
                      set auto_explain.log_analyze = on; set client_min_messages = log`)
  const plans: string[] = []
  client.on('notice', ({ message = '' }) => plans.push(message))
  t.equal(await finish(attempts.slice(0, 100), fn), 100)
  t.equal(await settle(attempts.slice(100), refused, fn), 100)
  const updates = plans.filter(plan => plan.includes('Update on executions'))
  t.equal(updates.length, 2)
  for (const plan of updates) t.notMatch(plan, /Rows Removed by Join Filter: \d{4}/)
})

t.test('a rejection waits for the next element of the backoff plus up to 10%, and the last element repeats', async t => {
  const { begun, settle, execution, fn, jobs, clock, attempts } = await stage(t)
  const attempt = await begun({ retry_max_attempts: 5, retry_backoff_minutes: [0.5, 10] })
  const id = attempt.execution_id
  let current = attempt
  for (const minutes of [0.5, 10, 10, 10]) {
    t.equal(await settle([current], refused), 1)
    const e = await execution(id)
    exactly(t, e, { status: 'retrying', http_status: 500, error_message: 'the callback answered 500', flight_id: null, ended_at: null })
    const wait = (e.attempt_due_at.getTime() - clock.now().getTime()) / 60_000
    t.ok(wait >= minutes && wait <= minutes * 1.1, `${wait} minutes after ${minutes}`)
    exactly(t, await jobs(), [{ id, start_after: e.attempt_due_at }])
    t.same(await beginWaiting(fn, { limit: 10 }), [], 'not before its time')
    clock.set(e.attempt_due_at)
    current = (await beginWaiting(fn, { limit: 10 }))[0]!
    t.equal(current.execution_id, id)
  }
  t.equal(current.attempt, 5)
  await settle([current], refused)
  exactly(t, await execution(id), { status: 'failed', attempts: 5, ended_at: clock.now(), attempt_due_at: null })
  t.same(await jobs(), [])
  t.same(
    (await attempts(id)).map(row => row.result),
    Array(5).fill('failed')
  )
})

t.test('the jitter differs between executions', async t => {
  const { cue, take, settle, rows } = await stage(t)
  const ids = await Promise.all(Array.from({ length: 20 }, () => cue()))
  await settle(await take(ids), refused)
  const [{ different }] = await rows('select count(distinct attempt_due_at) as different from cue.executions')
  t.ok(different > 10, `${different} of 20`)
})

t.test('Retry-After can lengthen the wait, but not shorten it', async t => {
  const { begun, settle, execution, clock } = await stage(t)
  const waitAfter = async (retry_after_ms: number) => {
    const attempt = await begun({ retry_backoff_minutes: [10] })
    await settle([attempt], { ...refused, http_status: 429, retry_after_ms })
    return (await execution(attempt.execution_id)).attempt_due_at.getTime() - clock.now().getTime()
  }
  t.equal(await waitAfter(3_600_000), 3_600_000)
  t.ok((await waitAfter(1000)) >= 600_000)
})

t.test('exhaustion triggers the on_failure actions in the same transaction', async t => {
  const { begun, settle, run, row, jobs, clock } = await stage(t)
  const attempt = await begun({
    retry_max_attempts: 1,
    on_failure_email: true,
    on_failure_webhook: 'https://example.com/failed',
    on_failure_pause: true
  })
  const { version } = await run(attempt.cue_id)
  await settle([attempt], refused)
  exactly(t, await jobs('mails'), [{ data: { kind: 'cue_failed', execution_id: attempt.execution_id } }])
  exactly(t, await jobs('notifications'), [
    { data: { kind: 'cue_failed', url: 'https://example.com/failed', execution_id: attempt.execution_id } }
  ])
  exactly(t, await run(attempt.cue_id), { status: 'paused', next_run: null, version: version + 1 })
  const pause = await row('select paused_at, paused_by, pause_reason, paused_until from cue.cues where id = $1', [attempt.cue_id])
  t.same(pause, { paused_at: clock.now(), paused_by: 'failures', pause_reason: refused.error, paused_until: null })
  t.equal(new Date((await jobs('notifications'))[0].data.failed_at).getTime(), clock.now().getTime())
})

t.test('a rejection that is retried triggers no on_failure action', async t => {
  const { begun, settle, run, jobs } = await stage(t)
  const attempt = await begun({ on_failure_email: true, on_failure_pause: true })
  await settle([attempt], refused)
  t.same(await jobs('mails'), [])
  exactly(t, await run(attempt.cue_id), { status: 'active', failed_deliveries: 0 })
})

const metadata = { a: { b: 1 } }
// A cue, a result, and the expected execution, status of the cue, and error of the attempt.
type Case = [title: string, cue: object, result: Result, execution: object, cueStatus: string, error?: string]
const cases: Case[] = [
  ['a one-time cue completes on delivery', once, {}, { status: 'success', outcome_state: null }, 'completed'],
  ['a one-time cue fails on exhaustion', { ...once, retry_max_attempts: 1 }, refused, { status: 'failed' }, 'failed'],
  ['a one-time cue waits for a retry', once, refused, { status: 'retrying' }, 'active'],
  [
    'on_failure does not pause a one-time cue',
    { ...once, retry_max_attempts: 1, on_failure_pause: true },
    refused,
    { status: 'failed' },
    'failed'
  ],
  [
    'a delivery that awaits an outcome becomes pending_outcome',
    awaiting,
    {},
    { status: 'pending_outcome', ended_at: null, outcome_state: null },
    'active'
  ],
  ['a one-time cue awaiting an outcome stays active after delivery', { ...once, ...awaiting }, {}, { status: 'pending_outcome' }, 'active'],
  [
    'a response that reports success sets the outcome at once',
    awaiting,
    { report: { success: true, result: 'done' } },
    { status: 'success', outcome_success: true, outcome_state: 'reported_success', result: 'done', outcome_deadline_at: null },
    'active'
  ],
  [
    'a response that reports failure sets the outcome of a successful delivery at once',
    awaiting,
    { report: { success: false, error: 'bad' } },
    { status: 'success', outcome_success: false, outcome_state: 'reported_failure', error: 'bad' },
    'active'
  ],
  [
    'a reported success completes a one-time cue',
    { ...once, ...awaiting },
    { report: { success: true } },
    { status: 'success' },
    'completed'
  ],
  ['a reported failure fails a one-time cue', { ...once, ...awaiting }, { report: { success: false } }, { status: 'success' }, 'failed'],
  [
    'a response is not evidence if the policy requires some',
    { ...awaiting, verification_mode: 'require_external_id' },
    { report: { success: true } },
    { status: 'success', outcome_state: 'verification_failed' },
    'active'
  ],
  [
    'the evidence of a report in a response is kept and verified',
    { ...awaiting, verification_mode: 'require_artifacts' },
    {
      report: {
        success: true,
        external_id: 'a',
        result_url: 'b',
        result_ref: 'c',
        result_type: 'd',
        summary: 'e',
        artifacts: [1.5],
        metadata
      },
      omitted: 'error (not a string)'
    },
    {
      outcome_state: 'verified_success',
      error_message: null,
      external_id: 'a',
      result_url: 'b',
      result_ref: 'c',
      result_type: 'd',
      summary: 'e',
      artifacts: [1.5],
      metadata
    },
    'active',
    'left out of the report: error (not a string)'
  ],
  [
    'artifacts and metadata that are too large as stored are left out and named',
    { ...awaiting, verification_mode: 'require_artifacts' },
    { report: { success: true, result: 'done', artifacts: Array(300).fill(1e300), metadata: { a: Array(200).fill(1e300) } } },
    { outcome_state: 'verification_failed', result: 'done', artifacts: null, metadata: null },
    'active',
    'left out of the report: artifacts (too large with all digits of its numbers), metadata (too large with all digits of its numbers)'
  ],
  [
    'a response awaits verification if the policy is manual',
    { ...awaiting, verification_mode: 'manual' },
    { report: { success: true } },
    { status: 'success', outcome_state: 'verification_pending' },
    'active'
  ],
  [
    'ignores a report in the response if the cue awaits none',
    once,
    { report: { success: true } },
    { status: 'success', outcome_state: null, outcome_success: null },
    'completed'
  ]
]
t.test('the result decides what becomes of the execution, its outcome and the cue', async t => {
  const { begun, settle, execution, row, attempts } = await stage(t)
  for (const [title, columns, result, expected, cueStatus, error = result.error ?? null] of cases) {
    const attempt = await begun(columns)
    t.equal(attempt.plain, false, 'not on the hot path')
    t.equal(await settle([attempt], result), 1)
    exactly(t, await execution(attempt.execution_id), expected, title)
    t.equal((await row('select status from cue.cues where id = $1', [attempt.cue_id])).status, cueStatus, title)
    exactly(t, await attempts(attempt.execution_id), [{ attempt: 1, result: result.error ? 'failed' : 'success', error }], title)
  }
})

t.test('a batch holds every kind of result', async t => {
  const { cue, take, settle, rows } = await stage(t)
  const kinds = [{}, awaiting, { retry_max_attempts: 1 }, once, { ...awaiting, ...once }]
  const ids = await Promise.all(Array.from({ length: 20 }, (_, i) => cue({ name: String(i % 5), ...kinds[i % 5] })))
  const taken = await take(ids, { next: null })
  const attempts = ids.map(id => taken.find(attempt => attempt.cue_id === id)!)
  t.equal(
    await settle(
      attempts.filter((_, i) => i % 2 === 0),
      {}
    ),
    10
  )
  t.equal(
    await settle(
      attempts.filter((_, i) => i % 2 === 1),
      refused
    ),
    10
  )
  t.same(
    await rows(`select c.name, e.status, count(*) from cue.executions e join cue.cues c on c.id = e.cue_id group by 1, 2 order by 1, 2`),
    [
      ['0', 'success', 2],
      ['0', 'retrying', 2],
      ['1', 'retrying', 2],
      ['1', 'pending_outcome', 2],
      ['2', 'success', 2],
      ['2', 'failed', 2],
      ['3', 'success', 2],
      ['3', 'retrying', 2],
      ['4', 'retrying', 2],
      ['4', 'pending_outcome', 2]
    ].map(([name, status, count]) => ({ name, status, count }))
  )
})

t.test('an attempt in flight when its cue is deleted ends without consequences', async t => {
  const { begun, settle, fn, account_id, execution, jobs } = await stage(t)
  const attempt = await begun({ on_failure_email: true })
  await fn.deleteCue({ account_id, cue_id: attempt.cue_id })
  t.equal(await settle([attempt], refused), 1)
  exactly(t, await execution(attempt.execution_id), { status: 'failed' })
  t.same(await jobs('mails'), [])
  t.same(await jobs(), [])
})
