// Locked rows of one account do not affect others: an open transaction holds rows of an account that keeps sending requests and firing,
// and another account is not affected.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import root, { type Test } from 'tap'
import { build as buildApp } from '../../src/app.ts'
import { createPool } from '../../src/database/pool.ts'
import { createDatabase, testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { setLockTimeout } from '../support/patient.ts'
import { type Account, build, eventually, receiver } from '../support/setup.ts'

/** Far longer than any call that waits for no lock, and shorter than a wait for a locked row, which statement_timeout ends after 30 seconds. */
const patienceMs = 20_000
/** As many connections as the API has by default. */
const apiConnections = 4
const env = {
  RATE_LIMIT: 'on',
  PLANS: '{"free": {"cues": 100000, "executions_per_month": 1000000, "requests_per_minute": 100000}}',
  POLL_INTERVAL_MS: '1000'
}

type Calls = ReturnType<Awaited<ReturnType<typeof build>>['as']>

/** @param lockTimeout of the SQL functions */
const stage = async (t: Test, lockTimeout: string) => {
  const service = await build(t, undefined, { env })
  await setLockTimeout(async text => (await service.pool.query(text)).rows, 'others', lockTimeout)
  const pool = createPool(service.config, { max: apiConnections })
  const app = await buildApp({ config: service.config, pool })
  t.teardown(() => app.close().then(() => pool.end()))
  const hook = await receiver(t, ({ path }) => (path === '/hangs' ? new Promise(() => {}) : {}))
  await startEngine(t, testConfig(service.url, { POLL_INTERVAL_MS: '1000' }))

  /** Calls of an account to a service that has few connections. */
  const as =
    ({ api_key }: Account): Calls['call'] =>
    async (method, path, body, headers = {}) => {
      const answer = await app.inject({
        method: method as 'GET',
        url: path,
        headers: { authorization: `Bearer ${api_key}`, ...headers },
        ...(body !== undefined && { payload: body as object })
      })
      return { status: answer.statusCode, headers: answer.headers as Record<string, string>, body: answer.body && answer.json() }
    }
  const workerCue = { name: 'job', cron: '@yearly', worker: true, payload: { task: 'go' } }
  const callback = (path: string) => ({ callback: { url: `${hook.url}${path}` } })
  return { ...service, as, hook, workerCue, callback }
}

type Stage = Awaited<ReturnType<typeof stage>>

/** A user's calls: creates, reads, changes, fires, claims, reports, and gets a delivery. Every response is the usual one. */
const live = async (t: Test, { as, hook, workerCue, callback }: Stage, account: Account, name: string) => {
  const call = as(account)
  const done = async (what: string, asked: ReturnType<typeof call>, status: number) => {
    const answer = await asked
    t.equal(answer.status, status, `${name}: ${what}`)
    return answer.body
  }
  const path = `${account.id}/${randomUUID()}`
  // On a busy machine, the instant may have passed when the request arrives.
  const createSoon = async (aheadMs = 400): ReturnType<typeof call> => {
    const at = new Date(Date.now() + aheadMs).toISOString()
    const answer = await call('POST', '/v1/cues', { name: 'once', at, ...callback(path) })
    return answer.status === 400 ? createSoon(2 * aheadMs) : answer
  }
  const once = await done('create a cue that is soon due', createSoon(), 201)
  const { id } = await done('create', call('POST', '/v1/cues', workerCue), 201)
  await done('read', call('GET', `/v1/cues/${id}`), 200)
  await done('list', call('GET', '/v1/cues?limit=5'), 200)
  await done('change', call('PATCH', `/v1/cues/${id}`, { description: 'x' }), 200)
  const fired = await done('fire', call('POST', `/v1/cues/${id}/fire`, {}), 200)
  const claim = await done('claim', call('POST', '/v1/executions/claim', { worker_id: 'w' }), 200)
  t.equal(claim.execution_id, fired.id, `${name}: claims its own`)
  await done('report', call('POST', `/v1/executions/${fired.id}/outcome`, { success: true }), 200)
  await eventually(() => hook.requests.some(request => request.path === `/${path}`), patienceMs)
  await eventually(async () => (await call('GET', `/v1/cues/${once.id}`)).body.status === 'completed', patienceMs)
}

/** Rows of an account in each table that requests or the engine lock, or all rows if the table belongs to no account. */
const own = 'account_id = $1'
const all = '$1::uuid is not null'
const held: Record<string, string> = {
  'cue.accounts': 'id = $1',
  'cue.alerts': own,
  'cue.api_keys': own,
  'cue.approvals': own,
  'cue.attempts': own,
  'cue.audit_events': own,
  'cue.calendars': own,
  'cue.costs': own,
  'cue.channels': own,
  'cue.cue_rooms': own,
  'cue.cue_runs': own,
  'cue.cues': own,
  'cue.dead_letters': own,
  'cue.engines': all,
  'cue.event_endpoints': own,
  'cue.executions': own,
  'cue.fires': own,
  'cue.idempotency_keys': own,
  'cue.flights': all,
  'cue.gates': own,
  'cue.gate_parts': own,
  'cue.gate_starts': own,
  'cue.held_executions': own,
  'cue.memory_subscriptions': own,
  'cue.missed_slots': own,
  'cue.notices': own,
  'cue.open_executions': own,
  'cue.operation_targets': 'operation_id in (select id from cue.operations where account_id = $1)',
  'cue.operations': own,
  'cue.plans': all,
  'cue.rate_windows': "subject in (select 'key:' || id from cue.api_keys where account_id = $1)",
  'cue.sessions': own,
  'cue.usage_counters': own,
  'cue.workers': own,
  'pgboss.job': "data ->> 'account_id' = $1::text or id in (select id from cue.executions where account_id = $1::uuid)"
}

/**
 * Tables not locked here: written once, only by start, sweeps and whoever publishes events, only by the operator, only by backfills, only for
 * large payloads and their optional cap, only under the locks of a cue that follows others, or only to sign in, to pay, to contact support and to delete the account.
 */
const others = [
  'cue_parents',
  'fixed_requests',
  'signals',
  'gate_results',
  'gate_spending',
  'addresses',
  'backfilled_slots',
  'event_days',
  'event_order',
  'event_subscribers',
  'events',
  'new_events',
  'unattended_tasks',
  'cell',
  'deletions',
  'device_codes',
  'directory',
  'echoes',
  'holds',
  'known_secrets',
  'memory_versions',
  'migrations',
  'moved',
  'outages',
  'overridden_limits',
  'payload_counters',
  'payloads',
  'session_tokens',
  'stripe_events',
  'subscriptions',
  'tickets'
]

root.test('each table is locked in a test, or listed as an exception', async t => {
  const { pool } = await createDatabase(t)
  const { rows } = await pool.query(
    `select relname as name from pg_class where relnamespace = 'cue'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`
  )
  const named = [
    ...Object.keys(held)
      .filter(name => name.startsWith('cue.'))
      .map(name => name.slice(4)),
    ...others
  ]
  t.same(
    rows.map(row => row.name),
    named.sort()
  )
})

root.test('locked rows of one account do not affect another, although the first keeps sending requests', async t => {
  const s = await stage(t, '1min')
  const [busy, other] = [s.account, await s.register()]
  const call = s.as(busy)
  const repeatable = { 'idempotency-key': 'k' }
  // Every kind of row: cues that fire each second, with a working and a rejecting receiver, a worker cue and its claims.
  const cueOf = async (columns: object) => (await call('POST', '/v1/cues', { cron: '* * * * * *', ...columns })).body.id as string
  const worker = await cueOf({ ...s.workerCue, cron: '* * * * * *' })
  await cueOf({ name: 'ticks', ...s.callback('ticks') })
  await cueOf({ name: 'hangs', ...s.callback('hangs') })
  for (const overlap of ['queue_one', 'cancel_previous']) await cueOf({ name: overlap, overlap, ...s.callback('hangs') })
  await cueOf({ name: 'fails', callback: { url: 'http://127.0.0.1:9/' }, retry: { max_attempts: 2, backoff_minutes: [1, 1] } })
  const idle = await cueOf({ ...s.workerCue, cron: '@yearly' })
  await call('POST', `/v1/cues/${idle}/fire`, {}, repeatable)
  await call('POST', '/v1/worker/heartbeat', { worker_id: 'a', handlers: ['go'] })
  // Of all events, to a receiver that answers and one that does not.
  await call('PUT', '/v1/channels/live', { type: 'webhook', target: `${s.hook.url}uncounted`, types: ['cue.*', 'execution.*'] })
  for (const path of ['uncounted', 'hangs'])
    await call('POST', '/v1/event-endpoints', { url: `${s.hook.url}${path}`, types: ['cue.*', 'execution.*'] })
  await call('PUT', '/v1/calendars/holidays', { dates: ['12-25'] })
  for (const name of ['first', 'second', 'third', 'fourth', 'fifth'])
    await cueOf({ ...s.workerCue, name, tags: ['slow'], schedule: { every: '1h', exclude_calendars: ['holidays'] }, cron: undefined })
  // One cue a minute, so that the others wait for their turn until the test has ended.
  await call('POST', '/v1/operations', { type: 'pause', filter: { tag: ['slow'] }, rate_per_minute: 1 })
  // One runs, and the others wait.
  const gated = await cueOf({ name: 'gated', ...s.callback('hangs') })
  await s.pool.query(`select cue.put_gate($1, 'one', '{"parallel": 1}')`, [busy.id])
  await s.pool.query("update cue.cues set gate = 'one' where id = $1", [gated])
  await s.pool.query('update cue.cue_runs set tracked = true, version = version + 1 where cue_id = $1', [gated])
  await eventually(async () => (await s.pool.query('select from cue.held_executions where account_id = $1', [busy.id])).rowCount)
  await s.pool.query(
    'insert into cue.dead_letters (execution_id, account_id, cue_id, error_group) select gen_random_uuid(), $1, $2, gen_random_uuid()',
    [busy.id, worker]
  )
  await s.pool.query(
    `insert into cue.approvals (execution_id, account_id, cue_id, on_expiry, requested_at, remind_at, expires_at)
     values (gen_random_uuid(), $1, $2, 'skip', now(), now(), now())`,
    [busy.id, worker]
  )
  await s.pool.query(
    `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, created_at)
     values (gen_random_uuid(), $1, $2, 'missed_window', 'high', 'x', now())`,
    [busy.id, worker]
  )
  await s.pool.query(
    `insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason, recorded_at)
     values ($2, $1, now(), now(), 1, 'skip_missed', 'execution_limit', now())`,
    [busy.id, worker]
  )
  await s.pool.query("insert into cue.costs values (gen_random_uuid(), 1, 'usd', 1, $1, $2, now())", [busy.id, worker])
  await s.pool.query("insert into cue.sessions values (gen_random_uuid(), $1, now(), now() + interval '1 year')", [busy.id])
  await s.pool.query("insert into cue.memory_subscriptions values (gen_random_uuid(), $1, 'agent', 'http://127.0.0.1:9/', 0, now())", [
    busy.id
  ])
  await live(t, s, other, 'before')
  await eventually(async () => (await s.pool.query('select from cue.attempt_view where account_id = $1', [busy.id])).rowCount)

  const holder = new pg.Client({ connectionString: s.url })
  await holder.connect()
  t.teardown(() => holder.end())
  for (const [table, condition] of Object.entries(held)) {
    let isHeld = true
    const unexpected: unknown[] = []
    const keepAsking = async () => {
      const requests = [
        () => call('POST', '/v1/cues', s.workerCue),
        () => call('POST', `/v1/cues/${idle}/fire`, {}),
        () => call('POST', `/v1/cues/${idle}/fire`, {}, repeatable),
        () => call('PATCH', `/v1/cues/${worker}`, { description: 'y' }),
        () => call('POST', '/v1/executions/claim', { worker_id: 'a' }),
        () => call('POST', '/v1/worker/heartbeat', { worker_id: 'a', handlers: ['go'] }),
        () => call('GET', '/v1/cues?limit=1')
      ]
      await Promise.all(
        requests.map(async request => {
          while (isHeld) {
            const { status, headers, body } = await request()
            if (status >= 500 && (status !== 503 || !headers['retry-after'])) unexpected.push(body)
            await delay(200)
          }
        })
      )
    }
    await holder.query('begin')
    const { rowCount } = await holder.query(`select from ${table} where ${condition} for update`, [busy.id])
    t.ok(rowCount, `${table} has rows to lock`)
    const asking = keepAsking()
    await delay(100)
    await live(t, s, other, table)
    isHeld = false
    await holder.query('rollback')
    await asking
    t.same(unexpected, [], `${table}: callers that must wait get 503`)
    t.equal((await call('POST', '/v1/cues', s.workerCue)).status, 201, `${table}: the locked account continues after the lock`)
  }
})

const written = [
  'cue.accounts',
  'cue.cues',
  'cue.cue_runs',
  'cue.executions',
  'cue.usage_counters',
  'cue.flights',
  'cue.rate_windows',
  'pgboss.job'
]

root.test(
  'while a whole table is locked against changes, reads succeed, changes succeed or return 503 with Retry-After, and no delivery is lost',
  async t => {
    const s = await stage(t, '300ms')
    const call = s.as(s.account)
    const { id } = (await call('POST', '/v1/cues', s.workerCue)).body
    const holder = new pg.Client({ connectionString: s.url })
    await holder.connect()
    t.teardown(() => holder.end())
    for (const table of written) {
      const at = new Date(Date.now() + 500).toISOString()
      const due = await call('POST', '/v1/cues', { name: 'due', at, ...s.callback(table) })
      await holder.query(`begin; lock table ${table} in share mode`)
      t.equal((await call('GET', `/v1/cues/${id}`)).status, 200, `${table}: reads succeed`)
      const changes = await Promise.all([
        call('POST', '/v1/cues', s.workerCue),
        call('PATCH', `/v1/cues/${id}`, { description: table }),
        call('POST', `/v1/cues/${id}/fire`, {}),
        call('GET', '/v1/cues?limit=1')
      ])
      for (const { status, headers } of changes)
        t.ok(status < 300 || status === 429 || (status === 503 && headers['retry-after']), `${table}: ${status}`)
      await holder.query('rollback')
      t.equal((await call('POST', '/v1/cues', s.workerCue)).status, 201, `${table}: changes succeed immediately afterwards`)
      await eventually(async () => (await call('GET', `/v1/cues/${due.body.id}`)).body.status === 'completed')
      t.equal(s.hook.requests.filter(request => request.path === `/${table}`).length, 1, `${table}: delivered once`)
    }
  }
)
