/** Replicas on a database of their own, to which faults happen, and the verdict. */
import { type KeyObject, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { deriveKey } from '../../src/deliveries/signature.ts'
import type { Figures } from '../stage/figures.ts'
import type { Replica, Stage } from '../stage/stage.ts'
import { layWire } from '../stage/wire.ts'

/** `faults` are violations; empty if all is well. */
export type Verdict = { figures: Figures; faults: string[] }
/** `tokenKey` verifies execution tokens made by this replica, which has its own session secret. */
export type Victim = Replica & { tokenKey: KeyObject }
export type World = Awaited<ReturnType<typeof openWorld>>

/** `wired`: which replicas reach the database through a wire that can fail. */
export const openWorld = async (
  stage: Stage,
  scenario: string,
  { isEmpty = false, wired }: { isEmpty?: boolean; wired?: string | undefined } = {}
) => {
  const { name, url, pool } = await stage.createDatabase(scenario, { isEmpty })
  const wire = await layWire(url)
  const replicas: Victim[] = []
  let started = 0
  const rows = async (text: string, values: unknown[] = []) => (await pool.query(text, values)).rows
  const start = async (root?: string): Promise<Victim> => {
    const nth = ++started
    const SESSION_SECRET = randomBytes(32).toString('base64')
    const isWired = wired === 'all' || (wired === 'victim' && nth === 1)
    const env = { DATABASE_URL: isWired ? wire.url : url, SESSION_SECRET, SECRETS_CHANGED: 'on' }
    const replica = await stage.startReplica(`${name}-${nth}`, env, root)
    const victim = { ...replica, tokenKey: deriveKey(SESSION_SECRET, 'execution-token') }
    replicas.push(victim)
    return victim
  }
  await stage.receiver.reset()
  return {
    stage,
    url,
    pool,
    wire,
    replicas,
    rows,
    count: async (from: string, values: unknown[] = []) => (await rows(`select count(*)::int as n from ${from}`, values))[0].n as number,
    start,
    startAll: (count: number, root?: string) => Promise.all(Array.from({ length: count }, () => start(root))),
    /** Kills the oldest replica, and starts another. */
    replace: async () => {
      await replicas.shift()!.kill()
      await start()
    },
    freeze: async (ms: number) => {
      replicas[0]!.signal('SIGSTOP')
      await delay(ms)
      replicas[0]!.signal('SIGCONT')
    },
    /** Stops all replicas. Returns how many had not ended well, what they logged, and how often PostgreSQL ended a deadlock. */
    close: async () => {
      const codes = await Promise.all(replicas.map(replica => replica.stop()))
      wire.close()
      const [{ deadlocks }] = await rows('select deadlocks::int from pg_stat_database where datname = current_database()')
      const errors = replicas.flatMap(replica => replica.errors())
      return { crashed: codes.filter(code => code !== 0).length, errors, deadlocks: deadlocks as number }
    }
  }
}

/** Names figures that are above their limits, or not what they must be. */
export const faultsOf = (figures: Figures, limits: Figures, exact: Figures = {}): string[] => [
  ...Object.keys(limits).flatMap(name =>
    figures[name]! <= limits[name]! ? [] : `${name}: ${figures[name]}${limits[name] ? `, and at most ${limits[name]} may be` : ''}`
  ),
  ...Object.keys(exact).flatMap(name => (figures[name] === exact[name] ? [] : `${name}: ${figures[name]} instead of ${exact[name]}`))
]

/** Ends a world, and judges its figures. */
export const conclude = async (world: World, figures: Figures, limits: Figures, exact: Figures = {}): Promise<Verdict> => {
  const { errors, deadlocks } = await world.close()
  const all = { ...figures, deadlocks, errors_logged: errors.length }
  return { figures: all, faults: [...faultsOf(all, { ...limits, deadlocks: 0 }, exact), ...errors.slice(0, 3)] }
}

/** The same attempt must not reach the receiver twice. */
export const sentTwice = (sends: { execution_id: string; attempt: number }[]) =>
  sends.length - new Set(sends.map(send => `${send.execution_id} ${send.attempt}`)).size

/** Waits until a count is reached, or for two minutes; then the verdict says what is missing. */
export const untilCount = async (read: () => Promise<number>, expected: number) => {
  for (const end = Date.now() + 120_000; Date.now() < end; await delay(250)) if ((await read().catch(() => -1)) >= expected) return
}
