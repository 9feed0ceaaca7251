/**
 * Failovers: cues fire every second and callers create, read and register, while
 *
 *   demoted, demoted-synchronous    the primary becomes a standby for a while, and the primary again
 *   vanished, vanished-synchronous  the primary is frozen, without a FIN, and its standby promoted at the same address
 *
 * with asynchronous and with synchronous replication. Faulty is a slot that was lost or doubled, a response that was wrong or took longer than 10 s,
 * and a first slot that came later than promised.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Figures } from '../stage/figures.ts'
import { query, type Stage } from '../stage/stage.ts'
import { layWire, type Wire } from '../stage/wire.ts'
import { type Caller, createCallers } from './callers.ts'
import { type Pair, startPair } from './pair.ts'
import { startTicks } from './ticks.ts'
import { faultsOf } from './world.ts'

/** `timed`: whether the time limits hold; they don't on a machine that is busy with other things. */
type Options = { replicas: number; demotedMs: number; steadyMs: number; timed: boolean; cues?: number; callers?: Caller[] }
/** When the fault began, when the database took writes again, and the server that does. */
type Failover = { since: number; writableAt: number; url: string; sessions: number }
type Fault = {
  /** The first slot comes so long after `from`. */
  withinMs: number
  from: 'since' | 'writableAt'
  strike: (pair: Pair, wire: Wire, options: Options) => Promise<Failover>
}

const answeredWithinMs = 10_000

const demoted: Fault = {
  withinMs: 2000,
  from: 'writableAt',
  strike: async ({ primary, demote, promote }, _, { demotedMs }) => {
    const since = Date.now()
    await demote()
    await delay(demotedMs)
    const [row] = await query(primary.url, "select count(*)::int as sessions from pg_stat_activity where datname = 'pgcue'")
    return { since, writableAt: await promote(primary), url: primary.url, sessions: row.sessions }
  }
}

const vanished: Fault = {
  withinMs: 12_000,
  from: 'since',
  strike: async ({ standby, freeze, promote }, wire) => {
    await delay(1500 - (Date.now() % 1000)) // between two slots
    const since = Date.now()
    await freeze()
    const writableAt = await promote(standby)
    wire.lead(standby.url)
    return { since, writableAt, url: standby.url, sessions: 0 }
  }
}

export const failovers: Record<string, [Fault, 'synchronous'?]> = {
  demoted: [demoted],
  'demoted-synchronous': [demoted, 'synchronous'],
  vanished: [vanished],
  'vanished-synchronous': [vanished, 'synchronous']
}

export const playFailover = async (stage: Stage, name: string, options: Options) => {
  const [{ withinMs, from, strike }, mode] = failovers[name]!
  const pair = await startPair(stage, name, mode === 'synchronous')
  const wire = await layWire(pair.primary.url)
  const replicas = await Promise.all(
    Array.from({ length: options.replicas }, (_, n) => stage.startReplica(`${name}-${n + 1}`, { DATABASE_URL: wire.url }))
  )
  const { address } = replicas[0]!
  await stage.receiver.reset()
  const callers = await createCallers(address, options.callers)
  const ticks = await startTicks({ address, api_keys: [callers.api_key], count: options.cues ?? 20, hook: stage.receiver.url })
  for (const replica of replicas) callers.enter(replica.address)
  await delay(options.steadyMs)
  const failover = await strike(pair, wire, options)
  const { since, writableAt, url, sessions } = failover
  await delay(options.steadyMs + (from === 'since' ? withinMs : 0))
  const { figures: calls, faults } = await callers.stop(url)
  const slots = await ticks.stop(url, stage.receiver.sends)
  faults.push(...slots.faults)
  const codes = await Promise.all(replicas.map(replica => replica.stop()))
  wire.close()
  pair.thaw()
  const errors = replicas.flatMap(replica => replica.errors())
  const first = Math.min(...(await stage.receiver.sends()).map(({ at }) => at).filter(at => at >= writableAt))
  const crashed = codes.filter(code => code !== 0).length
  const figures = {
    ...{ ...slots.figures, ...calls, away_ms: writableAt - since, first_slot_ms: first - failover[from], sessions },
    ...{ errors_logged: errors.length, replicas_crashed: crashed }
  }
  const timed: Figures = options.timed ? { slowest_request_ms: answeredWithinMs, first_slot_ms: withinMs } : {}
  // A replica has at most PG_POOL_MAX connections and two listeners.
  const limits = { sessions: options.replicas * 12, replicas_crashed: 0, ...timed }
  return { figures, faults: [...faults.slice(0, 10), ...faultsOf(figures, limits), ...errors.slice(0, 3)] }
}
