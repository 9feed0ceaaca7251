/**
 * What fires and delivers in this replica. One turn does whatever can be done now; timers, notifications and ended deliveries ask for the next.
 * Polling is the floor under the notifications, which may be lost.
 */
import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { startCustomers } from './billing/customers.ts'
import { type Config, engineConnections, version } from './config.ts'
import type { Clock } from './database/clock.ts'
import { type BegunAttempt, createFunctions } from './database/functions.ts'
import { createListener } from './database/listener.ts'
import { createOutageLog, type OutageLog } from './database/outage-log.ts'
import { createPool } from './database/pool.ts'
import type { AddressRules } from './deliveries/address.ts'
import { createFlights } from './deliveries/flights.ts'
import { createLeases } from './deliveries/leases.ts'
import { startNotifications } from './deliveries/notifications.ts'
import { capacityFor } from './deliveries/open-files.ts'
import { createPump } from './deliveries/pump.ts'
import { createRequests } from './deliveries/request.ts'
import { createResults } from './deliveries/results.ts'
import { deriveKey } from './deliveries/signature.ts'
import { createWebhookClient } from './deliveries/webhook.ts'
import { createFiring } from './firing/fire-others.ts'
import { createAhead, type Share } from './firing/look-ahead.ts'
import { createWindowSweep } from './firing/missed-windows.ts'
import { startJobs } from './jobs/boss.ts'
import { startHousekeeping } from './jobs/housekeeping.ts'
import { startMails } from './mails/mail.ts'
import { release } from './memory/block.ts'
import { startMemoryUpdates } from './memory/updates.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { startTracker } from './support/tracker.ts'

/** Two that take, two that write results, one for the rest; and one of their own for the leases, which must not wait behind anything. */
const connections = engineConnections - 1
const leaseAnswerMs = 1500
/** A statement that takes longer is asked again: its connection may have fallen silent. */
const answerMs = 10_000
const keepMs = 1000
const beatMs = 5000
const windowsMs = 15_000
const stopMs = 20_000

export type Engine = { stop: () => Promise<number> }
type Options = {
  config: Config
  rules: AddressRules
  clock: Clock
  /** Opens an account's encrypted key. */
  decryptKey: (ciphertext: string) => string | undefined
  metrics?: Metrics
  /** Shared with the API of the same process. */
  outageLog?: OutageLog
  log: FastifyBaseLogger
}

/** Starts firing and delivering. Rejects when the database cannot be reached, or LISTEN_URL is no direct connection. */
export const startEngine = async (options: Options): Promise<Engine> => {
  const { config, rules, clock, decryptKey, metrics = createMetrics(), log, outageLog = createOutageLog(log) } = options
  const id = randomUUID()
  const onConnectionLost = (error: Error) => onError(error, 'idle connection')
  const pool = createPool(config, { max: connections, name: 'pgcue engine', onError: onConnectionLost })
  const leasePool = createPool(config, { max: 1, name: 'pgcue leases', onError: onConnectionLost, answerMs: leaseAnswerMs })
  metrics.watchPool('engine', pool)
  const fn = createFunctions({ query: query => pool.query(Object.assign(query, { query_timeout: answerMs })) })
  const missedAfter = `${config.missedAfterSeconds} seconds`
  const client = createWebhookClient({ rules })
  let stopped = false
  let clockKnown = false
  let share: Share = { engines: 1, place: 0 }
  let deadlineAt = Number.POSITIVE_INFINITY
  let beatAt = 0
  let windowsAt = 0
  let wakesAt = 0
  const now = () => clock.now().getTime()

  const onError = (error: unknown, task: string) => {
    if (stopped) return
    // What it was at is not done: what waits, and when, is read again.
    wakesAt = 0
    if (!outageLog.lost(error, task)) log.error({ err: error, task }, 'engine task failed')
  }

  const flights = createFlights(createFunctions(leasePool))
  const leases = createLeases({ fn, flights, now, connectedAt: () => listener.connectedAt, metrics, log })
  const ahead = createAhead({ fn, now, pollIntervalMs: config.pollIntervalMs, skipAccounts: () => pump.skipAccounts(), share: () => share })
  const results = createResults({ fn, flights, onWritten: () => wake(), log })
  const request = createRequests({ tokenKey: deriveKey(config.sessionSecret, 'execution-token'), decryptKey })
  const pump = createPump({
    fn,
    ahead,
    flights,
    results,
    client,
    request,
    now,
    missedAfter,
    onError,
    metrics,
    log,
    concurrency: config.deliveryConcurrency,
    leastOpen: Math.min(...Object.values(config.plans).map(plan => plan.open_deliveries)),
    capacity: capacityFor(config.deliveryConcurrency, log),
    share: () => share,
    onChange: () => wake()
  })
  metrics.watchDeliveries(pump)
  const fireOthers = createFiring({ fn, ahead, missedAfter, log })
  const sweepWindows = createWindowSweep({ fn, now })

  // A turn: whatever can be done now. Asked for many times in one round of the event loop, it is taken once.
  let asked = false
  let timer: NodeJS.Timeout | undefined
  const wake = () => {
    if (asked || stopped) return
    asked = true
    setImmediate(turn)
  }
  const turn = () => {
    asked = false
    if (stopped) return
    pump.turn()
    if (ahead.isLookDue()) void runTask('look ahead', ahead.look)
    if (ahead.firstDue('other') <= now()) void runTask('fire cues', fireOthers)
    if (deadlineAt <= now()) void runTask('meet deadlines', meetDeadlines)
    clearTimeout(timer)
    const next = Math.min(
      pump.hasRoom ? ahead.wakeAt : Number.POSITIVE_INFINITY,
      ahead.firstDue('other'),
      pump.hasRoom ? pump.waitingAt : Number.POSITIVE_INFINITY,
      deadlineAt
    )
    if (next < Number.POSITIVE_INFINITY) timer = setTimeout(wake, Math.min(Math.max(next - now(), 1), 60_000))
  }

  // Each of these runs once at a time, and is asked for again by the next turn.
  const busy = new Set<string>()
  const runTask = async (what: string, work: () => Promise<unknown>) => {
    if (busy.has(what)) return
    busy.add(what)
    try {
      await work()
    } catch (error) {
      onError(error, what)
      await new Promise(resolve => setTimeout(resolve, 500))
    } finally {
      busy.delete(what)
      wake()
    }
  }

  const meetDeadlines = async () => {
    deadlineAt = Number.POSITIVE_INFINITY
    const lost = await fn.recoverLeases({})
    if (lost > 0) metrics.claimsLost(lost)
    const moved = (await fn.expireOutcomes({})) + (await fn.missUnclaimed({})) + lost
    if (moved > 0) deadlineAt = 0
    else await readWakes()
  }

  const readWakes = async () => {
    const { waiting_at, deadline_at } = await fn.nextWakes({})
    if (waiting_at) pump.expectWaiting(waiting_at.getTime())
    if (deadline_at) deadlineAt = Math.min(deadlineAt, Math.max(deadline_at.getTime(), now() + 100))
  }

  const beat = async () => {
    const askedAt = performance.now()
    const { database_now, outage_recorded, ...living } = await fn.beatEngine({
      engine_id: id,
      version,
      lateness_ms: pump.lateness,
      open_deliveries: pump.open,
      missed_after: missedAfter
    })
    // An answer that took long says little about the time.
    if (performance.now() - askedAt < 20 || !clockKnown) clock.learn(database_now, askedAt)
    clockKnown = true
    outageLog.back()
    share = living
    if (outage_recorded) {
      log.warn('no engine was running: catch_up of each cue decides about the slots that came due')
      ahead.reset()
    }
  }

  const beatEveryMs = Math.min(beatMs, (config.missedAfterSeconds * 1000) / 4)
  const keep = () => {
    const time = performance.now()
    void runTask('extend leases', leases.extend)
    void runTask('abort unwanted attempts', pump.abortGone)
    if (leases.isRecoveryDue()) void runTask('recover flights', leases.recover)
    if (time - beatAt >= beatEveryMs) {
      beatAt = time
      void runTask('heartbeat', beat)
    }
    if (time - wakesAt >= config.pollIntervalMs) {
      wakesAt = time
      void runTask('read wake times', readWakes)
    }
    if (time - windowsAt >= windowsMs) {
      windowsAt = time
      void runTask('check missed windows', sweepWindows)
    }
  }

  await beat()
  const jobs = await startJobs(pool, log, outageLog, metrics.jobFailed)
  const listener = await createListener(config, {
    channels: ['cue_due', 'cue_waiting', 'cue_deadline', 'cue_jobs'],
    onNotification: (channel, payload) => {
      if (channel === 'cue_jobs') return jobs.wake(payload)
      const at = Number(payload)
      if (channel === 'cue_due') ahead.expect(at)
      else if (channel === 'cue_waiting') pump.expectWaiting(at)
      else deadlineAt = Math.min(deadlineAt, at)
      wake()
    },
    // What was notified meanwhile is unknown.
    onConnected: () => {
      outageLog.back()
      ahead.expect(0)
      wakesAt = 0
      wake()
    },
    onLost: error => onError(error, 'listening')
  })
  await startNotifications({ jobs, fn, client, baseUrl: config.baseUrl, now, log })
  await startMails({ jobs, fn, config, decryptKey, now, log })
  await startMemoryUpdates({ jobs, fn, client, now, log })
  await startTracker({ jobs, fn, config, log })
  await startCustomers({ jobs, config, log })
  await startHousekeeping({ jobs, fn: createFunctions(pool), retentionDays: config.executionRetentionDays, release, now, log })
  const keeper = setInterval(keep, keepMs)
  keep()
  wake()

  let givenBack = 0
  const giveBack = async (attempts: BegunAttempt[], write: (flight_id: number, execution_ids: string[]) => Promise<unknown>) => {
    for (const [flight, own] of Map.groupBy(attempts, attempt => attempt.flight_id)) {
      const ids = own.map(attempt => attempt.execution_id)
      await write(flight, ids).then(
        () => {
          flights.end(new Map([[flight, ids.length]]))
          givenBack += ids.length
        },
        error => onError(error, 'return attempts')
      )
    }
  }

  return {
    /** Takes nothing more, gives back what is not sent yet, waits for what is being sent, and gives back what is not done by then. Says how many. */
    stop: async () => {
      const patience = AbortSignal.timeout(stopMs)
      const unsent = await pump.stop(patience)
      await fn.stopEngine({ engine_id: id }).catch(error => onError(error, 'report stop'))
      await giveBack(unsent, (flight_id, execution_ids) => fn.releaseFlight({ flight_id, execution_ids }))
      const open = await pump.ended(patience)
      await giveBack(open, (flight_id, execution_ids) =>
        fn.loseAttempts({ flight_id, execution_ids, error: 'the sending replica stopped before the response arrived' })
      )
      await results.stop(AbortSignal.timeout(5000))
      stopped = true
      clearInterval(keeper)
      clearTimeout(timer)
      await jobs.stop().catch(error => log.warn({ err: error }, 'pg-boss did not stop'))
      await listener.close()
      await client.destroy()
      await Promise.all([pool.end(), leasePool.end()])
      return givenBack
    }
  }
}
