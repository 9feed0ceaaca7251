/** Idle replicas: queries, CPU and memory, with one cell and with several; and the cost of a herd that is spread over two cells. */
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Figure, figuresOf, median } from '../stage/figures.ts'
import { addAccounts, addCues, schedule, settled } from '../stage/seed.ts'
import { type Database, query, type Replica, type Stage } from '../stage/stage.ts'
import { type Contender, runHerd } from './herd.ts'
import { addWebhooks, type Measure, startService } from './service.ts'

const calmMs = 10_000

type Contestant = { replica: Replica; databases: [Database, ...Database[]] }

/** What replicas do side by side for so many seconds. Every statement is a line in the server's log, which starts with application and database. */
const watch = async (stage: Stage, contestants: Contestant[], seconds: number): Promise<Record<string, number>[]> => {
  const { url } = contestants[0]!.databases[0]
  await query(url, "alter system set log_statement = 'all'")
  await query(url, 'select pg_reload_conf()')
  await delay(100)
  const read = () =>
    Promise.all(
      contestants.map(async ({ replica, databases }) => {
        const names = databases.map(({ name }) => `'${name}'`)
        // Includes all sessions: also the server's own processes and this script's queries.
        const [counts] = await query(
          url,
          `select (select sum(xact_commit + xact_rollback)::int from pg_stat_database where datname in (${names})) as transactions,
                  (select count(*)::int from pg_stat_activity where datname in (${names}) and application_name like 'pgcue%') as connections`
        )
        return { ...(await replica.usage()), ...counts, database: stage.databaseCpu() }
      })
    )
  const logged = statSync(stage.serverLog).size
  const before = await read()
  await delay(seconds * 1000)
  const log = readFileSync(stage.serverLog).subarray(logged).toString()
  const after = await read()
  await query(url, 'alter system reset log_statement')
  await query(url, 'select pg_reload_conf()')
  return contestants.map(({ databases }, n) => {
    const statement = new RegExp(`^pgcue[^:]* (${databases.map(({ name }) => name).join('|')}): LOG: +(statement|execute [^:]*):`, 'gm')
    const [from, to] = [before[n]!, after[n]!]
    return {
      queries_per_s: (log.match(statement)?.length ?? 0) / seconds,
      transactions_per_s: (to.transactions - from.transactions) / seconds,
      process_cpu_percent: ((to.cpu_s - from.cpu_s) / seconds) * 100,
      database_cpu_percent: ((to.database - from.database) / seconds) * 100,
      memory_mb: to.rss_mb,
      connections: to.connections
    }
  })
}

export const idle: Measure = {
  title: n => `a replica with 1000 cues and nothing due, over ${n} s`,
  runs: 1,
  n: 30,
  unit: 'seconds',
  measure: async (stage, { runs, n }) => {
    const { replica, ...database } = await startService(stage, 'idle')
    await addWebhooks(database, stage, 1000, { accounts: 10 })
    await database.pool.query("update cue.cue_runs set next_run = date_trunc('milliseconds', now() + interval '1 day')")
    await delay(calmMs)
    const rounds: Record<string, number>[] = []
    while (rounds.length < runs) rounds.push((await watch(stage, [{ replica, databases: [database] }], n))[0]!)
    await replica.kill()
    return figuresOf(rounds)
  }
}

/** A replica with so many cells, each of which has its share of a herd. */
const startCells = async (stage: Stage, count: number, n: number): Promise<Contestant & { contender: Contender }> => {
  const databases: Database[] = []
  for (let cell = 1; cell <= count; cell++) databases.push(await stage.createDatabase(`cells_of_${count}`, { cell }))
  const replica = await stage.startReplica(`cells-${count}`, { CELLS: databases.map(({ url }) => url).join(' '), LOG_LEVEL: 'info' })
  const herds = await Promise.all(
    databases.map(async ({ pool }, index) => {
      const accounts = await addAccounts(pool, 100 / count, `cell-${index + 1}`, index + 1)
      return { pool, cueIds: await addCues(pool, { accounts, count: n / count, hook: `${stage.receiver.url}/hook` }) }
    })
  )
  const contender: Contender = {
    prepare: async due => {
      for (const { pool, cueIds } of herds) await schedule(pool, cueIds, Array<number>(cueIds.length).fill(due))
    },
    usage: replica.usage,
    settled: () => Promise.all(herds.map(({ pool }) => settled(pool)))
  }
  return { replica, databases: databases as Contestant['databases'], contender }
}

/** More cells gain nothing on the same server; on servers of their own, each adds one. */
export const cells: Measure = {
  title: n => `idle time with 1, 2 and 4 cells, and a herd of ${n} cues in one cell and in two; 4, 16 and 61 cells on paper`,
  runs: 2,
  n: 2000,
  measure: async (stage, { runs, n }) => {
    const [one, two, four] = [await startCells(stage, 1, n), await startCells(stage, 2, n), await startCells(stage, 4, n)]
    await delay(calmMs)
    const watched = await watch(stage, [one, two, four], 15)
    const idle: Record<string, number> = {}
    for (const [index, count] of [1, 2, 4].entries()) {
      const { memory_mb, connections, queries_per_s, process_cpu_percent } = watched[index]!
      const figures = { memory_mb, connections, queries_per_s, cpu_percent: process_cpu_percent }
      for (const [name, value] of Object.entries(figures)) idle[`idle_${name}_of_${count}`] = value!
    }
    await four.replica.kill()
    const rounds: Record<string, number>[] = []
    for (let round = -1; round < runs; round++) {
      const figures: Record<string, number> = {}
      for (const { contender, databases } of [one, two]) {
        const { late_p99_ms, process_cpu_s, database_cpu_s } = await runHerd(stage, n, contender)
        const costs = { late_p99_ms, cpu_us: (process_cpu_s / n) * 1e6, database_us: (database_cpu_s / n) * 1e6 }
        for (const [name, value] of Object.entries(costs)) figures[`herd_${name}_of_${databases.length}`] = value
      }
      if (round >= 0) rounds.push(figures)
    }
    for (const { replica } of [one, two]) await replica.kill()
    return [...figuresOf([idle]), ...figuresOf(rounds), ...paperModel(idle, rounds)]
  }
}

/**
 * Calculates what a replica needs that serves so many cells, with as many deliveries per second as the cells' servers have time for with one CPU each,
 * and the CPUs of replicas that send these.
 */
const paperModel = (idle: Record<string, number>, herds: Record<string, number>[]): Figure[] => {
  const cost = (name: string) => median(herds.map(herd => herd[`herd_${name}_us_of_2`]!)) / 1e6
  const model: Record<string, number> = {}
  for (const cells of [4, 16, 61]) {
    for (const name of ['memory_mb', 'connections', 'queries_per_s', 'cpu_percent']) {
      const [first, fourth] = [idle[`idle_${name}_of_1`]!, idle[`idle_${name}_of_4`]!]
      model[`${name}_per_further_cell`] = (fourth - first) / 3
      model[`paper_${cells}_${name}`] = first + ((fourth - first) / 3) * (cells - 1)
    }
    model[`paper_${cells}_deliveries_per_s`] = cells / cost('database')
    model[`paper_${cells}_replica_cpus`] = (cells / cost('database')) * cost('cpu')
  }
  return figuresOf([model])
}
