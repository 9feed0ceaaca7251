/**
 * Deliveries for a long time, at a rate that a replica can keep up: whether they stay as punctual, and what is left behind stays bounded.
 * The cues are due every ten seconds, evenly spread, so that nothing but the service writes while it is measured.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { addAccounts, addCues, schedule } from './cues.ts'
import { type Figure, figuresOf, median } from './figures.ts'
import { runHerd, startOurs } from './herd.ts'
import type { Measure, Options } from './measure.ts'
import type { Stage } from './stage.ts'

const accountCount = 100
const herdSize = 10_000
const share = 0.7
const everyMs = 10_000
const sampleMs = 2000
/** Of measuring the capacity: the windows for a success, 35 s, pass meanwhile. */
const warmMs = 20_000
const measuredMs = 30_000
const mb = 2 ** 20

/** Deliveries per second of a warm herd, sent and recorded. */
const herdRate = async (stage: Stage) => {
  const { replica, contender } = await startOurs(stage, herdSize, 'herd_rate')
  await delay(1000)
  const rates: number[] = []
  for (let herd = 0; herd < 4; herd++) rates.push((herdSize / (await runHerd(stage, herdSize, contender)).settled_ms) * 1000)
  await replica.stop()
  return median(rates.slice(1))
}

/** Deliveries per second of cues that come evenly, and faster than they can be delivered. */
const capacity = async (stage: Stage) => {
  const replica = await startStream(stage, 'capacity', await herdRate(stage))
  await delay(warmMs)
  const before = await stage.receiver.count()
  const since = Date.now()
  await delay(measuredMs)
  const count = (await stage.receiver.count()) - before
  const seconds = (Date.now() - since) / 1000
  await replica.stop()
  return count / seconds
}

/** Starts a replica with cues that are due every ten seconds, evenly spread from an instant soon. */
const startStream = async (stage: Stage, database: string, rate_per_s: number) => {
  const replica = await stage.startReplica(database)
  const { pool } = replica
  const accounts = await addAccounts(pool, accountCount)
  const count = Math.round((rate_per_s * everyMs) / 1000)
  const cueIds = await addCues(pool, { accounts, count, callbackUrl: `${stage.receiver.url}/hook` })
  const first = Math.ceil(Date.now() / everyMs + 1) * everyMs
  const due = cueIds.map((_, place) => first + Math.floor((place * everyMs) / count))
  await pool.query(
    `update cue.cues c set cron = null, schedule_rules = jsonb_build_object('every', '${everyMs / 1000}s', 'anchor', cue.iso(d.due))
       from unnest($1::text[], $2::timestamptz[]) as d (cue_id, due) where c.id = d.cue_id`,
    [cueIds, due.map(at => new Date(at).toISOString())]
  )
  await stage.receiver.reset()
  await schedule(pool, cueIds, due)
  await delay(first - Date.now())
  return replica
}

const sizes = async (pool: pg.Pool): Promise<{ rest: number; dead: number; log: number }> => {
  const { rows } = await pool.query(
    `select sum(pg_total_relation_size(c.oid)) filter (where not l)::float8 as rest, sum(pg_total_relation_size(c.oid)) filter (where l)::float8 as log,
            sum(pg_stat_get_dead_tuples(c.oid))::float8 as dead
       from pg_class c, lateral (select c.relname ~ '^(executions|attempts)_' as l) l
      where c.relnamespace = 'cue'::regnamespace and c.relkind = 'r'`
  )
  return rows[0]
}

/** CPU seconds that autovacuum has logged, for this database. */
const vacuumCpu = (log: string, database: string) =>
  [
    ...log.matchAll(
      new RegExp(
        `automatic (?:vacuum|analyze)[^\\n]*"${database}\\.[\\s\\S]*?system usage: CPU: user: ([\\d.]+) s, system: ([\\d.]+) s`,
        'g'
      )
    )
  ]
    .map(([, user, system]) => Number(user) + Number(system))
    .reduce((sum, seconds) => sum + seconds, 0)

const measure = async (stage: Stage, { runs, n }: Options): Promise<Figure[]> => {
  const capacity_per_s = await capacity(stage)
  const figures: Record<string, number | null>[] = []
  for (let run = 0; run < runs; run++)
    figures.push({ capacity_per_s, ...(await sustain(stage, `sustained_${run}`, capacity_per_s * share, n)) })
  return figuresOf(figures)
}

const sustain = async (stage: Stage, database: string, rate_per_s: number, n: number) => {
  const replica = await startStream(stage, database, rate_per_s)
  const { pool } = replica
  await pool.query('alter system set log_autovacuum_min_duration = 0')
  await pool.query('select pg_reload_conf()')
  const before = { process: (await replica.process.usage()).cpu_s, database: stage.databaseCpu() }
  const start = await sizes(pool)
  const samples: { rest: number; dead: number; rss_mb: number; at: number }[] = []
  const limit = Date.now() + (n / rate_per_s) * 3000 + 60_000
  for (let received = 0; received < n; received = await stage.receiver.count()) {
    if (Date.now() > limit) throw new Error(`only ${received} of ${n} deliveries arrived`)
    await delay(sampleMs)
    samples.push({ ...(await sizes(pool)), rss_mb: (await replica.process.usage()).rss_mb, at: received })
  }
  const after = { process: (await replica.process.usage()).cpu_s, database: stage.databaseCpu() }
  const end = await sizes(pool)
  const { p99, duplicates, count: delivered, seconds } = await stage.receiver.tenths()
  await replica.stop()

  const tenth = (place: number) => samples.filter(({ at }) => at >= (place * n) / 10 && at < ((place + 1) * n) / 10)
  const most = (place: number, key: 'rest' | 'dead' | 'rss_mb') => Math.max(...tenth(place).map(sample => sample[key]))
  const database_cpu_s = after.database === null || before.database === null ? null : after.database - before.database
  const autovacuum_cpu_s = vacuumCpu(readFileSync(stage.serverLog, 'utf8'), database)
  return {
    delivered,
    delivered_per_s: delivered / seconds,
    duplicates,
    ...Object.fromEntries(p99.map((late, i) => [`late_p99_ms_of_tenth_${i + 1}`, late])),
    last_tenth_to_first: p99.at(-1)! / p99[0]!,
    process_cpu_us_each: ((after.process - before.process) / delivered) * 1e6,
    database_cpu_us_each: database_cpu_s === null ? null : (database_cpu_s / delivered) * 1e6,
    autovacuum_cpu_percent: database_cpu_s === null ? null : (autovacuum_cpu_s / database_cpu_s) * 100,
    dead_tuples_first_tenth: most(0, 'dead'),
    dead_tuples_last_tenth: most(9, 'dead'),
    log_bytes_each: (end.log - start.log) / delivered,
    other_tables_mb_first_tenth: most(0, 'rest') / mb,
    other_tables_mb_last_tenth: most(9, 'rest') / mb,
    memory_mb_first_tenth: most(0, 'rss_mb'),
    memory_mb_last_tenth: most(9, 'rss_mb')
  }
}

export default {
  title: n => `${n} deliveries at ${share * 100} % of capacity, of cues that are due every ${everyMs / 1000} s`,
  runs: 1,
  n: 1_000_000,
  measure
} satisfies Measure
