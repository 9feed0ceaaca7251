// retry.on_worker_failure: failures that workers report are retried.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { error } from '../support/setup.ts'

const start = '2030-01-15T08:30:00.000Z'
const service = serviceAt(start)
const retry = { max_attempts: 3, backoff_minutes: [1, 2], on_worker_failure: true }

/** The service with a cue, and an execution that was claimed. */
const claimed = async (columns: object = {}) => {
  const s = await service()
  const cue_id = await s.cue({ retry, ...columns })
  const id = await s.fire(cue_id)
  const path = `/v1/executions/${id}`
  const claim = async (worker = 'w1') => (await s.claim(id, worker)).claim_token as string
  const report = (token: string | undefined, body: object) =>
    s.call('POST', `${path}/outcome`, body, token === undefined ? {} : { 'x-claim-token': token })
  return { ...s, cue_id, id, path, claimAs: claim, report, token: await claim() }
}

t.test('a reported failure is claimable again after the backoff; the outcome is that of the last report', async t => {
  const { claimAs, report, token, path, get, call, clock, id, row } = await claimed()
  exactly(t, await report(token, { success: false, error: 'one', external_id: 'x', metadata: { n: 1 } }), {
    status: 200,
    body: { outcome_recorded: true, outcome_state: 'reported_failure', outcome: { success: false } }
  })
  const waiting = await get(path)
  exactly(t, waiting, {
    status: 'retrying',
    attempts: 1,
    error_message: 'one',
    outcome_success: false,
    outcome: { success: false, error: 'one', external_id: 'x' },
    claimed_by_worker: null,
    claimed_at: null,
    lease_expires_at: null,
    delivered_at: null,
    attempt_log: [{ attempt: 1, result: 'failed', error: 'one', worker_id: 'w1' }]
  })
  const due = Date.parse(waiting.next_retry)
  t.ok(due >= Date.parse(start) + 60_000 && due <= Date.parse(start) + 66_001, 'a minute, and up to 10% more')
  exactly(t, await call('POST', `${path}/claim`, { worker_id: 'w2' }), error('already_claimed', 409), 'not before')
  clock.set(new Date(due))
  exactly(t, (await get('/v1/executions/claimable')).executions, [{ id, attempt: 2 }])
  const second = await claimAs('w2')
  exactly(t, await get(path), { status: 'delivering', attempts: 2, outcome: { error: 'one' }, next_retry: null })
  clock.advance('10 seconds')
  await report(second, { success: false, error: 'two' })
  clock.advance('3 minutes')
  const third = await claimAs('w3')
  exactly(t, await report(third, { success: true, result: 'done' }), { status: 200, body: { outcome_state: 'reported_success' } })
  const ended = await get(path)
  exactly(t, ended, {
    status: 'success',
    attempts: 3,
    error_message: null,
    outcome_success: true,
    outcome_state: 'reported_success',
    attempt_log: [
      { attempt: 1, result: 'failed', error: 'one', worker_id: 'w1' },
      { attempt: 2, result: 'failed', error: 'two', worker_id: 'w2' },
      { attempt: 3, result: 'success', error: null, worker_id: 'w3' }
    ]
  })
  t.same(Object.keys(ended.outcome).sort(), ['recorded_at', 'result', 'success'], 'nothing of the earlier reports')
  exactly(t, await report(third, { success: true }), error('outcome_already_reported', 409))
  exactly(t, await row('select lost_attempts from cue.executions where id = $1', [id]), { lost_attempts: 0 })
})

t.test('the last failure is final, and only it counts', async t => {
  const { report, token, claimAs, path, get, clock, jobs, rows, cue_id, run } = await claimed({
    retry: { ...retry, max_attempts: 2, backoff_minutes: [0] },
    alerts: { consecutive_failures: 1 },
    on_failure: { email: true }
  })
  await report(token, { success: false })
  exactly(t, await get(path), { status: 'retrying', error_message: 'the worker reported a failure', outcome: { success: false } })
  t.same(await rows('select * from cue.alerts'), [])
  exactly(t, (await get('/v1/usage')).outcomes, { reported: 0, failed: 0 })
  exactly(t, await run(cue_id), { failed_outcomes: 0 })
  await report(await claimAs('w2'), { success: false, error: 'no' })
  exactly(t, await get(path), { status: 'failed', attempts: 2, error_message: 'no', outcome: { error: 'no' } })
  t.equal((await rows('select * from cue.alerts')).length, 1)
  exactly(t, (await get('/v1/usage')).outcomes, { reported: 1, failed: 1 })
  exactly(t, await run(cue_id), { failed_outcomes: 1 })
  t.same(
    (await jobs('mails')).map(job => job.data.kind).filter(kind => kind !== 'registered'),
    ['cue_failed'],
    'attempts are exhausted'
  )
  clock.advance('1 hour')
  exactly(t, (await get('/v1/executions/claimable')).executions, [])
})

t.test('appears in cues only when set', async t => {
  const { cue, get, patch, call } = await service()
  const path = `/v1/cues/${await cue({ key: 'k' })}`
  t.same((await get(path)).retry, { max_attempts: 3, backoff_minutes: [1, 2, 4] })
  t.same((await patch(path, { retry: { on_worker_failure: true } })).retry, {
    max_attempts: 3,
    backoff_minutes: [1, 2, 4],
    on_worker_failure: true
  })
  exactly(t, await patch(path, { retry: { max_attempts: 5 } }), { retry: { max_attempts: 5, on_worker_failure: true } })
  exactly(t, await patch(path, { retry: { on_worker_failure: false } }), { retry: { on_worker_failure: false } })
  const declared = { key: 'k', name: 'job', cron: '@hourly', worker: true, payload: { task: 'go' } }
  const apply = (cue: object) => call('POST', '/v1/cues/apply', { set: 's', cues: [cue] })
  exactly(t, await apply({ ...declared, retry: { max_attempts: 5, on_worker_failure: true } }), {
    body: { updated: [{ changes: { 'retry.on_worker_failure': { from: false, to: true } } }] }
  })
  await call('PUT', '/v1/cues/by-key/k', declared)
  t.same((await get(path)).retry, { max_attempts: 3, backoff_minutes: [1, 2, 4] })
})
