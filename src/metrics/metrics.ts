/** A replica's Prometheus metrics. Each thread has its own set per cell; the API's includes the engines' values. */
import type pg from 'pg'
import {
  type Aggregator,
  AggregatorRegistry,
  Counter,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry
} from 'prom-client'
import { constants, enums } from '../catalog.ts'
import { version } from '../config.ts'
import type { ServiceHealthRow } from '../database/functions.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** Measures of a pump. */
type Deliveries = { readonly open: number; readonly openLimit: number; readonly held: number }

/** Measures of the whole service, from the database. */
type Found = ServiceHealthRow & {
  jobs: { queue: string; waiting: number }[]
  ended: { status: string; count: number }[]
  held: { reason: string; seconds: number }[]
}

/** Values as they are passed between threads. */
export type MetricValues = MetricObjectWithValues<MetricValue<string>>[]

type Options = {
  thread?: 'api' | 'engine'
  /** Reads the values of the engines in another thread. */
  askEngines?: () => Promise<MetricValues[]>
  /** With several cells, a label of all values; the first also measures process and thread. */
  cell?: number
  /** The name of the replica. */
  replica?: string
}

/** Makes the metrics of a thread. */
export const createMetrics = ({ thread = 'engine', askEngines, cell, replica }: Options = {}) => {
  const registers = [new Registry()]
  const [registry] = registers as [Registry]
  const common = cell === undefined ? registry : new Registry()
  if (cell !== undefined) registry.setDefaultLabels({ cell })
  if (cell === undefined || cell === 1) {
    measureProcess([common])
    measureThread([common], thread)
  }

  const { gauge } = makersFor(registers)
  gauge('pgcue_build_info', 'The release of pgcue and of Node that this replica runs, and its name; always 1.', {
    labelNames: ['version', 'node_version', 'replica'],
    aggregator: 'max'
  }).set({ version, node_version: process.version, ...(replica !== undefined && { replica }) }, 1)

  const { lateness, attempts, attemptDuration, outcomes, jobFailures, claimsLost, requests } = measureReplica(registers)
  const observe = measureService(registers)

  const pools = new Map<string, pg.Pool>()
  gauge('pgcue_pool_connections', 'Database connections, and requests waiting for one.', {
    labelNames: ['pool', 'state'],
    collect() {
      for (const [pool, { totalCount, idleCount, waitingCount }] of pools) {
        this.set({ pool, state: 'used' }, totalCount - idleCount)
        this.set({ pool, state: 'idle' }, idleCount)
        this.set({ pool, state: 'waiting' }, waitingCount)
      }
    }
  })

  let pump: Deliveries | undefined
  const measureDeliveries = (name: string, help: string, read: (of: Deliveries) => number) =>
    gauge(name, help, {
      collect() {
        if (pump) this.set(read(pump))
      }
    })
  measureDeliveries('pgcue_open_deliveries', 'Open webhook deliveries of this replica.', ({ open }) => open)
  measureDeliveries('pgcue_open_deliveries_limit', 'Maximum open webhook deliveries of this replica.', ({ openLimit }) => openLimit)
  measureDeliveries('pgcue_held_deliveries', 'Due deliveries waiting for capacity of their account.', ({ held }) => held)

  const values = async (): Promise<MetricValues> => {
    const ours = await registry.getMetricsAsJSON()
    return common === registry ? ours : [...(await common.getMetricsAsJSON()), ...ours]
  }

  return {
    /** A scheduled webhook was taken `lateMs` milliseconds after its instant. */
    taken: (lateMs: number): void => lateness.observe(Math.max(lateMs, 0) / 1000),
    attemptEnded: (result: 'success' | 'failed' | 'aborted' | 'lost', count = 1): void => attempts.inc({ result }, count),
    attemptTook: (result: 'success' | 'failed', ms: number): void => attemptDuration.observe({ result }, ms / 1000),
    /** A handler reported an outcome. */
    outcomeReported: (transport: 'webhook' | 'worker', success: boolean): void =>
      outcomes.inc({ transport, result: success ? 'success' : 'failure' }),
    jobFailed: (queue: string, isFinal: boolean): void => jobFailures.inc({ queue, final: String(isFinal) }),
    claimsLost: (count: number): void => claimsLost.inc(count),
    /** @param route the pattern, never the path, which may contain a token */
    requestEnded: (method: string, route: string, status: number, ms: number): void =>
      requests.observe({ method, route, status }, ms / 1000),
    watchDeliveries: (deliveries: Deliveries): void => {
      pump = deliveries
    },
    watchPool: (name: string, pool: pg.Pool): void => void pools.set(name, pool),

    /**
     * Returns everything in Prometheus' text format, including the values of other cells. `figures` is null if the database didn't answer.
     */
    text: async (figures: Found | null, now: Date, elsewhere: readonly Promise<MetricValues>[] = []): Promise<string> => {
      observe(figures, now)
      if (!askEngines && elsewhere.length === 0 && common === registry) return registry.metrics()
      const [ours, engines, ...rest] = await Promise.all([values(), askEngines?.() ?? [], ...elsewhere])
      return AggregatorRegistry.aggregate([ours, ...engines, ...rest]).metrics()
    },
    values,
    valuesWith: (figures: Found | null, now: Date): Promise<MetricValues> => {
      observe(figures, now)
      return values()
    },
    contentType: registry.contentType
  }
}

/** Functions that make the metrics of some registries. */
const makersFor = (registers: Registry[]) => ({
  gauge: <L extends string>(name: string, help: string, more: Partial<GaugeConfiguration<L>> = {}) =>
    new Gauge({ name, help, registers, ...more }),
  counter: <L extends string>(name: string, help: string, ...labelNames: L[]) => new Counter({ name, help, labelNames, registers }),
  histogram: <L extends string>(name: string, help: string, buckets: number[], ...labelNames: L[]) =>
    new Histogram({ name, help, labelNames, buckets, registers })
})

const upToFiveMinutes = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

/** Counts and times of this replica. */
const measureReplica = (registers: Registry[]) => {
  const { counter, histogram } = makersFor(registers)
  const late = 'Lateness: seconds from the time a webhook is due to its first attempt.'
  const lateness = histogram('pgcue_lateness_seconds', late, [0.005, ...upToFiveMinutes])
  const ends = 'Webhook attempts ended by this replica: success, failed, aborted (cue or account deleted) or lost by a silent replica.'
  const attempts = counter('pgcue_attempts_total', ends, 'result')
  const took = 'How long webhook attempts of this replica took, from the request to the end of the response.'
  const attemptDuration = histogram('pgcue_attempt_duration_seconds', took, upToFiveMinutes, 'result')
  const reports = 'Outcomes that handlers reported to this replica: a success or a failure, by transport.'
  const outcomes = counter('pgcue_outcomes_total', reports, 'transport', 'result')
  const failures = 'Tries of background jobs that failed in this replica, by queue; final if no other try follows.'
  const jobFailures = counter('pgcue_job_failures_total', failures, 'queue', 'final')
  const claimsLost = counter('pgcue_claims_lost_total', 'Worker claims that this replica released after their lease expired.')
  const calls = 'Requests to the API, by route and status.'
  const buckets = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 30]
  const requests = histogram('pgcue_http_request_duration_seconds', calls, buckets, 'method', 'route', 'status')
  for (const result of ['success', 'failed', 'aborted', 'lost'] as const) attempts.inc({ result }, 0)
  for (const transport of enums.transport) for (const result of ['success', 'failure']) outcomes.inc({ transport, result }, 0)
  return { lateness, attempts, attemptDuration, outcomes, jobFailures, claimsLost, requests }
}

/** Returns a function that sets the measures of the whole service; null: the database didn't answer. */
const measureService = (registers: Registry[]) => {
  const { gauge, counter } = makersFor(registers)
  const labelled = <L extends string>(name: string, help: string, label: L) => gauge(name, help, { labelNames: [label] })
  const depth = labelled('pgcue_queue_depth', 'Waiting work in the whole service, by kind, counted up to 10,000.', 'queue')
  const jobs = 'Background jobs of the whole service that wait to run, by queue, counted up to 10,000.'
  const jobsWaiting = labelled('pgcue_jobs_waiting', jobs, 'queue')
  const ends = 'Executions of the whole service that have ended, by status, since this was first counted.'
  const ended = counter('pgcue_executions_ended_total', ends, 'status')
  const longest = 'For how long the execution that is held longest has waited for its gate or others of its cue, by the reason.'
  const held = labelled('pgcue_held_seconds', longest, 'reason')
  const age = 'Age of the oldest due cue or attempt, except of accounts that have as many open deliveries as they may.'
  const oldest = gauge('pgcue_queue_oldest_seconds', age)
  const engines = gauge('pgcue_engines', `Engines seen in the last ${constants.engineTimeoutMs / 1000} seconds.`)
  const up = gauge('pgcue_database_up', 'Whether the database was reachable for this scrape.')

  return (figures: Found | null, now: Date): void => {
    up.set(figures ? 1 : 0)
    if (!figures) return
    for (const queue of ['pending', 'retrying', 'delivering', 'pending_worker'] as const) depth.set({ queue }, figures[queue])
    oldest.set(figures.oldest_pending_at ? Math.max(0, (now.getTime() - figures.oldest_pending_at.getTime()) / 1000) : 0)
    engines.set(figures.replicas)
    for (const { queue, waiting } of figures.jobs) jobsWaiting.set({ queue }, waiting)
    for (const { reason, seconds } of figures.held) held.set({ reason }, seconds)
    ended.reset()
    for (const { status, count } of figures.ended) ended.inc({ status }, count)
  }
}

/**
 * Measures the process when it is scraped; prom-client's default metrics would wake an idle replica a hundred times a second. `aggregator` picks
 * the process's value from those of two threads.
 */
const measureProcess = (registers: Registry[]): void => {
  const { gauge } = makersFor(registers)
  const measure = (name: string, help: string, aggregator: Aggregator, read: () => number) =>
    gauge(name, help, {
      aggregator,
      collect() {
        this.set(read())
      }
    })
  measure('process_start_time_seconds', 'When the process started, in epoch seconds.', 'min', () => performance.timeOrigin / 1000)
  measure('process_resident_memory_bytes', 'Resident memory of the process.', 'max', process.memoryUsage.rss)
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'User and system CPU time.',
    registers,
    aggregator: 'max',
    collect() {
      const { user, system } = process.cpuUsage()
      this.reset()
      this.inc((user + system) / 1e6)
    }
  })
}

const measureThread = (registers: Registry[], thread: string): void => {
  const { gauge } = makersFor(registers)
  const measure = (name: string, help: string, read: () => number) =>
    gauge(name, help, {
      labelNames: ['thread'],
      collect() {
        this.set({ thread }, read())
      }
    })
  measure('nodejs_heap_size_used_bytes', 'Heap of a thread.', () => process.memoryUsage().heapUsed)
  let since = performance.eventLoopUtilization()
  measure('nodejs_eventloop_utilization', "Fraction of time since the last scrape in which a thread's event loop was busy.", () => {
    const before = since
    since = performance.eventLoopUtilization()
    return performance.eventLoopUtilization(since, before).utilization
  })
}
