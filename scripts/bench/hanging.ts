/** Receivers that hang: how late the deliveries of the others are, with them and without. */
import { setTimeout as delay } from 'node:timers/promises'
import { addAccounts, addCues, schedule, settled } from './cues.ts'
import { figuresOf } from './figures.ts'
import type { Measure, Options } from './measure.ts'
import type { Stage } from './stage.ts'

const healthyCount = 2000
const overMs = 5000

const measure = async (stage: Stage, { runs, n }: Options) => {
  const replica = await stage.startReplica('hanging')
  const accounts = await addAccounts(replica.pool, 100)
  const healthy = await addCues(replica.pool, { accounts, count: healthyCount, callbackUrl: `${stage.receiver.url}/hook` })
  const hanging = await addCues(replica.pool, { accounts, count: n, callbackUrl: `${stage.receiver.url}/hang` })
  await delay(1000)

  const p99 = async (cueIds: string[]) => {
    await stage.receiver.reset()
    const start = Date.now() + 3500
    const due = cueIds.map(() => start + Math.floor(Math.random() * overMs))
    await schedule(replica.pool, cueIds, due)
    const { late } = await stage.receiver.wait(healthyCount)
    // They hang on for longer than anybody else waits: until here.
    await stage.receiver.release()
    await settled(replica.pool)
    return late.p99
  }

  await p99(healthy) // warms up
  const lateness: Record<string, number>[] = []
  for (let run = 0; run < runs; run++) {
    const without = await p99(healthy)
    const among = await p99([...healthy, ...hanging])
    lateness.push({ healthy_p99_without_ms: without, healthy_p99_with_ms: among, ratio: among / without })
  }
  await replica.stop()
  return figuresOf(lateness)
}

export default {
  title: n => `${n} cues whose receivers hang among ${healthyCount} healthy ones, all within ${overMs / 1000} s`,
  runs: 3,
  n: 200,
  measure
} satisfies Measure
