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
import { createOutageLog, type OutageLog } from '../database/outage-log.ts'
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
import { createMetrics, type Metrics } from '../metrics/metrics.ts'
import { startOperations } from '../operations/work.ts'
import { startTracker } from '../support/tracker.ts'
import { type Traces, untraced } from '../traces/traces.ts'
import { startFollowers } from './chains.ts'
import { createDeadlines } from './deadlines.ts'
import { createGates } from './gates.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createHolds } from './holds.ts'
import { startKeeper } from './keeper.ts'
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
  metrics?: Metrics
  /** None by default. */
  traces?: Traces
  /** Shared with the API of the same process. */
  outageLog?: OutageLog
  /** For tests, whose engines use connections one after the other. */
  openPool?: typeof createPool
  log: FastifyBaseLogger
}

/**
 * Starts firing and delivering.
 * @throws {ConfigError} if LISTEN_URL is not a direct connection; the database's error if it is unavailable
 */
export const startEngine = async (options: Options): Promise<Engine> => {
  const { clock, log, outageLog = createOutageLog(log), metrics = createMetrics() } = options
  const engineId = randomUUID()
  const now = () => clock.now().getTime()
  const running: Running = { isStopped: false, wasAway: false }
  const onError = createOnError(running, outageLog, log)
  const parts = buildParts({ ...options, outageLog, metrics, engineId, now, onError }, running)
  const { pools, fn, client, heartbeat, flights, results, pump, scheduler } = parts

  await heartbeat.beat()
  // The first answers are slow: the connection is new. Slow answers say little about the time.
  for (let read = 0; read < 3; read++) await readClock(fn, clock)
  const jobs = await startJobs(pools.rest, log, {
    outageLog,
    onFailed: metrics.jobFailed,
    onDue: () => running.keeper?.soon('read wake times')
  })
  const wakeTimes = createWakeTimes({ ...parts, jobs })
  running.readWakeTimes = wakeTimes.read
  const listener = await listen(parts, jobs, running)
  running.listener = listener
  await startQueues(parts, jobs)
  const keeper = startTasks(parts, wakeTimes, running)
  running.keeper = keeper
  scheduler.wake()

  return {
    stop: async () => {
      const returned = await handOver({ engineId, pump, flights, results, fn, onError })
      running.isStopped = true
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

/** What parts need of others that start later. */
type Running = {
  isStopped: boolean
  /** The database was unavailable since the latest heartbeat. */
  wasAway: boolean
  keeper?: ReturnType<typeof startKeeper>
  listener?: Listener
  readWakeTimes?: () => Promise<void>
}

const createOnError = (running: Running, outageLog: OutageLog, log: FastifyBaseLogger) => (error: unknown, task: string) => {
  if (running.isStopped) return
  running.wasAway ||= isUnavailable(error)
  // Notifications may be lost as well.
  if (isSilent(error)) running.listener?.renew()
  // The failed task may have read or been notified of an instant, so all are read again.
  running.keeper?.soon('read wake times')
  if (!outageLog.lost(error, task)) log.error({ err: error, task }, 'engine task failed')
}

type Building = Options &
  Required<Pick<Options, 'metrics' | 'outageLog'>> & {
    engineId: string
    now: () => number
    onError: (error: unknown, task: string) => void
  }

/** Builds the parts that look ahead, take, send and record. */
const buildParts = (building: Building, running: Running) => {
  const { config, rules, clock, decryptKey, metrics, traces = untraced, outageLog, openPool, log, engineId, now, onError } = building
  const missedAfter = `${config.missedAfterSeconds} seconds`
  const wake = () => scheduler.wake()
  const pools = openPools(config, metrics, (error: Error) => onError(error, 'idle connection'), openPool)
  const fn = createFunctions(pools.rest)
  const client = traces.client(createWebhookClient({ rules }))

  const heartbeat = createHeartbeat({
    fn,
    engineId,
    name: config.replicaName,
    missedAfterMs: config.missedAfterSeconds * 1000,
    pump: () => pump,
    passedOver: () => ahead.passedOver(),
    clock,
    onOutage: () => ahead.reset(),
    log
  })
  const flights = createFlights(createFunctions(pools.leases))
  const leases = createLeases({ fn, flights, now, connectedAt: () => running.listener?.connectedAt ?? null, metrics, log })
  const computing = createComputing()
  const sweeping = { fn, calendars: createCalendars(fn), computing, onError, now }
  const queue = createDueQueue()
  const ahead = createAhead({ ...sweeping, queue, pollIntervalMs: config.pollIntervalMs, onPrepared: wake })
  const holds = createHolds({ fn, onChange: () => ahead.expect(0) })
  const results = createResults({ fn: createFunctions(pools.results), flights, onWritten: wake, log })
  const pump = createPump({
    fn: traces.taking(fn),
    ahead,
    queue,
    flights,
    results,
    client,
    request: traces.attempts(createRequests({ tokenKey: deriveKey(config.sessionSecret, 'execution-token'), decryptKey })),
    now,
    missedAfter,
    run: (task, work) => scheduler.run(task, work),
    onError,
    onDone: outageLog.back,
    metrics,
    log,
    concurrency: config.deliveryConcurrency,
    leastOpen: Math.min(...Object.values(config.plans).map(plan => plan.open_deliveries)),
    capacity: capacityFor(config.deliveryConcurrency, log, undefined, config.engineCells.length),
    engines: () => heartbeat.engines,
    isHeld: holds.isHeld,
    onChange: () => {
      wake()
      running.keeper?.notice()
    }
  })
  metrics.watchDeliveries(pump)
  const deadlines = createDeadlines({
    fn,
    endPauses: createPauseSweep(sweeping),
    recordExclusions: createExclusionSweep(sweeping),
    readNext: async () => running.readWakeTimes?.(),
    metrics,
    now
  })
  const firing = createFiring({ fn, ahead, missedAfter, log })
  const scheduler = createScheduler({ pump, ahead, firing, deadlines, now, onError, onDone: outageLog.back })
  const gates = createGates({ fn })
  return {
    ...building,
    pools,
    fn,
    client,
    heartbeat,
    flights,
    leases,
    sweeping,
    ahead,
    holds,
    results,
    pump,
    deadlines,
    gates,
    scheduler
  }
}

type Parts = ReturnType<typeof buildParts>

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

/** Passes notifications on to the parts that wait for them. */
const listen = (
  { config, fn, ahead, pump, deadlines, gates, outageLog, scheduler, onError }: Parts,
  jobs: Jobs,
  running: Running
): Promise<Listener> => {
  const soon = (...tasks: string[]) => {
    for (const task of tasks) running.keeper?.soon(task)
  }
  return createListener(config, {
    channels: ['cue_due', 'cue_waiting', 'cue_deadline', 'cue_jobs', 'cue_hold', 'cue_event', 'cue_gate', 'cue_signal'],
    onNotification: (channel, payload) => {
      if (channel === 'cue_jobs') return jobs.wake(payload)
      if (channel === 'cue_hold') return soon('read holds')
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
      soon('read wake times', 'read holds', 'read clock', 'start followers')
      scheduler.wake()
    },
    onLost: error => onError(error, 'listening')
  })
}

/** Starts to work off the queues of pg-boss. */
const startQueues = async ({ config, decryptKey, log, pools, fn, client, sweeping, now }: Parts, jobs: Jobs): Promise<void> => {
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

/** Starts the tasks that run again and again. */
const startTasks = (parts: Parts, wakeTimes: ReturnType<typeof createWakeTimes>, running: Running) => {
  const { config, clock, fn, heartbeat, leases, sweeping, ahead, holds, pump, gates, scheduler } = parts
  const heartbeatMs = Math.min(beatMs, (config.missedAfterSeconds * 1000) / 4)
  const beat = async () => {
    await heartbeat.beat()
    if (running.wasAway) ahead.forgive()
    running.wasAway = false
  }
  const readWakeTimes = () => wakeTimes.read().finally(() => running.keeper?.notice())
  return startKeeper({
    tickMs: times.extendMs,
    idleTickMs: Math.min(times.idleMs, heartbeatMs, config.pollIntervalMs),
    isIdle: wakeTimes.isIdle,
    run: scheduler.run,
    tasks: [
      { task: 'extend leases', everyMs: 0, work: leases.extend },
      { task: 'abort unwanted attempts', everyMs: 0, work: pump.abortGone },
      { task: 'recover flights', everyMs: 0, isDue: leases.isRecoveryDue, work: leases.recover },
      { task: 'heartbeat', everyMs: heartbeatMs, work: beat },
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
  })
}
