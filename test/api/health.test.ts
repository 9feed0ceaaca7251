import { randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { build as buildApp } from '../../src/app.ts'
import { createPool } from '../../src/database/pool.ts'
import { judge, judgeCells } from '../../src/health/check.ts'
import { testConfig } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'
import { refused, stage } from '../support/stage.ts'
import { listen } from '../support/webhook-stage.ts'

const start = '2030-01-15T09:00:00Z'

/** An engine's heartbeat. */
const beat = ({ fn }: Pick<Awaited<ReturnType<typeof build>>, 'fn'>, lateness_ms: number | null = 3) =>
  fn.beatEngine({ engine_id: randomUUID(), version: 'test', lateness_ms, open_deliveries: 0, missed_after: '1 day' })

t.test('reports a service with live engines as healthy, without a key', async t => {
  const service = await build(t, start)
  await beat(service)
  await beat(service, 40)
  const { call } = service.as(null)
  t.strictSame(await call('GET', '/status').then(({ status, body }) => ({ status, body })), { status: 200, body: { status: 'healthy' } })
  exactly(t, await call('GET', '/health'), {
    status: 200,
    body: {
      status: 'healthy',
      version: /^\d+\.\d+\.\d+$/,
      timestamp: '2030-01-15T09:00:00.000Z',
      services: { postgres: 'healthy', poller: 'healthy', delivery: 'healthy' },
      poller: { last_run: '2030-01-15T09:00:00.000Z', seconds_ago: 0, lateness_ms: 40 },
      workers: { active_count: 0, last_heartbeat: null },
      queue: { pending: 0, retrying: 0, delivering: 0, pending_worker: 0, oldest_pending_seconds: 0 },
      replicas: 2
    }
  })
})

t.test('live engines know their number', async t => {
  const { fn, clock } = await build(t, start)
  const [a, b, c] = [1, 2, 3].map(n => `00000000-0000-0000-0000-00000000000${n}`) as [string, string, string]
  const beat = (engine_id: string) =>
    fn.beatEngine({ engine_id, version: 'test', lateness_ms: 3, open_deliveries: 0, missed_after: '1 day' })
  exactly(t, await beat(b), { engines: 1 })
  exactly(t, await beat(c), { engines: 2 })
  exactly(t, await beat(a), { engines: 3 })
  exactly(t, await beat(b), { engines: 3 })
  await fn.stopEngine({ engine_id: a })
  exactly(t, await fn.serviceHealth({}), { replicas: 2, last_seen_at: new Date(start) })
  exactly(t, await beat(c), { engines: 2 }, 'one was stopped')
  clock.advance('15 seconds')
  exactly(t, await beat(b), { engines: 1 }, 'one went silent')
})

t.test('without a live engine, the service is degraded, then down', async t => {
  const service = await build(t, start)
  const { call, clock } = service
  exactly(t, await call('GET', '/status'), { status: 503, body: { status: 'down', reason: 'no engine has run yet' } })
  await beat(service)
  clock.advance('20 seconds')
  exactly(t, await call('GET', '/status'), { status: 200, body: { status: 'degraded', reason: 'no engine has been seen for 20 s' } })
  clock.advance('20 seconds')
  exactly(t, await call('GET', '/status'), { status: 503, body: { status: 'down', reason: 'no engine has been seen for 40 s' } })
  exactly(t, await call('GET', '/health'), {
    status: 200,
    body: { status: 'down', services: { postgres: 'healthy', poller: 'down', delivery: 'down' }, poller: { seconds_ago: 40 }, replicas: 0 }
  })
})

t.test('is degraded when deliveries are late', async t => {
  const now = new Date(start)
  const found = {
    last_seen_at: now,
    lateness_ms: 3,
    replicas: 1,
    pending: 1,
    retrying: 0,
    delivering: 0,
    pending_worker: 0,
    active_workers: 0,
    last_heartbeat: null
  }
  const at = (seconds: number) => new Date(now.getTime() - seconds * 1000)
  exactly(t, judge({ ...found, oldest_pending_at: at(4) }, now), { status: 'healthy', queue: { oldest_pending_seconds: 4 } })
  exactly(t, judge({ ...found, oldest_pending_at: null, lateness_ms: 4999 }, now), { status: 'healthy' })
  const behind = { status: 'degraded', reason: 'deliveries are 5 s behind', services: { poller: 'healthy', delivery: 'degraded' } }
  exactly(t, judge({ ...found, oldest_pending_at: at(5) }, now), behind)
  exactly(t, judge({ ...found, oldest_pending_at: null, lateness_ms: 5000 }, now), behind)
})

t.test('is down when engines are alive and take nothing of what is due for 60 s', async t => {
  const stalled = { status: 503, body: { status: 'down', reason: 'due work has not been taken for 61 s' } }
  const healthy = { status: 200, body: { status: 'healthy' } }
  type Stage = Awaited<ReturnType<typeof build>> & { cue_id: string; t: Test }
  const report = (fn: Stage['fn'], reports: object) =>
    fn.beatEngine({ ...reports, engine_id: randomUUID(), version: 'test', missed_after: '1 day' })
  const cases: [string, object, (stage: Stage) => Promise<unknown>][] = [
    ['of a due cue', stalled, async () => {}],
    ['not if its account has as many open deliveries as it may', healthy, ({ fn, account }) => report(fn, { full_accounts: [account.id] })],
    ['nor if the cue fails by itself', healthy, ({ fn, cue_id }) => report(fn, { passed_over: [cue_id] })],
    [
      'nor while a backlog is worked off',
      { status: 200, body: { status: 'degraded', reason: 'deliveries are 61 s behind' } },
      ({ pool, clock }) =>
        pool.query('insert into cue.flights values (1, $1, $2, $2)', [[randomUUID()], new Date(clock.now().getTime() - 59_000)])
    ],
    [
      'nor if it came due in an outage that has just ended',
      { status: 200, body: { status: 'degraded' } },
      ({ pool, clock }) =>
        pool.query("insert into cue.outages values ($1::timestamptz - interval '1 hour', $1)", [new Date(clock.now().getTime() - 5000)])
    ],
    [
      'nor if somebody has locked the cue',
      healthy,
      async ({ t, pool, cue_id }) => {
        const client = await pool.connect()
        t.teardown(() => client.release(true))
        await client.query('begin')
        await client.query('select from cue.cue_runs where cue_id = $1 for update', [cue_id])
      }
    ]
  ]
  for (const [name, answer, prepare] of cases)
    await t.test(name, async t => {
      const service = await build(t, start)
      const { id: cue_id } = await service.post('/v1/cues', {
        name: 'c',
        at: '2030-01-15T09:00:01Z',
        callback_url: 'http://127.0.0.1:9999/'
      })
      service.clock.advance('62 seconds')
      await beat(service)
      await prepare({ ...service, cue_id, t })
      exactly(t, await service.call('GET', '/status'), answer)
    })
})

t.test('the health of several cells adds up their counts, and is degraded while one of them is', async t => {
  const now = new Date(start)
  const at = (seconds: number) => new Date(now.getTime() - seconds * 1000)
  const row = { replicas: 1, pending: 1, retrying: 2, delivering: 3, pending_worker: 4, active_workers: 5, oldest_pending_at: null }
  const cells = [
    { id: 1, found: { ...row, last_seen_at: at(1), lateness_ms: 3, last_heartbeat: at(9) } },
    { id: 2, found: { ...row, last_seen_at: at(2), lateness_ms: 8, last_heartbeat: at(7), replicas: 2, oldest_pending_at: at(70) } },
    { id: 3, found: null }
  ]
  exactly(t, judgeCells(cells, now), {
    status: 'degraded',
    reason: 'cell 2: deliveries are 70 s behind',
    services: { postgres: 'degraded', poller: 'degraded', delivery: 'degraded' },
    poller: { last_run: at(1), seconds_ago: 1, lateness_ms: 8 },
    workers: { active_count: 10, last_heartbeat: at(7) },
    queue: { pending: 2, retrying: 4, delivering: 6, pending_worker: 8, oldest_pending_seconds: 70 },
    replicas: 2
  })
})

t.test('counts waiting work by kind, and since when', async t => {
  const { fn, cue, clock, begun, settle, account_id, take } = await stage(t)
  const counts = async () => {
    const { last_seen_at, lateness_ms, replicas, active_workers, last_heartbeat, ...rest } = await fn.serviceHealth({})
    return rest
  }
  const nothing = { pending: 0, retrying: 0, delivering: 0, pending_worker: 0, oldest_pending_at: null }
  t.strictSame(await counts(), nothing)

  const due = clock.now()
  await cue({}, { next_run: due })
  await cue({}, { next_run: new Date(due.getTime() + 3_600_000) })
  t.strictSame(await counts(), { ...nothing, pending: 1, oldest_pending_at: due }, 'a due cue, not one due later')

  clock.advance('10 seconds')
  const paused = await cue({}, { next_run: null })
  await fn.fireCue({ account_id, cue_id: paused })
  await fn.fireCue({ account_id, cue_id: paused, send_at: new Date(clock.now().getTime() + 60_000) })
  t.strictSame(await counts(), { ...nothing, pending: 2, oldest_pending_at: due }, 'a manual fire, not one put off')

  const attempt = await begun()
  t.strictSame(await counts(), { ...nothing, pending: 2, delivering: 1, oldest_pending_at: due })
  await settle([attempt], refused)
  await fn.endFlights({ flight_ids: [attempt.flight_id] })
  t.strictSame(await counts(), { ...nothing, pending: 2, retrying: 1, oldest_pending_at: due })

  await take([await cue({ transport: 'worker', callback_url: null })])
  t.strictSame(await counts(), { ...nothing, pending: 2, retrying: 1, pending_worker: 1, oldest_pending_at: due })
})

t.test('a worker is active for three minutes after a heartbeat', async t => {
  const { account, clock, fn, get } = await build(t, start)
  for (const worker_id of ['w1', 'w2']) await fn.heartbeatWorker({ account_id: account.id, worker_id, handlers: [] })
  exactly(t, await get('/health'), { workers: { active_count: 2, last_heartbeat: '2030-01-15T09:00:00.000Z' } })
  clock.advance('2 minutes')
  await fn.heartbeatWorker({ account_id: account.id, worker_id: 'w1', handlers: [] })
  clock.advance('60 seconds')
  exactly(t, await get('/health'), { workers: { active_count: 1, last_heartbeat: '2030-01-15T09:02:00.000Z' } })
})

t.test('silent workers add no cost', async t => {
  const { fn, rows, account_id, clock, connect } = await stage(t)
  const { client } = await connect()
  // Planning reads the catalog: make every call plan.
  await client.query('set plan_cache_mode = force_custom_plan')
  const pages = async () => {
    const asked = { text: 'explain (analyze, buffers, format json) select * from cue.service_health($1)', values: [clock.now()] }
    for (let n = 0; n < 3; n++) await client.query(asked)
    const { Plan: plan } = (await client.query(asked)).rows[0]['QUERY PLAN'][0]
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  }
  await fn.heartbeatWorker({ account_id, worker_id: 'alive', handlers: [] })
  const before = await pages()
  await rows("insert into cue.workers select $1, n::text, '{}', $2::timestamptz - interval '1 hour', $2 from generate_series(1, 20000) n", [
    account_id,
    clock.now()
  ])
  await rows('analyze cue.workers')
  const after = await pages()
  t.ok(after < before + 50, `${after} pages, and ${before} without them`)
  exactly(t, await fn.serviceHealth({}), { active_workers: 1, last_heartbeat: clock.now() })
})

t.test('counts up to 10,000', async t => {
  const { fn, cue, rows, account_id } = await stage(t)
  const model = await cue()
  await rows(
    'insert into cue.cues select (jsonb_populate_record(c, jsonb_build_object($1::text, $2 || lpad(n::text, 12, $3)))).* from cue.cues c, generate_series(1, 10100) n where c.id = $4',
    ['id', 'cue_', '0', model]
  )
  await rows(
    "insert into cue.cue_runs (cue_id, account_id, transport, next_run) select id, account_id, transport, '2030-01-01' from cue.cues where id <> $1 and account_id = $2",
    [model, account_id]
  )
  t.equal((await fn.serviceHealth({})).pending, 10_000)
})

t.test('queries the database at most every 5 seconds, however many ask', async t => {
  const service = await build(t, start)
  const { pool, clock, get } = service
  await beat(service)
  let asked = 0
  const query = pool.query.bind(pool) as (...args: unknown[]) => unknown
  t.intercept(pool, 'query', {
    value: (config: { text: string }, ...rest: unknown[]) => {
      if (config.text.includes('service_health')) asked++
      return query(config, ...rest)
    }
  })
  await Promise.all(Array.from({ length: 20 }, (_, n) => get(n % 2 ? '/health' : '/status')))
  t.equal(asked, 1)
  clock.advance('5 seconds')
  await get('/status')
  t.equal(asked, 2)
})

t.test('health checks do not count towards rate limits', async t => {
  const { call } = await build(t, undefined, { env: { RATE_LIMIT: 'on' } })
  const answers = await Promise.all(Array.from({ length: 70 }, () => call('GET', '/health')))
  t.ok(answers.every(({ status }) => status === 200))
  exactly(t, answers[0]?.headers, { 'x-ratelimit-limit': /^\d+$/, 'x-ratelimit-remaining': /^\d+$/, 'x-ratelimit-reset': /^\d+$/ })
})

/** The service with a database address that refuses connections or never responds. */
const astray = async (t: Test, databaseUrl: string) => {
  const config = testConfig(databaseUrl)
  const pool = createPool(config)
  const app = await buildApp({ config, pool, clock: () => new Date(start) })
  t.teardown(async () => {
    await app.close()
    void pool.end()
  })
  return app
}

const lost = {
  status: 'down',
  reason: 'the database is unreachable or read-only',
  services: { postgres: 'down', poller: 'down', delivery: 'down' },
  poller: { last_run: null, seconds_ago: null, lateness_ms: null },
  workers: { active_count: null, last_heartbeat: null },
  queue: { pending: null, retrying: null, delivering: null, pending_worker: null, oldest_pending_seconds: null },
  replicas: null
}

t.test('responds without a database', async t => {
  const app = await astray(t, 'postgres://nobody@127.0.0.1:1/none')
  const health = await app.inject('/health')
  exactly(t, { status: health.statusCode, body: health.json() }, { status: 200, body: lost })
  const status = await app.inject('/status')
  exactly(t, { status: status.statusCode, body: status.json() }, { status: 503, body: { status: 'down', reason: lost.reason } })
})

t.test('responds when the database hangs', async t => {
  const server = await listen(t, createServer())
  const app = await astray(t, `postgres://nobody@127.0.0.1:${server.port}/none`)
  exactly(t, (await app.inject('/health')).json(), lost)
})

t.test('a replica without the api role serves its health only', async t => {
  const { call } = await build(t, undefined, { env: { ROLES: 'engine' } })
  t.equal((await call('GET', '/status')).status, 503)
  exactly(t, await call('POST', '/v1/echo/a-token-of-16-or-more', {}), error('not_found', 404))
})
