/** What fires and delivers in a replica: builds the parts, starts them in order, and stops them. `engine/scheduler.ts` decides what runs when. */
import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import type { Purpose } from './accounts/keys.ts'
import { startCustomers } from './billing/customers.ts'
import { constants } from './catalog.ts'
import { type Config, engineConnections } from './config.ts'
import type { Clock } from './database/clock.ts'
import { readClock } from './database/follow-clock.ts'
import { createFunctions } from './database/functions.ts'
import { createListener, type Listener } from './database/listener.ts'
import { createOutageLog, type OutageLog } from './database/outage-log.ts'
import { answerMs, createPool, longAnswerMs, type PoolOptions } from './database/pool.ts'
import type { AddressRules } from './deliveries/address.ts'
import { createFlights } from './deliveries/flights.ts'
import { createLeases, leaseTimes } from './deliveries/leases.ts'
import { startNotifications } from './deliveries/notifications.ts'
import { capacityFor } from './deliveries/open-files.ts'
import { createPump } from './deliveries/pump.ts'
import { createRequests } from './deliveries/request.ts'
import { createResults, writersAtMost } from './deliveries/results.ts'
import { deriveKey } from './deliveries/signature.ts'
import { createWebhookClient } from './deliveries/webhook.ts'
import { createDeadlines } from './engine/deadlines.ts'
import { createHeartbeat } from './engine/heartbeat.ts'
import { createHolds } from './engine/holds.ts'
import { startKeeper } from './engine/keeper.ts'
import { createScheduler } from './engine/scheduler.ts'
import { handOver } from './engine/stop.ts'
import { createWakeTimes } from './engine/wake-times.ts'
import { isAway, isSilent } from './errors.ts'
import { createCalendars } from './firing/calendars.ts'
import { createComputing } from './firing/computing.ts'
import { createPauseSweep } from './firing/ended-pauses.ts'
import { createExclusionSweep } from './firing/excluded-slots.ts'
import { createFiring } from './firing/fire-others.ts'
import { createAhead } from './firing/look-ahead.ts'
import { createWindowSweep } from './firing/missed-windows.ts'
import { startJobs } from './jobs/boss.ts'
import { startHousekeeping } from './jobs/housekeeping.ts'
import { startMails } from './mails/mail.ts'
import { release } from './memory/block.ts'
import { startMemoryUpdates } from './memory/updates.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { startOperations } from './operations/work.ts'
import { startTracker } from './support/tracker.ts'
import { type Traces, untraced } from './traces/traces.ts'

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
  log: FastifyBaseLogger
}

/**
 * Starts firing and delivering.
 * @throws {ConfigError} if LISTEN_URL is not a direct connection; the database's error if it is unavailable
 */
export const startEngine = async (options: Options): Promise<Engine> => {
  const { config, rules, clock, decryptKey, log, outageLog = createOutageLog(log) } = options
  const { metrics = createMetrics(), traces = untraced } = options
  const engineId = randomUUID()
  const missedAfter = `${config.missedAfterSeconds} seconds`
  const now = () => clock.now().getTime()
  let stopped = false
  let wasAway = false

  const onError = (error: unknown, task: string) => {
    if (stopped) return
    wasAway ||= isAway(error)
    // Notifications may be lost as well.
    if (isSilent(error)) listener?.renew()
    // The failed task may have read or been notified of an instant, so all are read again.
    keeper?.soon('read wake times')
    if (!outageLog.lost(error, task)) log.error({ err: error, task }, 'engine task failed')
  }
  const onConnectionLost = (error: Error) => onError(error, 'idle connection')
  const wake = () => scheduler.wake()

  const poolOf = (name: string, max: number, options?: PoolOptions) => {
    const pool = createPool(config, { max, name: `pgcue ${name}`, onError: onConnectionLost, answerMs, ...options })
    metrics.watchPool(name, pool)
    return pool
  }
  const pool = poolOf('engine', connections.rest)
  const resultsPool = poolOf('results', connections.results)
  const leasePool = poolOf('leases', connections.leases, { answerMs: times.answerMs })
  const fn = createFunctions(pool)
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
  const flights = createFlights(createFunctions(leasePool))
  const leases = createLeases({ fn, flights, now, connectedAt: () => listener?.connectedAt ?? null, metrics, log })
  const computing = createComputing()
  const sweeping = { fn, calendars: createCalendars(fn), computing, onError, now }
  const ahead = createAhead({ ...sweeping, pollIntervalMs: config.pollIntervalMs, onPrepared: wake })
  const holds = createHolds({ fn, onChange: () => ahead.expect(0) })
  const results = createResults({ fn: createFunctions(resultsPool), flights, onWritten: wake, log })
  const pump = createPump({
    fn: traces.taking(fn),
    ahead,
    flights,
    results,
    client,
    request: traces.attempts(createRequests({ tokenKey: deriveKey(config.sessionSecret, 'execution-token'), decryptKey })),
    now,
    missedAfter,
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
      keeper?.notice()
    }
  })
  metrics.watchDeliveries(pump)
  const deadlines = createDeadlines({
    fn,
    endPauses: createPauseSweep(sweeping),
    recordExclusions: createExclusionSweep(sweeping),
    readNext: () => wakeTimes.read(),
    metrics,
    now
  })
  const firing = createFiring({ fn, ahead, missedAfter, log })
  const scheduler = createScheduler({ pump, ahead, firing, deadlines, now, onError, onDone: outageLog.back })
  let keeper: ReturnType<typeof startKeeper> | undefined
  let listener: Listener | undefined
  const beat = async () => {
    await heartbeat.beat()
    if (wasAway) ahead.forgive()
    wasAway = false
  }

  await heartbeat.beat()
  // The first answers are slow: the connection is new. Slow answers say little about the time.
  for (let read = 0; read < 3; read++) await readClock(fn, clock)
  const jobs = await startJobs(pool, log, outageLog, metrics.jobFailed)
  const wakeTimes = createWakeTimes({ fn, flights, pump, deadlines, ahead, jobs, now })
  listener = await createListener(config, {
    channels: ['cue_due', 'cue_waiting', 'cue_deadline', 'cue_jobs', 'cue_hold'],
    onNotification: (channel, payload) => {
      if (channel === 'cue_jobs') return jobs.wake(payload)
      if (channel === 'cue_hold') return keeper?.soon('read holds')
      const at = Number(payload)
      if (channel === 'cue_due') ahead.expect(at)
      else if (channel === 'cue_waiting') pump.expectWaiting(at)
      else deadlines.expect(at)
      wake()
    },
    // Notifications sent meanwhile are lost, and the database may run on another host.
    onConnected: () => {
      outageLog.back('listening')
      ahead.forgive()
      ahead.expect(0)
      keeper?.soon('read wake times')
      keeper?.soon('read holds')
      keeper?.soon('read clock')
      wake()
    },
    onLost: error => onError(error, 'listening')
  })
  await startNotifications({ jobs, fn, client, baseUrl: config.baseUrl, now, log })
  await startMails({ jobs, fn, config, decryptKey, now, log })
  await startMemoryUpdates({ jobs, fn, client, now, log })
  await startOperations({ jobs, fn, computing, now, log })
  await startTracker({ jobs, fn, config, log })
  await startCustomers({ jobs, config, log })
  const patient = createFunctions({ query: query => pool.query(Object.assign(query, { query_timeout: longAnswerMs })) })
  await startHousekeeping({ jobs, fn: patient, retentionDays: config.executionRetentionDays, release, now, log })
  const heartbeatMs = Math.min(beatMs, (config.missedAfterSeconds * 1000) / 4)
  keeper = startKeeper({
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
      {
        task: 'read wake times',
        everyMs: Math.min(times.idleMs, config.pollIntervalMs),
        work: () => wakeTimes.read().finally(() => keeper?.notice())
      },
      {
        task: 'check missed windows',
        everyMs: windowsMs,
        isDue: wakeTimes.mayHavePassedWindow,
        work: createWindowSweep(sweeping)
      }
    ]
  })
  scheduler.wake()

  return {
    stop: async () => {
      const returned = await handOver({ engineId, pump, flights, results, fn, onError })
      stopped = true
      keeper.stop()
      scheduler.stop()
      await jobs.stop().catch(error => log.warn({ err: error }, 'pg-boss did not stop'))
      await listener.close()
      client.destroy()
      await Promise.all([pool.end(), resultsPool.end(), leasePool.end()])
      return returned
    }
  }
}
