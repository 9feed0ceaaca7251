// Events: in which order they are read, and what becomes of them.
import t from 'tap'
import { eventStage } from '../support/event-stage.ts'
import { exactly } from '../support/exactly.ts'
import { refused } from '../support/stage.ts'

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
