/** Idle replicas: queries, CPU and memory, with one cell and with several. */
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { figuresOf } from '../stage/figures.ts'
import { type Database, query, type Replica, type Stage } from '../stage/stage.ts'
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

/** Idle time with several cells on the same server: what each further cell costs a replica. */
export const cells: Measure = {
  title: n => `replicas with 1, 2 and 4 cells and nothing due, over ${n} s`,
  runs: 1,
  n: 30,
  unit: 'seconds',
  measure: async (stage, { runs, n }) => {
    const contestants: Contestant[] = []
    for (const count of [1, 2, 4]) {
      const home = await stage.createDatabase(`cells_of_${count}`)
      const databases: Contestant['databases'] = [home]
      for (let cell = 2; cell <= count; cell++) databases.push(await stage.createDatabase(`cells_of_${count}`, { cell }))
      const replica = await stage.startReplica(home.name, { CELLS: databases.map(({ url }) => url).join(' '), LOG_LEVEL: 'info' })
      contestants.push({ replica, databases })
    }
    await delay(calmMs)
    const rounds: Record<string, number>[] = []
    while (rounds.length < runs) {
      const watched = await watch(stage, contestants, n)
      const round: Record<string, number> = {}
      for (const name of ['memory_mb', 'connections', 'queries_per_s', 'process_cpu_percent']) {
        for (const [index, count] of [1, 2, 4].entries()) round[`idle_${name.replace('process_', '')}_of_${count}`] = watched[index]![name]!
        round[`${name.replace('process_', '')}_per_further_cell`] = (watched[2]![name]! - watched[0]![name]!) / 3
      }
      rounds.push(round)
    }
    for (const { replica } of contestants) await replica.kill()
    return figuresOf(rounds)
  }
}
