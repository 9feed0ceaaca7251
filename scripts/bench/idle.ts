/** An idle replica: queries, CPU and memory. */
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { figuresOf } from '../stage/figures.ts'
import { addWebhooks, type Measure, startService } from './service.ts'

export const idle: Measure = {
  title: n => `a replica with 1000 cues and nothing due, over ${n} s`,
  runs: 1,
  n: 30,
  unit: 'seconds',
  measure: async (stage, { runs, n }) => {
    const { replica, ...database } = await startService(stage, 'idle')
    await addWebhooks(database, stage, 1000, { accounts: 10 })
    await database.pool.query("update cue.cue_runs set next_run = date_trunc('milliseconds', now() + interval '1 day')")
    // Every statement becomes a line in the server's log, which starts with the application.
    await database.pool.query("alter system set log_statement = 'all'")
    await database.pool.query('select pg_reload_conf()')
    await delay(10_000) // until it is idle
    const read = async () => ({ ...(await replica.usage()), database: stage.databaseCpu() })
    const rounds: Record<string, number>[] = []
    while (rounds.length < runs) {
      const logged = statSync(stage.serverLog).size
      const from = await read()
      await delay(n * 1000)
      const log = readFileSync(stage.serverLog).subarray(logged).toString()
      const to = await read()
      rounds.push({
        queries_per_s: (log.match(/^pgcue.*: LOG: +(statement|execute [^:]*):/gm)?.length ?? 0) / n,
        process_cpu_percent: ((to.cpu_s - from.cpu_s) / n) * 100,
        database_cpu_percent: ((to.database - from.database) / n) * 100,
        memory_mb: to.rss_mb
      })
    }
    await database.pool.query('alter system reset log_statement')
    await database.pool.query('select pg_reload_conf()')
    await replica.kill()
    return figuresOf(rounds)
  }
}
