/**
 * Failovers: `npm run chaos -- standby`, or only those named. Cues fire every second and callers create, read and register, while
 *
 *   demoted, demoted-synchronous    the primary becomes a standby for a while, and the primary again
 *   vanished, vanished-synchronous  the primary is frozen, without a FIN, and its standby promoted at the same address
 *
 * with asynchronous and with synchronous replication. Prints the figures of each as JSON. Exits with 1 if a slot was lost or doubled, a response
 * was wrong or took longer than 10 s, or the first slot came later than promised.
 */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openStage, type Stage } from '../stage.ts'
import { layWire, type Wire } from '../wire.ts'
import { startLoad } from './load.ts'
import { type Pair, query, startPair } from './servers.ts'

/** `timed`: whether the time limits hold; they don't on a machine that is busy with other things. */
type Options = { replicas: number; demotedMs: number; steadyMs: number; timed: boolean }
/** When the fault began, when the database took writes again, and the server that does. */
type Failover = { since: number; writableAt: number; url: string; sessions: number }
type Fault = (pair: Pair, wire: Wire, options: Options) => Promise<Failover>

const answeredWithinMs = 10_000
/** Of a demoted primary from when it takes writes; of a vanished one from when it vanished. */
const withinMs = { demoted: 2000, vanished: 12_000 }

const demote: Fault = async ({ primary, demote, promote }: Pair, _: Wire, { demotedMs }: Options): Promise<Failover> => {
  const since = Date.now()
  await demote()
  await delay(demotedMs)
  const [{ sessions }] = (await query(primary.url, "select count(*)::int as sessions from pg_stat_activity where datname = 'pgcue'")) as [
    { sessions: number }
  ]
  return { since, writableAt: await promote(primary), url: primary.url, sessions }
}

const vanish: Fault = async ({ standby, freeze, promote }: Pair, wire: Wire): Promise<Failover> => {
  await delay(1500 - (Date.now() % 1000)) // between two slots
  const since = Date.now()
  await freeze()
  const writableAt = await promote(standby)
  wire.lead(standby.url)
  return { since, writableAt, url: standby.url, sessions: 0 }
}

const scenarios: Record<string, { fault: Fault; isSynchronous: boolean }> = {
  demoted: { fault: demote, isSynchronous: false },
  'demoted-synchronous': { fault: demote, isSynchronous: true },
  vanished: { fault: vanish, isSynchronous: false },
  'vanished-synchronous': { fault: vanish, isSynchronous: true }
}

export const playFailover = async (stage: Stage, name: string, options: Options) => {
  const { fault, isSynchronous } = scenarios[name]!
  const dir = mkdtempSync(join(stage.dir, `${name}-`))
  const pair = await startPair(dir, isSynchronous)
  const wire = await layWire(pair.primary.url)
  try {
    const replicas = await Promise.all(Array.from({ length: options.replicas }, (_, n) => stage.startReplica(`${name}-${n + 1}`, wire.url)))
    await stage.receiver.reset()
    const load = await startLoad(replicas, stage.receiver.url)
    await delay(options.steadyMs)
    const { since, writableAt, url, sessions } = await fault(pair, wire, options)
    await delay(options.steadyMs + (fault === vanish ? withinMs.vanished : 0))
    const { figures, faults } = await load.stop(url, stage.receiver.sends)
    const codes = await Promise.all(replicas.map(replica => replica.stop()))
    const errors = replicas.flatMap(replica => replica.errors())
    const first = Math.min(...(await stage.receiver.sends()).map(({ at }) => at).filter(at => at >= writableAt))
    const first_slot_ms = first - (fault === vanish ? since : writableAt)
    const limitMs = fault === vanish ? withinMs.vanished : withinMs.demoted
    const at_most = { lost: 0, doubled: 0, slowest_request_ms: options.timed ? answeredWithinMs : Number.POSITIVE_INFINITY }
    for (const [figure, most] of Object.entries(at_most)) {
      const value = figures[figure as keyof typeof at_most]
      if (value > most) faults.push(`${figure}: ${value}, and at most ${most} may be`)
    }
    if (options.timed && first_slot_ms > limitMs) faults.push(`first_slot_ms: ${first_slot_ms}, and at most ${limitMs} may pass`)
    // A replica has at most PG_POOL_MAX connections and two listeners.
    if (sessions > options.replicas * 12) faults.push(`sessions: ${sessions}`)
    if (codes.some(code => code !== 0)) faults.push(`replicas exited with ${codes}`)
    const away_ms = writableAt - since
    return {
      figures: { ...figures, away_ms, first_slot_ms, sessions, errors_logged: errors.length },
      faults: [...faults.slice(0, 10), ...errors.slice(0, 3)]
    }
  } finally {
    wire.close()
    await pair.close()
  }
}

export const playStandby = async (names: string[], replicas: number): Promise<boolean> => {
  const unknown = names.find(name => !scenarios[name])
  if (unknown) throw new Error(`there is no ${unknown}; there are ${Object.keys(scenarios).join(', ')}`)
  const stage = openStage()
  let failed = false
  let closing: Promise<void> | undefined
  const close = () => (closing ??= stage.close(failed))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void close().then(() => process.exit(130)))
  try {
    const open = await stage.open()
    for (const name of names.length > 0 ? names : Object.keys(scenarios)) {
      const { figures, faults } = await playFailover(open, name, { replicas, demotedMs: 15_000, steadyMs: 5000, timed: true })
      console.log(JSON.stringify({ scenario: name, replicas, figures, faults }))
      failed ||= faults.length > 0
    }
    if (failed) console.log(`The logs are in ${open.dir}`)
  } catch (error) {
    if (!closing) {
      failed = true
      throw error
    }
  } finally {
    await close()
  }
  return !failed
}
