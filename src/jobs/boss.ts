/** pg-boss: its queues with their options, and its start. Each queue is one kind of slow work that must not wait for the others. */
import type { FastifyBaseLogger } from 'fastify'
import type pg from 'pg'
import { type Clock, type JobWithMetadata, PgBoss, type Queue, systemClock } from 'pg-boss'
import { createOutageLog, type OutageLog } from '../database/outage-log.ts'
import { startWorker } from './worker.ts'

/** A replica runs the jobs of a queue one by one; with `perAccount`, concurrently, with at most that many of an account. */
type QueueSettings = { name: string; perAccount?: number; options: Omit<Queue, 'name'> }

const day = 86_400

/** The queues, which migrations create and update. */
export const queues: QueueSettings[] = [
  // Executions waiting for an attempt. No worker of pg-boss takes these: the pump begins them and owns their retries.
  { name: 'attempts', options: { retryLimit: 0, retentionSeconds: 400 * day } },
  { name: 'mails', options: { retryLimit: 8, retryDelay: 30, retryBackoff: true, retryDelayMax: 3600, expireInSeconds: 120 } },
  // Sign-in links, which somebody is waiting for.
  { name: 'magic_links', options: { retryLimit: 6, retryDelay: 5, retryBackoff: true, expireInSeconds: 120, retentionSeconds: day } },
  // on_failure webhooks.
  {
    name: 'notifications',
    perAccount: 5,
    options: { retryLimit: 4, retryDelay: 60, retryBackoff: true, retryDelayMax: 1800, expireInSeconds: 120 }
  },
  // Alert webhooks.
  { name: 'alerts', perAccount: 5, options: { retryLimit: 4, retryDelay: 10, expireInSeconds: 120 } },
  // Messages to channels. Their rows own the tries, and say which jobs a crash has interrupted.
  { name: 'notices', perAccount: 5, options: { retryLimit: 0, expireInSeconds: 60, deleteAfterSeconds: 600 } },
  // Turns of event endpoints: one waiting job per endpoint. Their rows own the tries, and a job waits while a turn is under way, in case of a crash.
  {
    name: 'event_endpoints',
    perAccount: 5,
    options: { policy: 'short', retryLimit: 10, retryDelay: 5, expireInSeconds: 60, deleteAfterSeconds: 600 }
  },
  // Webhooks about a new memory block: one waiting job per subscriber, one running job per account, so that none is notified twice.
  {
    name: 'memory_updates',
    perAccount: 1,
    options: { policy: 'short', retryLimit: 4, retryDelay: 10, expireInSeconds: 120 }
  },
  // Support tickets that become issues in the tracker.
  {
    name: 'tickets',
    options: { retryLimit: 20, retryDelay: 30, retryBackoff: true, retryDelayMax: 3600, expireInSeconds: 120 }
  },
  // Stripe customers of deleted accounts, to be deleted there.
  {
    name: 'customers',
    options: { retryLimit: 20, retryDelay: 30, retryBackoff: true, retryDelayMax: 3600, expireInSeconds: 120 }
  },
  // Histories of deleted cues, removed in batches.
  {
    name: 'purges',
    // Otherwise, creating and deleting cues all day would leave a week of finished jobs.
    options: { policy: 'short', retryLimit: 10, retryDelay: 30, retryBackoff: true, expireInSeconds: 3600, deleteAfterSeconds: 3600 }
  },
  // Bulk operations: each job works on one for seconds, and adds the next. The state is in the operation's row, which also finds lost jobs.
  {
    name: 'operations',
    perAccount: 8,
    options: { policy: 'short', retryLimit: 10, retryDelay: 5, expireInSeconds: 60, deleteAfterSeconds: 600 }
  },
  // Accounts to be deleted, in batches.
  { name: 'deletions', options: { retryLimit: 10, retryDelay: 30, retryBackoff: true, expireInSeconds: 3600 } },
  // Partitions, retention, usage, pruning: on a schedule, once per cluster.
  { name: 'housekeeping', options: { retryLimit: 3, retryDelay: 10, retryBackoff: true, expireInSeconds: 900 } }
]

export type Jobs = Awaited<ReturnType<typeof startJobs>>

/** A try that failed and was dealt with: another job makes the next one, unless it was the last. */
export type Failure = { tries: number; isFinal: boolean }
type Run<T> = (data: T, id: string, tries: number) => Promise<void> | Promise<Failure | undefined>

/** Notifications on cue_jobs announce new jobs, and timers wake waiting ones; polling finds what they miss. */
const pollSeconds = 60
/** Jobs that start within this time get a timer, which may fire a little early. */
const soonMs = 10_000
const slackMs = 20
const stopMs = 3000

/**
 * pg-boss looks every two seconds whether to emit `wip`, to which nothing listens here: a process that wakes so often never rests. Its other intervals
 * are longer, or for jobs with heartbeats, of which there are none.
 */
const clock: Clock = { ...systemClock, setInterval: (call, ms) => systemClock.setInterval(call, Math.max(ms, pollSeconds * 1000)) }

type Options = {
  outageLog?: Pick<OutageLog, 'lost'>
  /** A try of a job has failed; `isFinal` if it was the last. */
  onFailed?: (queue: string, isFinal: boolean) => void
  /** A job was due: its queue's next may start soon. */
  onDue?: () => void
}

/** Starts pg-boss on the given pool. Its schema and queues are created by migrations. */
export const startJobs = async (
  pool: pg.Pool,
  log: Pick<FastifyBaseLogger, 'warn'>,
  { outageLog = createOutageLog(log), onFailed = () => {}, onDue = () => {} }: Options = {}
) => {
  const warn = (error: unknown, what: string, fields: object = {}) => {
    if (!outageLog.lost(error, what, false)) log.warn({ err: error, ...fields }, what)
  }
  const boss = new PgBoss({
    db: { executeSql: (text, values) => pool.query(text, values) },
    migrate: false,
    createSchema: false,
    superviseIntervalSeconds: 60,
    cronWorkerIntervalSeconds: 30,
    queueCacheIntervalSeconds: 300,
    bamIntervalSeconds: 3600,
    flowIntervalSeconds: 3600,
    reindex: false,
    clock
  })
  boss.on('error', error => warn(error, 'pg-boss'))
  await boss.start()
  const workers = new Map<string, ReturnType<typeof startWorker>>()
  let timers: NodeJS.Timeout[] = []
  const wake = (queue: string): void => void workers.get(queue)?.look()
  const expect = (queues: string[], waitsMs: number[]) => {
    for (const timer of timers) clearTimeout(timer)
    const start = (queue: string, waitMs: number) => {
      wake(queue)
      if (waitMs > 0) onDue()
    }
    // pg-boss also has internal queues.
    timers = queues.flatMap((queue, n) =>
      workers.has(queue) && waitsMs[n]! <= soonMs ? setTimeout(start, Math.max(waitsMs[n]!, 0) + slackMs, queue, waitsMs[n]!).unref() : []
    )
  }

  return {
    /** Works off a queue. If `run` rejects, its job is retried; `tries` is the number of tries before this one. */
    work: async <T extends object>(queue: string, run: Run<T>): Promise<void> => {
      const handle = async ({ data, id, retryCount, retryLimit }: JobWithMetadata<T>) => {
        try {
          const failure = await run(data, id, retryCount)
          if (!failure) return
          const { tries, isFinal } = failure
          onFailed(queue, isFinal)
          log.warn({ queue, job_id: id, tries }, 'job failed')
        } catch (error) {
          onFailed(queue, retryCount >= retryLimit)
          log.warn({ err: error, queue, job_id: id, tries: retryCount + 1 }, 'job failed')
          throw error
        }
      }
      const { perAccount } = queues.find(({ name }) => name === queue)!
      workers.set(queue, startWorker({ boss, queue, perAccount, pollSeconds, handle, warn }))
    },
    /** Adds a job to a queue by cron, once in the whole cluster. */
    schedule: (queue: string, key: string, cron: string, data: object) => boss.schedule(queue, cron, data, { key }),
    /** Looks for jobs in a queue at once. */
    wake,
    /** A reading has found queues with waiting jobs, and in how many milliseconds the next of each may start. Those that start soon are woken then. */
    expect,
    /** Takes no more jobs, waits a few seconds for running ones, and returns the others to their queues. */
    stop: async () => {
      expect([], [])
      await Promise.all([...workers.values()].map(worker => worker.stop(stopMs)))
      await boss.stop({ graceful: true, timeout: stopMs })
    }
  }
}
