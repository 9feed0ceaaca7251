/** What fires and delivers in a replica: builds the parts, starts them in order, and stops them. `scheduler.ts` decides what runs when. */
import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import type { Purpose } from '../accounts/keys.ts'
import { startCustomers } from '../billing/customers.ts'
import { constants } from '../catalog.ts'
import { startEndpoints } from '../channels/endpoint-turns.ts'
import { startNotices } from '../channels/send.ts'
import { type Config, engineConnections } from '../config.ts'
import type { Clock } from '../database/clock.ts'
import { readClock } from '../database/follow-clock.ts'
import { createFunctions } from '../database/functions.ts'
import { createListener, type Listener } from '../database/listener.ts'
import type { OutageLog } from '../database/outage-log.ts'
import { answerMs, createPool, longAnswerMs, type PoolOptions } from '../database/pool.ts'
import type { AddressRules } from '../deliveries/address.ts'
import { createFlights } from '../deliveries/flights.ts'
import { createLeases, leaseTimes } from '../deliveries/leases.ts'
import { startNotifications } from '../deliveries/notifications.ts'
import { capacityFor } from '../deliveries/open-files.ts'
import { createPump } from '../deliveries/pump.ts'
import { createRequests } from '../deliveries/request.ts'
import { createResults, writersAtMost } from '../deliveries/results.ts'
import { deriveKey } from '../deliveries/signature.ts'
import { createWebhookClient } from '../deliveries/webhook.ts'
import { isSilent, isUnavailable } from '../errors.ts'
import { createCalendars } from '../firing/calendars.ts'
import { createComputing } from '../firing/computing.ts'
import { createDueQueue } from '../firing/due-queue.ts'
import { createPauseSweep } from '../firing/ended-pauses.ts'
import { createExclusionSweep } from '../firing/excluded-slots.ts'
import { createFiring } from '../firing/fire-others.ts'
import { createAhead } from '../firing/look-ahead.ts'
import { createWindowSweep } from '../firing/missed-windows.ts'
import { type Jobs, startJobs } from '../jobs/boss.ts'
import { startHousekeeping } from '../jobs/housekeeping.ts'
import { startMails } from '../mails/mail.ts'
import { release } from '../memory/block.ts'
import { startMemoryUpdates } from '../memory/updates.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { startOperations } from '../operations/work.ts'
import { startTracker } from '../support/tracker.ts'
import type { Traces } from '../traces/traces.ts'
import { startFollowers } from './chains.ts'
import { createDeadlines } from './deadlines.ts'
import { createGates } from './gates.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createHolds } from './holds.ts'
import { createKeeper, type PeriodicTask } from './keeper.ts'
import { publishEvents } from './publisher.ts'
import { createScheduler } from './scheduler.ts'
import { handOver } from './stop.ts'
import { createWakeTimes } from './wake-times.ts'

/**
 * Leases have a connection of their own, so that they never wait, and results two, so that no others have to plan these statements over all
 * partitions whenever statistics have changed. Of the rest, two take attempts.
 */
const connections = { leases: 1, results: writersAtMost, rest: engineConnections - 1 - writersAtMost }
/** Two heartbeats may be lost before the engine no longer counts as live. */
const beatMs = constants.engineTimeoutMs / 3
const times = leaseTimes()
const windowsMs = 10_000
const clockMs = 15_000
const publishMs = 1000
const gatesMs = 1000
const chainsMs = 1000
const unattendedMs = 20_000
/** A crash delays a notice by its lease and by this. */
const noticesMs = 10_000

export type Engine = {
  /** Stops within 25 seconds. Returns the number of attempts returned to the queue. */
  stop: () => Promise<number>
}
type Options = {
  config: Config
  rules: AddressRules
  clock: Clock
  /** Decrypts an account's API key; undefined if no encryption key fits. */
  decryptKey: (ciphertext: string, purpose: Purpose) => string | undefined
  metrics: Metrics
  traces: Traces
  /** Shared with the API of the same process. */
  outageLog: OutageLog
  /** For tests, whose engines use connections one after the other. */
  openPool?: typeof createPool
  log: FastifyBaseLogger
}

/** Shared by the parts. */
type State = {
  isStopped: boolean
  /** The database was unavailable since the latest heartbeat. */
  wasAway: boolean
  listener?: Listener
}

/**
 * Starts firing and delivering.
 * @throws {ConfigError} if LISTEN_URL is not a direct connection; the database's error if it is unavailable
 */
export const startEngine = async (options: Options): Promise<Engine> => {
  const { config, clock, metrics, outageLog, openPool, log } = options
  const state: State = { isStopped: false, wasAway: false }
  const onError = (error: unknown, task: string) => {
    if (state.isStopped) return
    state.wasAway ||= isUnavailable(error)
    // Notifications may be lost as well.
    if (isSilent(error)) state.listener?.renew()
    // The failed task may have read or been notified of an instant, so all are read again.
    parts?.keeper.soon('read wake times')
    if (!outageLog.lost(error, task)) log.error({ err: error, task }, 'engine task failed')
  }
  let parts: Parts | undefined
  const pools = openPools(config, metrics, error => onError(error, 'idle connection'), openPool)
  // The first answers are slow: the connection is new. Slow answers say little about the time.
  for (let read = 0; read < 3; read++) await readClock(createFunctions(pools.rest), clock)
  const onDue = () => parts?.keeper.soon('read wake times')
  const jobs = await startJobs(pools.rest, log, { outageLog, onFailed: metrics.jobFailed, onDue })
  const engineId = randomUUID()
  const built = buildParts({ ...options, engineId, state, pools, jobs, onError })
  parts = built
  const { fn, client, heartbeat, flights, results, pump, scheduler, keeper } = built

  await heartbeat.beat()
  const listener = await listen(built)
  state.listener = listener
  await startQueues(built)
  keeper.start(tasksOf(built))
  scheduler.wake()

  return {
    stop: async () => {
      const returned = await handOver({ engineId, pump, flights, results, fn, onError })
      state.isStopped = true
      keeper.stop()
      scheduler.stop()
      await jobs.stop().catch(error => log.warn({ err: error }, 'pg-boss did not stop'))
      await listener.close()
      client.destroy()
      await Promise.all(Object.values(pools).map(pool => pool.end()))
      return returned
    }
  }
}

const openPools = (config: Config, metrics: Metrics, onError: (error: Error) => void, openPool = createPool) => {
  const open = (name: string, max: number, options?: PoolOptions) => {
    const pool = openPool(config, { max, name: `pgcue ${name}`, onError, answerMs, ...options })
    metrics.watchPool(name, pool)
    return pool
  }
  return {
    rest: open('engine', connections.rest),
    results: open('results', connections.results),
    leases: open('leases', connections.leases, { answerMs: times.answerMs })
  }
}

type Building = Options & {
  engineId: string
  state: State
  pools: ReturnType<typeof openPools>
  jobs: Jobs
  onError: (error: unknown, task: string) => void
}

/** Builds what fires and delivers. The parts wake the scheduler, which is the last one. */
const buildParts = (building: Building) => {
  const { config, rules, clock, traces, outageLog, metrics, log, engineId, state, pools, jobs, onError } = building
  const now = () => clock.now().getTime()
  const wake = () => scheduler.wake()
  const fn = createFunctions(pools.rest)
  const flights = createFlights(createFunctions(pools.leases))
  const leases = createLeases({ fn, flights, now, connectedAt: () => state.listener?.connectedAt ?? null, metrics, log })
  const sweeping = { fn, calendars: createCalendars(fn), computing: createComputing(), onError, now }
  const queue = createDueQueue()
  const ahead = createAhead({ ...sweeping, queue, pollIntervalMs: config.pollIntervalMs, onPrepared: wake })
  const holds = createHolds({ fn, onChange: () => ahead.expect(0) })
  const results = createResults({ fn: createFunctions(pools.results), flights, onWritten: wake, log })
  const client = traces.client(createWebhookClient({ rules }))
  const pump = createPump({
    ...pumpSettings(building),
    fn: traces.taking(fn),
    ahead,
    queue,
    flights,
    results,
    client,
    now,
    run: (task, work) => scheduler.run(task, work),
    engines: () => heartbeat.engines,
    isHeld: holds.isHeld,
    onChange: () => {
      wake()
      keeper.notice()
    }
  })
  metrics.watchDeliveries(pump)
  const { replicaName: name, missedAfterSeconds } = config
  const heartbeat = createHeartbeat({ fn, engineId, name, missedAfterMs: missedAfterSeconds * 1000, pump, ahead, clock, log })
  const deadlines = createDeadlines({
    fn,
    endPauses: createPauseSweep(sweeping),
    recordExclusions: createExclusionSweep(sweeping),
    readNext: () => wakeTimes.read(),
    metrics,
    now
  })
  const firing = createFiring({ fn, ahead, missedAfter: missedAfterOf(config), log })
  const scheduler = createScheduler({ pump, ahead, firing, deadlines, now, onError, onDone: outageLog.back })
  const wakeTimes = createWakeTimes({ fn, flights, pump, deadlines, ahead, jobs, now })
  const gates = createGates({ fn })
  const keeper = createKeeper({
    tickMs: times.extendMs,
    idleTickMs: Math.min(times.idleMs, heartbeatMsOf(config), config.pollIntervalMs),
    isIdle: wakeTimes.isIdle,
    run: scheduler.run
  })
  return {
    ...building,
    now,
    fn,
    flights,
    leases,
    sweeping,
    ahead,
    holds,
    results,
    client,
    pump,
    heartbeat,
    deadlines,
    scheduler,
    wakeTimes,
    gates,
    keeper
  }
}

type Parts = ReturnType<typeof buildParts>

const missedAfterOf = ({ missedAfterSeconds }: Config) => `${missedAfterSeconds} seconds`

const heartbeatMsOf = ({ missedAfterSeconds }: Config) => Math.min(beatMs, (missedAfterSeconds * 1000) / 4)

/** How a pump takes and sends. */
const pumpSettings = ({ config, decryptKey, outageLog, metrics, log, onError }: Building) => ({
  request: createRequests({ tokenKey: deriveKey(config.sessionSecret, 'execution-token'), decryptKey }),
  missedAfter: missedAfterOf(config),
  concurrency: config.deliveryConcurrency,
  leastOpen: Math.min(...Object.values(config.plans).map(plan => plan.open_deliveries)),
  capacity: capacityFor(config.deliveryConcurrency, log, undefined, config.engineCells.length),
  onError,
  onDone: outageLog.back,
  metrics,
  log
})

/** Passes notifications on to the parts that wait for them. */
const listen = ({ config, fn, ahead, pump, deadlines, gates, jobs, keeper, outageLog, scheduler, onError }: Parts): Promise<Listener> =>
  createListener(config, {
    channels: ['cue_due', 'cue_waiting', 'cue_deadline', 'cue_jobs', 'cue_hold', 'cue_event', 'cue_gate', 'cue_signal'],
    onNotification: (channel, payload) => {
      if (channel === 'cue_jobs') return jobs.wake(payload)
      if (channel === 'cue_hold') return keeper.soon('read holds')
      if (channel === 'cue_gate') {
        gates.notice(payload)
        return void scheduler.run('release held executions', gates.release)
      }
      if (channel === 'cue_signal') return void scheduler.run('start followers', () => startFollowers(fn), true)
      if (channel === 'cue_event') return void scheduler.run('publish events', () => publishEvents(fn), true)
      const at = Number(payload)
      if (channel === 'cue_due') ahead.expect(at)
      else if (channel === 'cue_waiting') pump.expectWaiting(at)
      else deadlines.expect(at)
      scheduler.wake()
    },
    // Notifications sent meanwhile are lost, and the database may run on another host.
    onConnected: () => {
      outageLog.back('listening')
      ahead.forgive()
      ahead.expect(0)
      for (const task of ['read wake times', 'read holds', 'read clock', 'start followers']) keeper.soon(task)
      scheduler.wake()
    },
    onLost: error => onError(error, 'listening')
  })

/** Starts to work off the queues of pg-boss. */
const startQueues = async ({ jobs, config, decryptKey, log, pools, fn, client, sweeping, now }: Parts): Promise<void> => {
  await startNotifications({ jobs, fn, client, baseUrl: config.baseUrl, now, log })
  await startNotices({ jobs, fn, client, config, now, log })
  await startEndpoints({ jobs, fn, client, now, log })
  await startMails({ jobs, fn, config, decryptKey, now, log })
  await startMemoryUpdates({ jobs, fn, client, now, log })
  await startOperations({ jobs, fn, computing: sweeping.computing, now, log })
  await startTracker({ jobs, fn, config, log })
  await startCustomers({ jobs, config, log })
  const patient = createFunctions({ query: query => pools.rest.query(Object.assign(query, { query_timeout: longAnswerMs })) })
  await startHousekeeping({ jobs, fn: patient, config, release, now, log })
}

/** The tasks that run again and again. */
const tasksOf = ({
  config,
  clock,
  fn,
  heartbeat,
  leases,
  sweeping,
  ahead,
  holds,
  pump,
  gates,
  wakeTimes,
  keeper,
  state
}: Parts): PeriodicTask[] => {
  const beat = async () => {
    await heartbeat.beat()
    if (state.wasAway) ahead.forgive()
    state.wasAway = false
  }
  const readWakeTimes = () => wakeTimes.read().finally(keeper.notice)
  return [
    { task: 'extend leases', everyMs: 0, work: leases.extend },
    { task: 'abort unwanted attempts', everyMs: 0, work: pump.abortGone },
    { task: 'recover flights', everyMs: 0, isDue: leases.isRecoveryDue, work: leases.recover },
    { task: 'heartbeat', everyMs: heartbeatMsOf(config), work: beat },
    { task: 'read clock', everyMs: clockMs, work: () => readClock(fn, clock) },
    { task: 'read holds', everyMs: times.idleMs, work: holds.read },
    { task: 'read wake times', everyMs: Math.min(times.idleMs, config.pollIntervalMs), work: readWakeTimes },
    { task: 'publish events', everyMs: publishMs, work: () => publishEvents(fn) },
    { task: 'sweep gates', everyMs: gatesMs, work: gates.sweep },
    { task: 'start followers', everyMs: chainsMs, work: () => startFollowers(fn) },
    { task: 'note unattended tasks', everyMs: unattendedMs, work: () => fn.noteUnattended({}) },
    { task: 'end snoozes', everyMs: noticesMs, work: () => fn.endSnoozes({}) },
    { task: 'requeue notices', everyMs: noticesMs, work: () => fn.requeueNotices({}) },
    { task: 'check missed windows', everyMs: windowsMs, isDue: wakeTimes.mayHavePassedWindow, work: createWindowSweep(sweeping) }
  ]
}
