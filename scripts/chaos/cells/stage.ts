/** Replicas over two cells, of which the second can move to another server, and the operator's tool. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { migrate } from '../../../src/migrate/migrate.ts'
import { here } from '../../stage/processes.ts'
import { addDatabase, type Stage } from '../../stage/stage.ts'

/** Of both servers: many small tables are copied at once, and what fails is soon tried again. */
export const settings = {
  wal_level: 'logical',
  max_connections: '200',
  max_worker_processes: '24',
  max_logical_replication_workers: '16',
  max_sync_workers_per_subscription: '8',
  max_replication_slots: '24',
  max_wal_senders: '24',
  wal_retrieve_retry_interval: '200ms'
}

type Options = {
  replicas: number
  /** Empty databases: of the home cell, of cell 2, and where that can move. */
  databases?: [string, string, string]
}

/** Databases for both cells, and to move cell 2 to. */
export const createCells = async ({ serverUrl }: Stage, targetServer: string): Promise<[string, string, string]> => [
  await addDatabase(serverUrl, 'home'),
  await addDatabase(serverUrl, 'two'),
  await addDatabase(targetServer, 'moved')
]

/** `cells` are the URLs of CELLS, `empty` is a database for cell 2. */
export const openCells = async (stage: Stage, { replicas: count, databases }: Options) => {
  const [home, two, empty] = databases ?? (await createCells(stage, stage.serverUrl))
  const cells: [string, string] = [home, two]
  await Promise.all(cells.map((connectionString, index) => migrate({ connectionString, cell: index + 1 })))
  const startReplica = (name: string) =>
    stage.startReplica(name, { CELLS: cells.join('\n'), RATE_LIMIT: 'off', REGISTER_CELLS: '2', MIGRATE: 'on' })
  const replicas = await Promise.all(Array.from({ length: count }, (_, n) => startReplica(`cells-${n + 1}`)))
  return { cells, empty, addresses: replicas.map(({ address }) => address), startReplica }
}

/** `pgcue-admin` with these settings. What it prints goes to `onLine`, too. */
export const runAdmin = (cells: readonly string[], args: string[], onLine: (line: string) => void = () => {}) => {
  const { PATH, HOME, TMPDIR } = process.env
  const child = spawn(process.execPath, ['src/admin/main.ts', 'cells', ...args], {
    cwd: here,
    env: { PATH, HOME, TMPDIR, CELLS: cells.join(' ') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true
  })
  let [out, err] = ['', '']
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
