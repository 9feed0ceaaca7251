/** The environment of every measure and scenario: PostgreSQL in a temporary directory, databases, replicas of the service, and a receiver. */
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { devNull, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { freePort, startEmbedded } from '../../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { atEnd, type Child, cpuSeconds, here, start } from './processes.ts'
import type { Arrivals, Send } from './receiver.ts'

export type Stage = Awaited<ReturnType<typeof openStage>>
export type Database = { name: string; url: string; pool: pg.Pool }
export type Replica = Child & {
  /** URL of its API. */
  address: string
  /** Errors it logged, except for database outages. */
  errors: () => string[]
}
type Options = {
  /** Where the temporary directory is made. */
  parent?: string
  durable?: boolean
  settings?: Record<string, string>
}

const patienceMs = 60_000
export const secrets = { ENCRYPTION_KEYS: randomBytes(32).toString('base64'), SESSION_SECRET: randomBytes(32).toString('base64') }
const unlimited = { requests_per_minute: 1_000_000, cues: 10_000_000, executions_per_month: 1_000_000_000 }

const connect = (connectionString: string) => {
  const pool = new pg.Pool({ connectionString, application_name: 'stage', max: 4 }).on('error', () => {})
  atEnd(() => pool.end())
  return pool
}

/** Runs a statement on a connection of its own, which a hanging server doesn't keep. */
export const query = async (connectionString: string, text: string) => {
  const client = new pg.Client({ connectionString, application_name: 'stage', connectionTimeoutMillis: 5000, query_timeout: 20_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(text)).rows
  } finally {
    client.connection.stream.destroy()
  }
}

/** Makes a database beside another one. */
export const addDatabase = async (server: string, name: string, template = 'template0'): Promise<string> => {
  await query(server, `create database ${name} template ${template}`)
  return Object.assign(new URL(server), { pathname: name }).href
}

export const openStage = async ({ parent = tmpdir(), durable = true, settings }: Options = {}) => {
  const dir = mkdtempSync(join(parent, 'pgcue-stage-'))
  chmodSync(dir, 0o755) // accessible to the servers' system user
  atEnd(keepsLogs => {
    const data = readdirSync(dir).map(name => join(dir, name, 'postgres', 'data'))
    for (const path of keepsLogs ? data : [dir]) rmSync(path, { recursive: true, force: true })
  })

  const startServer = async (name: string, more: Record<string, string> = {}) => {
    const dataDir = join(dir, name)
    mkdirSync(dataDir, { recursive: true })
    const starting = startEmbedded({ dataDir, binDir: process.env.TEST_POSTGRES_BIN, durable, settings: { ...settings, ...more } })
    atEnd(async () => (await starting).stop()) // Ctrl-C may come before it has started
    return starting
  }
  const server = await startServer('server')
  const receiver = start('scripts/stage/receiver.ts')
  const hook = `http://127.0.0.1:${await receiver.ask<number>('listen')}`
  let databases = 0
  let pristine: Promise<unknown> | undefined

  return {
    /** Directory of the logs. */
    dir,
    serverUrl: server.url,
    serverLog: join(dir, 'server', 'postgres', 'server.log'),
    version: (await query(server.url, 'show server_version'))[0].server_version as string,
    databaseCpu: () => cpuSeconds(server.pid),
    startServer,
    connect,
    receiver: {
      url: hook,
      pid: receiver.pid,
      reset: () => receiver.ask<void>('reset'),
      count: () => receiver.ask<number>('count'),
      arrivals: () => receiver.ask<Arrivals>('arrivals'),
      sends: () => receiver.ask<Send[]>('sends'),
      release: () => receiver.ask<void>('release'),
      /** Resolves with the number of deliveries when there are `count`, or at the time limit. */
      wait: (count: number, limitMs = patienceMs) => receiver.ask<number>('wait', { count, limitMs }, limitMs + 10_000)
    },

    /** Creates a database, with our tables and functions unless `isEmpty`. */
    createDatabase: async (prefix: string, { isEmpty = false } = {}): Promise<Database> => {
      const name = `${prefix}_${++databases}`
      if (!isEmpty) pristine ??= addDatabase(server.url, 'pristine').then(connectionString => migrate({ connectionString }))
      await pristine
      const url = await addDatabase(server.url, name, isEmpty ? undefined : 'pristine')
      return { name, url, pool: connect(url) }
    },

    /** Crashes PostgreSQL by an immediate restart. Resolves when it accepts connections again. */
    crash: async () => {
      const { pid } = server
      process.kill(pid, 'SIGQUIT')
      for (const end = Date.now() + patienceMs; server.pid === pid; await delay(5)) {
        if (Date.now() > end) throw new Error('PostgreSQL does not come back')
      }
    },

    /** Starts a replica as `npm start` does, without rate limits, of the release in a directory, by default of this one. */
    startReplica: async (name: string, env: Record<string, string>, root = here): Promise<Replica> => {
      const port = await freePort()
      const log = env.LOG_LEVEL ? devNull : join(dir, `${name}.log`) // other levels are for measuring their cost
      const child = start('src/server.ts', {
        root,
        isTested: true,
        log,
        env: {
          MIGRATE: root === here ? 'off' : 'on',
          HOST: '127.0.0.1',
          PORT: String(port),
          CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
          CALLBACK_ALLOW_HTTP: 'on',
          PLANS: JSON.stringify({ free: unlimited }),
          LOG_LEVEL: 'warn',
          ...secrets,
          ...env
        }
      })
      const address = `http://127.0.0.1:${port}`
      await isUp(address, child, log, env.ROLES === 'api')
      return { ...child, address, errors: () => linesOf(log).filter(isError) }
    }
  }
}

/** Without an engine, /status reports `down`, so for an API alone any response is enough. */
const isUp = async (address: string, child: Child, log: string, isApiOnly: boolean) => {
  let hasEnded = false
  void child.exited.then(() => {
    hasEnded = true
  })
  for (const end = Date.now() + patienceMs; ; await delay(50)) {
    const response = await fetch(`${address}/status`).catch(() => undefined)
    if (response && (response.ok || isApiOnly)) return
    if (hasEnded || Date.now() > end) throw new Error(`a replica does not start:\n${linesOf(log).slice(-20).join('\n')}`)
  }
}

const linesOf = (file: string) => readFileSync(file, 'utf8').split('\n')

/** Log lines are JSON; lines of a crash are not. */
const isError = (line: string) => {
  try {
    const { level, code, msg } = JSON.parse(line)
    return level >= 50 && code !== 'unavailable' && msg !== 'rate limits skipped'
  } catch {
    return /Error\b/.test(line)
  }
}
