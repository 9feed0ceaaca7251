/** Many webhook cues due at one instant: time until the last is delivered, lateness, and cost. */
import { setTimeout as delay } from 'node:timers/promises'
import { prefixed, quantile, times } from '../stage/figures.ts'
import { cpuSeconds } from '../stage/processes.ts'
import { schedule, settled } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { addWebhooks, arrived, type Measure, startService } from './service.ts'

/** A service that can deliver a herd. */
export type Contender = {
  pid: number
  /** Prepares the herd, due at an instant in epoch milliseconds. */
  prepare: (due: number) => Promise<unknown>
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
export const runHerd = async (stage: Stage, n: number, { pid, prepare, settled }: Contender) => {
  await stage.receiver.reset()
  // At a random point of a contender's polling interval.
  const due = Date.now() + leadMs + Math.round(Math.random() * 1000)
  await prepare(due)
  const spent = () => [cpuSeconds(pid), stage.databaseCpu(), cpuSeconds(stage.receiver.pid)] as const
  const before = spent()
  const { last, late, duplicates } = await arrived(stage, n)
  await settled()
  const settledAt = Date.now()
  const after = spent()
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
export const startOurs = async (stage: Stage, n: number, name: string, prepared?: string): Promise<Contender & { kill: () => unknown }> => {
  const service = await startService(stage, name)
  const { pool, replica } = service
  const cueIds = await addWebhooks(service, stage, n)
  if (prepared) await pool.query(prepared)
  await delay(1000)
  return {
    ...replica,
    prepare: due => schedule(pool, cueIds, Array<number>(n).fill(due)),
    settled: () => settled(pool)
  }
}

export const herd: Measure = {
  title: n => `${n} webhook cues due at one instant`,
  runs: 5,
  n: 10_000,
  measure: async (stage, { runs, n }) => {
    const ours = await startOurs(stage, n, 'herd')
    const { deliveries_per_s, late_p99_ms, process_cpu_s, database_cpu_s } = await runHerd(stage, n, ours)
    const cold = prefixed('cold_', { deliveries_per_s, late_p99_ms, process_cpu_s, database_cpu_s })
    return times(runs, async () => ({ ...(await runHerd(stage, n, ours)), ...cold }))
  }
}

/** Herds of contenders in turn, after a first one of each, which is cold. */
export const inTurn = async (stage: Stage, { runs, n }: { runs: number; n: number }, contenders: Contender[]): Promise<HerdRun[][]> =>
  (await times(runs + 1, () => times(contenders.length, nth => runHerd(stage, n, contenders[nth]!)))).slice(1)

/** Cues whose executions can be held take another path: fire_tracked_cues, and the queue of waiting attempts. */
const track = `with made as (update cue.cues set overlap = 'skip', tracked = true returning id)
  update cue.cue_runs set tracked = true where cue_id in (select id from made)`

export const cpuOf = (herd: HerdRun) => herd.process_cpu_s + herd.database_cpu_s

export const tracked: Measure = {
  title: n => `${n} cues with overlap skip, due at one instant, beside as many plain ones: how many times as long and as much`,
  runs: 3,
  n: 10_000,
  measure: async (stage, options) => {
    const contenders = [await startOurs(stage, options.n, 'plain'), await startOurs(stage, options.n, 'tracked', track)]
    return (await inTurn(stage, options, contenders)).map(([plain, held]) => ({
      last_receipt_times: held!.last_receipt_ms / plain!.last_receipt_ms,
      cpu_times: cpuOf(held!) / cpuOf(plain!),
      last_receipt_ms: held!.last_receipt_ms,
      plain_last_receipt_ms: plain!.last_receipt_ms
    }))
  }
}
