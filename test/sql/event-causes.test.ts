// Causes of events, their subscribers and their content.
import t from 'tap'
import type { EventType } from '../../src/db.types.ts'
import { type EventStage, eventStage, worker } from '../support/event-stage.ts'
import { exactly } from '../support/exactly.ts'
import { awaiting, once, refused } from '../support/stage.ts'

const causes: [string, EventType[], (s: EventStage) => Promise<unknown>][] = [
  ['a cue is created', ['cue.created'], s => s.cue()],
  ['a cue is changed', ['cue.created', 'cue.updated'], async s => s.change(await s.cue(), { name: 'new' })],
  [
    'a cue is paused and resumed',
    ['cue.created', 'cue.paused', 'cue.resumed'],
    async s => {
      const id = await s.cue()
      await s.change(id, { status: 'paused' })
      await s.change(id, { status: 'active' }, new Date('2030-01-15T10:00:00Z'))
    }
  ],
  ['a change that changes nothing', ['cue.created'], async s => s.change(await s.cue(), { name: 'a cue' })],
  ['a cue is deleted', ['cue.created', 'cue.deleted'], async s => s.fn.deleteCue({ account_id: s.account_id, cue_id: await s.cue() })],
  ['a one-time cue succeeds', ['cue.created', 'cue.completed'], async s => s.settle([await s.begun(once)])],
  [
    'attempts fail until none is left',
    ['cue.created', 'execution.failed'],
    async s => {
      const attempt = await s.begun({ retry_max_attempts: 2 })
      await s.settle([attempt], refused)
      s.clock.advance('1 hour')
      await s.settle(await s.begin(), refused)
    }
  ],
  [
    'a third failure in a row',
    ['cue.created', 'execution.failed', 'alert.raised'],
    async s =>
      s.settle([await s.begun({ retry_max_attempts: 1, alert_consecutive_failures: 1, alert_missed_window_multiplier: 2 })], refused)
  ],
  [
    'a cue is paused after a failure',
    ['cue.created', 'execution.failed', 'cue.paused'],
    async s => s.settle([await s.begun({ retry_max_attempts: 1, on_failure_pause: true })], refused)
  ],
  [
    'no outcome is reported in time',
    ['cue.created', 'execution.outcome_timeout', 'alert.raised'],
    async s => {
      await s.settle([await s.begun(awaiting)])
      s.clock.advance('10 minutes')
      await s.fn.expireOutcomes({})
    }
  ],
  [
    'nobody claims in time',
    ['cue.created', 'execution.missed'],
    async s => {
      await s.fn.fireCue({ account_id: s.account_id, cue_id: await s.cue(worker), version: 1 })
      s.clock.advance('1 hour')
      await s.fn.missUnclaimed({})
    }
  ],
  [
    'a run is cancelled',
    ['cue.created', 'execution.cancelled'],
    async s => {
      const { id } = await s.fn.fireCue({ account_id: s.account_id, cue_id: await s.cue(), version: 1 })
      await s.fn.cancelExecution({ account_id: s.account_id, execution_id: id })
    }
  ],
  [
    'a run is superseded by the next',
    ['cue.created', 'execution.cancelled'],
    async s => s.slot(await s.running({ overlap: 'cancel_previous' }))
  ],
  [
    'a worker reports a failure',
    ['cue.created', 'execution.failed'],
    async s => s.fn.reportOutcome({ account_id: s.account_id, ...(await s.claimed()), success: false })
  ],
  [
    'a report without the required evidence',
    ['cue.created', 'execution.rejected'],
    async s =>
      s.fn.reportOutcome({ account_id: s.account_id, ...(await s.claimed({ verification_mode: 'require_external_id' })), success: true })
  ],
  [
    'a person rejects an outcome',
    ['cue.created', 'execution.rejected'],
    async s => {
      const { account_id } = s
      const { execution_id } = await s.claimed({ verification_mode: 'manual' })
      await s.fn.reportOutcome({ account_id, execution_id, success: true })
      await s.fn.verifyOutcome({ account_id, execution_id, state: 'verification_failed' })
    }
  ],
  ['a success', ['cue.created'], async s => s.finish([await s.begun()])],
  [
    'an alert is acknowledged twice',
    ['cue.created', 'execution.failed', 'alert.raised', 'alert.acknowledged'],
    async s => {
      await s.settle([await s.begun({ retry_max_attempts: 1, alert_consecutive_failures: 1, alert_missed_window_multiplier: 2 })], refused)
      const { id } = await s.row('select id from cue.alerts')
      for (let n = 0; n < 2; n++) await s.fn.acknowledgeAlert({ account_id: s.account_id, alert_id: id })
    }
  ],
  [
    'an alert is resolved by the next success',
    ['cue.created', 'execution.failed', 'alert.raised', 'alert.resolved'],
    async s => {
      const attempt = await s.begun({ retry_max_attempts: 1, alert_consecutive_failures: 1, alert_missed_window_multiplier: 2 })
      await s.settle([attempt], refused)
      for (let n = 0; n < 2; n++) {
        s.clock.advance('1 hour')
        await s.finish(await s.take([attempt.cue_id]))
      }
    }
  ],
  [
    'an operation',
    ['cue.created', 'cue.paused', 'operation.finished'],
    async s => {
      const { id } = await s.fn.createOperation({
        account_id: s.account_id,
        type: 'pause',
        targets: JSON.stringify([await s.cue()])
      })
      for (let n = 0; n < 3; n++) await s.fn.runOperation({ operation_id: id })
    }
  ],
  [
    'keys and secrets',
    ['key.created', 'secret.regenerated', 'secret.regenerated', 'key.created', 'key.revoked'],
    async ({ fn, account_id }) => {
      await fn.createKey({ account_id, label: 'one', key_hash: Buffer.from('1'), prefix: 'cue_sk_00001' })
      await fn.regenerateWebhookSecret({ account_id })
      await fn.regenerateAlertWebhookSecret({ account_id })
      const key_id = await fn.createKey({ account_id, label: 'two', key_hash: Buffer.from('2'), prefix: 'cue_sk_00002' })
      await fn.revokeKey({ account_id, key_id })
      await fn.revokeKey({ account_id, key_id })
    }
  ]
]
for (const [cause, expected, run] of causes) {
  t.test(`${cause}: ${expected.slice(1).join(', ') || 'no more than that'}`, async t => {
    const s = await eventStage(t)
    await run(s)
    t.same(await s.types(), expected)
  })
}

const quiet: [string, EventType[], (s: EventStage) => Promise<unknown>][] = [
  ['a plain success', ['execution.succeeded'], async s => s.finish([await s.begun()])],
  ['the success of a one-time cue', ['execution.succeeded', 'cue.completed'], async s => s.settle([await s.begun(once)])],
  ['a failed attempt', ['execution.retrying'], async s => s.settle([await s.begun()], refused)],
  [
    'a report with the required evidence',
    ['execution.verified'],
    async s =>
      s.fn.reportOutcome({
        account_id: s.account_id,
        ...(await s.claimed({ verification_mode: 'require_external_id' })),
        success: true,
        external_id: 'x'
      })
  ],
  [
    'evidence that is added later',
    ['execution.rejected', 'execution.verified'],
    async s => {
      const { account_id } = s
      const { execution_id } = await s.claimed({ verification_mode: 'require_external_id' })
      await s.fn.reportOutcome({ account_id, execution_id, success: true })
      await s.fn.attachEvidence({ account_id, execution_id, external_id: 'x' })
      await s.fn.attachEvidence({ account_id, execution_id, external_id: 'y' })
    }
  ],
  [
    'a failed report of a webhook that awaits it',
    ['execution.failed'],
    async s => {
      const attempt = await s.begun(awaiting)
      await s.settle([attempt])
      await s.fn.reportOutcome({ account_id: s.account_id, execution_id: attempt.execution_id, success: false })
    }
  ]
]
for (const [cause, expected, run] of quiet) {
  t.test(`for those who subscribe to it, ${cause} is an event`, async t => {
    const s = await eventStage(t)
    await s.subscribe()
    await s.account().then(account_id => s.fn.updateAccount({ account_id, changes: { events: 'all' } }))
    await run(s)
    t.same((await s.types()).slice(1), expected)
    await s.subscribe('default')
    await run(s)
    t.same(
      (await s.types()).filter(type => /succeeded|retrying|verified/.test(type)),
      [],
      'and no longer for those who do not'
    )
  })
}

t.test('without subscribers, no row is written for successes and retries', async t => {
  const s = await eventStage(t)
  const attempts = [await s.begun(), await s.begun(), await s.begun()]
  await s.rows('delete from cue.new_events')
  await s.finish([attempts[0]!])
  await s.settle([attempts[1]!])
  await s.settle([attempts[2]!], refused)
  exactly(t, await s.row('select count(*)::int from cue.new_events'), { count: 0 })
})

t.test('data shows the object as lists do, without payload, headers and secrets', async t => {
  const s = await eventStage(t)
  const { cue, fn, account_id, publish, read, begun, settle } = s
  const id = await cue({
    key: 'nightly',
    tags: ['a'],
    payload: '{"password": "hunter2"}',
    callback_headers: { authorization: 'Bearer hunter2' }
  })
  const attempt = await begun({ retry_max_attempts: 1, payload: '{"password": "hunter2"}' })
  await settle([attempt], { ...refused, body: 'hunter2' })
  await fn.createKey({ account_id, label: 'one', key_hash: Buffer.from('1'), prefix: 'cue_sk_00001' })
  await publish()
  const { events } = await read()
  exactly(t, events[0], { type: 'cue.created', at: s.clock.now(), cue_id: id, cue_key: 'nightly', execution_id: null })
  exactly(t, JSON.parse(events[0]!.data), {
    id,
    status: 'active',
    callback: { url: 'http://127.0.0.1/hook', method: 'POST' },
    next_run: '2030-01-15T09:00:00.000Z',
    version: 1
  })
  const hidden = ['account_id', 'await_outcome_set', 'last_slot', 'payload', 'revision']
  const members = Object.keys((await s.row('select * from cue.cue_view where id = $1', [id])) as object)
  t.same(Object.keys(JSON.parse(events[0]!.data)).sort(), members.filter(name => !hidden.includes(name)).sort())
  exactly(t, events[2], { type: 'execution.failed', cue_id: attempt.cue_id, execution_id: attempt.execution_id })
  exactly(t, JSON.parse(events[2]!.data), { status: 'failed', http_status: 500, scheduled_for: '2030-01-15T09:00:00.000Z', outcome: null })
  exactly(t, JSON.parse(events.at(-1)!.data), { label: 'one', prefix: 'cue_sk_00001', scopes: ['read', 'write', 'worker', 'account'] })
  t.notOk(/hunter2|whsec_|key_hash|ciphertext/.test(JSON.stringify(events)))
})

t.test('what is larger than 16 KB loses its largest members', async t => {
  const { subscribe, claimed, fn, account_id, publish, read } = await eventStage(t)
  await subscribe()
  const artifacts = JSON.stringify([{ text: 'x'.repeat(60_000) }])
  await fn.reportOutcome({ account_id, ...(await claimed()), success: true, artifacts })
  await publish()
  const data = JSON.parse((await read()).events[1]!.data)
  t.same(data.left_out, ['outcome'])
  exactly(t, data, { status: 'success', outcome_success: true })
})

t.test('work without a live worker is reported once, and so is the worker that comes', async t => {
  const { cue, fn, account_id, clock, types, publish, read } = await eventStage(t)
  const cue_id = await cue(worker)
  await cue({ ...worker, task: null, payload: '{}' })
  await types()
  await fn.fireCue({ account_id, cue_id, version: 1 })
  t.equal(await fn.noteUnattended({}), 0, 'not at once')
  clock.advance('20 seconds')
  t.equal(await fn.noteUnattended({}), 1)
  t.equal(await fn.noteUnattended({}), 0)
  await publish()
  exactly(t, JSON.parse((await read()).events[0]!.data), { task: 'go', waiting_since: '2030-01-15T09:00:00.000Z' })
  await fn.heartbeatWorker({ account_id, worker_id: 'w', handlers: ['other'] })
  t.equal(await fn.noteUnattended({}), 0, 'a worker for other work')
  await fn.heartbeatWorker({ account_id, worker_id: 'w', handlers: ['go'] })
  t.equal(await fn.noteUnattended({}), 1)
  t.same(await types(), ['task.unattended', 'task.attended'])
  clock.advance('10 minutes')
  t.equal(await fn.noteUnattended({}), 1, 'the worker has stopped')
  t.same(await types(), ['task.unattended'])
})

t.test('a cue that is refused for the limit of the plan is an event once a day', async t => {
  const { fn, account, publish, read, rows } = await eventStage(t)
  const account_id = await account({ limits: { cues: 0 } })
  for (let n = 0; n < 3; n++) await fn.addCueLimitEvent({ account_id })
  await publish()
  const { events } = await read({ account_id })
  t.equal(events.length, 1)
  exactly(t, events[0], { type: 'limit.reached' })
  t.same(await rows('select data from cue.events where account_id = $1', [account_id]), [{ data: { limit: 'cues', value: 0 } }])
})
