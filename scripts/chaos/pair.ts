/** A primary and its standby, which can be demoted, frozen and promoted. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Embedded, startEmbedded } from '../../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { atEnd } from '../stage/processes.ts'
import { query, type Stage } from '../stage/stage.ts'

export type Pair = Awaited<ReturnType<typeof startPair>>

const limitMs = 60_000
const settings = { wal_retrieve_retry_interval: '200ms' }

export const startPair = async (stage: Stage, name: string, isSynchronous: boolean) => {
  const [a, b] = [`${name}-a`, `${name}-b`]
  const homeOf = (server: string) => join(stage.dir, server)
  const becomeStandby = (server: string) => writeFileSync(join(homeOf(server), 'postgres', 'data', 'standby.signal'), '')
  prepared ??= prepareHome(homeOf('pair'))
  for (const name of [a, b]) execFileSync('cp', ['-a', await prepared, homeOf(name)])

  const primary = await stage.startServer(a, { ...settings, ...(isSynchronous && { synchronous_standby_names: 'b' }) })
  const { port, username, password } = new URL(primary.url)
  becomeStandby(b)
  const primary_conninfo = `host=127.0.0.1 port=${port} user=${username} password=${password} application_name=b`
  const standby = await stage.startServer(b, { ...settings, primary_conninfo })
  await until(async () => (await query(primary.url, "select from pg_stat_replication where state = 'streaming'")).length > 0)

  let frozen: number[] = []
  const thaw = () => {
    for (const pid of frozen.splice(0)) process.kill(pid, 'SIGCONT')
  }
  process.on('exit', thaw)
  atEnd(thaw)

  return {
    primary,
    standby,

    /** Restarts the primary as a standby; the other one follows it. */
    demote: async () => {
      becomeStandby(a)
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
    thaw
  }
}

/** A migrated server that has stopped, as both begin: made once, and copied for each pair. */
const prepareHome = async (dataDir: string) => {
  mkdirSync(dataDir)
  const { url, stop } = await startEmbedded({ dataDir, binDir: process.env.TEST_POSTGRES_BIN })
  await migrate({ connectionString: url })
  await query(url, 'create table public.probe (id bigint generated always as identity)')
  await stop()
  rmSync(join(dataDir, 'postgres', 'data', 'postmaster.opts')) // the port
  return dataDir
}
let prepared: Promise<string> | undefined

const until = async (condition: () => Promise<unknown>) => {
  for (const end = Date.now() + limitMs; ; await delay(20)) {
    const result = await condition().catch((error: Error) => error)
    if (result && !(result instanceof Error)) return
    if (Date.now() > end) throw result || new Error(`not within ${limitMs / 1000} s: ${condition}`)
  }
}
