/**
 * Lateness of other deliveries with and without hanging receivers: first a few among cues of the same accounts, then many of other
 * accounts, which together had asked for more deliveries than a replica keeps open.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { addAccounts, addCues, schedule, settled } from './cues.ts'
import { figuresOf } from './figures.ts'
import type { Measure, Options } from './measure.ts'
import type { Stage } from './stage.ts'

const healthyCount = 2000
const overMs = 5000
const crowdAccounts = 200
const crowdCues = 8000
const releaseEveryMs = 100

const measure = async (stage: Stage, { runs, n }: Options) => {
  const replica = await stage.startReplica('hanging')
  const accounts = await addAccounts(replica.pool, 100)
  const healthy = await addCues(replica.pool, { accounts, count: healthyCount, callbackUrl: `${stage.receiver.url}/hook` })
  const hanging = await addCues(replica.pool, { accounts, count: n, callbackUrl: `${stage.receiver.url}/hang` })
  const crowd = await addCues(replica.pool, {
    accounts: await addAccounts(replica.pool, crowdAccounts, 'crowd'),
    count: crowdCues,
    callbackUrl: `${stage.receiver.url}/hang`
  })
  await delay(1000)

  const p99 = async (cueIds: string[], before: string[] = []) => {
    await stage.receiver.reset()
    const start = Date.now() + 3500 + (before.length > 0 ? overMs : 0)
    const within = (from: number) => from + Math.floor(Math.random() * overMs)
    await schedule(replica.pool, [...cueIds, ...before], [...cueIds.map(() => within(start)), ...before.map(() => within(start - overMs))])
    const { late } = await stage.receiver.wait(healthyCount)
    // They hang longer than any other delivery waits. When they are released, those that had no room are sent.
    let isSettled = false
    const settling = allSent(replica.pool).finally(() => {
      isSettled = true
    })
    while (!isSettled) {
      await stage.receiver.release()
      await delay(releaseEveryMs)
    }
    await settling
    return late.p99
  }

  await p99(healthy) // warm-up
  const lateness: Record<string, number>[] = []
  for (let run = 0; run < runs; run++) {
    const without = await p99(healthy)
    const among = await p99([...healthy, ...hanging])
    const beside = await p99(healthy, crowd)
    lateness.push({
      healthy_p99_without_ms: without,
      healthy_p99_with_ms: among,
      ratio: among / without,
      healthy_p99_with_crowd_ms: beside,
      crowd_ratio: beside / without
    })
  }
  await replica.stop()
  return figuresOf(lateness)
}

/** Resolves when nothing is due and all results are recorded. */
const allSent = async (pool: pg.Pool): Promise<void> => {
  for (;;) {
    const { rows } = await pool.query('select exists (select from cue.cue_runs where next_run <= now()) as due')
    if (!rows[0].due) return settled(pool)
    await delay(releaseEveryMs)
  }
}

export default {
  title: n =>
    `${healthyCount} healthy cues within ${overMs / 1000} s: alone, among ${n} whose receivers hang, and beside ${crowdAccounts} accounts ` +
    `with ${crowdCues} of those`,
  runs: 3,
  n: 200,
  measure
} satisfies Measure
