/** What cells cost: the same work with one cell and with two on the same server. More cells gain nothing here; on servers of their own, each adds one. */
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { addAccounts, addCues, schedule, settled } from './cues.ts'
import { type Figure, figuresOf, median } from './figures.ts'
import { type Contender, runHerd } from './herd.ts'
import type { Load, LoadResult } from './load.ts'
import type { Measure, Options } from './measure.ts'
import { start } from './processes.ts'
import type { Replica, Stage } from './stage.ts'

const accountCount = 100
const loadSeconds = 3
const warmUpSeconds = 1
const calmMs = 8000
const idleSeconds = 15
/** Cells of the replicas that are measured while idle. */
const idleCells = [1, 2, 4] as const
const paperCells = [4, 16, 61] as const

type Cells = { replica: Replica; pools: Replica['pool'][] }
type Run = Record<string, number>

const startCells = async (stage: Stage, name: string, count: number, env: Record<string, string> = {}): Promise<Cells> => {
  const databases = []
  for (let cell = 1; cell <= count; cell++) databases.push(await stage.createOurs(`${name}_${cell}_of_${count}`, cell))
  const [home] = databases as [(typeof databases)[0]]
  const cells = { DATABASE_URL: '', CELLS: databases.map(({ url }) => url).join(' ') }
  const replica = await stage.startReplica('', { ...cells, ...env }, { databaseUrl: home.url, pool: home.pool })
  return { replica, pools: databases.map(({ pool }) => pool) }
}

/** Accounts in all cells, each with its share of the cues. */
const fill = async (stage: Stage, { pools }: Cells, count: number) =>
  Promise.all(
    pools.map(async (pool, index) => {
      const accounts = await addAccounts(pool, accountCount / pools.length, `cell-${index + 1}`, index + 1)
      const cueIds = await addCues(pool, { accounts, count: count / pools.length, callbackUrl: `${stage.receiver.url}/hook` })
      return { pool, accounts, cueIds }
    })
  )

/** CPU per request: of a call whose key names the cell, and of one whose body does. */
const measureCalls = async (stage: Stage, runs: number): Promise<Run[]> => {
  const generator = start('scripts/bench/load.ts', 'around')
  const contenders = await Promise.all(
    ([1, 2] as const).map(async count => {
      const cells = await startCells(stage, 'calls', count, { ROLES: 'api', RATE_LIMIT: 'off' })
      const filled = await fill(stage, cells, accountCount)
      const requests = filled.flatMap(({ accounts }) =>
        accounts.map(({ api_key }) => ({ method: 'GET', path: '/v1/auth/me', headers: { authorization: `Bearer ${api_key}` } }))
      )
      const polls = Array.from({ length: accountCount }, (_, i) => ({
        method: 'POST',
        path: '/v1/auth/device-code/poll',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ device_code: `unknown-code-${i}` })
      }))
      return { count, replica: cells.replica, loads: { get: requests, poll: polls } }
    })
  )
  const run = async (replica: Replica, requests: Load['requests'], seconds: number) => {
    const before = { ...(await replica.process.usage()), database: stage.databaseCpu() ?? Number.NaN }
    const load: Load = { url: replica.url, requests, connections: accountCount, seconds }
    const { count, per_s, failed } = await generator.ask<LoadResult>('run', load)
    if (failed > 0) throw new Error(`${failed} requests to ${requests[0]!.path} failed`)
    const { cpu_s } = await replica.process.usage()
    const perRequest = (used: number) => (used / count) * 1e6
    return {
      per_s,
      cpu_us: perRequest(cpu_s - before.cpu_s),
      database_us: perRequest((stage.databaseCpu() ?? Number.NaN) - before.database)
    }
  }
  const rounds: Run[] = []
  for (let round = -1; round < runs; round++) {
    const figures: Run = {}
    for (const name of ['get', 'poll'] as const) {
      for (const { count, replica, loads } of contenders) {
        const { per_s, cpu_us, database_us } = await run(replica, loads[name], round < 0 ? warmUpSeconds : loadSeconds)
        Object.assign(figures, { [`${name}_per_s_of_${count}`]: per_s, [`${name}_cpu_us_of_${count}`]: cpu_us })
        if (!Number.isNaN(database_us)) figures[`${name}_database_us_of_${count}`] = database_us
      }
    }
    if (round >= 0) rounds.push(figures)
  }
  for (const { replica } of contenders) await replica.stop()
  await generator.stop()
  return rounds
}

/** Memory, connections, CPU and queries of idle replicas, measured side by side. */
const measureIdle = async (stage: Stage, contenders: readonly Cells[]): Promise<Run> => {
  await delay(calmMs)
  const [{ pools }] = contenders as [Cells]
  const admin = pools[0]!
  await admin.query("alter system set log_statement = 'all'")
  await admin.query('select pg_reload_conf()')
  await delay(100)
  const usage = () => Promise.all(contenders.map(({ replica }) => replica.process.usage()))
  const before = await usage()
  const logged = statSync(stage.serverLog).size
  await delay(idleSeconds * 1000)
  const log = readFileSync(stage.serverLog).subarray(logged).toString()
  const after = await usage()
  await admin.query('alter system reset log_statement')
  await admin.query('select pg_reload_conf()')
  const figures: Run = {}
  for (const [index, { pools }] of contenders.entries()) {
    const count = pools.length
    const statement = new RegExp(`^pgcue[^:]* idle_\\d+_of_${count}: LOG: +(statement|execute [^:]*):`, 'gm')
    const { rows } = await admin.query(
      `select count(*)::int as count from pg_stat_activity where datname like 'idle%of\\_${count}' and application_name like 'pgcue%'`
    )
    Object.assign(figures, {
      [`idle_memory_mb_of_${count}`]: after[index]!.rss_mb,
      [`idle_connections_of_${count}`]: rows[0].count,
      [`idle_queries_per_s_of_${count}`]: (log.match(statement)?.length ?? 0) / idleSeconds,
      [`idle_cpu_percent_of_${count}`]: ((after[index]!.cpu_s - before[index]!.cpu_s) / idleSeconds) * 100
    })
  }
  return figures
}

/** The same herd in one cell, and half of it in each of two. */
const measureHerds = async (stage: Stage, contenders: readonly Cells[], runs: number, n: number): Promise<Run[]> => {
  const herds = await Promise.all(
    contenders.map(async cells => {
      const filled = await fill(stage, cells, n)
      const contender: Contender = {
        prepare: async due => {
          for (const { pool, cueIds } of filled) await schedule(pool, cueIds, Array<number>(cueIds.length).fill(due))
        },
        usage: cells.replica.process.usage,
        settled: async () => void (await Promise.all(cells.pools.map(settled)))
      }
      return { count: cells.pools.length, contender }
    })
  )
  const rounds: Run[] = []
  for (let round = -1; round < runs; round++) {
    const figures: Run = {}
    for (const { count, contender } of herds) {
      const { late_p99_ms, process_cpu_s, database_cpu_s } = await runHerd(stage, n, contender)
      Object.assign(figures, { [`herd_late_p99_ms_of_${count}`]: late_p99_ms, [`herd_cpu_us_of_${count}`]: (process_cpu_s / n) * 1e6 })
      if (database_cpu_s !== null) figures[`herd_database_us_of_${count}`] = (database_cpu_s / n) * 1e6
    }
    if (round >= 0) rounds.push(figures)
  }
  return rounds
}

/**
 * A service of so many cells, calculated: what a replica that serves them all needs, with as many deliveries per second as the cells' servers
 * have time for with one CPU each, and the CPUs of replicas that send these.
 */
const paperModel = (idle: Run, herds: readonly Run[]): Run => {
  const most = idleCells.at(-1)!
  const model: Run = {}
  const perCell = (name: string) => (idle[`idle_${name}_of_${most}`]! - idle[`idle_${name}_of_1`]!) / (most - 1)
  const of = (name: string, cells: number) => idle[`idle_${name}_of_1`]! + perCell(name) * (cells - 1)
  const cost = (name: string) => median(herds.map(run => run[`herd_${name}_us_of_2`] ?? Number.NaN)) / 1e6
  for (const name of ['memory_mb', 'connections', 'queries_per_s', 'cpu_percent']) model[`${name}_per_further_cell`] = perCell(name)
  for (const cells of paperCells) {
    for (const name of ['memory_mb', 'connections', 'queries_per_s', 'cpu_percent']) model[`paper_${cells}_${name}`] = of(name, cells)
    if (Number.isNaN(cost('database'))) continue
    model[`paper_${cells}_deliveries_per_s`] = cells / cost('database')
    model[`paper_${cells}_replica_cpus`] = (cells / cost('database')) * cost('cpu')
  }
  return model
}

const measure = async (stage: Stage, { runs, n }: Options): Promise<Figure[]> => {
  const calls = await measureCalls(stage, runs)
  const contenders: Cells[] = []
  for (const count of idleCells) contenders.push(await startCells(stage, 'idle', count))
  const idle = await measureIdle(stage, contenders)
  const [one, two, ...others] = contenders as [Cells, Cells, ...Cells[]]
  for (const { replica } of others) await replica.stop()
  const herds = await measureHerds(stage, [one, two], runs, n)
  for (const { replica } of [one, two]) await replica.stop()
  return [...figuresOf(calls), ...figuresOf([idle]), ...figuresOf(herds), ...figuresOf([paperModel(idle, herds)])]
}

export default {
  title: n => `calls, idle time and a herd of ${n} cues with one cell and with several; a paper model of ${paperCells.join(', ')} cells`,
  runs: 2,
  n: 2000,
  measure
} satisfies Measure
