/** Reports, their effect on the delivery and on a one-time cue, and both phases with a real engine. The walk reports in every status. */
import t from 'tap'
import type { BegunAttempt } from '../../src/database/functions.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { build, error, eventually, receiver } from '../support/setup.ts'
import { type Result, refused, resultsOf } from '../support/stage.ts'

const service = serviceAt('2030-01-15T09:00:00Z')
const callback = { url: 'http://127.0.0.1/hook' }
const awaiting = { callback, delivery: { outcome_deadline_seconds: 60 } }

const serve = async () => {
  const built = await service()
  const { fn, cue, fire, clock, call } = built
  const begin = async (id: string): Promise<BegunAttempt> =>
    (await beginWaiting(fn, { limit: 100 })).find(attempt => attempt.execution_id === id)!
  const settle = (attempt: BegunAttempt, result: Result = {}) => fn.settleAttempts(resultsOf([attempt], result, clock.now()))
  const begun = async (columns: object = { callback }) => {
    const id = await fire(await cue(columns))
    return { id, attempt: await begin(id) }
  }
  const settled = async (columns: object, result: Result = {}) => {
    const { id, attempt } = await begun(columns)
    await settle(attempt, result)
    return id
  }
  const report = (id: string, success = true) => call('POST', `/v1/executions/${id}/outcome`, { success })
  return { ...built, begin, begun, settle, settled, report }
}

t.test('a report before the response makes a later 2xx a success, and does not end retries', async t => {
  const { begun, settle, report, execution, clock, begin, attempts } = await serve()
  const early = await begun(awaiting)
  await report(early.id, false)
  clock.advance('1 second')
  await settle(early.attempt, { report: { success: true, result: 'the answer says so, too late' } })
  exactly(t, await execution(early.id), { status: 'success', outcome_deadline_at: null, outcome_success: false, result: null })

  const retried = await begun(awaiting)
  await settle(retried.attempt, refused)
  await report(retried.id)
  exactly(t, await execution(retried.id), { status: 'retrying', attempt_due_at: Date })
  clock.advance('2 minutes')
  await settle(await begin(retried.id))
  exactly(t, await execution(retried.id), { status: 'success', attempts: 2, outcome_success: true })
  exactly(t, await attempts(retried.id), [{ result: 'failed' }, { result: 'success' }])
})

t.test('a response reports costs exactly, once an attempt', async t => {
  const { settled, begun, settle, get } = await serve()
  const costs = [
    { amount: '0.10', unit: 'usd' },
    { amount: '0.2', unit: 'usd' }
  ]
  const { id, attempt } = await begun(awaiting)
  await settle(attempt, { report: { success: true, costs } })
  await settle(attempt, { report: { success: true, costs } })
  exactly(t, await get(`/v1/executions/${id}`), { status: 'success', costs: [{ amount: '0.3', unit: 'usd' }] })
  const plain = await settled({ callback }, { report: { success: true, costs } })
  exactly(t, await get(`/v1/executions/${plain}`), { costs: [] })
})

t.test('an execution without a report times out, and a late report sets only the outcome', async t => {
  const { settled, report, execution, fn, clock, get, rows } = await serve()
  const id = await settled(awaiting)
  exactly(t, await execution(id), { status: 'pending_outcome', outcome_deadline_at: new Date('2030-01-15T09:01:00Z'), ended_at: null })
  clock.set('2030-01-15T09:00:59.999Z')
  t.equal(await fn.expireOutcomes({}), 0)
  clock.set('2030-01-15T09:01:00Z')
  t.equal(await fn.expireOutcomes({}), 1)
  exactly(t, await get(`/v1/executions/${id}`), {
    status: 'outcome_timeout',
    outcome_state: 'unknown',
    outcome_success: null,
    outcome: null
  })
  exactly(t, await rows('select alert_type, execution_id from cue.alerts'), [{ alert_type: 'outcome_timeout', execution_id: id }])
  clock.advance('1 hour')
  exactly(t, await report(id), { status: 200 })
  exactly(t, await get(`/v1/executions/${id}`), {
    status: 'outcome_timeout',
    outcome_state: 'reported_success',
    outcome_success: true,
    outcome: { success: true, recorded_at: '2030-01-15T10:01:00.000Z' }
  })
  exactly(t, await report(id), error('outcome_already_reported', 409))
})

t.test('the end of an execution completes or fails a one-time cue', async t => {
  const { begun, settle, settled, report, fn, run, cue, fire, claim, clock, call, execution } = await serve()
  const once = { cron: undefined, at: '2030-02-01T09:00:00Z' }
  const statusOf = async (id: string) => (await run((await execution(id)).cue_id)).status
  const worker = async (end: (id: string) => Promise<unknown>, columns = {}) => {
    const id = await fire(await cue({ ...once, ...columns }))
    await end(id)
    return id
  }
  const reported = (success: boolean) => async (id: string) => {
    await claim(id)
    await report(id, success)
  }
  const waited = async (success: boolean) => {
    const id = await settled({ ...awaiting, ...once })
    t.equal(await statusOf(id), 'active', 'while the report is awaited')
    await report(id, success)
    return id
  }
  const cases: [string, string, () => Promise<string>][] = [
    ['an awaited success', 'completed', () => waited(true)],
    ['an awaited failure', 'failed', () => waited(false)],
    [
      'a failure reported before the response, if awaited',
      'failed',
      async () => {
        const { id, attempt } = await begun({ ...awaiting, ...once })
        await report(id, false)
        clock.advance('1 second')
        await settle(attempt)
        return id
      }
    ],
    [
      'a failure reported without being awaited',
      'completed',
      async () => {
        const { id, attempt } = await begun({ callback, ...once })
        await report(id, false)
        clock.advance('1 second')
        await settle(attempt)
        return id
      }
    ],
    [
      'no report',
      'failed',
      async () => {
        const id = await settled({ ...awaiting, ...once })
        clock.advance('60 seconds')
        await fn.expireOutcomes({})
        return id
      }
    ],
    ["a worker's success", 'completed', () => worker(reported(true))],
    ["a worker's failure", 'failed', () => worker(reported(false))],
    ['cancellation', 'failed', () => worker(id => call('POST', `/v1/executions/${id}/cancel`))],
    [
      'a miss',
      'failed',
      () =>
        worker(async () => {
          clock.advance('15 minutes')
          await fn.missUnclaimed({})
        })
    ]
  ]
  for (const [what, status, make] of cases) {
    const id = await make()
    t.equal(await statusOf(id), status, what)
    const { next_run } = await run((await execution(id)).cue_id)
    t.equal(next_run === null, status !== 'active', `${what}: its slot`)
  }
})

t.test('an engine awaits the report, reads it from the response, or times out', async t => {
  const { post, get, patch, url } = await build(t)
  const hook = await receiver(t, ({ path }) => ({
    body: { '/says': { success: false, error: 'no disk' }, '/text': { success: 'yes' }, '/silent': {} }[path] ?? {}
  }))
  await startEngine(t, testConfig(url))
  const make = async (path: string, seconds: number) => {
    const cue = { name: path, cron: '@yearly', callback: { url: hook.url + path }, delivery: { outcome_deadline_seconds: seconds } }
    const { id: cue_id } = await post('/v1/cues', cue)
    return (await post(`/v1/cues/${cue_id}/fire`)).id as string
  }
  const [says, text, silent] = [await make('says', 60), await make('text', 60), await make('silent', 1)]
  const reaches = (id: string, status: string) =>
    eventually(async () => {
      const execution = await get(`/v1/executions/${id}`)
      return execution.status === status && execution
    }, 20_000)
  exactly(t, await reaches(says, 'success'), { outcome_state: 'reported_failure', outcome: { success: false, error: 'no disk' } })
  exactly(t, await reaches(text, 'pending_outcome'), { http_status: 200, outcome: null })
  const request = hook.requests.find(({ path }) => path === '/text')!
  const bearer = { authorization: String(request.headers.authorization) }
  exactly(t, await post(`/v1/executions/${text}/outcome`, { success: true, result: 'read' }, bearer), { outcome_recorded: true })
  exactly(t, await patch(`/v1/executions/${text}/evidence`, { external_id: 'x' }, bearer), { evidence_updated: true })
  exactly(t, await get(`/v1/executions/${text}`, bearer), {
    status: 'success',
    outcome: { success: true, result: 'read', external_id: 'x' }
  })
  exactly(t, await reaches(silent, 'outcome_timeout'), { outcome_state: 'unknown' })
  exactly(t, await get('/v1/alerts'), { alerts: [{ alert_type: 'outcome_timeout', severity: 'warning', execution_id: silent }], total: 1 })
})
