/** Lateness of cues that are due at different instants: alone, with several replicas, and beside receivers that hang. */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type Figures, quantile, times } from '../stage/figures.ts'
import { schedule, until } from '../stage/seed.ts'
import type { Stage } from '../stage/stage.ts'
import { addWebhooks, arrived, type Measure, startService } from './service.ts'

const leadMs = 3500

/**
 * Makes cues due at random instants, and returns how late they were, sorted, and the database's CPU seconds. The cues `beside` them come first, and
 * their receivers hang until all others have arrived.
 */
const deliver = async (
  stage: Stage,
  pool: pg.Pool,
  cueIds: string[],
  { overMs = 5000, among = [] as string[], before = [] as string[] } = {}
) => {
  await stage.receiver.reset()
  const start = Date.now() + leadMs + (before.length > 0 ? overMs : 0)
  const within = (from: number) => from + Math.floor(Math.random() * overMs)
  const ids = [...cueIds, ...among, ...before]
  await schedule(pool, ids, [...ids.slice(before.length).map(() => within(start)), ...before.map(() => within(start - overMs))])
  await delay(start - Date.now())
  const since = stage.databaseCpu()
  const { late } = await arrived(stage, cueIds.length)
  const database_cpu_s = stage.databaseCpu() - since
  // When those that hang are released, those that had no room are sent.
  const releasing = setInterval(() => void stage.receiver.release(), 100)
  await until(pool, 'exists (select from cue.cue_runs where next_run <= now()) or exists (select from cue.flights)')
  clearInterval(releasing)
  return { late, p50: quantile(late, 0.5), p99: quantile(late, 0.99), database_cpu_s }
}

export const spread: Measure = {
  title: n => `${n} webhook cues at random instants within 10 s`,
  runs: 3,
  n: 100,
  measure: async (stage, { runs, n }) => {
    const service = await startService(stage, 'spread')
    const cueIds = await addWebhooks(service, stage, n, { accounts: 10 })
    await delay(1000)
    return times(runs, async () => {
      const { late, p50, p99 } = await deliver(stage, service.pool, cueIds, { overMs: 10_000 })
      return { late_p50_ms: p50, late_p99_ms: p99, late_max_ms: late.at(-1)! }
    })
  }
}

export const replicas: Measure = {
  title: n => `${n} webhook cues at random instants within 5 s, among 1 and 3 replicas`,
  runs: 3,
  n: 2000,
  measure: async (stage, { runs, n }) => {
    const rounds: Figures[] = Array.from({ length: runs }, () => ({}))
    for (const count of [1, 3]) {
      const first = await startService(stage, `replicas_${count}`)
      const others = await times(count - 1, () => startService(stage, `replicas_${count}`, {}, first))
      const cueIds = await addWebhooks(first, stage, n)
      await delay(7000) // until the engines have noticed each other
      await deliver(stage, first.pool, cueIds) // warm-up
      for (const round of rounds) {
        const { p50, p99, database_cpu_s } = await deliver(stage, first.pool, cueIds)
        const figures = { late_p50_ms: p50, late_p99_ms: p99, database_cpu_s }
        for (const [name, value] of Object.entries(figures)) round[`${name}_of_${count}`] = value
      }
      for (const { replica } of [first, ...others]) await replica.kill()
    }
    return rounds
  }
}

export const hanging: Measure = {
  title: n => `2000 healthy cues within 5 s: alone, among ${n} whose receivers hang, and beside 200 accounts with 8000 of those`,
  runs: 3,
  n: 200,
  measure: async (stage, { runs, n }) => {
    const service = await startService(stage, 'hanging')
    const healthy = await addWebhooks(service, stage, 2000)
    const among = await addWebhooks(service, stage, n, { path: '/hang' })
    // Together, they ask for more deliveries than a replica keeps open.
    const before = await addWebhooks(service, stage, 8000, { path: '/hang', accounts: 200, name: 'crowd' })
    const p99 = async (others: object) => (await deliver(stage, service.pool, healthy, others)).p99
    await p99({}) // warm-up
    return times(runs, async () => {
      const [alone, beside, crowded] = [await p99({}), await p99({ among }), await p99({ before })]
      return {
        healthy_p99_without_ms: alone,
        healthy_p99_with_ms: beside,
        ratio: beside / alone,
        healthy_p99_with_crowd_ms: crowded,
        crowd_ratio: crowded / alone
      }
    })
  }
}
