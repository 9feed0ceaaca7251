/** The environment of every measure: a durable PostgreSQL in a temporary directory, a receiver, and replicas of the service. */
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { freePort, startEmbedded } from '../../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { type Child, cpuSeconds, endAll, place, start } from './processes.ts'
import type { Received, Tenths } from './receiver.ts'

export type Stage = Awaited<ReturnType<ReturnType<typeof openStage>['open']>>
export type Replica = { url: string; databaseUrl: string; pool: pg.Pool; process: Child; stop: () => Promise<void> }

export const secrets = { ENCRYPTION_KEYS: randomBytes(32).toString('base64'), SESSION_SECRET: randomBytes(32).toString('base64') }

const unlimited = { requests_per_minute: 1_000_000, cues: 10_000_000, executions_per_month: 100_000_000 }
const patienceMs = 60_000

/** `open` starts database and receiver; `close` ends everything started, at any time. */
export const openStage = () => {
  const dir = mkdtempSync(join(tmpdir(), 'pgcue-bench-'))
  chmodSync(dir, 0o755) // accessible to the server's system user
  // Not awaited yet, so that Ctrl-C during startup can end it.
  const starting = startEmbedded({ dataDir: dir, binDir: process.env.BENCH_POSTGRES_BIN, settings: { log_line_prefix: '%a %d: ' } })

  const connect = (connectionString: string) => new pg.Pool({ connectionString, application_name: 'bench', max: 4 }).on('error', () => {})

  const open = async () => {
    const server = await starting
    place(server.pid, 'around')
    const admin = connect(server.url)
    const receiver = start('scripts/bench/receiver.ts', 'around')
    const hook = `http://127.0.0.1:${await receiver.ask<number>('listen')}`

    /** Creates an empty database. */
    const createDatabase = async (name: string) => {
      await admin.query(`create database ${name}`)
      const url = Object.assign(new URL(server.url), { pathname: name }).href
      return { url, pool: connect(url) }
    }

    /** Creates a database with our tables and functions. */
    const createOurs = async (name: string, cell?: number) => {
      const database = await createDatabase(name)
      await migrate({ connectionString: database.url, cell })
      return database
    }

    return {
      version: (await admin.query('show server_version')).rows[0].server_version as string,
      serverLog: join(dir, 'postgres', 'server.log'),
      receiver: {
        url: hook,
        usage: receiver.usage,
        reset: () => receiver.ask<void>('reset'),
        received: () => receiver.ask<Received>('received'),
        deliveries: () => receiver.ask<{ at: number; due: number }[]>('deliveries'),
        count: () => receiver.ask<number>('count'),
        tenths: () => receiver.ask<Tenths>('tenths'),
        /** Resolves when `count` deliveries have arrived. */
        wait: (count: number, limitMs = patienceMs) => receiver.ask<Received>('wait', count, limitMs),
        release: () => receiver.ask<void>('release')
      },
      databaseCpu: () => cpuSeconds(server.pid),
      createDatabase,
      createOurs,

      /** Starts a replica as `npm start` does, without rate limits, on its own database or that of another replica. */
      startReplica: async (
        name: string,
        env: Record<string, string> = {},
        other?: Pick<Replica, 'databaseUrl' | 'pool'>
      ): Promise<Replica> => {
        const { url: databaseUrl, pool } = other ? { url: other.databaseUrl, pool: other.pool } : await createOurs(name)
        const port = await freePort()
        const process = start('src/server.ts', 'tested', {
          DATABASE_URL: databaseUrl,
          HOST: '127.0.0.1',
          PORT: String(port),
          CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
          CALLBACK_ALLOW_HTTP: 'on',
          PLANS: JSON.stringify({ free: unlimited }),
          ...secrets,
          ...env
        })
        const url = `http://127.0.0.1:${port}`
        await hasStarted(url, process, env.ROLES === 'api')
        return { url, databaseUrl, pool, process, stop: process.stop }
      }
    }
  }

  /** Ends everything, whatever its state. */
  const close = async () => {
    endAll()
    const server = await starting.catch(() => undefined)
    await server?.stop()
    rmSync(dir, { recursive: true, force: true })
  }
  return { open, close }
}

/** Without an engine, /status reports `down`, so for an API alone any response is enough. */
const hasStarted = async (url: string, process: Child, isApiOnly: boolean) => {
  for (const end = Date.now() + patienceMs; ; await delay(50)) {
    await process.usage() // rejects with the process's output if it has ended
    const answer = await fetch(`${url}/status`).catch(() => undefined)
    if (answer && (answer.ok || isApiOnly)) return
    if (Date.now() > end) throw new Error(`the service does not get well: ${answer && (await answer.text())}`)
  }
}
