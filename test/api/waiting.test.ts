/** Requests that wait for claimable executions, in real time. */
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { createWaiting } from '../../src/database/long-poll.ts'
import { exactly } from '../support/exactly.ts'
import { serviceAt } from '../support/service.ts'
import { build, error, eventually } from '../support/setup.ts'

const service = serviceAt()

/** The service, listening too, with a worker cue. */
const serve = async () => {
  const built = await service()
  const { app, account, cue, fire } = built
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const cue_id = await cue()
  /** A claim over its own connection. Resolves to the error's name if it was aborted. */
  const fetchClaim = (body: object, signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${port}/v1/executions/claim`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.api_key}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(body),
      signal
    }).then(
      answer => answer.json(),
      error => error.name
    )
  const connections = () =>
    new Promise<number>((resolve, reject) => app.server.getConnections((error, n) => (error ? reject(error) : resolve(n))))
  return { ...built, cue_id, fire: (body: object = {}) => fire(cue_id, body), fetchClaim, connections }
}

t.test('a waiting request gets a response when its task becomes claimable, but not for another task', async t => {
  const { post, get, fire, cue_id } = await serve()
  const claiming = post('/v1/executions/claim', { worker_id: 'w', wait: 30 })
  const listing = get('/v1/executions/claimable?wait=30&task=go')
  const other = post('/v1/executions/claim', { task: 'other', wait: 1 })
  const id = await fire()
  exactly(t, await claiming, { claimed: true, execution_id: id, cue_id })
  exactly(t, await other, { error: { code: 'nothing_claimable' } })
  const again = await fire()
  const { executions } = await listing
  t.ok([id, again].includes(executions[0].id), 'a list contains what is claimable at that time')
})

t.test('a deferred execution becomes claimable in time, also for waiting requests', async t => {
  const { post, get, call, fire } = await serve()
  const sendAt = Date.now() + 1500
  const first = post('/v1/executions/claim', { worker_id: 'early', wait: 30 })
  const ids = await Promise.all([1, 2].map(() => fire({ send_at: new Date(sendAt).toISOString() }))) // one to claim, one to list
  const second = get('/v1/executions/claimable?wait=30')
  t.same((await get('/v1/executions/claimable')).executions, [])
  exactly(t, await call('POST', `/v1/executions/${ids[0]}/claim`), error('already_claimed', 409))
  const { execution_id } = await first
  t.ok(ids.includes(execution_id))
  t.ok(Date.now() >= sendAt, 'not before')
  t.ok((await second).executions.length > 0)
})

t.test('a client that disconnects while waiting holds no claim', async t => {
  const { connections, fire, fetchClaim } = await serve()
  const leaving = new AbortController()
  const left = fetchClaim({ worker_id: 'left', wait: 30 }, leaving.signal)
  await eventually(async () => (await connections()) === 1)
  leaving.abort()
  t.equal(await left, 'AbortError')
  const staying = fetchClaim({ worker_id: 'stayed', wait: 30 })
  const id = await fire()
  exactly(t, await staying, { execution_id: id })
})

t.test('releases a claim made for a client that has disconnected', async t => {
  const { row, pool, fire, fetchClaim, execution } = await serve()
  const id = await fire()
  const blocker = await pool.connect()
  await blocker.query('begin')
  await blocker.query('lock table cue.executions in access exclusive mode')
  const leaving = new AbortController()
  const left = fetchClaim({ worker_id: 'left', wait: 30 }, leaving.signal)
  const blocked = "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
  await eventually(async () => (await row(blocked)).n === 1)
  leaving.abort()
  t.equal(await left, 'AbortError')
  await blocker.query('commit')
  blocker.release()
  await eventually(async () => (await execution(id)).lost_attempts === 1)
  exactly(t, await execution(id), { status: 'pending', attempts: 1, claim_token: null })
})

t.test('more requests can wait than there are connections', async t => {
  const { config, get, post, fire } = await serve()
  const count = 2 * config.pgPoolMax
  const waiting = Array.from({ length: count }, (_, n) => post('/v1/executions/claim', { worker_id: `w${n}`, wait: 3 }))
  exactly(t, await get('/v1/executions/claimable'), { executions: [] })
  const id = await fire()
  const answers = await Promise.all(waiting)
  exactly(
    t,
    answers.filter(answer => answer.claimed),
    [{ execution_id: id }]
  )
  t.equal(answers.filter(answer => answer.error?.code === 'nothing_claimable').length, count - 1)
})

t.test('responds to waiting requests when the service stops', async t => {
  const { app, post, pool } = await build(t)
  const until = Date.now() + 30_000
  const waiting = post('/v1/executions/claim', { wait: 30 })
  const listening = "select from pg_stat_activity where datname = current_database() and application_name = 'pgcue listener'"
  await eventually(async () => (await pool.query(listening)).rowCount)
  const closed = app.close()
  exactly(t, await waiting, { error: { code: 'nothing_claimable' } })
  t.ok(Date.now() < until, 'before its time is over')
  await closed
})

/** Requests that wait for notifications, however long they take. */
const waitingFor = async (t: Test, options: { maxWaiting?: number } = {}) => {
  const { config, pool } = await build(t)
  const waiting = createWaiting({
    config,
    fn: { latestPlace: async () => 0, nextClaimable: async () => null },
    now: () => new Date(),
    log: pino({ level: 'silent' }),
    closing: new AbortController().signal,
    pollMs: 60_000,
    ...options
  })
  t.teardown(() => waiting.close())
  return { waiting, pool }
}

t.test('waiting requests are woken by notifications only', async t => {
  const { waiting, pool } = await waitingFor(t)
  const leaving = new AbortController()
  const asked = new Map<string, number>()
  /** A request that finds nothing the first two times. */
  const wait = async (account_id: string) => {
    const ask = async () => {
      asked.set(account_id, (asked.get(account_id) ?? 0) + 1)
      return asked.get(account_id)! > 2 ? ['found'] : []
    }
    const answer = waiting.until({ account_id, waitMs: 30_000, signal: leaving.signal, ask })
    await eventually(() => asked.get(account_id) === 2)
    return { answer }
  }
  const notify = (account_id: string, after: string) =>
    pool.query("select pg_notify('cue_claimable', $1 || ' ' || floor(extract(epoch from now() + $2::interval) * 1000)::bigint)", [
      account_id,
      after
    ])

  const other = await wait('other')
  const { answer } = await wait('now')
  await notify('now', '0')
  t.strictSame(await answer, ['found'])

  const later = await wait('later')
  await notify('later', '1 year')
  await notify('later', '100 milliseconds')
  t.strictSame(await later.answer, ['found'], 'when its instant has come')

  t.equal(asked.get('other'), 2)
  leaving.abort()
  t.strictSame(await other.answer, [])
})

t.test("refuses waiting requests above the account's limit", async t => {
  const { waiting } = await waitingFor(t, { maxWaiting: 2 })
  const leaving = new AbortController()
  let found: string[] = []
  const wait = (account_id: string, topic: 'claimable' | 'events' = 'claimable') =>
    waiting.until({ topic, account_id, waitMs: 30_000, signal: leaving.signal, ask: async () => found })
  const crowd = [wait('a'), wait('a', 'events'), wait('a'), wait('a', 'events'), wait('b')]
  const refused = await Promise.allSettled([crowd[2]!, crowd[3]!])
  t.same(
    refused.map(result => result.status === 'rejected' && [result.reason.code, result.reason.headers]),
    Array(2).fill(['rate_limit_exceeded', { 'retry-after': '5' }])
  )
  found = ['found']
  t.same(await wait('a'), ['found'], 'an available result is returned even above the limit')
  leaving.abort()
  t.same(await Promise.all([crowd[0], crowd[1], crowd[4]]), [[], [], []])
  found = []
})
