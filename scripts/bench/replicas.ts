/** The cost of several replicas watching the same cues: lateness and database CPU with one replica and with three. */
import { setTimeout as delay } from 'node:timers/promises'
import { addAccounts, addCues, schedule, settled } from './cues.ts'
import { figuresOf } from './figures.ts'
import type { Measure, Options } from './measure.ts'
import type { Stage } from './stage.ts'

const overMs = 5000
const replicaCounts = [1, 3]
/** Time for engines to notice each other. */
const acquaintMs = 7000

const measure = async (stage: Stage, { runs, n }: Options) => {
  const rounds: Record<string, number>[] = Array.from({ length: runs }, () => ({}))
  for (const count of replicaCounts) {
    const first = await stage.startReplica(`replicas_${count}`)
    const replicas = [first]
    while (replicas.length < count) replicas.push(await stage.startReplica('', {}, first))
    const accounts = await addAccounts(first.pool, 100)
    const cueIds = await addCues(first.pool, { accounts, count: n, callbackUrl: `${stage.receiver.url}/hook` })
    await delay(acquaintMs)

    const run = async () => {
      await stage.receiver.reset()
      const start = Date.now() + 3500
      const due = cueIds.map(() => start + Math.floor(Math.random() * overMs))
      await schedule(first.pool, cueIds, due)
      await delay(start - Date.now())
      const before = stage.databaseCpu() ?? Number.NaN
      const { late } = await stage.receiver.wait(n)
      const database = (stage.databaseCpu() ?? Number.NaN) - before
      await settled(first.pool)
      return { late, database }
    }
    await run() // warm-up
    for (const round of rounds) {
      const { late, database } = await run()
      Object.assign(round, { [`late_p50_ms_of_${count}`]: late.p50, [`late_p99_ms_of_${count}`]: late.p99 })
      if (!Number.isNaN(database)) round[`database_cpu_s_of_${count}`] = database
    }
    for (const replica of replicas) await replica.stop()
  }
  return figuresOf(rounds)
}

export default {
  title: n => `${n} webhook cues at random instants within ${overMs / 1000} s, among ${replicaCounts.join(' and ')} replicas`,
  runs: 3,
  n: 2000,
  measure
} satisfies Measure
