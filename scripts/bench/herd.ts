/** Many webhook cues due at one instant: time until the last is delivered, lateness, and cost. */
import { setTimeout as delay } from 'node:timers/promises'
import { figuresOf, quantile } from '../stage/figures.ts'
import type { Usage } from '../stage/probe.ts'
import { schedule, settled } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { addWebhooks, arrived, type Measure, startService } from './service.ts'

/** A service that can deliver a herd. */
export type Contender = {
  /** Prepares the herd, due at an instant in epoch milliseconds. */
  prepare: (due: number) => Promise<unknown>
  usage: () => Promise<Usage>
  /** Resolves when the herd needs no more work. */
  settled: () => Promise<unknown>
}

/** Longer than preparing takes, also for peers and on a busy machine. */
const leadMs = 8000

export type HerdRun = Awaited<ReturnType<typeof runHerd>>

/**
 * Runs one herd. Measured from the instant at which all were due; CPU seconds include everything from the preparation until the last result is
 * recorded.
 */
export const runHerd = async (stage: Stage, n: number, { prepare, usage, settled }: Contender) => {
  await stage.receiver.reset()
  // At a random point of a contender's polling interval.
  const due = Date.now() + leadMs + Math.round(Math.random() * 1000)
  await prepare(due)
  const spent = async () => [(await usage()).cpu_s, stage.databaseCpu(), (await stage.receiver.usage()).cpu_s] as const
  const before = await spent()
  const { last, late, duplicates } = await arrived(stage, n)
  await settled()
  const settledAt = Date.now()
  const after = await spent()
  return {
    deliveries_per_s: (n / (last - due)) * 1000,
    last_receipt_ms: last - due,
    settled_ms: settledAt - due,
    late_p50_ms: quantile(late, 0.5),
    late_p99_ms: quantile(late, 0.99),
    late_max_ms: late.at(-1)!,
    duplicates,
    process_cpu_s: after[0] - before[0],
    database_cpu_s: after[1] - before[1],
    receiver_cpu_s: after[2] - before[2]
  }
}

/** Starts this service with a herd of daily cues; `prepared` is a statement that changes them first. */
export const startOurs = async (stage: Stage, n: number, name = 'herd', prepared?: string) => {
  const { pool, replica, ...service } = await startService(stage, name)
  const cueIds = await addWebhooks({ pool, ...service }, stage, n)
  if (prepared) await pool.query(prepared)
  const contender: Contender = {
    prepare: due => schedule(pool, cueIds, Array<number>(n).fill(due)),
    usage: replica.usage,
    settled: () => settled(pool)
  }
  await delay(1000)
  return { replica, contender }
}

export const herd: Measure = {
  title: n => `${n} webhook cues due at one instant`,
  runs: 5,
  n: 10_000,
  measure: async (stage, { runs, n }) => {
    const { replica, contender } = await startOurs(stage, n)
    const { deliveries_per_s, late_p99_ms, process_cpu_s, database_cpu_s } = await runHerd(stage, n, contender)
    const warm: HerdRun[] = []
    while (warm.length < runs) warm.push(await runHerd(stage, n, contender))
    await replica.kill()
    return [...figuresOf(warm), ...figuresOf([{ deliveries_per_s, late_p99_ms, process_cpu_s, database_cpu_s }], 'cold_')]
  }
}

/** Cues whose executions can be held take another path: fire_tracked_cues, and the queue of waiting attempts. */
const track = `with made as (update cue.cues set overlap = 'skip', tracked = true returning id)
  update cue.cue_runs set tracked = true where cue_id in (select id from made)`

export const tracked: Measure = {
  title: n => `${n} cues with overlap skip, due at one instant, beside as many plain ones: how many times as long and as much`,
  runs: 3,
  n: 10_000,
  measure: async (stage, { runs, n }) => {
    const plain = await startOurs(stage, n, 'plain')
    const held = await startOurs(stage, n, 'tracked', track)
    const pairs: Record<string, number>[] = []
    for (let run = 0; run <= runs; run++) {
      const base = await runHerd(stage, n, plain.contender)
      const own = await runHerd(stage, n, held.contender)
      const cpu = (figures: HerdRun) => figures.process_cpu_s + figures.database_cpu_s
      // The first pair is cold.
      if (run > 0)
        pairs.push({
          last_receipt_times: own.last_receipt_ms / base.last_receipt_ms,
          cpu_times: cpu(own) / cpu(base),
          last_receipt_ms: own.last_receipt_ms,
          plain_last_receipt_ms: base.last_receipt_ms
        })
    }
    await plain.replica.kill()
    await held.replica.kill()
    return figuresOf(pairs)
  }
}
