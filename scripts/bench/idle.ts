/** An idle replica with its HTTP server: queries, CPU and memory. */
import { readFileSync, statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { addAccounts, addCues } from './cues.ts'
import { figuresOf } from './figures.ts'
import type { Measure, Options } from './measure.ts'
import type { Stage } from './stage.ts'

const cueCount = 1000
const calmMs = 10_000

const measure = async (stage: Stage, { runs, n }: Options) => {
  const replica = await stage.startReplica('idle')
  const accounts = await addAccounts(replica.pool, 10)
  await addCues(replica.pool, { accounts, count: cueCount, callbackUrl: stage.receiver.url })
  await replica.pool.query("update cue.cue_runs set next_run = date_trunc('milliseconds', now() + interval '1 day')")
  await delay(calmMs)

  // Every statement is a line in the server's log, starting with its application's name.
  await replica.pool.query("alter system set log_statement = 'all'")
  await replica.pool.query('select pg_reload_conf()')
  await delay(100)
  const transactions = async (): Promise<number> => (await replica.pool.query(transactionCount)).rows[0].count
  const used: Record<string, number | null>[] = []
  for (let run = 0; run < runs; run++) {
    const before = { ...(await replica.process.usage()), transactions: await transactions(), database: stage.databaseCpu() }
    const logged = statSync(stage.serverLog).size
    await delay(n * 1000)
    const queries = readFileSync(stage.serverLog)
      .subarray(logged)
      .toString()
      .match(/^pgcue[^:]*: LOG: +(statement|execute [^:]*):/gm)
    const after = { ...(await replica.process.usage()), transactions: await transactions(), database: stage.databaseCpu() }
    used.push({
      queries_per_s: (queries?.length ?? 0) / n,
      transactions_per_s: (after.transactions - before.transactions) / n,
      process_cpu_percent: ((after.cpu_s - before.cpu_s) / n) * 100,
      database_cpu_percent: after.database !== null && before.database !== null ? ((after.database - before.database) / n) * 100 : null,
      memory_mb: after.rss_mb
    })
  }
  await replica.pool.query('alter system reset log_statement')
  await replica.pool.query('select pg_reload_conf()')
  await replica.stop()
  return figuresOf(used)
}

// Includes all sessions: also the server's own processes and this script's queries.
const transactionCount = 'select (xact_commit + xact_rollback)::int as count from pg_stat_database where datname = current_database()'

export default {
  title: n => `a replica with ${cueCount} cues and nothing due, over ${n} s`,
  runs: 1,
  n: 30,
  unit: 'seconds',
  measure
} satisfies Measure
