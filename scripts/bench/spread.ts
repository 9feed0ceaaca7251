/** Lateness of cues that are due at different instants. */
import { setTimeout as delay } from 'node:timers/promises'
import { addAccounts, addCues, schedule, settled } from './cues.ts'
import { figuresOf } from './figures.ts'
import type { Measure, Options } from './measure.ts'
import type { Stage } from './stage.ts'

const overMs = 10_000

const measure = async (stage: Stage, { runs, n }: Options) => {
  const replica = await stage.startReplica('spread')
  const accounts = await addAccounts(replica.pool, 10)
  const cueIds = await addCues(replica.pool, { accounts, count: n, callbackUrl: `${stage.receiver.url}/hook` })
  await delay(1000)
  const lateness: Record<string, number>[] = []
  for (let run = 0; run < runs; run++) {
    await stage.receiver.reset()
    const start = Date.now() + 3000
    const due = cueIds.map(() => start + Math.floor(Math.random() * overMs))
    await schedule(replica.pool, cueIds, due)
    const { late } = await stage.receiver.wait(n)
    await settled(replica.pool)
    lateness.push({ late_p50_ms: late.p50, late_p99_ms: late.p99, late_max_ms: late.max })
  }
  await replica.stop()
  return figuresOf(lateness)
}

export default { title: n => `${n} webhook cues at random instants within ${overMs / 1000} s`, runs: 3, n: 100, measure } satisfies Measure
