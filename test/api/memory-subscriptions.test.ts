/** Agents that subscribe to the memory block, and the notifications they get when it changes. */
import t, { type Test } from 'tap'
import { verifyWebhook } from '../../src/client/webhook.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { enabled, off, on, worker } from '../support/memory-stage.ts'
import { build, error, eventually, receiver } from '../support/setup.ts'

t.test('an agent subscribes with an id and an allowed callback URL', async t => {
  const { call, pool } = await enabled(t)
  const good = { agent_id: 'agent-1', callback_url: 'https://example.com/hook' }
  exactly(t, await call('POST', '/v1/memory-block/subscribe', good), { status: 201, body: { subscribed: true, ...good } })
  const moved = { ...good, callback_url: 'https://example.com/other' }
  exactly(t, await call('POST', '/v1/memory-block/subscribe', moved), { status: 201, body: moved })
  exactly(t, (await pool.query('select agent_id, callback_url from cue.memory_subscriptions')).rows, [moved])
  for (const callback_url of [
    'http://169.254.169.254/latest',
    'https://10.0.0.1/',
    'https://user:pw@example.com/',
    'ftp://example.com',
    'x',
    '',
    'https://[::]/'
  ]) {
    exactly(
      t,
      await call('POST', '/v1/memory-block/subscribe', { ...good, callback_url }),
      error('invalid_callback_url', 400),
      callback_url
    )
  }
  for (const wrong of [{ agent_id: '' }, { agent_id: 'x'.repeat(256) }, { agent_id: null }, { callback_url: 5 }, { secret: 'x' }]) {
    exactly(t, await call('POST', '/v1/memory-block/subscribe', { ...good, ...wrong }), { status: 422 }, JSON.stringify(wrong).slice(0, 30))
  }
})

t.test('allows twenty subscriptions, even with more simultaneous requests', async t => {
  const { call, patch } = await enabled(t)
  const callback_url = 'https://example.com/hook'
  const all = await Promise.all(
    Array.from({ length: 25 }, (_, n) => call('POST', '/v1/memory-block/subscribe', { agent_id: `agent ${n}`, callback_url }))
  )
  t.equal(all.filter(({ status }) => status === 201).length, 20)
  exactly(
    t,
    all.find(({ status }) => status !== 201),
    error('invalid_state', 409)
  )
  await patch('/v1/auth/me', off)
  await patch('/v1/auth/me', on)
  exactly(
    t,
    await call('POST', '/v1/memory-block/subscribe', { agent_id: 'another', callback_url }),
    { status: 201 },
    'disabling the block removes them'
  )
})

/** A service in real time with an engine, and a subscriber. */
const subscribed = async (t: Test) => {
  const service = await build(t)
  const hook = await receiver(t)
  await service.patch('/v1/auth/me', on)
  await service.post('/v1/memory-block/subscribe', { callback_url: hook.url, agent_id: 'agent' })
  const engine = await startEngine(t, service.config)
  const jobs = async () =>
    (
      await service.pool.query(
        "select data, start_after > now() as later from pgboss.job where name = 'memory_updates' and state < 'active'"
      )
    ).rows
  /** Waits until no job is left, and returns how many there were. */
  const worked = async (): Promise<number> => {
    const count = async (state: string) =>
      (await service.pool.query(`select from pgboss.job where name = 'memory_updates' and state <= '${state}'`)).rowCount!
    await eventually(async () => (await count('active')) === 0)
    return count('failed')
  }
  const hurry = () => service.pool.query("update pgboss.job set start_after = now() where name = 'memory_updates'")
  return { ...service, hook, engine, jobs, worked, hurry }
}

t.test('notifies a subscriber of a change, signed like a callback', async t => {
  const { post, get, hook, worked } = await subscribed(t)
  await post('/v1/cues', { ...worker, name: 'news' })
  const [{ body, headers, method } = {} as never] = await hook.received()
  t.equal(method, 'POST')
  const told = JSON.parse(body)
  exactly(t, told, {
    event: 'memory_block.updated',
    version: 2,
    changelog: [{ version: 2, changes: ['Cue "news" was added.'] }],
    updated_at: /^\d{4}-.*Z$/
  })
  t.equal(told.changelog.length, 1)
  const { webhook_secret } = await get('/v1/auth/webhook-secret')
  exactly(t, headers, { 'x-service-signature': /^v1=/, 'webhook-signature': /^v1,/ })
  exactly(t, await verifyWebhook(body, headers, webhook_secret), { payload: told, id: /_2$/, executionId: '' })
  exactly(t, headers, { 'content-type': 'application/json', 'x-service-event': 'memory_block.updated' })
  t.notOk(headers.authorization, 'no credential is sent')
  t.equal(await worked(), 1)
  t.equal(hook.requests.length, 1)
})

t.test('sends changes made while no engine ran as one notification, and nothing twice', async t => {
  const { post, get, hook, engine, config, jobs, worked } = await subscribed(t)
  await engine.stop()
  for (let n = 0; n < 5; n++) await post('/v1/cues', { ...worker, name: `cue ${n}` })
  t.equal((await jobs()).length, 1)
  await startEngine(t, config)
  await hook.received()
  await post('/v1/cues', { ...worker, name: 'the last' })
  const requests = await hook.received(2)
  const told = requests.map(({ body }) => JSON.parse(body))
  t.equal(told[0].changelog[0].changes.length, 5)
  exactly(t, told[1], { version: told[0].version + 1, changelog: [{ changes: ['Cue "the last" was added.'] }] })
  await get('/v1/memory-block')
  t.equal(await worked(), 2)
  t.equal(hook.requests.length, 2)
})

t.test('retries a rejected notification with the state at that time', async t => {
  const { post, hook, jobs, hurry, engine, config } = await subscribed(t)
  hook.answer({ status: 500 })
  await post('/v1/cues', { ...worker, name: 'one' })
  await hook.received(1)
  await eventually(async () => (await jobs()).length === 1)
  exactly(t, await jobs(), [{ data: { tries: 1 }, later: true }])
  await post('/v1/cues', { ...worker, name: 'two' })
  exactly(t, await jobs(), [{ data: { tries: 1 }, later: true }], 'one job per subscriber')
  await engine.stop()
  hook.answer({})
  await hurry()
  await startEngine(t, config)
  const requests = await hook.received(2)
  exactly(t, JSON.parse(requests[1]!.body), {
    changelog: [{ changes: ['Cue "two" was added.'] }, { changes: ['Cue "one" was added.'] }]
  })
})

t.test('a 410 from a subscriber ends its subscription', async t => {
  const { post, hook, pool, worked } = await subscribed(t)
  hook.answer({ status: 410 })
  await post('/v1/cues', worker)
  await hook.received(1)
  await eventually(async () => (await pool.query('select from cue.memory_subscriptions')).rowCount === 0)
  t.equal(await worked(), 1)
  t.equal(hook.requests.length, 1)
})

for (const status of [410, 200]) {
  t.test(`a subscriber that changes its URL while the old one responds with ${status} is notified at the new one`, async t => {
    const { post, hook, worked } = await subscribed(t)
    const moved = await receiver(t)
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    hook.answer(() => held.then(() => ({ status })))
    await post('/v1/cues', { ...worker, name: 'news' })
    await hook.received()
    await post('/v1/memory-block/subscribe', { callback_url: moved.url, agent_id: 'agent' })
    release()
    const [request] = await moved.received()
    exactly(t, JSON.parse(request!.body), { version: 2, changelog: [{ changes: ['Cue "news" was added.'] }] })
    t.equal(await worked(), 2)
    t.same([hook.requests.length, moved.requests.length], [1, 1])
  })
}

t.test('sends no notification after the block is disabled', async t => {
  const { post, patch, hook, engine, config, jobs } = await subscribed(t)
  await engine.stop()
  await post('/v1/cues', worker)
  await patch('/v1/auth/me', off)
  await startEngine(t, config)
  await eventually(async () => (await jobs()).length === 0)
  t.equal(hook.requests.length, 0)
})

t.test('sends no notification about changes of other accounts', async t => {
  const { post, as, register, hook, worked } = await subscribed(t)
  const other = as(await register())
  await other.patch('/v1/auth/me', on)
  await other.post('/v1/cues', { ...worker, name: 'theirs' })
  await other.get('/v1/memory-block')
  await post('/v1/cues', { ...worker, name: 'mine' })
  const requests = await hook.received(1)
  exactly(t, JSON.parse(requests[0]!.body).changelog, [{ changes: ['Cue "mine" was added.'] }])
  t.equal(await worked(), 1)
  t.equal(hook.requests.length, 1)
})

t.test('notifies subscribers once when a release has new instructions', async t => {
  const { fn, jobs, engine } = await subscribed(t)
  await engine.stop()
  t.equal(await fn.noteMemoryRelease({ release: '2' }), 0)
  t.equal(await fn.noteMemoryRelease({ release: 'next' }), 1)
  t.equal((await jobs()).length, 1)
})
