/** A primary and its standby, which can be demoted, frozen and promoted. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Embedded, startEmbedded } from '../../../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../../src/migrate/migrate.ts'

export type Pair = Awaited<ReturnType<typeof startPair>>

const limitMs = 60_000
const settings = { wal_retrieve_retry_interval: '200ms' }

export const startPair = async (dir: string, isSynchronous: boolean) => {
  const binDir = process.env.TEST_POSTGRES_BIN
  const homeOf = (name: string) => join(dir, name)
  const dataOf = (name: string) => join(homeOf(name), 'postgres', 'data')
  const becomeStandby = (name: string) => writeFileSync(join(dataOf(name), 'standby.signal'), '')
  mkdirSync(homeOf('a'))
  for (const path of [dir, homeOf('a')]) chmodSync(path, 0o755) // the servers' system user must get in
  const first = await startEmbedded({ dataDir: homeOf('a'), binDir })
  await migrate({ connectionString: first.url })
  await query(first.url, 'create table public.probe (id bigint generated always as identity)')
  await first.stop()
  execFileSync('cp', ['-a', homeOf('a'), homeOf('b')])

  const primary = await startEmbedded({
    dataDir: homeOf('a'),
    binDir,
    settings: { ...settings, ...(isSynchronous && { synchronous_standby_names: 'b' }) }
  })
  const { port, username, password } = new URL(primary.url)
  becomeStandby('b')
  const source = `host=127.0.0.1 port=${port} user=${username} password=${password} application_name=b`
  const standby = await startEmbedded({ dataDir: homeOf('b'), binDir, settings: { ...settings, primary_conninfo: source } })
  await until(async () => (await query(primary.url, "select from pg_stat_replication where state = 'streaming'")).length > 0)

  let frozen: number[] = []
  const thaw = () => {
    for (const pid of frozen.splice(0)) process.kill(pid, 'SIGCONT')
  }
  process.on('exit', thaw)

  return {
    primary,
    standby,

    /** Restarts the primary as a standby; the other one follows it. */
    demote: async () => {
      becomeStandby('a')
      const { pid } = primary
      process.kill(pid, 'SIGINT')
      await until(async () => primary.pid !== pid && (await query(primary.url, 'select pg_is_in_recovery() as it'))[0]!.it)
    },

    /** Makes a standby the primary. Resolves with the instant at which it takes writes. */
    promote: async (server: Embedded) => {
      await query(server.url, 'select pg_promote()')
      await until(() => query(server.url, 'insert into public.probe default values').then(() => true))
      return Date.now()
    },

    /** Stops all processes of the primary. The standby has everything that was committed: first stop those that commit. */
    freeze: async () => {
      const rows = await query(primary.url, 'select pid, backend_type as type from pg_stat_activity where pid <> pg_backend_pid()')
      const pids = (commits: boolean) => rows.filter(({ type }) => (type === 'client backend') === commits).map(({ pid }) => pid as number)
      const stop = (list: number[]) => {
        frozen = [...frozen, ...list]
        for (const pid of list) process.kill(pid, 'SIGSTOP')
      }
      stop([primary.pid, ...pids(true)])
      await delay(100)
      stop(pids(false))
    },

    close: async () => {
      thaw()
      process.off('exit', thaw)
      await Promise.all([primary, standby].map(server => server.stop()))
    }
  }
}

export const query = async (connectionString: string, text: string) => {
  const client = new pg.Client({ connectionString, application_name: 'chaos', connectionTimeoutMillis: 5000, query_timeout: 20_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(text)).rows
  } finally {
    client.connection.stream.destroy()
  }
}

const until = async (condition: () => Promise<unknown>) => {
  for (const end = Date.now() + limitMs; ; await delay(20)) {
    try {
      if (await condition()) return
    } catch (error) {
      if (Date.now() > end) throw error
    }
    if (Date.now() > end) throw new Error(`not within ${limitMs / 1000} s: ${condition}`)
  }
}
