/** The roles of sql/roles.sql, with logins that have no other rights: exactly what each may do. */
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { build as buildApp } from '../../src/app.ts'
import { createPool } from '../../src/database/pool.ts'
import { startEmbedded } from '../../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { createDatabase, testConfig } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { memoryDir } from '../support/memory-dir.ts'
import { build, eventually, receiver } from '../support/setup.ts'
import { connectAdmin } from '../support/template.ts'

const denied = { code: '42501' }

/** A login, dropped after everything created later in the test. */
const createLogin = async (t: Test, options = '') => {
  const [name, password] = [`test_${randomBytes(6).toString('hex')}`, randomBytes(12).toString('hex')]
  const asAdmin = async (text: string) => {
    const admin = await connectAdmin()
    await admin.client.query(text).finally(() => admin.end())
  }
  await asAdmin(`create role ${name} login password '${password}' ${options}`)
  t.teardown(() => asAdmin(`drop role ${name}`).catch(() => {})) // a failed test keeps its database, and with it the role
  return { name, urlOf: (url: string) => Object.assign(new URL(url), { username: name, password }).href }
}

/** A connection of a login that is a member of only this role. */
const connectAs = async (t: Test, role: string, url: string) => {
  const client = new pg.Client((await createLogin(t, `in role ${role}`)).urlOf(url))
  await client.connect()
  t.teardown(() => client.end())
  const rows = async (text: string, values: unknown[] = []) => (await client.query(text, values)).rows
  return {
    rows,
    refused: (text: string, values: unknown[] = []) => t.rejects(client.query(text, values), denied, text),
    /** The functions of schema cue it may call. */
    callable: async () =>
      (
        await rows(
          `select distinct proname as name from pg_proc
            where pronamespace = 'cue'::regnamespace and has_function_privilege(oid, 'execute') order by 1`
        )
      ).map(row => row.name)
  }
}

const relations = async (pool: pg.Pool, kinds: string): Promise<string[]> => {
  const text = "select oid::regclass::text as name from pg_class where relnamespace = 'cue'::regnamespace and relkind = any ($1) order by 1"
  return (await pool.query(text, [kinds.split('')])).rows.map(row => row.name)
}

t.test('a login without a role has no rights to anything of ours', async t => {
  const { url } = await createDatabase(t)
  const client = new pg.Client((await createLogin(t)).urlOf(url))
  await client.connect()
  t.teardown(() => client.end())
  const { rows } = await client.query(
    `with ours as (select oid from pg_namespace where nspname in ('cue', 'pgboss'))
     select 'schema ' || oid::regnamespace as name from ours where has_schema_privilege(oid, 'usage') or has_schema_privilege(oid, 'create')
     union all
     select 'function ' || p.oid::regprocedure from ours join pg_proc p on p.pronamespace = ours.oid where has_function_privilege(p.oid, 'execute')
     union all
     select 'relation ' || c.oid::regclass from ours join pg_class c on c.relnamespace = ours.oid
      where c.relkind in ('r', 'p', 'v', 'm') and has_table_privilege(c.oid, 'select, insert, update, delete, truncate')
         or c.relkind = 'S' and has_sequence_privilege(c.oid, 'usage, select, update')
     order by 1`
  )
  t.same(rows, [])
})

t.test('the service needs only cue_service', async t => {
  await createDatabase(t) // the roles are there once any database was migrated
  const login = await createLogin(t, 'in role cue_service')
  const { url, pool: owner } = await createDatabase(t)
  const lines: string[] = []
  await migrate({ connectionString: login.urlOf(url), log: line => lines.push(line) })
  t.strictSame(lines, [], 'a migrated database asks for nothing more')

  const config = testConfig(login.urlOf(url))
  const pool = createPool(config)
  t.teardown(() => pool.end())
  const app = await buildApp({ config, pool })
  t.teardown(() => app.close())
  await app.fn.setPlans({ plans: { ...config.plans, free: { ...config.plans.free, cues: 11 } } })
  await startEngine(t, config)
  const target = await receiver(t, ({ path }) => ({ status: path === '/refuse' ? 500 : 200 }))

  let key = ''
  const ask = async (status: number, method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object, headers = {}) => {
    const answer = await app.inject({
      method,
      url: path,
      payload: body,
      headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers }
    })
    t.equal(answer.statusCode, status, `${method} ${path} ${answer.body.slice(0, 300)}`)
    return answer.body && answer.json()
  }
  key = (await ask(201, 'POST', '/v1/auth/register', { email: 'someone@example.com' })).api_key
  exactly(t, await ask(200, 'GET', '/v1/auth/me'), { active_cue_limit: 11 })
  await ask(200, 'PATCH', '/v1/auth/me', { alert_webhook_url: `${target.url}alert`, memory_block_enabled: true })
  const { id: key_id } = await ask(201, 'POST', '/v1/auth/keys', { label: 'second' })
  await ask(200, 'DELETE', `/v1/auth/keys/${key_id}`)

  const at = new Date(Date.now() + 500).toISOString()
  const once = await ask(201, 'POST', '/v1/cues', { name: 'once', at, callback_url: `${target.url}once` })
  const refused = await ask(201, 'POST', '/v1/cues', {
    name: 'refused',
    at,
    callback: { url: `${target.url}refuse` },
    retry: { max_attempts: 2, backoff_minutes: [0] },
    alerts: { consecutive_failures: 1 },
    on_failure: { webhook: `${target.url}failed` }
  })
  const paths = async () => target.requests.map(request => request.path).sort()
  await eventually(async () => (await paths()).length >= 5)
  t.strictSame(await paths(), ['/alert', '/failed', '/once', '/refuse', '/refuse'])
  await eventually(async () => (await ask(200, 'GET', `/v1/cues/${once.id}`)).status === 'completed')
  exactly(t, await ask(200, 'GET', `/v1/cues/${refused.id}`), { status: 'failed', executions: [{ attempts: 2 }] })

  const { id: cue_id } = await ask(201, 'POST', '/v1/cues', { name: 'w', cron: '@hourly', worker: true })
  await ask(200, 'POST', '/v1/worker/heartbeat', { worker_id: 'w1', handlers: ['go'] })
  const { id } = await ask(200, 'POST', `/v1/cues/${cue_id}/fire`, { send_at: new Date(Date.now() + 300).toISOString() })
  await ask(200, 'POST', '/v1/executions/claim', { worker_id: 'w1', wait: 10 })
  await ask(200, 'POST', `/v1/executions/${id}/heartbeat`, undefined, { 'x-worker-id': 'w1' })
  await ask(200, 'POST', `/v1/executions/${id}/outcome`, { success: true })
  await ask(200, 'PATCH', `/v1/executions/${id}/evidence`, { external_id: 'x' })
  await ask(200, 'POST', `/v1/executions/${id}/verify`)
  const replay = await ask(200, 'POST', `/v1/executions/${id}/replay`)
  await ask(200, 'POST', `/v1/executions/${replay.id}/cancel`)
  for (const path of ['executions', 'alerts', 'workers', 'usage', 'auth/keys', 'auth/audit', 'memory-block'])
    await ask(200, 'GET', `/v1/${path}`)
  exactly(t, await ask(200, 'GET', '/health'), { status: 'healthy', replicas: 1 })

  await ask(204, 'DELETE', `/v1/cues/${cue_id}`)
  await eventually(async () => (await owner.query('select from cue.cues where id = $1', [cue_id])).rowCount === 0)
  const { fn } = app
  t.ok((await fn.maintainPartitions({ months: 13 })) > 0)
  t.strictSame(await fn.dropOldExecutions({ before: new Date(0) }), [])
  await Promise.all([fn.foldUsage({}), fn.prune({}), fn.requeueAttempts({}), fn.recoverStuck({}), fn.requeuePurges({})])
})

t.test('cue_service can change data only by functions', async t => {
  const { pool, url } = await createDatabase(t)
  const { refused } = await connectAs(t, 'cue_service', url)
  for (const table of await relations(pool, 'rp')) await refused(`delete from ${table}`)
  await refused("update cue.plans set cues = 1000000 where plan = 'free'")
  await refused('create table cue.mine ()')
  await refused('create table pgboss.mine ()')
})

t.test('cue_reader can read every view and nothing else', async t => {
  const { pool, url } = await createDatabase(t)
  const { rows, refused, callable } = await connectAs(t, 'cue_reader', url)
  const views = await relations(pool, 'v')
  t.ok(views.includes('cue.execution_view'))
  for (const view of views) t.ok(await rows(`select * from ${view}`), view)
  for (const table of await relations(pool, 'rp')) await refused(`select * from ${table}`)
  await refused('select * from pgboss.job')
  await refused('create table cue.mine ()')
  t.strictSame(
    await callable(),
    [
      'describe_held',
      'executions_used',
      'iso',
      'latest_executions',
      'latest_missed',
      'latest_signals',
      'mask',
      'mask_target',
      'show_parents',
      'usage_month',
      'uuid_v7_floor',
      'waiting_work'
    ],
    'functions that the views call'
  )
})

t.test('no view shows a secret', async t => {
  const { pool, fn, url, account, post } = await build(t)
  const { id: account_id } = account
  const by = { account_id, actor: 'test', ip: '127.0.0.1' }
  for (const overlap_seconds of [60, 60]) {
    await fn.regenerateWebhookSecret({ ...by, overlap_seconds })
    await fn.regenerateAlertWebhookSecret({ ...by, overlap_seconds })
  }
  const callback = { url: 'http://127.0.0.1/', headers: { 'x-token': 'a secret of the receiver' } }
  await post('/v1/cues', { name: 'n', cron: '@hourly', callback })
  const { id: cue_id } = await post('/v1/cues', { name: 'w', cron: '@hourly', worker: true })
  const { id } = await post(`/v1/cues/${cue_id}/fire`)
  const { claim_token } = await post(`/v1/executions/${id}/claim`)
  const { rows: stored } = await pool.query(
    `select webhook_secret, previous_webhook_secret, alert_webhook_secret, previous_alert_webhook_secret, ciphertext, key_hash::text
       from cue.accounts a join cue.api_keys k on k.account_id = a.id`
  )
  const secrets = [...Object.values<string>(stored[0]), account.api_key, callback.headers['x-token'], claim_token]
  t.ok(secrets.every(secret => secret?.length > 20))

  const { rows } = await connectAs(t, 'cue_reader', url)
  for (const view of await relations(pool, 'v')) {
    const shown = JSON.stringify(await rows(`select v::text from ${view} as v`))
    t.notOk(
      secrets.some(secret => shown.includes(secret)),
      view
    )
  }
  const { rows: read } = await pool.query(
    `select distinct w.ev_class::regclass || ' ' || a.attname as column
       from pg_rewrite w join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid and d.refclassid = 'pg_class'::regclass
       join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'cue'::regnamespace and c.relkind in ('r', 'p') and a.attname ~ 'secret|ciphertext|hash|token|device_code'`
  )
  t.strictSame(read, [{ column: 'cue.account_view webhook_secret' }], 'which only tells whether there is one')
})

t.test("cue_reader can group by a cue's objects and search in them", async t => {
  const { url, post } = await build(t)
  for (const name of ['a', 'b']) await post('/v1/cues', { name, cron: '@yearly', callback_url: 'https://example.com' })
  const { rows } = await connectAs(t, 'cue_reader', url)
  t.strictSame(await rows('select count(*)::int from cue.cue_view where retry @> \'{"max_attempts": 3}\' group by schedule, callback'), [
    { count: 2 }
  ])
})

t.test('cue_operator can fire, replay and cancel in psql, which wakes an engine', async t => {
  const { url, config, post, pool } = await build(t, undefined, { env: { POLL_INTERVAL_MS: '60000' } })
  const target = await receiver(t)
  await startEngine(t, config)
  await post('/v1/cues', { name: 'n', cron: '@yearly', callback_url: target.url })
  const { rows, refused, callable } = await connectAs(t, 'cue_operator', url)
  const [{ account_id, id: cue_id }] = await rows('select * from cue.cue_view')
  const [{ id }] = await rows('select id from cue.fire_cue($1, $2)', [account_id, cue_id])
  await target.received(1)
  await eventually(async () => (await rows('select status from cue.execution_view where id = $1', [id]))[0].status === 'success')
  exactly(t, await rows('select status, replayed_from from cue.replay_execution($1, $2)', [account_id, id]), [
    { status: 'pending', replayed_from: id }
  ])
  await target.received(2)
  const [deferred] = await rows("select id from cue.fire_cue($1, $2, p_send_at => now() + interval '1 hour')", [account_id, cue_id])
  t.strictSame(await rows('select status, error_message from cue.cancel_execution($1, $2)', [account_id, deferred.id]), [
    { status: 'failed', error_message: 'cancelled' }
  ])
  for (const sweep of ['requeue_attempts', 'recover_flights', 'recover_leases', 'recover_stuck', 'expire_outcomes', 'miss_unclaimed'])
    exactly(t, await rows(`select cue.${sweep}() as moved`), [{ moved: 0 }])
  exactly(t, await rows('select cue.repair_queues() as last'), [{ last: null }])
  for (const table of await relations(pool, 'rp')) await refused(`select * from ${table}`)
  await refused('select cue.webhook_secret($1)', [account_id])
  t.strictSame(await callable(), [
    ...[
      'acknowledge_alert',
      'cancel_execution',
      'describe_held',
      'destinations',
      'disk_use',
      'dismiss_execution',
      'executions_used',
      'expire_outcomes',
      'fire_cue',
      'floods',
      'forecast',
      'hold',
      'iso',
      'latest_executions',
      'latest_missed',
      'latest_signals',
      'mask',
      'mask_target',
      'miss_unclaimed',
      'recover_flights'
    ],
    ...[
      'recover_leases',
      'recover_stuck',
      'release',
      'repair_queues',
      'replay_execution',
      'replicas',
      'requeue_attempts',
      'set_limits',
      'set_plan',
      'set_ticket_status',
      'show_parents',
      'usage_month',
      'uuid_v7_floor',
      'waiting_work',
      'who_changed',
      'why_late'
    ]
  ])
})

t.test('an owner who may not create roles can migrate, and existing roles get their grants', async t => {
  await createDatabase(t) // the roles are there once any database was migrated
  const login = await createLogin(t)
  const { pool, url, name } = await createDatabase(t, { migrated: false })
  await pool.query(`alter database ${name} owner to ${login.name}`)
  const lines: string[] = []
  await migrate({ connectionString: login.urlOf(url), log: line => lines.push(line) })
  t.notOk(
    lines.some(line => /role|grant/.test(line) && !line.startsWith('Loaded')),
    lines.join('\n')
  )
  const reader = await connectAs(t, 'cue_reader', url)
  t.strictSame(await reader.rows('select * from cue.due_cues'), [])
  const service = await connectAs(t, 'cue_service', url)
  exactly(t, await service.rows('select * from cue.next_wakes()'), [{ waiting_at: null, has_flights: false }])
})

t.test('roles created later get their grants from the next migration', async t => {
  // Roles belong to the whole server, so this test uses a server without them.
  const dataDir = mkdtempSync(join(memoryDir(), 'pgcue-roles-'))
  chmodSync(dataDir, 0o755) // as root the server runs as another user
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const embedded = await startEmbedded({ dataDir, durable: false })
  t.teardown(() => embedded.stop())
  const superuser = new pg.Client(embedded.url)
  await superuser.connect()
  t.teardown(() => superuser.end())
  await superuser.query("create role owner login password 'x'; create role analyst login password 'x'")
  await superuser.query('create database owned owner owner')
  const urlOf = (username: string) => Object.assign(new URL(embedded.url), { username, password: 'x', pathname: 'owned' }).href

  const lines: string[] = []
  const run = async () => {
    lines.length = 0
    await migrate({ connectionString: urlOf('owner'), log: line => lines.push(line) })
    return lines.filter(line => !/^(Applied|Building)/.test(line))
  }
  exactly(t, await run(), [
    ...['cue_service', 'cue_reader', 'cue_operator'].map(role => new RegExp(`${role} is missing, .*: run "create role ${role} nologin"`)),
    /^Created the schema/
  ])
  await superuser.query('create role cue_service; create role cue_reader; create role cue_operator; grant cue_operator to analyst')
  exactly(t, await run(), [/^cue_operator cannot read, .*: run "grant cue_reader to cue_operator" as a user who may$/, /^Loaded/])
  await superuser.query('grant cue_reader to cue_operator')
  t.same(await run(), [])

  const analyst = new pg.Client(urlOf('analyst'))
  await analyst.connect()
  t.teardown(() => analyst.end())
  t.same((await analyst.query('select * from cue.due_cues')).rows, [])
  exactly(t, (await analyst.query('select cue.recover_leases() as moved')).rows, [{ moved: 0 }])
})
