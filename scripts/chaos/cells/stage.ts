/** Two PostgreSQL servers that can replicate to each other, the operator's tool, and replicas over two cells, of which the second moves. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { freePort, startEmbedded } from '../../../src/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../../src/migrate/migrate.ts'
import { type Child, start } from '../../bench/processes.ts'
import { secrets } from '../../bench/stage.ts'
import type { Send } from '../receiver.ts'

export type Stage = Awaited<ReturnType<typeof openStage>>

const patienceMs = 60_000
const admin = fileURLToPath(new URL('../../../src/admin/main.ts', import.meta.url))

/** Copies many small tables at once, and tries again soon. */
const settings = {
  wal_level: 'logical',
  max_connections: '200',
  max_worker_processes: '24',
  max_logical_replication_workers: '16',
  max_sync_workers_per_subscription: '8',
  max_replication_slots: '24',
  max_wal_senders: '24',
  wal_retrieve_retry_interval: '200ms'
}
const unlimited = { requests_per_minute: 1_000_000, cues: 1_000_000, executions_per_month: 1_000_000_000 }

type Options = {
  durable: boolean
  /** One is enough to move a database to, and takes less time. */
  servers?: 1 | 2
  replicas?: number
  /** Empty databases of servers that run already: of the home cell, of cell 2, and where that can move. */
  databases?: [string, string, string]
}

/** `cells` are the URLs of CELLS, `empty` is a database for cell 2. */
export const openStage = async ({ durable, servers = 2, replicas: count = 0, databases }: Options) => {
  const closing: (() => Promise<unknown>)[] = []
  const close = async () => {
    for (const one of closing.splice(0).reverse()) await one().catch(() => {})
  }
  try {
    const [home, second, empty] = databases ?? (await makeDatabases())
    const connect = (connectionString: string) => {
      const pool = new pg.Pool({ connectionString, max: 4 }).on('error', () => {})
      closing.push(() => pool.end())
      return pool
    }
    const cells: [string, string] = [home, second]
    await Promise.all(cells.map((connectionString, index) => migrate({ connectionString, cell: index + 1 })))
    const replicas = await Promise.all(Array.from({ length: count }, () => startReplica(cells)))

    let receiver: Child | undefined
    return {
      cells,
      empty,
      another: databases ? undefined : await addDatabase(home, 'another'),
      connect,
      addresses: replicas.map(({ address }) => address),
      startReplica,
      /** Where webhooks go, and what has arrived there. */
      receive: async () => {
        const child = start('scripts/chaos/receiver.ts', 'around')
        receiver = child
        closing.push(() => child.stop())
        return { url: `http://127.0.0.1:${await child.ask<number>('listen')}`, sends: () => receiver!.ask<Send[]>('sends') }
      },
      close
    }
  } catch (error) {
    await close()
    throw error
  }

  async function makeDatabases(): Promise<[string, string, string]> {
    const one = await startServer()
    const other = servers === 1 ? one : await startServer()
    return [await addDatabase(one.url, 'home'), await addDatabase(one.url, 'two'), await addDatabase(other.url, 'moved')]
  }

  async function startServer() {
    const dir = mkdtempSync(join(tmpdir(), 'pgcue-cells-'))
    chmodSync(dir, 0o755) // the server's system user must get in
    closing.push(async () => rmSync(dir, { recursive: true, force: true }))
    const server = await startEmbedded({ dataDir: dir, durable, settings })
    closing.push(() => server.stop())
    return server
  }

  async function startReplica(cells: readonly string[], env: Record<string, string> = {}) {
    const port = await freePort()
    const child = start('src/server.ts', 'around', {
      CELLS: cells.join('\n'),
      HOST: '127.0.0.1',
      PORT: String(port),
      CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
      CALLBACK_ALLOW_HTTP: 'on',
      RATE_LIMIT: 'off',
      REGISTER_CELLS: '2',
      PLANS: JSON.stringify({ free: unlimited }),
      LOG_LEVEL: 'warn',
      ...secrets,
      ...env
    })
    closing.push(() => child.stop())
    const address = `http://127.0.0.1:${port}`
    for (const end = Date.now() + patienceMs; ; await delay(50)) {
      const up = await fetch(`${address}/status`).catch(() => undefined)
      if (up?.ok) return { address, stop: child.stop }
      if (Date.now() > end) throw new Error('a replica does not start')
    }
  }
}

/** Makes a database beside another one. */
export const addDatabase = async (server: string, name: string): Promise<string> => {
  await withDatabase(server, `create database ${name}`)
  return Object.assign(new URL(server), { pathname: name }).href
}

export const withDatabase = async (url: string, query: string) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(query)).rows
  } finally {
    await client.end()
  }
}

/** `pgcue-admin` with these settings. What it prints goes to `onLine`, too. */
export const runAdmin = (cells: readonly string[], args: string[], onLine: (line: string) => void = () => {}) => {
  const { PATH, HOME, TMPDIR } = process.env
  const child = spawn(process.execPath, [admin, 'cells', ...args], {
    env: { PATH, HOME, TMPDIR, CELLS: cells.join(' ') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true
  })
  let out = ''
  let err = ''
  child.stdout.on('data', chunk => {
    const lines = `${out}${chunk}`.split('\n').slice(out.split('\n').length - 1, -1)
    out += chunk
    for (const line of lines) onLine(line)
  })
  child.stderr.on('data', chunk => {
    err += chunk
  })
  const ended = once(child, 'close').then(([code]): { code: number | null; out: string; err: string } => ({ code, out, err }))
  return { ended, signal: (name: NodeJS.Signals) => child.kill(name) }
}

/** Runs the tool, and kills it or stops it when it is about to take a step. */
export const interruptAdmin = async (cells: readonly string[], args: string[], step: RegExp, name: NodeJS.Signals) => {
  let seen = false
  const run = runAdmin(cells, args, line => {
    if (seen || !step.test(line)) return
    seen = true
    run.signal(name)
  })
  return { ...(await run.ended), seen }
}
