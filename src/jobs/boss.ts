/** pg-boss: its queues and their options in one place, and its start. Each queue is one kind of slow work that must not wait for the others. */
import type { FastifyBaseLogger } from 'fastify'
import type pg from 'pg'
import { PgBoss, type Queue } from 'pg-boss'
import { createFunctions } from '../database/functions.ts'
import { createOutageLog, type OutageLog } from '../database/outage-log.ts'
import { createJobTimers } from './job-timers.ts'
import { workPerAccount } from './per-account-workers.ts'

/** Jobs of a queue are done one by one in a replica, but those with `perAccount` side by side, so many of one account. */
type QueueSettings = { name: string; perAccount?: number; options: Omit<Queue, 'name'> }

const day = 86_400

export const queues: QueueSettings[] = [
  // Executions that wait for an attempt. No worker of pg-boss takes these: the pump begins them, and owns their retries.
  { name: 'attempts', options: { retryLimit: 0, retentionSeconds: 400 * day } },
  // Mails to send.
  { name: 'mails', options: { retryLimit: 8, retryDelay: 30, retryBackoff: true, retryDelayMax: 3600, expireInSeconds: 120 } },
  // Links that somebody waits for in front of a screen.
  { name: 'magic_links', options: { retryLimit: 6, retryDelay: 5, retryBackoff: true, expireInSeconds: 120, retentionSeconds: day } },
  // Signed webhooks that are no deliveries, such as on_failure.
  {
    name: 'notifications',
    perAccount: 5,
    options: { retryLimit: 4, retryDelay: 60, retryBackoff: true, retryDelayMax: 1800, expireInSeconds: 120 }
  },
  // Webhooks that tell of alerts.
  { name: 'alerts', perAccount: 5, options: { retryLimit: 4, retryDelay: 10, expireInSeconds: 120 } },
  // Webhooks that tell of a new memory block: one waits for each subscriber, and one after the other, so that none is told twice.
  {
    name: 'memory_updates',
    perAccount: 1,
    options: { policy: 'short', retryLimit: 4, retryDelay: 10, expireInSeconds: 120 }
  },
  // Tickets that become issues in the tracker.
  {
    name: 'tickets',
    options: { retryLimit: 20, retryDelay: 30, retryBackoff: true, retryDelayMax: 3600, expireInSeconds: 120 }
  },
  // Customers at Stripe whose account is gone.
  {
    name: 'customers',
    options: { retryLimit: 20, retryDelay: 30, retryBackoff: true, retryDelayMax: 3600, expireInSeconds: 120 }
  },
  // Histories of deleted cues, removed in batches.
  {
    name: 'purges',
    // Whoever creates and deletes cues all day would leave a week of finished jobs otherwise.
    options: { policy: 'short', retryLimit: 10, retryDelay: 30, retryBackoff: true, expireInSeconds: 3600, deleteAfterSeconds: 3600 }
  },
  // Accounts whose day of grace is over, removed in batches.
  { name: 'deletions', options: { retryLimit: 10, retryDelay: 30, retryBackoff: true, expireInSeconds: 3600 } },
  // Partitions, retention, usage, pruning: by schedule, once per cluster.
  { name: 'housekeeping', options: { retryLimit: 3, retryDelay: 10, retryBackoff: true, expireInSeconds: 900 } }
]

export type Jobs = Awaited<ReturnType<typeof startJobs>>

/** New jobs are announced on the channel cue_jobs, and timers wake waiting ones; this is how often jobs are looked for besides. */
const pollSeconds = 60
const stopMs = 3000

/** pg-boss on a pool of ours. Its schema and queues were made by migrate. */
export const startJobs = async (
  pool: pg.Pool,
  log: Pick<FastifyBaseLogger, 'warn'>,
  outageLog: Pick<OutageLog, 'lost'> = createOutageLog(log),
  onFailed: (queue: string) => void = () => {}
) => {
  const warn = (error: unknown, what: string, fields: object = {}) => {
    if (!outageLog.lost(error, what)) log.warn({ err: error, ...fields }, what)
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
    reindex: false
  })
  boss.on('error', error => warn(error, 'pg-boss'))
  await boss.start()
  const workers = new Map<string, (() => void)[]>()
  const crews: ReturnType<typeof workPerAccount>[] = []
  const { nextJobs } = createFunctions(pool)
  const timers = createJobTimers({
    read: past => nextJobs({ past }),
    wake,
    onError: error => warn(error, 'reading when jobs are due failed')
  })

  return {
    /** Works off a queue. A handler that rejects lets its job wait for another try; `tries` is how many there were before. */
    work: async <T extends object>(queue: string, run: (data: T, id: string, tries: number) => Promise<void>): Promise<void> => {
      const handle = async (data: T, id: string, tries: number) => {
        try {
          await run(data, id, tries)
        } catch (error) {
          onFailed(queue)
          throw error
        }
      }
      const { perAccount } = queues.find(({ name }) => name === queue)!
      if (perAccount) {
        const crew = workPerAccount({ boss, queue, perAccount, pollSeconds, handle, warn })
        crews.push(crew)
        workers.set(queue, [...(workers.get(queue) ?? []), crew.look])
        return
      }
      const worker = await boss.work<T>(queue, { pollingIntervalSeconds: pollSeconds, includeMetadata: true }, async jobs => {
        try {
          for (const job of jobs) await handle(job.data, job.id, job.retryCount)
        } finally {
          // There may be more, also behind one that fails: pg-boss would wait for its next poll.
          wake(queue)
        }
      })
      workers.set(queue, [...(workers.get(queue) ?? []), () => boss.notifyWorker(worker)])
    },
    /** Runs a job of a queue by cron, once in the whole cluster. */
    schedule: (queue: string, key: string, cron: string, data: object) => boss.schedule(queue, cron, data, { key }),
    /** A job was added to this queue. */
    wake: (queue: string) => wake(queue),
    stop: async () => {
      timers.stop()
      await Promise.all(crews.map(crew => crew.stop(stopMs)))
      await boss.stop({ graceful: true, timeout: stopMs })
    }
  }

  function wake(queue: string) {
    for (const look of workers.get(queue) ?? []) look()
  }
}
