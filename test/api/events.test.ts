/** GET /v1/events: pages, long polls and streams, in real time with a publisher as engines have it. */
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import t, { type Test } from 'tap'
import { publishEvents } from '../../src/engine/publisher.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { build, eventually, invalid } from '../support/setup.ts'

const service = serviceAt()

const serve = async () => {
  const built = await service()
  const { app, fn } = built
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const publish = () => publishEvents(fn)
  await publish() // of the account's key
  return { ...built, publish, url: `http://127.0.0.1:${port}/v1/events` }
}

/** Reads a stream message by message, each with its fields. */
const open = async (t: Test, url: string, api_key: string, headers: Record<string, string> = {}) => {
  const leaving = new AbortController()
  t.teardown(() => leaving.abort())
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${api_key}`, accept: 'text/event-stream', ...headers },
    signal: leaving.signal
  })
  const chunks = response.body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
  let text = ''
  const next = async (): Promise<Record<string, string>> => {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end >= 0) {
        const lines = text.slice(0, end).split('\n')
        text = text.slice(end + 2)
        return Object.fromEntries(lines.map(line => [line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)]))
      }
      const { value, done } = await chunks.next()
      if (done) return { ended: 'true' }
      text += value
    }
  }
  return { response, next, leave: () => leaving.abort() }
}

t.test('pages continue where the one before ended', async t => {
  const { get, cue, publish } = await serve()
  const before = await get('/v1/events')
  exactly(t, before, { events: [], has_more: false, truncated: false })
  const ids = [await cue({ key: 'a', tags: ['x'] }), await cue(), await cue()]
  exactly(t, await get(`/v1/events?after=${before.cursor}`), { events: [] }, 'not before they are published')
  await publish()
  const first = await get(`/v1/events?after=${before.cursor}&limit=2`)
  exactly(t, first, { has_more: true, truncated: false })
  exactly(t, first.events[0], { type: 'cue.created', cue_id: ids[0], cue_key: 'a', execution_id: null })
  exactly(t, first.events[0].data, { id: ids[0], key: 'a', status: 'active' })
  const rest = await get(`/v1/events?after=${first.cursor}`)
  exactly(t, rest, { has_more: false })
  t.same(
    [...first.events, ...rest.events].map(event => event.cue_id),
    ids
  )
  t.same(pluck((await get(`/v1/events?after=${rest.cursor}`)).events, 'id'), [])
  const all = await get('/v1/events?after=start&types=cue.*')
  t.equal(all.events.length, 3)
  exactly(t, await get('/v1/events?after=start&types=alert.raised,key.created'), { events: [{ type: 'key.created' }] })
  t.equal((await get('/v1/events?after=start&tag=x')).events.length, 1)
  t.equal((await get(`/v1/events?after=start&cue_id=${ids[1]}`)).events.length, 1)
})

t.test('a request that waits gets the event once it is published, and an empty page when its time is over', async t => {
  const { get, post, cue, publish, pool } = await serve()
  const { cursor } = await get('/v1/events')
  exactly(t, await get(`/v1/events?after=${cursor}&wait=0.1`), { events: [], has_more: false })
  const waiting = get(`/v1/events?after=${cursor}&wait=30&types=cue.paused`)
  const listening = "select from pg_stat_activity where datname = current_database() and application_name = 'pgcue listener'"
  await eventually(async () => (await pool.query(listening)).rowCount)
  const id = await cue()
  await publish()
  exactly(t, await get(`/v1/events?after=${cursor}&wait=30`), { events: [{ type: 'cue.created', cue_id: id }] })
  await post(`/v1/cues/${id}/pause`, {})
  await publish()
  exactly(t, await waiting, { events: [{ type: 'cue.paused', cue_id: id }] }, 'and not for another type')
})

t.test('a malformed cursor, one of another account, and unknown types are refused', async t => {
  const { call, get, other } = await serve()
  const { calls } = await other()
  const { cursor } = await calls.get('/v1/events')
  for (const after of [cursor, 'x', '', 'AAAA', `${(await get('/v1/events')).cursor}x`]) {
    const { status, body } = await call('GET', `/v1/events?after=${after}`)
    exactly(t, { status, body }, invalid('query', 'after'))
    t.ok(/^.*Not a cursor of this account/.test(body.error.message), body.error.message)
  }
  exactly(
    t,
    await call('GET', '/v1/events', undefined, { accept: 'text/event-stream', 'last-event-id': cursor }),
    invalid('header', 'Last-Event-ID')
  )
  const { status, body } = await call('GET', '/v1/events?types=cue.created,nothing.*')
  exactly(t, { status, body }, invalid('query', 'types'))
  t.ok(/nothing\.\*.*cue\.created, .*limit\.reached/.test(body.error.message), 'with the list')
  for (const query of ['limit=0', 'limit=101', 'wait=31']) t.equal((await call('GET', `/v1/events?${query}`)).status, 422)
})

t.test('a stream begins with its cursor, has each event, and resumes', async t => {
  const { url, account, cue, publish, get } = await serve()
  await publish()
  const stream = await open(t, url, account.api_key)
  t.ok(stream.response.headers.get('content-type')!.startsWith('text/event-stream'))
  const beat = await stream.next()
  exactly(t, beat, { event: 'heartbeat' })
  t.same(JSON.parse(beat.data!), { cursor: beat.id })
  const ids = [await cue(), await cue()]
  await publish()
  const messages = [await stream.next(), await stream.next()]
  t.same(
    messages.map(({ data }) => JSON.parse(data!).cue_id),
    ids
  )
  t.equal(messages[0]!.event, undefined, 'so that onmessage of an EventSource gets it')
  t.same(JSON.parse(messages[1]!.data!), (await get(`/v1/events?after=${messages[0]!.id}`)).events[0], 'the same as in a page')
  stream.leave()
  const resumed = await open(t, `${url}?after=start`, account.api_key, { 'last-event-id': messages[0]!.id! })
  exactly(t, await resumed.next(), { id: messages[1]!.id })
})

t.test('a stream outlasts the time that other requests have', async t => {
  const hurry = fp(async (app: FastifyInstance) => {
    app.addHook('onRequest', async request => {
      if (request.url.startsWith('/v1/events')) request.remainingMs = 1500
    })
  })
  const { app, account, pool, fn } = await build(t, undefined, { watchRoutes: hurry })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/v1/events`
  let stream = await open(t, url, account.api_key)
  // On a busy machine, it may not even begin in that time.
  while (stream.response.status !== 200) stream = await open(t, url, account.api_key)
  const startedAt = performance.now()
  exactly(t, await stream.next(), { event: 'heartbeat' })
  await eventually(() => performance.now() - startedAt > 2000)
  await pool.query(`select cue.add_event($1, 'limit.reached', '{"limit": "cues"}')`, [account.id])
  await fn.publishEvents({})
  t.ok(JSON.parse((await stream.next()).data!).type)
})

t.test('a stream ends when its key or session is revoked', async t => {
  const { url, post, del, publish, account } = await serve()
  const key = await post('/v1/auth/keys', { label: 'reader', scopes: ['read'] })
  await publish()
  const stream = await open(t, url, key.api_key)
  const staying = await open(t, url, account.api_key)
  for (const { next } of [stream, staying]) exactly(t, await next(), { event: 'heartbeat' })
  const openedAt = performance.now()
  await eventually(() => performance.now() - openedAt > 1100)
  await del(`/v1/auth/keys/${key.id}`)
  await publish()
  t.same(await stream.next(), { ended: 'true' }, 'and gets nothing after that')
  t.equal(JSON.parse((await staying.next()).data!).type, 'key.revoked')
})

t.test('a stream ends when the service stops', async t => {
  const { app, account } = await build(t)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const stream = await open(t, `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/v1/events`, account.api_key)
  exactly(t, await stream.next(), { event: 'heartbeat' })
  const closed = app.close()
  t.same(await stream.next(), { ended: 'true' })
  await closed
})

t.test('PATCH /v1/auth/me turns the events of successes on and off', async t => {
  const { get, patch, call } = await build(t)
  exactly(t, await get('/v1/auth/me'), { events: 'default' })
  exactly(t, await patch('/v1/auth/me', { events: 'all' }), { events: 'all' })
  exactly(t, await get('/v1/auth/me'), { events: 'all' })
  exactly(t, await patch('/v1/auth/me', { events: 'default' }), { events: 'default' })
  exactly(t, await call('PATCH', '/v1/auth/me', { events: 'some' }), invalid('body', 'events'))
})

t.test('a cue that is refused for the limit of the plan is an event, whichever way it was refused', async t => {
  const worker = { cron: '@hourly', worker: true, payload: { task: 'go' } }
  const ways: [string, string, object][] = [
    ['POST', '/v1/cues', { name: 'b', ...worker }],
    ['POST', '/v1/cues', { name: 'b', ...worker, payload: { task: 'x'.repeat(70_000) } }],
    ['PUT', '/v1/cues/by-key/b', { name: 'b', schedule: { cron: '@hourly' }, transport: 'worker' }],
    ['POST', '/v1/cues/apply', { set: 's', cues: [{ key: 'b', name: 'b', ...worker }] }]
  ]
  const { call, fn, register, as, rows } = await serve()
  await fn.setPlans({ plans: { free: { cues: 1 } } } as never)
  t.ok(call)
  for (const [method, path, body] of ways) {
    const account = await register()
    const caller = as(account)
    t.equal((await caller.call('POST', '/v1/cues', { name: 'a', ...worker })).status, 201)
    const limited = () =>
      rows("select data from cue.new_events where account_id = $1 and type = 'limit.reached'", [account.id]).then(events =>
        events.map(({ data }) => data)
      )
    t.equal(
      (await caller.call('POST', '/v1/cues/apply', { set: 's', dry_run: true, cues: [{ key: 'c', name: 'c', ...worker }] })).status,
      403
    )
    for (let n = 0; n < 3; n++)
      exactly(t, await caller.call(method, path, body), { status: 403, body: { error: { code: 'cue_limit_exceeded' } } })
    await eventually(async () => (await limited()).length > 0)
    t.strictSame(await limited(), [{ limit: 'cues', value: 1 }], `${method} ${path}`)
  }
})
