/** Replicas with a database whose defaults are odd, directly and behind a real PgBouncer in transaction mode, as packaged by Debian. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import t, { type Test } from 'tap'
import { dumpSchema } from '../../scripts/dump-schema.ts'
import { createPool } from '../../src/database/pool.ts'
import { findPort } from '../../src/startup/port.ts'
import { createDatabase, testConfig } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { expected, setOddDefaults, settings } from '../support/odd-defaults.ts'
import { receiver } from '../support/receiver.ts'
import { startReplica } from '../support/replica.ts'

const program = process.env.PGBOUNCER_PATH ?? '/usr/sbin/pgbouncer'

/** The URL of the database through PgBouncer, which has few connections for any number of clients. */
const startPgBouncer = async (t: Test, databaseUrl: string): Promise<string> => {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const listenPort = await findPort(testConfig(databaseUrl))
  const dir = t.testdir({})
  const file = join(dir, 'pgbouncer.ini')
  const name = pathname.slice(1)
  writeFileSync(
    file,
    `[databases]
${name} = host=${hostname} port=${port} dbname=${name} user=${username} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
`
  )
  for (const one of [dir, file]) chmodSync(one, 0o755)
  // PgBouncer refuses to run as root.
  const child = spawn(program, ['-q', file], { stdio: 'ignore', ...(process.getuid?.() === 0 && { uid: 65534, gid: 65534 }) })
  t.teardown(() => child.kill('SIGKILL'))
  const isListening = async () => {
    const socket = connect(listenPort, '127.0.0.1')
    await once(socket, 'connect').finally(() => socket.destroy())
    return true
  }
  await eventually(() => isListening().catch(() => false))
  return Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(listenPort) }).href
}

const missing = { skip: !existsSync(program) && `there is no ${program}` }

t.test("sessions behind PgBouncer have the service's settings in its transactions only", missing, async t => {
  const database = await createDatabase(t)
  await setOddDefaults(database)
  const url = await startPgBouncer(t, database.url)
  const pool = createPool({ databaseUrl: url, pgPoolMax: 12, pooled: true })
  t.teardown(() => pool.end())
  const objectOf = (rows: { name: string; setting: string }[]) => Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
  const forms = [{ text: settings }, { text: `${settings} and $1`, values: [true] }, { name: 'named', text: settings }]
  for (let n = 0; n < 40; n++) {
    const results = await Promise.all(Array.from({ length: 12 }, (_, i) => pool.query(forms[(n + i) % 3]!)))
    for (const { rows } of results) if (!isDeepStrictEqual(objectOf(rows), expected)) t.same(objectOf(rows), expected)
  }
  const client = await pool.connect()
  for (const end of ['commit', 'rollback']) {
    t.equal((await client.query('begin')).command, 'BEGIN')
    await delay(50)
    t.same(objectOf((await client.query(settings)).rows), expected)
    t.equal((await client.query(end)).command, end.toUpperCase())
  }
  t.same(pluck((await client.query('select 1 as a; select 2 as b')) as unknown as pg.QueryResult[], 'rows'), [[{ a: 1 }], [{ b: 2 }]])
  await t.rejects(client.query('select 1 / $1::int', [0]), { code: '22012' })
  t.same((await client.query('select $1::text as c', ['d'])).rows, [{ c: 'd' }])
  client.release()
  await t.rejects(pool.query({ text: 'select pg_sleep(5)', query_timeout: 100 } as pg.QueryConfig), { message: 'Query read timeout' })

  const other = new pg.Client({ connectionString: url })
  await other.connect()
  exactly(t, objectOf((await other.query(settings)).rows), {
    bytea_output: 'escape',
    transaction_isolation: 'repeatable read',
    search_path: 'odd'
  })
  await other.end()
})

for (const isPooled of [false, true])
  t.test(`two replicas serve and deliver ${isPooled ? 'through PgBouncer' : 'directly'}`, isPooled ? missing : {}, async t => {
    const database = await createDatabase(t, { migrated: isPooled })
    await setOddDefaults(database)
    const { url, pool } = database
    const { url: callback_url, requests } = await receiver(t)
    const env = {
      DATABASE_URL: isPooled ? await startPgBouncer(t, url) : url,
      LISTEN_URL: url,
      CALLBACK_ALLOW_HTTP: 'on',
      CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
      RATE_LIMIT: 'off',
      LOG_LEVEL: 'warn'
    }
    const replicas = [startReplica(t, env), startReplica(t, env)]
    const addresses: string[] = []
    for (const replica of replicas) addresses.push(await eventually(() => /serves at (\S+)/.exec(replica.stderr())?.[1], 60_000))

    const call = async (n: number, path: string, body?: object, key?: string) => {
      const headers = { ...(body && { 'content-type': 'application/json' }), ...(key && { authorization: `Bearer ${key}` }) }
      const init = { method: body ? 'POST' : 'GET', headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await fetch(addresses[n % 2]! + path, init)
      // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
      return { status: answer.status, body: (await answer.json()) as any }
    }
    const registered = await Promise.all(
      Array.from({ length: 6 }, (_, n) => call(n, '/v1/auth/register', { email: `agent-${n}@example.com` }))
    )
    t.same(new Set(registered.map(({ status }) => status)), new Set([201]))
    const description = "C:\\temp\\'ü"
    /** A cue of each account, due soon. */
    const create = async () => {
      const at = new Date(Date.now() + 6000).toISOString()
      const cue = { name: 'job', at, callback_url, description, tags: ['null'], payload: { description } }
      const created = await Promise.all(registered.map(({ body }, n) => call(n, '/v1/cues', cue, body.api_key)))
      t.same(new Set(created.map(({ status }) => status)), new Set([201]))
      for (const { body } of created) exactly(t, body, { description, tags: ['null'], next_run: at, schedule: { at } })
    }
    const delivered = (count: number) =>
      eventually(async () => {
        const { rows } = await pool.query("select count(*) from cue.executions where status = 'success'")
        return rows[0].count === count
      }, 30_000)
    await create()
    await delivered(6)
    t.equal(requests.length, 6)
    for (const { body, headers } of requests) {
      t.same(JSON.parse(body), { description })
      t.ok(Math.abs(Date.parse(String(headers['x-service-scheduled-for'])) - Date.now()) < 60_000)
    }
    exactly(t, await call(0, '/health'), { body: { status: 'healthy', services: { postgres: 'healthy' } } })
    const { body } = await call(0, '/v1/executions', undefined, registered[0]!.body.api_key)
    exactly(t, body, { total: 1, executions: [{ status: 'success', started_at: /^20\d\d-.*Z$/ }] })
    t.same(
      replicas.flatMap(replica => replica.lines().map(line => line.msg)),
      []
    )
    if (!isPooled) t.equal(await dumpSchema(pool), await dumpSchema((await createDatabase(t)).pool), 'migrated as usual')

    await pool.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
    )
    await eventually(async () => (await call(0, '/v1/executions', undefined, registered[0]!.body.api_key)).status === 200, 30_000)
    await eventually(async () => (await call(1, '/v1/executions', undefined, registered[0]!.body.api_key)).status === 200, 30_000)
    await create()
    await delivered(12)
    t.equal(requests.length, 12)
  })
