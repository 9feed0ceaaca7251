/** An idle replica: queries, CPU and memory. */
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { times } from '../stage/figures.ts'
import { cpuSeconds, memory } from '../stage/processes.ts'
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
    const log = async (statements: 'all' | 'none') => {
      await database.pool.query(`alter system set log_statement = '${statements}'`)
      await database.pool.query('select pg_reload_conf()')
    }
    await log('all')
    await delay(10_000) // until it is idle
    const read = () => ({ own: cpuSeconds(replica.pid), database: stage.databaseCpu(), logged: statSync(stage.serverLog).size })
    const results = await times(runs, async () => {
      const from = read()
      await delay(n * 1000)
      const to = read()
      const lines = readFileSync(stage.serverLog).subarray(from.logged, to.logged).toString()
      return {
        queries_per_s: (lines.match(/^pgcue.*: LOG: +(statement|execute [^:]*):/gm)?.length ?? 0) / n,
        process_cpu_percent: ((to.own - from.own) / n) * 100,
        database_cpu_percent: ((to.database - from.database) / n) * 100,
        memory_mb: memory(replica.pid, 'VmRSS')
      }
    })
    await log('none')
    return results
  }
}
