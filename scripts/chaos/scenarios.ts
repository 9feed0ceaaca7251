/** The faults, each in the middle of a herd. */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type Held, raiseHerd, readFound, readHeld, readRows, settled } from './herd.ts'
import type { Replica, Stage } from './stage.ts'
import { judge, type Verdict } from './verdict.ts'
import { layWire, type Wire } from './wire.ts'

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
  /** The commit of the release from which an upgrade starts. */
  from?: string
}

type World = Pick<Options, 'frozenMs' | 'awayMs'> & {
  stage: Stage
  pool: pg.Pool
  wire: Wire
  replicas: Replica[]
  /** Initial number of replicas. */
  count: number
  victim: Replica
  startReplica: (root?: string) => Promise<Replica>
  /** Directory of the former release. */
  former?: string
  upgrade: () => Promise<unknown>
}

export type Fault = {
  /** When the fault began, and when it was over, in epoch milliseconds. */
  since: number
  over: number
  /** Attempts held by all replicas when the fault began. */
  held: Held[]
  /** The replicas that were killed, frozen or cut off: what they held may be sent twice. */
  victims?: Replica[]
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
  /** Size of payloads in bytes; with large ones, fewer cues are enough. */
  payload?: number
  share?: number
  /** Time limit for delivering everything after the fault. */
  withinMs?: number
  fault?: (world: World) => Promise<Fault>
  /** Runs after everything is delivered; returns the number of rows that were changed but must not be. */
  aftermath?: (world: World, fault: Fault) => Promise<number>
}

const signal =
  (name: NodeJS.Signals) =>
  async ({ victim, pool }: World): Promise<Fault> => {
    victim.signal(name)
    const since = Date.now()
    return { since, over: since, held: await readHeld(pool), victims: [victim], killed: name === 'SIGKILL' ? 1 : 0 }
  }

const meanwhile =
  (happen: (world: World) => Promise<unknown>) =>
  async (world: World): Promise<Fault> => {
    const held = await readHeld(world.pool)
    const since = Date.now()
    await happen(world)
    return { since, over: Date.now(), held }
  }

/** Wakes the victim and lets it write its results: none may change anything. */
const wake = async ({ victim, pool, frozenMs }: World, { since }: Fault) => {
  await delay(Math.max(0, since + frozenMs - Date.now()))
  const before = await readRows(pool)
  victim.signal('SIGCONT')
  await victim.stop()
  return (await readRows(pool)).symmetricDifference(before).size
}

export const scenarios: Record<string, Scenario> = {
  none: { title: 'nothing happens' },
  kill: { title: 'a replica is killed (SIGKILL)', fault: signal('SIGKILL') },
  stop: {
    title: 'a replica is stopped for a while (SIGSTOP), and comes back with its results',
    fault: signal('SIGSTOP'),
    aftermath: wake
  },
  bulk: {
    title: 'a replica is stopped while PostgreSQL answers it at length',
    payload: 200_000,
    share: 0.2,
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
  term: { title: 'a replica is told to end (SIGTERM)', fault: async world => ({ ...(await signal('SIGTERM')(world)), victims: [] }) },
  restart: { title: 'PostgreSQL crashes and comes back', fault: meanwhile(({ stage }) => stage.crash()) },
  power: {
    title: 'everything is killed at once, PostgreSQL too, and started again',
    fault: async world => {
      const victims = [...world.replicas]
      for (const victim of victims) victim.signal('SIGKILL')
      const fault = await meanwhile(async () => {
        await world.stage.crash()
        await Promise.all(victims.map(() => world.startReplica()))
      })(world)
      return { ...fault, victims, killed: victims.length }
    }
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
  upgrade: {
    title: 'replicas of the former release give way to this one, come back, and give way again',
    isUpgrade: true,
    fault: async world => {
      const { replicas, startReplica, former, upgrade } = world
      const callers = startCallers()
      const fault = await meanwhile(async () => {
        for (const replica of replicas) await callers.call(replica)
        await upgrade()
        for (const root of [undefined, former, undefined]) {
          const leaving = replicas.slice(-world.count)
          for (const replica of leaving) {
            await callers.call(await startReplica(root))
            await callers.leave(replica)
            await replica.stop()
          }
        }
      })(world)
      return { ...fault, errors: await callers.end() }
    }
  },
  silence: {
    title: "a replica's connections to PostgreSQL fall silent, half-open",
    wired: 'victim',
    // It gives up on its statements after ten seconds.
    withinMs: 15_000,
    fault: async world => ({ ...(await meanwhile(async ({ wire }) => wire.silence())(world)), victims: [world.victim] })
  }
}

/** Starts API clients, one per replica, each until told to stop. */
const startCallers = () => {
  const errors: string[] = []
  const calling = new Map<Replica, { isLeaving: boolean; done: Promise<void> }>()

  const ask = async (method: string, url: string, body?: object, key?: string) => {
    const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) }
    const answer = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    if (answer.status >= 500) errors.push(`${method} ${new URL(url).pathname}: ${answer.status} ${await answer.text()}`)
    // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
    return (await answer.json().catch(() => ({}))) as any
  }
  const work = async (address: string, state: { isLeaving: boolean }) => {
    const { api_key } = await ask('POST', `${address}/v1/auth/register`, { email: `caller-${randomUUID()}@example.com` })
    while (!state.isLeaving) {
      const cue = { name: 'asked', cron: '@yearly', transport: 'worker' }
      const { id } = await ask('POST', `${address}/v1/cues`, cue, api_key)
      await ask('GET', `${address}/v1/cues/${id}`, undefined, api_key)
      await ask('GET', `${address}/v1/cues`, undefined, api_key)
      await ask('DELETE', `${address}/v1/cues/${id}`, undefined, api_key)
    }
  }
  const leave = async (replica: Replica) => {
    const caller = calling.get(replica)
    if (caller) caller.isLeaving = true
    await caller?.done
  }
  return {
    call: async (replica: Replica) => {
      const state = { isLeaving: false }
      const done = work(replica.address, state).catch(error => void errors.push(String(error)))
      calling.set(replica, Object.assign(state, { done }))
    },
    leave,
    end: async () => {
      await Promise.all([...calling.keys()].map(leave))
      return errors
    }
  }
}

const patienceMs = 60_000
const withinMs = 10_000
/** Share of the herd delivered before the fault. */
const faultAt = 0.3

/** Runs a scenario in its own database. */
export const play = async (stage: Stage, name: string, options: Options): Promise<Verdict> => {
  const scenario = scenarios[name]!
  const { frozenMs, awayMs } = options
  const n = Math.round(options.n * (scenario.share ?? 1))
  const former = scenario.isUpgrade ? await stage.checkOut(options.from) : undefined
  const { name: database, url, pool, drop } = await stage.createDatabase(name, scenario.isUpgrade)
  if (former) await stage.migrate(url, former)
  const wire = await layWire(url)
  const replicas: Replica[] = []
  let started = 0
  const startReplica = async (root?: string) => {
    const nth = ++started // the first is the victim
    const isWired = scenario.wired === 'all' || (scenario.wired === 'victim' && nth === 1)
    const replica = await stage.startReplica(`${database}-${nth}`, isWired ? wire.url : url, root)
    replicas.push(replica)
    return replica
  }
  const [victim] = await Promise.all(Array.from({ length: options.replicas }, () => startReplica(former)))
  const upgrade = () => stage.migrate(url)
  const world = { frozenMs, awayMs, stage, pool, wire, replicas, count: options.replicas, victim: victim!, startReplica, former, upgrade }
  await stage.receiver.reset()
  const slots = await raiseHerd(pool, { count: n, hook: stage.receiver.url, payload: scenario.payload })
  await stage.receiver.wait(n * faultAt)
  const fault = await scenario.fault?.(world)
  await stage.receiver.wait(n)
  await settled(pool, n, patienceMs)
  const changed = fault && scenario.aftermath ? await scenario.aftermath(world, fault) : 0
  const codes = await Promise.all(replicas.map(replica => replica.stop()))
  const verdict = judge({
    slots,
    sends: await stage.receiver.sends(),
    found: await readFound(pool),
    fault,
    tokenKeys: fault?.victims?.map(({ tokenKey }) => tokenKey) ?? [],
    changed,
    crashed: codes.filter(code => code !== 0).length - (fault?.killed ?? 0),
    errors: [...(fault?.errors ?? []), ...replicas.flatMap(replica => replica.errors())],
    withinMs: options.timed ? (scenario.withinMs ?? withinMs) : Number.POSITIVE_INFINITY
  })
  wire.close()
  await drop()
  return verdict
}
