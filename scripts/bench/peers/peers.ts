/**
 * The same herd with pg-boss, graphile-worker and BullMQ, alternating with ours, on the same server and receiver. They post plain jobs with
 * one signature; ours does everything it does for each delivery. All processes are warmed up with one herd.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Figure, figuresOf, median } from '../figures.ts'
import { type Contender, type HerdRun, runHerd, startOurs } from '../herd.ts'
import type { Measure, Options } from '../measure.ts'
import { start } from '../processes.ts'
import type { Stage } from '../stage.ts'
import bullmq from './bullmq.ts'
import graphileWorker from './graphile-worker.ts'
import type { Job, Peer } from './peer.ts'
import pgBoss from './pg-boss.ts'
import type { Work } from './worker.ts'

export const peers: Record<string, Peer> = { 'pg-boss': pgBoss, 'graphile-worker': graphileWorker, bullmq }

/** As part of a figure's name, or of a database's. */
export const nameOf = (peer: string) => peer.replace('-', '_')

/** Starts a peer with a database of its own. */
export const startPeer = async (stage: Stage, n: number, name: string, database = nameOf(name)) => {
  const { url: databaseUrl, pool } = await stage.createDatabase(database)
  const { enqueue, tidy, isEmpty, close } = await peers[name]!.open(databaseUrl)
  const worker = start('scripts/bench/peers/worker.ts', 'tested')
  await worker.ask('work', { module: `./${name}.ts`, databaseUrl, origin: stage.receiver.url } satisfies Work)
  const enqueueHerd = (due: number) => {
    const at = new Date(due)
    const jobs = Array.from(
      { length: n },
      (_, i): Job => ({ job: String(i).padStart(6, '0'), due: at.toISOString(), pad: 'x'.repeat(142) })
    )
    return enqueue(jobs, at)
  }
  const contender: Contender = {
    prepare: async due => {
      await tidy()
      await enqueueHerd(due)
      await tidy()
      if (Date.now() > due - 500) throw new Error(`this machine takes too long to enqueue the jobs of ${name}`)
    },
    usage: worker.usage,
    settled: async () => {
      while (!(await isEmpty())) await delay(20)
    }
  }
  return {
    contender,
    pool,
    enqueueHerd,
    close: async () => {
      await worker.stop()
      await close()
    }
  }
}

/** Alternating herds of the service and of some peers. Returns those of each, ours first. */
const runBeside = async (stage: Stage, names: string[], { runs, n }: Options): Promise<HerdRun[][]> => {
  const ours = await startOurs(stage, n, `herd_beside_${nameOf(names[0]!)}`)
  const theirs = await Promise.all(names.map(name => startPeer(stage, n, name)))
  await delay(1500)
  const contenders: Contender[] = [ours.contender, ...theirs.map(({ contender }) => contender)]
  const herds: HerdRun[][] = contenders.map(() => [])
  for (let run = 0; run <= runs; run++) {
    for (const [i, contender] of contenders.entries()) {
      const herd = await runHerd(stage, n, contender)
      if (run > 0) herds[i]!.push(herd)
    }
  }
  for (const peer of theirs) await peer.close()
  await ours.replica.stop()
  return herds
}

// What BullMQ leaves behind keeps autovacuum busy during the next herd, so it has a series of its own.
const series = [['pg-boss', 'graphile-worker'], ['bullmq']]

const measure = async (stage: Stage, options: Options) => {
  const figures: Figure[] = []
  for (const names of series) {
    const [ours, ...theirs] = (await runBeside(stage, names, options)) as [HerdRun[], ...HerdRun[][]]
    figures.push(...names.flatMap((name, i) => ratios(nameOf(name), ours, theirs[i]!)))
    if (names === series[0]) figures.push(...figuresOf(ours, 'ours_'))
    figures.push(...names.flatMap((name, i) => figuresOf(theirs[i]!, `${nameOf(name)}_`)))
  }
  return figures
}

/** Ratio of the peer's time until the last receipt to ours: above 1, ours is faster. And our CPU, process and database, by theirs. */
const ratios = (name: string, ours: HerdRun[], theirs: HerdRun[]): Figure[] => {
  const lasts = (herds: HerdRun[]) => herds.map(herd => herd.last_receipt_ms)
  const cpu = (herds: HerdRun[]) => herds.map(herd => herd.process_cpu_s + (herd.database_cpu_s ?? 0))
  const pairs = lasts(theirs).map((last, run) => last / lasts(ours)[run]!)
  return [
    { name: `ours_to_${name}_by_pairs`, values: pairs },
    { name: `ours_to_${name}_by_medians`, values: [median(lasts(theirs)) / median(lasts(ours))] },
    { name: `ours_to_${name}_cpu_by_medians`, values: [median(cpu(ours)) / median(cpu(theirs))] }
  ]
}

export default {
  title: n => `${n} deliveries at one instant, ours beside peers; ours_to_…: how many times as fast the last one comes`,
  runs: 5,
  n: 10_000,
  measure
} satisfies Measure
