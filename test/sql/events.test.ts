// Events: what is written, in which order it is read, and what becomes of it.
import t, { type Test } from 'tap'
import type { ReadEventsRow } from '../../src/database/functions.ts'
import type { EventType } from '../../src/db.types.ts'
import { exactly } from '../support/exactly.ts'
import { overlapStage } from '../support/overlap-stage.ts'
import { awaiting, once, type Row, refused } from '../support/stage.ts'

const worker = { transport: 'worker', callback_url: null, payload: '{"task": "go"}', task: 'go' }

const eventStage = async (t: Test) => {
  const s = await overlapStage(t)
  const { fn, account_id, rows } = s
  const publish = async (options = {}) => {
    while ((await fn.publishEvents(options)) > 0);
  }
  /** A page after a place, from the oldest by default. */
  const read = async (args: object = {}) => {
    const page = await fn.readEvents({ account_id, after: -1, ...args })
    const [{ next_place, has_more, truncated }] = page as [ReadEventsRow]
    return { events: page.filter(({ id }) => id !== null) as Row[], next: next_place, has_more, truncated }
  }
  return {
    ...s,
    publish,
    read,
    /** The types of the events that have come about since the last call, published. */
    types: async (args: object = {}): Promise<EventType[]> => {
      await publish()
      const { events } = await read(args)
      await rows('delete from cue.events')
      return events.map(({ type }) => type)
    },
    subscribe: (events: 'all' | 'default' = 'all') => fn.updateAccount({ account_id, changes: { events } }),
    /** Changes a cue as the API does. */
    change: async (cue_id: string, changes: object, next_run: Date | null = null) =>
      fn.updateCue({ account_id, cue_id, version: (await s.run(cue_id)).version, changes, next_run }),
    /** Claims the next execution of a worker cue. */
    claimed: async (columns: object = {}) => {
      const cue_id = await s.cue({ ...worker, ...columns })
      const [execution] = await fn.fireCue({ account_id, cue_id, version: 1 }).then(row => [row])
      await fn.claimExecutions({ account_id, worker_id: 'w', execution_id: execution!.id })
      return { cue_id, execution_id: execution!.id }
    }
  }
}
type EventStage = Awaited<ReturnType<typeof eventStage>>

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

t.test('a reader never passes an event that is not committed yet', async t => {
  const { cue, connect, publish, read, row, account_id } = await eventStage(t)
  const slow = await connect()
  await slow.client.query('begin')
  await slow.client.query(`select cue.add_event($1, 'limit.reached', '{"n": 1}')`, [account_id])
  await cue()
  t.ok((await row('select min(seq)::int as seq from cue.new_events')).seq > 1, 'the open transaction wrote first')
  await publish()
  const first = await read()
  t.same(
    first.events.map(({ type }) => type),
    ['cue.created']
  )
  await slow.client.query('commit')
  t.same((await read({ after: first.next })).events, [], 'without a place, not even a committed event is read')
  await publish()
  const second = await read({ after: first.next })
  t.same(
    second.events.map(({ type }) => type),
    ['limit.reached']
  )
  t.ok(second.events[0]!.place > first.next)
})

t.test('only one session publishes at a time, and the next one continues when it is gone', async t => {
  const { cue, connect, fn, publish, read } = await eventStage(t)
  const [a, b] = [await connect(), await connect()]
  await cue()
  await a.client.query('begin')
  t.equal(await a.fn.publishEvents({}), 1)
  await cue()
  t.equal(await b.fn.publishEvents({}), 0, 'waits for nobody')
  t.same((await read()).events, [], 'nothing is read before the commit')
  a.client.on('error', () => {})
  await fn.databaseTime({}) // another connection is not affected
  await b.client.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where pid = $1', [
    (a.client as unknown as { processID: number }).processID
  ])
  await publish()
  t.same(
    (await read()).events.map(({ place }) => place),
    [1, 2]
  )
})

t.test('successes that are recorded together are one row, and each is an event', async t => {
  const s = await eventStage(t)
  const { begun, finish, publish, read, rows, fn, account_id } = s
  await s.subscribe()
  const attempts = []
  for (let n = 0; n < 5; n++) attempts.push(await begun({ tags: [n % 2 ? 'odd' : 'even'] }))
  await publish()
  await rows('delete from cue.events')
  await finish(attempts)
  await finish([await begun()])
  await publish()
  t.equal((await rows(`select from cue.events where type = 'execution.succeeded'`)).length, 2)
  const executions = attempts.map(({ execution_id }) => execution_id).sort()
  const successes = { types: ['execution.succeeded'], limit: 2 }
  const pages = []
  for (let after = -1; pages.length < 4; after = pages.at(-1)!.next) pages.push(await read({ ...successes, after }))
  const all = pages.flatMap(({ events }) => events)
  t.same(all.map(({ execution_id }) => execution_id).slice(0, 5), executions)
  t.same(
    pages.map(({ events }) => events.length),
    [2, 2, 2, 0]
  )
  t.equal(new Set(all.map(({ id }) => id)).size, 6)
  t.same(
    all.map(({ place }) => place).sort((a, b) => a - b),
    all.map(({ place }) => place)
  )
  exactly(t, JSON.parse(all[0]!.data), { id: executions[0], status: 'success', http_status: 200 })
  const { cue_id, execution_id } = attempts[1]!
  t.same(
    (await read({ ...successes, cue_ids: [cue_id] })).events.map(event => event.execution_id),
    [execution_id]
  )
  t.equal((await read({ ...successes, tags: ['odd'] })).events.length, 2)
  t.equal((await read({ after: all[1]!.place, limit: 1 })).events[0]!.place, all[2]!.place, 'from the middle of a row')
  await fn.deleteCue({ account_id, cue_id })
  while ((await fn.purgeCue({ cue_id })) > 0);
  const [event] = (await read({ ...successes, cue_ids: [cue_id] })).events
  t.same(JSON.parse(event!.data), { id: execution_id, cue_id, status: 'success' }, 'what is left of a deleted one')
})

t.test('nothing follows the deletion of a cue, not even what was under way', async t => {
  const s = await eventStage(t)
  const { begun, connect, fn, account_id, types, row } = s
  await s.subscribe()
  const [attempt, late] = [await begun(), await begun()]
  await types()
  const other = await connect()
  await other.client.query('begin')
  await s.finish([attempt], other.fn)
  await s.finish([late])
  for (const { cue_id } of [attempt, late]) await fn.deleteCue({ account_id, cue_id })
  t.same(await types(), ['execution.succeeded', 'cue.deleted', 'cue.deleted'], 'but what was before it stays')
  await other.client.query('commit')
  t.equal((await row('select count(*)::int from cue.new_events')).count, 1)
  t.same(await types(), [])
})

t.test('above the limit of a day, events of executions are left out, and readers are told', async t => {
  const { cue, begun, settle, publish, read, clock } = await eventStage(t)
  const settings = { most_per_day: 3 }
  const fail = async () => settle([await begun({ retry_max_attempts: 1 })], refused)
  await fail()
  await publish(settings)
  t.equal((await read()).truncated, false)
  const { next } = await read()
  await fail()
  await publish(settings)
  await cue()
  await publish(settings)
  const page = await read({ after: next })
  t.same(
    page.events.map(({ type, data }) => (type === 'limit.reached' ? JSON.parse(data) : type)),
    ['cue.created', { limit: 'events_per_day', value: 3 }, 'cue.created']
  )
  t.equal(page.truncated, true)
  t.equal((await read({ after: page.next })).truncated, false, 'only readers who pass the place')
  clock.advance('1 day')
  await fail()
  await publish(settings)
  t.same(
    (await read({ after: page.next })).events.map(({ type }) => type),
    ['cue.created', 'execution.failed'],
    'the next day, they are there again'
  )
})

t.test('days are dropped whole, and a cursor before them is told so', async t => {
  const { cue, publish, read, clock, fn, rows } = await eventStage(t)
  await cue()
  await publish()
  const old = (await read()).next
  clock.advance('3 days')
  await cue()
  await publish()
  const newer = (await read()).next
  const before = new Date('2030-01-16T12:00:00Z')
  t.equal((await fn.dropOldEvents({ before })).at(-1), 'events_2030_01_15')
  t.same(await fn.dropOldEvents({ before }), [])
  await t.rejects(fn.dropOldEvents({ before: clock.now() }), { code: 'QU011' })
  exactly(t, await read({ after: old - 1 }), { truncated: true, next: newer })
  t.equal((await read({ after: old - 1 })).events.length, 1, 'with the oldest that are kept')
  exactly(t, await read({ after: old }), { truncated: false })
  exactly(t, await read(), { truncated: false }, 'whoever asks for the oldest gets them')
  t.same(await rows('select day::text from cue.event_days'), [{ day: '2030-01-18' }])
})

t.test('a cursor of a later time, as after a restore from a backup, is told so', async t => {
  const { publish, cue, read } = await eventStage(t)
  await cue()
  await publish()
  exactly(t, await read({ after: 1000 }), { truncated: true, next: 1, events: [] })
})

t.test('pages, filters, and the end of a search', async t => {
  const s = await eventStage(t)
  const { cue, publish, read } = s
  t.same(await read({ after: undefined }), { events: [], next: 0, has_more: false, truncated: false })
  const ids: string[] = []
  for (let n = 0; n < 6; n++) ids.push(await cue({ tags: [n % 2 ? 'odd' : 'even'] }))
  await s.change(ids[5]!, { name: 'new' })
  await publish()
  const places = async (args: object) => {
    const { events, ...rest } = await read(args)
    return { places: events.map(({ place }) => place), ...rest }
  }
  const last = { next: 7, has_more: false, truncated: false }
  t.same(await places({ limit: 3 }), { places: [1, 2, 3], next: 3, has_more: true, truncated: false })
  t.same(await places({ limit: 4, after: 3 }), { places: [4, 5, 6, 7], ...last })
  t.same(await places({ types: ['cue.updated'] }), { places: [7], ...last })
  t.same(await places({ tags: ['odd'], limit: 2 }), { places: [2, 4], next: 4, has_more: true, truncated: false })
  t.same(await places({ cue_ids: [ids[5]!] }), { places: [6, 7], ...last })
  t.same(await places({ types: ['cue.updated'], scan: 3 }), { places: [], next: 3, has_more: true, truncated: false })
  t.same(await places({ types: ['cue.updated'], scan: 3, after: 6 }), { places: [7], ...last })
  t.same(await places({ after: undefined }), { places: [], ...last })
})

t.test("an account's events are deleted with it, those that are not published yet as well", async t => {
  const { account, cue, publish, fn, clock, rows, row } = await eventStage(t)
  const other = await account()
  await cue({}, { account_id: other })
  await publish()
  await fn.requestDeletion({ account_id: other } as Parameters<typeof fn.requestDeletion>[0])
  clock.advance('2 days')
  while ((await fn.deleteDueAccounts({})) > 0);
  await rows(`select cue.add_event($1, 'limit.reached', '{}')`, [other])
  await publish()
  for (const table of ['events', 'new_events', 'event_days'])
    exactly(t, await row(`select count(*)::int from cue.${table} where account_id = $1`, [other]), { count: 0 })
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
