/** Many webhook cues due at one instant: time until the last is delivered, lateness, and cost. */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { addAccounts, addCues, schedule, settled } from './cues.ts'
import { type Figure, figuresOf } from './figures.ts'
import type { Measure, Options } from './measure.ts'
import type { Usage } from './probe.ts'
import type { Received } from './receiver.ts'
import type { Stage } from './stage.ts'

/**
 * Measured from the instant at which all were due. CPU seconds include everything from the preparation until the last result is recorded.
 */
export type HerdRun = {
  deliveries_per_s: number
  last_receipt_ms: number
  /** Until no work was left. */
  settled_ms: number
  late_p50_ms: number
  late_p99_ms: number
  late_max_ms: number
  duplicates: number
  process_cpu_s: number
  database_cpu_s: number | null
  receiver_cpu_s: number
}

/** A service that can deliver a herd. */
export type Contender = {
  /** Prepares the herd, due at an instant in epoch milliseconds. */
  prepare: (due: number) => Promise<void>
  usage: () => Promise<Usage>
  /** Resolves when the herd needs no more work. */
  settled: () => Promise<void>
}

const accountCount = 100
/** Longer than preparing takes, also for peers and on a busy machine. */
const leadMs = 8000

/** Runs one herd. */
export const runHerd = async (stage: Stage, n: number, { prepare, usage, settled }: Contender): Promise<HerdRun> => {
  await stage.receiver.reset()
  // At a random point of a contender's polling interval.
  const due = Date.now() + leadMs + Math.round(Math.random() * 1000)
  await prepare(due)
  const spent = async () => ({
    process: (await usage()).cpu_s,
    database: stage.databaseCpu() ?? Number.NaN,
    receiver: (await stage.receiver.usage()).cpu_s
  })
  const before = await spent()
  const { last, late, duplicates }: Received = await stage.receiver.wait(n)
  await settled()
  const settledAt = Date.now()
  const after = await spent()
  const database_cpu_s = after.database - before.database
  return {
    deliveries_per_s: (n / (last - due)) * 1000,
    last_receipt_ms: last - due,
    settled_ms: settledAt - due,
    late_p50_ms: late.p50,
    late_p99_ms: late.p99,
    late_max_ms: late.max,
    duplicates,
    process_cpu_s: after.process - before.process,
    database_cpu_s: Number.isNaN(database_cpu_s) ? null : database_cpu_s,
    receiver_cpu_s: after.receiver - before.receiver
  }
}

/** Starts this service with a herd of daily cues. */
export const startOurs = async (stage: Stage, n: number, database = 'herd') => {
  const replica = await stage.startReplica(database)
  const accounts = await addAccounts(replica.pool, accountCount)
  const cueIds = await addCues(replica.pool, { accounts, count: n, callbackUrl: `${stage.receiver.url}/hook` })
  const contender: Contender = {
    prepare: due => schedule(replica.pool, cueIds, Array<number>(n).fill(due)),
    usage: replica.process.usage,
    settled: () => settled(replica.pool)
  }
  return { replica, contender }
}

const measure = async (stage: Stage, { runs, n, profileDir }: Options): Promise<Figure[]> => {
  const { replica, contender } = await startOurs(stage, n)
  await delay(1000)
  const cold = await runHerd(stage, n, contender)
  const warm: HerdRun[] = []
  for (let run = 0; run < runs; run++) {
    if (profileDir) await replica.process.ask('startProfile')
    warm.push(await runHerd(stage, n, contender))
    if (profileDir) await replica.process.ask('stopProfile', join(profileDir, `herd-${run + 1}.cpuprofile`))
  }
  await replica.stop()
  const { deliveries_per_s, late_p99_ms, process_cpu_s, database_cpu_s } = cold
  return [...figuresOf(warm), ...figuresOf([{ deliveries_per_s, late_p99_ms, process_cpu_s, database_cpu_s }], 'cold_')]
}

export default { title: n => `${n} webhook cues due at one instant`, runs: 5, n: 10_000, measure } satisfies Measure
