/**
 * How much tenants can affect each other: `npm run chaos -- neighbours` runs all attacks, `npm run chaos -- neighbours lists locks` only
 * those named. Each has a replica with its limits on, well-behaved accounts with a cue every second, and attackers who stay within the
 * limits.
 *
 *   --seconds N    duration of each attack (15)
 *
 * Prints a table with the victims' lateness and the API's latency before, during and after each attack, and one line of JSON per attack.
 * Exits with 1 if a delivery is lost, the replica crashes, or the lateness during an attack is more than twice the baseline.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Account, addAccounts } from '../../bench/cues.ts'
import { quantile } from '../../bench/figures.ts'
import { start } from '../../bench/processes.ts'
import { openStage, type Replica, type Stage } from '../../bench/stage.ts'
import type { Damage } from './attacker.ts'
import { attacks } from './attacks.ts'
import { createVictims } from './victims.ts'

const victimCount = 40
const attackerCount = 50
const quietSeconds = 10
/** Smaller differences are noise. */
const toleratedMs = 50

const phases = ['before', 'during', 'after'] as const
type Phase = (typeof phases)[number]

export const playAll = async (names: string[], seconds: number): Promise<boolean> => {
  const unknown = names.find(name => !attacks[name])
  if (unknown) throw new Error(`unknown attack ${unknown}; attacks are ${Object.keys(attacks).join(', ')}`)
  const stage = openStage()
  let closing: Promise<void> | undefined
  const close = () => (closing ??= stage.close())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void close().then(() => process.exit(130)))
  let failed = false
  try {
    const open = await stage.open()
    console.log(
      '| attack | lateness p99, ms: before, during, after | delivered of due | API p99, ms: before, during, after | errors | memory, MB |'
    )
    console.log('|---|---|---|---|---|---|')
    for (const name of names.length > 0 ? names : Object.keys(attacks)) {
      const { row, figures, faults } = await play(open, name, seconds)
      console.log(row)
      console.log(JSON.stringify({ attack: name, ...figures, faults }))
      failed ||= faults.length > 0
    }
  } catch (error) {
    if (!closing) throw error
  } finally {
    await close()
  }
  return !failed
}

const play = async (stage: Stage, name: string, seconds: number) => {
  const attack = attacks[name]!
  const replica = await stage.startReplica(`neighbours_${name}`, { PLANS: '{}', LOG_LEVEL: 'error' })
  const attacker = start('scripts/chaos/neighbours/attacker.ts', 'around')
  const accounts = await addAccounts(replica.pool, victimCount + attackerCount)
  const [victimAccounts, attackers] = [accounts.slice(0, victimCount), accounts.slice(victimCount)]
  await givePlans(replica, victimAccounts, attackers)
  await stage.receiver.reset()
  const victims = createVictims({ url: replica.url, accounts: victimAccounts, hook: stage.receiver.url })
  const world = {
    url: replica.url,
    pool: replica.pool,
    hook: stage.receiver.url,
    attackers,
    seconds,
    send: <T extends object>(weapon: string, options: T) =>
      attacker.ask<Damage>(weapon, { url: replica.url, seconds, ...options }, seconds * 1000 + 60_000)
  }
  const prepared = await attack.prepare?.(world)
  await victims.start()
  await delay(3000) // warm-up
  const since: Record<Phase, number> = { before: Date.now(), during: 0, after: 0 }
  await delay(quietSeconds * 1000)
  since.during = Date.now()
  const struck = await attack.strike(world, prepared as never)
  since.after = Date.now()
  await delay(quietSeconds * 1000)
  const until = Date.now()
  await delay(3000) // late deliveries may still arrive
  await stage.receiver.release()
  const deliveries = await stage.receiver.deliveries()
  const alive = await fetch(`${replica.url}/status`).then(
    ({ ok }) => ok,
    () => false
  )
  const peakMb = peakMemory(replica.process.pid)
  await victims.stop()
  await Promise.all([replica.stop().catch(() => {}), attacker.stop()])
  await stage.receiver.release()

  const within = (phase: Phase, at: number) =>
    at >= since[phase] && at < (phase === 'before' ? since.during : phase === 'during' ? since.after : until)
  const inPhases = <T>(of: (phase: Phase) => T) => Object.fromEntries(phases.map(phase => [phase, of(phase)])) as Record<Phase, T>
  const late = inPhases(phase =>
    deliveries
      .filter(({ due }) => within(phase, due))
      .map(({ at, due }) => at - due)
      .sort((a, b) => a - b)
  )
  const latency = inPhases(phase =>
    victims.calls
      .filter(({ at }) => within(phase, at))
      .map(({ ms }) => ms)
      .sort((a, b) => a - b)
  )
  const due = victimCount * countSeconds(since.before, until)
  const delivered = phases.reduce((sum, phase) => sum + late[phase].length, 0)
  const failedCalls = victims.calls.filter(({ status }) => status === 0 || status >= 400).length
  const p99 = (of: Record<Phase, number[]>) => inPhases(phase => Math.round(quantile(of[phase], 0.99)))
  const figures = {
    lateness_p99_ms: p99(late),
    lateness_p50_ms: inPhases(phase => Math.round(quantile(late[phase], 0.5))),
    lateness_max_ms: inPhases(phase => late[phase].at(-1) ?? null),
    api_p99_ms: p99(latency),
    delivered,
    due,
    failed_calls: failedCalls,
    peak_mb: peakMb,
    ...struck
  }
  const { lateness_p99_ms: lateness, api_p99_ms: api } = figures
  const faults = [
    ...(alive ? [] : ['the replica is down']),
    ...(delivered < due ? [`${due - delivered} deliveries are missing`] : []),
    ...(lateness.during > Math.max(2 * lateness.before, toleratedMs) ? [`lateness ${lateness.during} ms, quiet ${lateness.before} ms`] : [])
  ]
  const series = (of: Record<Phase, number>) => phases.map(phase => of[phase]).join(', ')
  const row = `| ${attack.title} | ${series(lateness)} | ${delivered} of ${due} | ${series(api)} | ${failedCalls} | ${peakMb} |`
  return { row, figures, faults }
}

/** Victims have the largest plan, attackers all plans in turn. */
const givePlans = async ({ pool }: Replica, victims: Account[], attackers: Account[]) => {
  const plans = ['scale', 'free', 'pro']
  await pool.query("update cue.accounts set plan = 'scale' where id = any ($1)", [victims.map(({ id }) => id)])
  await pool.query(
    'update cue.accounts a set plan = u.plan::cue.plan from unnest($1::uuid[], $2::text[]) as u (id, plan) where a.id = u.id',
    [attackers.map(({ id }) => id), attackers.map((_, n) => plans[n % plans.length])]
  )
}

/** Number of whole seconds in a period; each has one slot of every cue. */
const countSeconds = (from: number, to: number) => Math.ceil(to / 1000) - Math.ceil(from / 1000)

/** Returns the peak memory of a process in MB; null if the system doesn't provide it. */
const peakMemory = (pid: number): number | null => {
  try {
    return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024)
  } catch {
    return null
  }
}
