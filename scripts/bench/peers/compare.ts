/**
 * The same herd with pg-boss, graphile-worker and BullMQ, alternating with ours, on the same server and receiver. They post plain jobs with
 * one signature; ours does everything it does for each delivery. All processes are warmed up with one herd.
 */
import { type Figures, median, prefixed } from '../../stage/figures.ts'
import { start } from '../../stage/processes.ts'
import { until } from '../../stage/seed.ts'
import type { Stage } from '../../stage/stage.ts'
import { cpuOf, type HerdRun, inTurn, startOurs } from '../herd.ts'
import type { Measure } from '../service.ts'
import { type Job, peers } from './peers.ts'

/** As part of a figure's name, or of a database's. */
export const nameOf = (peer: string) => peer.replace('-', '_')

/** Starts a peer with a database of its own: a contender. */
export const startPeer = async (stage: Stage, n: number, name: string) => {
  const { url, pool } = await stage.createDatabase(nameOf(name), { isEmpty: true })
  const { open, pending, tidy } = peers[name]!
  const queue = await open(url)
  const worker = start('scripts/bench/peers/worker.ts', { isTested: true })
  await worker.ask('work', { name, url, origin: stage.receiver.url })
  const enqueue = async (due: number) => {
    const at = new Date(due)
    const job = (n: number): Job => ({ job: String(n).padStart(6, '0'), due: at.toISOString(), pad: 'x'.repeat(142) })
    const jobs = Array.from({ length: n }, (_, n) => job(n))
    for (let from = 0; from < n; from += 1000) await queue.enqueue(jobs.slice(from, from + 1000), at)
  }
  const prepare = async (due: number) => {
    if (tidy) await pool.query(tidy)
    await pool.query('vacuum analyze')
    await enqueue(due)
    await pool.query('vacuum analyze')
    if (Date.now() > due - 500) throw new Error(`this machine takes too long to enqueue the jobs of ${name}`)
  }
  const kill = () => Promise.all([worker.kill(), queue.close()])
  return { pid: worker.pid, prepare, settled: () => until(pool, pending), pool, enqueue, kill }
}

// What BullMQ leaves behind keeps autovacuum busy during the next herd, so it has a series of its own.
const series = [['pg-boss', 'graphile-worker'], ['bullmq']]

/** Ratio of the peer's time until the last receipt to ours: above 1, ours is faster. And our CPU, process and database, by theirs. */
const ratios = (name: string, ours: HerdRun[], theirs: HerdRun[], run: number): Figures => {
  const last = (herd: HerdRun) => herd.last_receipt_ms
  return {
    [`ours_to_${name}_by_pairs`]: last(theirs[run]!) / last(ours[run]!),
    [`ours_to_${name}_by_medians`]: median(theirs.map(last)) / median(ours.map(last)),
    [`ours_to_${name}_cpu_by_medians`]: median(ours.map(cpuOf)) / median(theirs.map(cpuOf))
  }
}

export const besidePeers: Measure = {
  title: n => `${n} deliveries at one instant, ours beside peers; ours_to_…: how many times as fast the last one comes`,
  runs: 5,
  n: 10_000,
  measure: async (stage, options) => {
    const figures: Figures[] = Array.from({ length: options.runs }, () => ({}))
    for (const names of series) {
      const contenders = [await startOurs(stage, options.n, `beside_${nameOf(names[0]!)}`)]
      for (const name of names) contenders.push(await startPeer(stage, options.n, name))
      const rounds = await inTurn(stage, options, contenders)
      const ours = rounds.map(round => round[0]!)
      for (const [run, round] of rounds.entries()) {
        const each = names.map((name, i) => ratios(nameOf(name), ours, rounds.map(round => round[i + 1]!), run)) // biome-ignore format: one line
        const plain = names.map((name, i) => prefixed(`${nameOf(name)}_`, round[i + 1]!))
        Object.assign(figures[run]!, ...each, names === series[0] ? prefixed('ours_', ours[run]!) : {}, ...plain)
      }
      for (const contender of contenders) await contender.kill()
    }
    return figures
  }
}
