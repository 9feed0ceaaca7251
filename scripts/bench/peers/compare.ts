/**
 * The same herd with pg-boss, graphile-worker and BullMQ, alternating with ours, on the same server and receiver. They post plain jobs with
 * one signature; ours does everything it does for each delivery. All processes are warmed up with one herd.
 */
import { type Figure, figuresOf, median } from '../../stage/figures.ts'
import { start } from '../../stage/processes.ts'
import { until } from '../../stage/seed.ts'
import type { Stage } from '../../stage/stage.ts'
import { type Contender, type HerdRun, runHerd, startOurs } from '../herd.ts'
import type { Measure, Options } from '../service.ts'
import { type Job, peers } from './peers.ts'

/** As part of a figure's name, or of a database's. */
export const nameOf = (peer: string) => peer.replace('-', '_')

/** Starts a peer with a database of its own. */
export const startPeer = async (stage: Stage, n: number, name: string) => {
  const { url, pool } = await stage.createDatabase(nameOf(name), { isEmpty: true })
  const { open, pending, tidy } = peers[name]!
  const queue = await open(url)
  const worker = start('scripts/bench/peers/worker.ts', 'tested')
  await worker.ask('work', { name, url, origin: stage.receiver.url })
  const enqueue = async (due: number) => {
    const at = new Date(due)
    const job = (n: number): Job => ({ job: String(n).padStart(6, '0'), due: at.toISOString(), pad: 'x'.repeat(142) })
    const jobs = Array.from({ length: n }, (_, n) => job(n))
    for (let from = 0; from < n; from += 1000) await queue.enqueue(jobs.slice(from, from + 1000), at)
  }
  const contender: Contender = {
    prepare: async due => {
      if (tidy) await pool.query(tidy)
      await pool.query('vacuum analyze')
      await enqueue(due)
      await pool.query('vacuum analyze')
      if (Date.now() > due - 500) throw new Error(`this machine takes too long to enqueue the jobs of ${name}`)
    },
    usage: worker.usage,
    settled: () => until(pool, pending)
  }
  return { contender, pool, enqueue, close: () => Promise.all([worker.kill(), queue.close()]) }
}

/** Alternating herds of the service and of some peers. Returns those of each, ours first. */
const runBeside = async (stage: Stage, names: string[], { runs, n }: Options): Promise<HerdRun[][]> => {
  const ours = await startOurs(stage, n, `beside_${nameOf(names[0]!)}`)
  const theirs = []
  for (const name of names) theirs.push(await startPeer(stage, n, name))
  const contenders: Contender[] = [ours, ...theirs].map(({ contender }) => contender)
  const herds: HerdRun[][] = contenders.map(() => [])
  for (let run = 0; run <= runs; run++) {
    for (const [i, contender] of contenders.entries()) {
      const herd = await runHerd(stage, n, contender)
      if (run > 0) herds[i]!.push(herd)
    }
  }
  for (const peer of theirs) await peer.close()
  await ours.replica.kill()
  return herds
}

// What BullMQ leaves behind keeps autovacuum busy during the next herd, so it has a series of its own.
const series = [['pg-boss', 'graphile-worker'], ['bullmq']]

/** Ratio of the peer's time until the last receipt to ours: above 1, ours is faster. And our CPU, process and database, by theirs. */
const ratios = (name: string, ours: HerdRun[], theirs: HerdRun[]): Figure[] => {
  const lasts = (herds: HerdRun[]) => herds.map(herd => herd.last_receipt_ms)
  const cpu = (herds: HerdRun[]) => median(herds.map(herd => herd.process_cpu_s + herd.database_cpu_s))
  return [
    { name: `ours_to_${name}_by_pairs`, values: lasts(theirs).map((last, run) => last / lasts(ours)[run]!) },
    { name: `ours_to_${name}_by_medians`, values: [median(lasts(theirs)) / median(lasts(ours))] },
    { name: `ours_to_${name}_cpu_by_medians`, values: [cpu(ours) / cpu(theirs)] }
  ]
}

export const besidePeers: Measure = {
  title: n => `${n} deliveries at one instant, ours beside peers; ours_to_…: how many times as fast the last one comes`,
  runs: 5,
  n: 10_000,
  measure: async (stage, options) => {
    const figures: Figure[] = []
    for (const names of series) {
      const [ours, ...theirs] = (await runBeside(stage, names, options)) as [HerdRun[], ...HerdRun[][]]
      figures.push(...names.flatMap((name, i) => ratios(nameOf(name), ours, theirs[i]!)))
      if (names === series[0]) figures.push(...figuresOf(ours, 'ours_'))
      figures.push(...names.flatMap((name, i) => figuresOf(theirs[i]!, `${nameOf(name)}_`)))
    }
    return figures
  }
}
