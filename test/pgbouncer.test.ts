/** Replicas behind a real PgBouncer in transaction mode, as packaged by Debian: without named prepared statements. */
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { findPort } from '../src/startup/port.ts'
import { createDatabase, testConfig } from './database.ts'
import { eventually } from './eventually.ts'
import { receiver } from './receiver.ts'
import { startReplica } from './replica.ts'

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
  return Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(listenPort) }).href
}

t.test('two replicas serve and deliver through PgBouncer', { skip: !existsSync(program) && `there is no ${program}` }, async t => {
  const { url, pool } = await createDatabase(t)
  const pooled = await startPgBouncer(t, url)
  const { url: callback_url, requests } = await receiver(t)
  const env = {
    DATABASE_URL: pooled,
    LISTEN_URL: url,
    CALLBACK_ALLOW_HTTP: 'on',
    CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
    RATE_LIMIT: 'off',
    LOG_LEVEL: 'warn'
  }
  const replicas = [startReplica(t, env), startReplica(t, env)]
  const addresses: string[] = []
  for (const replica of replicas) addresses.push(await eventually(() => /serves at (\S+)/.exec(replica.stderr())?.[1], 60_000))

  const post = async (base: string, path: string, body: object, key?: string) => {
    const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) }
    const answer = await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) })
    // biome-ignore lint/suspicious/noExplicitAny: answers of two shapes
    return { status: answer.status, body: (await answer.json()) as any }
  }
  const registered = await Promise.all(
    Array.from({ length: 6 }, (_, n) => post(addresses[n % 2]!, '/v1/auth/register', { email: `agent-${n}@example.com` }))
  )
  t.same(new Set(registered.map(({ status }) => status)), new Set([201]))
  const at = new Date(Date.now() + 1000).toISOString()
  const created = await Promise.all(
    registered.map(({ body }, n) => post(addresses[n % 2]!, '/v1/cues', { name: 'job', at, callback_url }, body.api_key))
  )
  t.same(new Set(created.map(({ status }) => status)), new Set([201]))
  await eventually(async () => {
    const { rows } = await pool.query("select count(*) from cue.executions where status = 'success'")
    return rows[0].count === 6
  })
  t.equal(requests.length, 6)
  t.same(
    replicas.flatMap(replica => replica.lines().map(line => line.msg)),
    []
  )
})
