/** Job queues on PostgreSQL that can deliver the bench's herd, tuned: by default, they run one job at a time, or fetch one every two seconds. */
import { createPostgresBackend, withBackend } from 'bullmq'
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { PgBoss } from 'pg-boss'

/** The body posted: the job's name, its due time in ISO 8601, and padding up to 200 bytes. */
export type Job = { job: string; due: string; pad: string }

export type Peer = {
  /** Where its tables are. */
  schema: string
  /** SQL: whether jobs are left. */
  pending: string
  /** SQL that removes what earlier herds have left, if the queue keeps it. */
  tidy?: string
  /** Creates the schema, in the bench's process. */
  open: (connectionString: string) => Promise<{
    /** Enqueues at most 1,000 jobs that wait until they are due. */
    enqueue: (jobs: Job[], due: Date) => Promise<unknown>
    close: () => Promise<unknown>
  }>
  /** Starts working in its own process, until that is ended. */
  work: (connectionString: string, handle: (job: Job) => Promise<void>) => Promise<unknown>
}

const queue = 'deliver'

const startBoss = async (connectionString: string, options: { supervise?: boolean; schedule?: boolean } = {}) => {
  const boss = new PgBoss({ connectionString, max: 10, ...options })
  boss.on('error', error => console.error('pg-boss', error.message))
  await boss.start()
  await boss.createQueue(queue)
  return boss
}

const pgBoss: Peer = {
  schema: 'pgboss',
  pending: `exists (select from pgboss.job where name = '${queue}' and state < 'completed')`,
  tidy: `delete from pgboss.job where name = '${queue}' and state = 'completed'`,
  open: async connectionString => {
    const boss = await startBoss(connectionString, { supervise: false, schedule: false })
    return {
      enqueue: (jobs, startAfter) =>
        boss.insert(
          queue,
          jobs.map(data => ({ data, startAfter }))
        ),
      close: () => boss.stop({ graceful: false })
    }
  },
  work: async (connectionString, handle) => {
    const boss = await startBoss(connectionString)
    const tuned = {
      batchSize: 100,
      localConcurrency: 4,
      pollingIntervalSeconds: 0.5,
      burstWhenBatchFull: true,
      perJobResults: true
    } as const
    // Jobs complete individually, so that a failed one doesn't cause its batch to be sent again.
    await boss.work<Job>(queue, tuned, jobs =>
      Promise.all(
        jobs.map(({ id, data }) =>
          handle(data).then(
            () => ({ id, status: 'completed' as const }),
            error => ({ id, status: 'failed' as const, output: { message: error.message } })
          )
        )
      )
    )
  }
}

/** It would log a line per job. */
const logger = new Logger(() => () => {})

const graphileWorker: Peer = {
  schema: 'graphile_worker',
  pending: 'exists (select from graphile_worker._private_jobs)',
  open: async connectionString => {
    const utils = await makeWorkerUtils({ connectionString, logger })
    await utils.migrate()
    return {
      enqueue: (jobs, runAt) => utils.addJobs(jobs.map(payload => ({ identifier: queue, payload, runAt }))),
      close: async () => utils.release()
    }
  },
  work: (connectionString, handle) => {
    const tuned = {
      concurrentJobs: 50,
      maxPoolSize: 10,
      pollInterval: 500,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0
    }
    const taskList = { [queue]: (payload: unknown) => handle(payload as Job) }
    return run({ preset: { worker: { connectionString, logger, ...tuned } }, noHandleSignals: true, taskList })
  }
}

const { Queue, Worker } = withBackend(createPostgresBackend)

const bullmq: Peer = {
  schema: 'bullmq',
  pending: 'exists (select from bullmq.job)',
  open: async connectionString => {
    const jobs = new Queue(queue, {
      connection: { connectionString, migrate: true, max: 2 },
      defaultJobOptions: { removeOnComplete: true }
    })
    jobs.on('error', () => {})
    await jobs.waitUntilReady()
    return {
      enqueue: (list, due) => {
        const timestamp = Date.now()
        const opts = { timestamp, delay: Math.max(0, due.getTime() - timestamp) }
        return jobs.addBulk(list.map(data => ({ name: queue, data, opts })))
      },
      close: () => jobs.close()
    }
  },
  work: (connectionString, handle) => {
    const worker = new Worker<Job>(queue, job => handle(job.data), { connection: { connectionString, max: 10 }, concurrency: 100 })
    worker.on('error', error => console.error('bullmq', error.message))
    return worker.waitUntilReady()
  }
}

export const peers: Record<string, Peer> = { 'pg-boss': pgBoss, 'graphile-worker': graphileWorker, bullmq }
