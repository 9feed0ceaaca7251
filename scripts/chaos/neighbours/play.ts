/**
 * How much tenants can affect each other: a replica with its limits on, well-behaved accounts with a cue every second, and attackers who stay within the
 * limits. The figures are the victims' lateness and the API's latency before, during and after each attack. Faulty is a lost delivery, a
 * replica that is down, and lateness during an attack of more than twice that before it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { quantile, sorted } from '../../stage/figures.ts'
import { memory, start } from '../../stage/processes.ts'
import { addAccounts } from '../../stage/seed.ts'
import type { Stage } from '../../stage/stage.ts'
import type { Damage } from './attacker.ts'
import { attacks } from './attacks.ts'
import { startVictims } from './victims.ts'

const victimCount = 40
const attackerCount = 50
const quietSeconds = 10
/** Smaller differences are noise. */
const toleratedMs = 50

const phases = ['before', 'during', 'after'] as const
type Phase = (typeof phases)[number]
const inPhases = <T>(of: (phase: Phase) => T) => Object.fromEntries(phases.map(phase => [phase, of(phase)])) as Record<Phase, T>

export const playAttack = async (stage: Stage, name: string, seconds: number) => {
  const { title, prepare, strike } = attacks[name]!
  const { name: database, url, pool } = await stage.createDatabase(`neighbours_${name}`)
  const replica = await stage.startReplica(database, { DATABASE_URL: url, PLANS: '{}', LOG_LEVEL: 'error' })
  const attacker = start('scripts/chaos/neighbours/attacker.ts')
  const accounts = await addAccounts(pool, victimCount + attackerCount)
  const attackers = accounts.slice(victimCount)
  // Victims have the largest plan, attackers all plans in turn.
  await pool.query(
    `update cue.accounts a set plan = (case when u.n <= $2 then 'scale' else (array['scale', 'free', 'pro'])[1 + (u.n - $2 - 1) % 3] end)::cue.plan
       from unnest($1::uuid[]) with ordinality as u (id, n) where a.id = u.id`,
    [accounts.map(({ id }) => id), victimCount]
  )
  await stage.receiver.reset()
  const world = {
    url: replica.address,
    pool,
    hook: stage.receiver.url,
    attackers,
    seconds,
    send: (weapon: string, options: object) =>
      attacker.ask<Damage>(weapon, { url: replica.address, seconds, ...options }, seconds * 1000 + 60_000)
  }
  await prepare?.(world)
  const victims = await startVictims(replica.address, accounts.slice(0, victimCount), stage.receiver.url)
  await delay(3000) // warm-up
  const before = Date.now()
  await delay(quietSeconds * 1000)
  const during = Date.now()
  const damage = await strike(world)
  const after = Date.now()
  await delay(quietSeconds * 1000)
  const until = Date.now()
  await delay(3000) // late deliveries may still arrive
  await stage.receiver.release()
  const arrivals = await stage.receiver.arrivals()
  const isAlive = await fetch(`${replica.address}/status`).then(
    ({ ok }) => ok,
    () => false
  )
  const peak_mb = Math.round(memory(replica.pid, 'VmHWM'))
  await victims.stop()
  await Promise.all([replica.kill(), attacker.kill()])
  await stage.receiver.release()

  const periods = { before: [before, during], during: [during, after], after: [after, until] } as const
  const isWithin = (phase: Phase, at: number) => at >= periods[phase][0] && at < periods[phase][1]
  const deliveries = arrivals.due.map((due, n) => ({ due, late: arrivals.at[n]! - due }))
  const late = inPhases(phase => sorted(deliveries.filter(({ due }) => isWithin(phase, due)).map(({ late }) => late)))
  const latency = inPhases(phase => sorted(victims.calls.filter(({ at }) => isWithin(phase, at)).map(({ ms }) => ms)))
  const round = (of: Record<Phase, number[]>, share: number) => inPhases(phase => Math.round(quantile(of[phase], share)))
  // Each whole second has one slot of every cue.
  const due = victimCount * (Math.ceil(until / 1000) - Math.ceil(before / 1000))
  const delivered = phases.reduce((sum, phase) => sum + late[phase].length, 0)
  const failed_calls = victims.calls.filter(({ status }) => status === 0 || status >= 400).length
  const [lateness, api] = [round(late, 0.99), round(latency, 0.99)]
  const figures = {
    lateness_p99_ms: lateness,
    lateness_p50_ms: round(late, 0.5),
    lateness_max_ms: inPhases(phase => late[phase].at(-1) ?? null),
    api_p99_ms: api,
    ...{ delivered, due, failed_calls, peak_mb }
  }
  const faults = [
    ...(isAlive ? [] : ['the replica is down']),
    ...(delivered < due ? [`${due - delivered} deliveries are missing`] : []),
    ...(lateness.during > Math.max(2 * lateness.before, toleratedMs) ? [`lateness ${lateness.during} ms, quiet ${lateness.before} ms`] : [])
  ]
  return { attack: name, title, ...figures, ...damage, faults }
}
