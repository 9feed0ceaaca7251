/** Event endpoints: what they get, in which order, what becomes of failures, and what a crash leaves behind. */
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { startEndpoints } from '../../src/channels/endpoint-turns.ts'
import { verifyWebhook } from '../../src/client/webhook.ts'
import { createWebhookClient } from '../../src/deliveries/webhook.ts'
import type { Failure, Jobs } from '../../src/jobs/boss.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { startEngine } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { mailServer, sendMails } from '../support/mailbox.ts'
import { serviceAt } from '../support/service.ts'
import { build, error, invalid, receiver } from '../support/setup.ts'
import { resultsOf } from '../support/stage.ts'

const start = '2030-01-15T09:00:00Z'
const service = serviceAt(start)
/** In its own database, because a later day adds a partition. */
const overDays = () => serviceAt(start)()
const path = '/v1/event-endpoints'

/** The service with a receiver, and the handler that pg-boss would call. */
const serve = async (t: Test, ready = service) => {
  const built = await ready()
  const { app, fn, clock, rows, call, fire } = built
  const hook = await receiver(t)
  const client = createWebhookClient({ rules: app.rules })
  t.teardown(() => client.destroy())
  type Handler = (data: { endpoint_id: string }, id: string, tries: number) => Promise<Failure | undefined>
  const handlers: Handler[] = []
  await startEndpoints({
    jobs: { work: async (_: string, run: Handler) => void handlers.push(run) } as unknown as Jobs,
    fn,
    client,
    now: () => clock.now().getTime(),
    log: pino({ level: 'silent' })
  })
  const publish = async () => {
    while ((await fn.publishEvents({})) > 0);
  }
  const work = (endpoint_id: string) => handlers[0]!({ endpoint_id }, endpoint_id, 0)
  /** The waiting jobs of endpoints: when each may start. */
  const waiting = (): Promise<{ id: string; due_at: Date }[]> =>
    rows("select data ->> 'endpoint_id' as id, start_after as due_at from pgboss.job where name = 'event_endpoints' and state = 'created'")
  return {
    ...built,
    hook,
    publish,
    work,
    waiting,
    create: async (body: object = {}): Promise<{ id: string; secret: string }> =>
      (await call('POST', path, { url: hook.url, types: ['cue.*'], ...body })).body,
    succeed: async (cue_id: string) => {
      const id = await fire(cue_id)
      clock.advance('1 second')
      await fn.settleAttempts(resultsOf(await beginWaiting(fn, { limit: 1 }), {}, clock.now()))
      return id
    },
    /** Publishes, works off the jobs that are due, and returns the requests since the last call: types and names or ids. */
    send: async (): Promise<string[]> => {
      const before = hook.requests.length
      await publish()
      for (let n = 0; n < 50; n++) {
        const due = (await waiting()).filter(({ due_at }) => due_at <= clock.now())
        if (due.length === 0) break
        for (const { id } of due) {
          await rows("delete from pgboss.job where name = 'event_endpoints' and state = 'created' and singleton_key = $1", [id])
          await work(id)
        }
      }
      return hook.requests.slice(before).map(({ body }) => {
        const { type, data } = JSON.parse(body)
        return `${type} ${data.name ?? data.id}`
      })
    }
  }
}

t.test('an endpoint gets the events of its types from its creation on, in order, signed with its secret', async t => {
  const { create, cue, send, hook, clock, get, patch, waiting, publish } = await serve(t)
  const before = await cue({ name: 'before' })
  await publish()
  const { id, secret } = await create({ types: ['cue.created', 'cue.updated'] })
  const first = await cue({ name: 'first' })
  await patch(`/v1/cues/${first}`, { name: 'renamed' })
  await cue({ name: 'second' })
  t.strictSame(await send(), ['cue.created first', 'cue.updated renamed', 'cue.created second'])
  const [{ headers, body }] = hook.requests as [(typeof hook.requests)[0]]
  exactly(t, JSON.parse(body), { id: headers['webhook-id'], type: 'cue.created', cue_id: first, data: { id: first, name: 'first' } })
  t.match(headers['x-service-signature'], /^v1=[0-9a-f]{64}$/)
  await t.resolves(verifyWebhook(body, headers as Record<string, string>, secret, { now: clock.now() }))
  exactly(t, await get(`${path}/${id}`), {
    id,
    status: 'enabled',
    tries: 0,
    http_status: 200,
    error: null,
    delivered_at: clock.now().toISOString()
  })
  t.strictSame(await waiting(), [], 'no job waits while there is nothing to send')
  await patch(`/v1/cues/${before}`, { name: 'other' })
  await publish()
  await publish()
  t.strictSame(pluck(await waiting(), 'id'), [id])
  t.strictSame(await send(), ['cue.updated other'])
})

t.test('filters by tag and cues; one that names successes turns them on, until it is deleted', async t => {
  const { create, cue, send, succeed, rows, call } = await serve(t)
  const [tagged, plain] = [
    await cue({ name: 'tagged', tags: ['a', 'b'], callback: { url: 'http://127.0.0.1/hook' } }),
    await cue({ name: 'plain' })
  ]
  await send()
  await create({ types: ['cue.*'], tag: 'a' })
  await create({ types: ['cue.deleted'], cue_ids: [plain] })
  const { id } = await create({ types: ['execution.*'] })
  t.strictSame(await rows('select source from cue.event_subscribers'), [{ source: 'endpoints' }])
  const execution = await succeed(tagged)
  await call('POST', `/v1/cues/${tagged}/pause`)
  await call('POST', `/v1/cues/${plain}/pause`)
  await call('DELETE', `/v1/cues/${plain}`)
  t.strictSame((await send()).sort(), ['cue.deleted plain', 'cue.paused tagged', `execution.succeeded ${execution}`])
  t.equal((await call('DELETE', `${path}/${id}`)).status, 204)
  t.strictSame(await rows('select from cue.event_subscribers'), [])
})

t.test('a failed event holds up those after it, and is repeated after 10 seconds, 1, 5 and every 30 minutes; 410 skips it', async t => {
  const { create, cue, send, hook, clock, get, waiting } = await serve(t)
  const { id } = await create()
  hook.answer({ status: 500 })
  for (const name of ['a', 'b', 'c']) await cue({ name })
  t.strictSame(await send(), ['cue.created a'])
  const shown = {
    tries: 1,
    http_status: 500,
    error: /500/,
    failing_since: clock.now().toISOString(),
    delivered_at: null,
    status: 'enabled'
  }
  exactly(t, await get(`${path}/${id}`), shown)
  await cue({ name: 'd' })
  t.strictSame(await send(), [], 'new events wait as well')
  t.equal((await waiting()).length, 1)
  for (const seconds of [10, 60, 300, 1800, 1800]) {
    clock.advance(`${seconds - 1} seconds`)
    t.strictSame(await send(), [], 'not before')
    clock.advance('1 second')
    t.strictSame(await send(), ['cue.created a'])
  }
  clock.advance('30 minutes')
  hook.answer(({ body }) => ({
    status: JSON.parse(body).data.name === 'b' ? 410 : JSON.parse(body).data.name === 'd' ? 503 : 200,
    headers: { 'retry-after': '3600' }
  }))
  t.strictSame(
    await send(),
    ['a', 'b', 'c', 'd'].map(name => `cue.created ${name}`)
  )
  exactly(t, await get(`${path}/${id}`), {
    tries: 1,
    failing_since: clock.now().toISOString(),
    next_try_at: new Date(clock.now().getTime() + 3_600_000).toISOString()
  })
})

t.test('after 3 days and 20 tries it is disabled, with one mail and one event, and continues where it failed', async t => {
  const { create, cue, send, hook, clock, get, call, publish, rows } = await serve(t, overDays)
  await create({ types: ['endpoint.disabled'], url: `${hook.url}watcher` })
  const { id } = await create()
  hook.answer(({ path }) => ({ status: path === '/watcher' ? 200 : 500 }))
  await cue({ name: 'a' })
  await cue({ name: 'b' })
  await send()
  await rows('update cue.event_endpoints set tries = 18 where id = $1', [id])
  clock.advance('4 days')
  await send()
  exactly(t, await get(`${path}/${id}`), { status: 'enabled', tries: 19 })
  clock.advance('30 minutes')
  await send()
  await send()
  const { failing_since, ...disabled } = await get(`${path}/${id}`)
  exactly(t, disabled, { status: 'disabled', tries: 20, disabled_at: clock.now().toISOString(), next_try_at: null })
  const reports = hook.requests.filter(({ path }) => path === '/watcher').map(({ body }) => JSON.parse(body))
  exactly(t, reports, [{ type: 'endpoint.disabled', data: { id, status: 'disabled', tries: 20, failing_since } }])
  t.strictSame(
    pluck(
      await rows("select data ->> 'endpoint_id' as id from pgboss.job where name = 'mails' and data ->> 'kind' = 'endpoint_disabled'"),
      'id'
    ),
    [id]
  )
  exactly(t, (await get('/v1/auth/audit')).events[0], { event: 'event_endpoint.disabled', actor: 'service', detail: { endpoint_id: id } })
  hook.answer({ status: 200 })
  await cue({ name: 'c' })
  clock.advance('1 hour')
  t.strictSame(await send(), [], 'nothing is sent while it is disabled')

  exactly(t, await call('POST', `${path}/${id}/enable`, { from: 'failure' }), {
    status: 200,
    body: { id, status: 'enabled', tries: 0, truncated: false }
  })
  t.strictSame(await send(), ['cue.created a', 'cue.created b', 'cue.created c'])
  await cue({ name: 'd' })
  await publish()
  exactly(t, await call('POST', `${path}/${id}/enable`, { from: 'now' }), { status: 200, body: { status: 'enabled', truncated: false } })
  t.strictSame(await send(), [], 'from now on')
  await cue({ name: 'e' })
  t.strictSame(await send(), ['cue.created e'])
})

t.test('a turn that a crash interrupted is repeated within a minute; its late end, and one after a change, change nothing', async t => {
  const { create, cue, send, fn, clock, waiting, publish, call, rows } = await serve(t)
  const { id } = await create()
  await cue({ name: 'a' })
  await publish()
  await rows("update pgboss.job set state = 'active' where name = 'event_endpoints'")
  const [begun] = await fn.beginEndpointTurn({ endpoint_id: id })
  t.strictSame(await fn.beginEndpointTurn({ endpoint_id: id }), [], 'one turn at a time')
  await cue({ name: 'b' })
  t.strictSame(await send(), [])
  t.strictSame(await waiting(), [{ id, due_at: new Date(clock.now().getTime() + 40_000) }])
  clock.advance('41 seconds')
  t.strictSame(await send(), ['cue.created a', 'cue.created b'])
  t.equal(await fn.endEndpointTurn({ endpoint_id: id, turn: begun!.turn, place: begun!.place, error: 'late', http_status: 500 }), undefined)
  t.strictSame(await send(), [])
  await cue({ name: 'c' })
  await publish()
  const [next] = await fn.beginEndpointTurn({ endpoint_id: id })
  await call('POST', `${path}/${id}/enable`, { from: 'now' })
  t.equal(await fn.endEndpointTurn({ endpoint_id: id, turn: next!.turn, error: 'refused' }), undefined)
  t.strictSame(await send(), [])
})

t.test('events are queued after their commit, also by another engine, and a locked endpoint holds up nobody', async t => {
  const { create, cue, fn, pool, waiting, send, rows, work, clock } = await serve(t)
  const { id } = await create()
  await cue({ name: 'a' })
  t.equal(await fn.publishEvents({}), 2, 'cue.created and the creation of the account key')
  t.strictSame(await waiting(), [], 'not in their transaction: a job could run before its commit')
  t.strictSame(await rows('select for_endpoints is not null as is_noted from cue.event_order'), [{ is_noted: true }])
  await fn.publishEvents({})
  t.strictSame(pluck(await waiting(), 'id'), [id])
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from cue.event_endpoints for update')
    await work(id)
    await cue({ name: 'b' })
    t.equal(await fn.publishEvents({}), 1)
    t.equal(await fn.publishEvents({}), 0)
    await holder.query('rollback')
  } finally {
    holder.release()
  }
  clock.advance('1 second')
  t.strictSame(await send(), ['cue.created a', 'cue.created b'])
})

t.test('shows, refuses and tests endpoints; the secret is shown once', async t => {
  const { call, get, hook, cue, clock, create, rows } = await serve(t)
  const post = (body: object) => call('POST', path, { url: hook.url, types: ['cue.*'], ...body })
  exactly(t, await post({ url: 'http://10.0.0.1/' }), error('invalid_callback_url', 400))
  exactly(t, await post({ types: ['cue.nonsense'] }), {
    status: 422,
    body: { detail: [{ loc: ['body', 'types'], msg: /cue\.nonsense.*cue\.created/ }] }
  })
  exactly(t, await post({ types: [] }), invalid('body', 'types'))
  exactly(t, await post({ cue_ids: ['cue_000000000000'] }), {
    status: 422,
    body: { detail: [{ loc: ['body', 'cue_ids'], msg: /cue_000000000000 not found/ }] }
  })
  exactly(t, await post({ colour: 'red' }), invalid('body', 'colour'))
  const cue_id = await cue()
  const { status, body } = await post({ tag: 'a', cue_ids: [cue_id], description: 'x' })
  t.equal(status, 201)
  const { secret, ...endpoint } = body
  t.match(secret, /^[0-9a-f]{64}$/)
  exactly(t, endpoint, {
    url: hook.url,
    tag: 'a',
    cue_ids: [cue_id],
    description: 'x',
    status: 'enabled',
    tries: 0,
    created_at: clock.now().toISOString()
  })
  t.strictSame(await get(`${path}/${body.id}`), endpoint)
  t.strictSame(await get(path), { event_endpoints: [endpoint], total: 1, limit: 20, offset: 0 })
  t.strictSame((await call('POST', `${path}/${body.id}/test`)).body, { http_status: 200 })
  const [request] = hook.requests
  exactly(t, JSON.parse(request!.body), { id: request!.headers['webhook-id'], type: 'endpoint.test', data: {} })
  await t.resolves(verifyWebhook(request!.body, request!.headers as Record<string, string>, secret, { now: clock.now() }))
  hook.answer({ status: 500 })
  exactly(t, (await call('POST', `${path}/${body.id}/test`)).body, { http_status: 500, error: /500/ })
  exactly(t, await call('POST', `${path}/${body.id}/enable`, { from: 'then' }), invalid('body', 'from'))
  for (let n = 1; n < 20; n++) await create()
  exactly(t, await post({}), error('limit_reached', 403))
  t.equal((await call('DELETE', `${path}/${body.id}`)).status, 204)
  exactly(t, await call('GET', `${path}/${body.id}`), error('event_endpoint_not_found', 404))
  exactly(t, await get('/v1/auth/audit'), {
    events: [
      { event: 'event_endpoint.deleted', detail: { endpoint_id: body.id } },
      { event: 'event_endpoint.created' },
      ...Array(18).fill({})
    ]
  })
  t.notMatch(JSON.stringify([await get('/v1/auth/audit'), await rows('select data from cue.new_events')]), new RegExp(secret))
})

t.test('an account takes its endpoints and their jobs with it', async t => {
  const { create, cue, publish, rows, clock, call, maintain } = await serve(t, overDays)
  await create()
  await cue()
  await publish()
  await call('DELETE', '/v1/auth/me', undefined, { 'x-confirm-destructive': 'true' })
  clock.advance('25 hours')
  await maintain()
  t.strictSame(
    await rows("select id::text from cue.event_endpoints union all select id::text from pgboss.job where name = 'event_endpoints'"),
    []
  )
})

t.test('says that events are missing, once they are no longer kept', async t => {
  const { create, cue, send, hook, clock, call, fn, rows } = await serve(t, overDays)
  const { id } = await create()
  hook.answer({ status: 500 })
  await cue({ name: 'a' })
  await send()
  clock.advance('8 days')
  await cue({ name: 'b' })
  await fn.publishEvents({})
  await rows("select cue.drop_old_events($1::timestamptz - interval '2 days', $1)", [clock.now()])
  hook.answer({ status: 200 })
  exactly(t, await call('POST', `${path}/${id}/enable`, { from: 'failure' }), { body: { truncated: true } })
  t.strictSame(await send(), ['cue.created b'])
  t.equal(hook.requests.at(-1)!.headers['x-service-truncated'], 'true')
  await cue({ name: 'c' })
  await send()
  t.equal(hook.requests.at(-1)!.headers['x-service-truncated'], undefined)
})

t.test('the mail about a disabled endpoint says how to enable it', async t => {
  const server = await mailServer(t)
  const s = await build(t, '2030-01-15T09:00:00Z', { env: { SMTP_URL: server.url, BASE_URL: 'https://pgcue.example' } })
  const { id } = await s.post(path, { url: 'https://example.com/events', types: ['cue.*'] })
  await s.pool.query(
    `update cue.event_endpoints set status = 'disabled', disabled_at = $1, tries = 20, failing_since = $1, error = 'x <b>', http_status = 500`,
    [s.clock.now()]
  )
  await s.pool.query('select cue.announce_disabled_endpoint($1, $2, $3)', [s.account.id, id, s.clock.now()])
  await sendMails(s)
  const { subject, recipients, text, html } = server.mails.at(-1)!
  t.strictSame([subject, recipients], ['An event endpoint was disabled', [s.account.email]])
  t.match(text, /all 20 tries[\s\S]*x <b>[\s\S]*POST https:\/\/pgcue\.example\/v1\/event-endpoints\/[0-9a-f-]+\/enable/)
  t.notMatch(html, /<b>/)
})

t.test('an engine sends events within moments, and an endpoint that hangs delays no other', async t => {
  const { post, config } = await build(t)
  const hook = await receiver(t, ({ path }) => (path === '/hangs' ? new Promise(() => {}) : {}))
  await startEngine(t, config)
  await post(path, { url: `${hook.url}hangs`, types: ['cue.*'] })
  await post(path, { url: `${hook.url}live`, types: ['cue.*'] })
  for (const name of ['a', 'b', 'c']) await post('/v1/cues', { name, cron: '@yearly', worker: true })
  const at = (path: string) => hook.requests.filter(request => request.path === path)
  await eventually(() => at('/live').length === 3 && at('/hangs').length > 0)
  t.strictSame(
    at('/live').map(({ body }) => JSON.parse(body).data.name),
    ['a', 'b', 'c']
  )
  t.equal(at('/hangs').length, 1, 'one request at a time')
})
