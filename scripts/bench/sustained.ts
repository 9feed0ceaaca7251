/**
 * Deliveries for a long time, at a rate that a replica can keep up: whether they stay as punctual, and what is left behind stays bounded.
 * The cues are due every ten seconds, evenly spread, so that nothing but the service writes while it is measured.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { median, quantile, sorted, times } from '../stage/figures.ts'
import { cpuSeconds, memory } from '../stage/processes.ts'
import { schedule } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { runHerd, startOurs } from './herd.ts'
import { addWebhooks, type Measure, startService } from './service.ts'

const herdSize = 10_000
const share = 0.7
const everyMs = 10_000
/** Of measuring the capacity: the windows for a success, 35 s, pass meanwhile. */
const warmMs = 20_000
const measuredMs = 30_000

/** Deliveries per second of a warm herd, sent and recorded. */
const herdRate = async (stage: Stage) => {
  const ours = await startOurs(stage, herdSize, 'herd_rate')
  const rates = await times(4, async () => (herdSize / (await runHerd(stage, herdSize, ours)).settled_ms) * 1000)
  await ours.kill()
  return median(rates.slice(1))
}

/** Deliveries per second of cues that come evenly, and faster than they can be delivered. */
const capacity = async (stage: Stage) => {
  const { replica } = await startStream(stage, 'capacity', await herdRate(stage))
  await delay(warmMs)
  const [before, since] = [await stage.receiver.count(), Date.now()]
  await delay(measuredMs)
  const rate = ((await stage.receiver.count()) - before) / ((Date.now() - since) / 1000)
  await replica.kill()
  return rate
}

/** Starts a replica with cues that are due every ten seconds, evenly spread from an instant soon. */
const startStream = async (stage: Stage, name: string, rate_per_s: number) => {
  const service = await startService(stage, name)
  const count = Math.round((rate_per_s * everyMs) / 1000)
  const cueIds = await addWebhooks(service, stage, count)
  const first = Math.ceil(Date.now() / everyMs + 1) * everyMs
  const due = cueIds.map((_, place) => first + Math.floor((place * everyMs) / count))
  await service.pool.query(
    `update cue.cues c set cron = null, schedule_rules = jsonb_build_object('every', '${everyMs / 1000}s', 'anchor', cue.iso(d.due))
       from unnest($1::text[], $2::timestamptz[]) as d (cue_id, due) where c.id = d.cue_id`,
    [cueIds, due.map(at => new Date(at).toISOString())]
  )
  await stage.receiver.reset()
  await schedule(service.pool, cueIds, due)
  await delay(first - Date.now())
  return service
}

/** Megabytes: `log` is that of executions, which grows as it must. */
const sizesOf = async (pool: pg.Pool): Promise<{ rest: number; log: number }> => {
  const { rows } = await pool.query(
    `select sum(size) filter (where not is_log) as rest, sum(size) filter (where is_log) as log
       from (select pg_total_relation_size(oid)::float8 / 2 ^ 20 as size, relname ~ '^(executions|attempts)_' as is_log
               from pg_class where relnamespace = 'cue'::regnamespace and relkind = 'r') t`
  )
  return rows[0]
}

const sustain = async (stage: Stage, rate_per_s: number, n: number) => {
  const { pool, replica } = await startStream(stage, 'sustained', rate_per_s)
  const read = async () => {
    const own = { cpu_s: cpuSeconds(replica.pid), rss_mb: memory(replica.pid, 'VmRSS') }
    return { ...(await sizesOf(pool)), ...own, database: stage.databaseCpu() }
  }
  const start = await read()
  const samples: (typeof start & { tenth: number })[] = []
  const limit = Date.now() + (n / rate_per_s) * 3000 + 60_000
  for (let received = 0; received < n; received = await stage.receiver.count()) {
    if (Date.now() > limit) throw new Error(`only ${received} of ${n} deliveries arrived`)
    await delay(Math.min(2000, n / 20)) // at least two samples in each tenth
    samples.push({ ...(await read()), tenth: Math.floor((received * 10) / n) })
  }
  const end = await read()
  const { at, due, duplicates } = await stage.receiver.arrivals()
  await replica.kill()

  const delivered = at.length
  const startOf = (tenth: number) => Math.floor((tenth * delivered) / 10)
  const lateIn = (tenth: number) =>
    sorted(at.slice(startOf(tenth), startOf(tenth + 1)).map((instant, n) => instant - due[startOf(tenth) + n]!))
  const p99 = Array.from({ length: 10 }, (_, tenth) => quantile(lateIn(tenth), 0.99))
  const most = (tenth: number, key: 'rest' | 'rss_mb') =>
    Math.max(...samples.filter(sample => sample.tenth === tenth).map(sample => sample[key]))
  return {
    delivered,
    delivered_per_s: delivered / ((at.at(-1)! - at[0]!) / 1000),
    duplicates,
    ...Object.fromEntries(p99.map((late, tenth) => [`late_p99_ms_of_tenth_${tenth + 1}`, late])),
    last_tenth_to_first: p99.at(-1)! / p99[0]!,
    process_cpu_us_each: ((end.cpu_s - start.cpu_s) / delivered) * 1e6,
    database_cpu_us_each: ((end.database - start.database) / delivered) * 1e6,
    log_bytes_each: ((end.log - start.log) * 2 ** 20) / delivered,
    other_tables_mb_first_tenth: most(0, 'rest'),
    other_tables_mb_last_tenth: most(9, 'rest'),
    memory_mb_first_tenth: most(0, 'rss_mb'),
    memory_mb_last_tenth: most(9, 'rss_mb')
  }
}

export const sustained: Measure = {
  title: n => `${n} deliveries at ${share * 100} % of capacity, of cues that are due every ${everyMs / 1000} s`,
  runs: 1,
  n: 1_000_000,
  measure: async (stage, { runs, n }) => {
    const capacity_per_s = await capacity(stage)
    return times(runs, async () => ({ capacity_per_s, ...(await sustain(stage, capacity_per_s * share, n)) }))
  }
}
