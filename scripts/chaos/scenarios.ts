/**
 * The faults, each in the middle of a herd of cues on several replicas; then received and expected requests are compared slot by slot. Faulty is
 * whatever was lost, duplicated without need, or late.
 */
import { execSync } from 'node:child_process'
import { mkdtempSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { migrate } from '../../src/migrate/migrate.ts'
import { here } from '../stage/processes.ts'
import type { Stage } from '../stage/stage.ts'
import { createCallers } from './callers.ts'
import { type Held, raiseHerd, readFound, readHeld, readRows, settled } from './herd.ts'
import { judge } from './verdict.ts'
import { openWorld, type Verdict, type Victim, type World as WorldOf } from './world.ts'

export type Options = {
  /** Number of cues. */
  n: number
  replicas: number
  /** How long a replica is frozen. */
  frozenMs: number
  /** How long PostgreSQL is unreachable. */
  awayMs: number
  /** Whether everything must be delivered within a time limit after the fault. */
  timed: boolean
  /** Directory of the release from which an upgrade starts. */
  former?: string | undefined
}

type World = WorldOf & Omit<Options, 'replicas'> & { victim: Victim }

type Fault = {
  /** When the fault began, and when it was over, in epoch milliseconds. */
  since: number
  over: number
  /** Attempts held by all replicas when the fault began. */
  held: Held[]
  /** The replicas that were killed, frozen or cut off: what they held may be sent twice. */
  victims?: Victim[]
  killed?: number
  /** Responses to API clients that were the service's fault. */
  errors?: string[]
}

type Scenario = {
  title: string
  /** Starts with replicas of the former release, on a database of its own. */
  isUpgrade?: true
  /** Which replicas reach the database through a wire that can fail. */
  wired?: 'all' | 'victim'
  /** Time limit for delivering everything after the fault. */
  withinMs?: number
  fault?: (world: World) => Promise<Fault>
  /** Runs after everything is delivered; returns the number of rows that were changed but must not be. */
  aftermath?: (world: World, fault: Fault) => Promise<number>
}

const signal =
  (name: NodeJS.Signals, isVictim = true) =>
  async ({ victim, pool }: World): Promise<Fault> => {
    victim.signal(name)
    const since = Date.now()
    const held = await readHeld(pool)
    return { since, over: since, held, victims: isVictim ? [victim] : [], killed: name === 'SIGKILL' ? 1 : 0 }
  }

const meanwhile =
  (happen: (world: World) => Promise<unknown>, victimsOf: (world: World) => Victim[] = () => [], isKilled = false) =>
  async (world: World): Promise<Fault> => {
    const victims = victimsOf(world)
    const held = await readHeld(world.pool)
    const since = Date.now()
    await happen(world)
    return { since, over: Date.now(), held, victims, killed: isKilled ? victims.length : 0 }
  }

/** Wakes the victim and lets it write its results: none may change anything. */
const wake = async ({ victim, pool, frozenMs }: World, { since }: Fault) => {
  await delay(Math.max(0, since + frozenMs - Date.now()))
  const before = await readRows(pool)
  victim.signal('SIGCONT')
  await victim.stop()
  return (await readRows(pool)).symmetricDifference(before).size
}

/** Replaces all replicas, one after the other, by those of this release, by the former ones again, and by this release. */
const upgrade = async (world: World): Promise<Fault> => {
  const { replicas, start, former, url } = world
  const count = replicas.length
  const callers = await createCallers(replicas[0]!.address)
  const fault = await meanwhile(async () => {
    for (const { address } of replicas) callers.enter(address)
    await migrate({ connectionString: url })
    for (const root of [undefined, former, undefined]) {
      for (const leaving of replicas.slice(-count)) {
        callers.enter((await start(root)).address)
        await callers.leave(leaving.address)
        await leaving.stop()
      }
    }
  })(world)
  const { faults } = await callers.stop(url)
  const unavailable = callers.answers.filter(({ status }) => status === 503).map(({ text }) => `503 ${text}`)
  return { ...fault, errors: [...faults, ...unavailable] }
}

export const scenarios: Record<string, Scenario> = {
  none: { title: 'nothing happens' },
  kill: { title: 'a replica is killed (SIGKILL)', fault: signal('SIGKILL') },
  stop: {
    title: 'a replica is stopped for a while (SIGSTOP), and comes back with its results',
    fault: signal('SIGSTOP'),
    aftermath: wake
  },
  sleep: {
    title: 'all replicas are stopped at once, as on a computer that sleeps, and go on',
    fault: meanwhile(async ({ replicas, awayMs }) => {
      for (const replica of replicas) replica.signal('SIGSTOP')
      await delay(awayMs)
      for (const replica of replicas) replica.signal('SIGCONT')
    })
  },
  term: { title: 'a replica is told to end (SIGTERM)', fault: signal('SIGTERM', false) },
  restart: { title: 'PostgreSQL crashes and comes back', fault: meanwhile(({ stage }) => stage.crash()) },
  power: {
    title: 'everything is killed at once, PostgreSQL too, and started again',
    fault: meanwhile(
      async ({ stage, replicas, startAll }) => {
        const { length } = replicas
        for (const victim of replicas) victim.signal('SIGKILL')
        await stage.crash()
        await startAll(length)
      },
      ({ replicas }) => [...replicas],
      true
    )
  },
  outage: {
    title: 'PostgreSQL cannot be reached for longer than leases last',
    wired: 'all',
    fault: meanwhile(({ wire, awayMs }) => wire.interrupt(awayMs))
  },
  replies: {
    title: 'what PostgreSQL commits is done, but its replies are lost',
    wired: 'all',
    fault: meanwhile(({ wire }) => wire.loseReplies(300))
  },
  stall: {
    title: 'nothing passes between replicas and PostgreSQL for longer than leases last, and then everything does',
    wired: 'all',
    fault: meanwhile(({ wire, awayMs }) => wire.stall(awayMs))
  },
  upgrade: { title: 'replicas of the former release give way to this one, come back, and give way again', isUpgrade: true, fault: upgrade },
  silence: {
    title: "a replica's connections to PostgreSQL fall silent, half-open",
    wired: 'victim',
    // It gives up on its statements after ten seconds.
    withinMs: 15_000,
    fault: meanwhile(
      async ({ wire }) => wire.silence(),
      ({ victim }) => [victim]
    )
  }
}

/**
 * Checks out another release to a directory of its own: that of a commit, or that before the last commit that changed sql/.
 * @throws {Error} if git or the history is missing, or if that release's databases cannot be upgraded
 */
export const checkOut = (stage: Stage, commit?: string): string => {
  const shell = (command: string) => execSync(command, { cwd: here, encoding: 'utf8' }).trim()
  const [first, second] = shell('git log -2 --format=%H -- sql').split('\n')
  const ref = commit ?? (shell('git status --porcelain sql') ? first : second)
  if (!ref) throw new Error('the history has no former release')
  if (shell(`git diff --name-only "${ref}" -- sql/migrations/0001_init.sql`)) throw new Error(`${ref} has another baseline`)
  const root = mkdtempSync(join(stage.dir, 'release-'))
  shell(`git archive "${ref}" src sql scripts package.json | tar -x -C "${root}"`)
  symlinkSync(join(here, 'node_modules'), join(root, 'node_modules'))
  return root
}

const withinMs = 10_000
/** Share of the herd delivered before the fault. */
const faultAt = 0.3

/** Runs a scenario in its own database. */
export const play = async (stage: Stage, name: string, options: Options): Promise<Verdict> => {
  const scenario = scenarios[name]!
  const { n, former } = options
  const opened = await openWorld(stage, name, { isEmpty: scenario.isUpgrade ?? false, wired: scenario.wired })
  // The first one of a former release migrates.
  const victim = await opened.start(former)
  await opened.startAll(options.replicas - 1, former)
  const { pool, close } = opened
  const world = { ...options, ...opened, victim }
  const slots = await raiseHerd(pool, n, stage.receiver.url)
  await stage.receiver.wait(n * faultAt)
  const fault = await scenario.fault?.(world)
  await stage.receiver.wait(n)
  await settled(pool, n)
  const changed = fault && scenario.aftermath ? await scenario.aftermath(world, fault) : 0
  const { crashed, errors, deadlocks } = await close()
  return judge({
    slots,
    sends: await stage.receiver.sends(),
    found: { ...(await readFound(pool)), deadlocks },
    fault,
    tokenKeys: fault?.victims?.map(({ tokenKey }) => tokenKey) ?? [],
    changed,
    crashed: crashed - (fault?.killed ?? 0),
    errors: [...(fault?.errors ?? []), ...errors],
    withinMs: options.timed ? (scenario.withinMs ?? withinMs) : Number.POSITIVE_INFINITY
  })
}
