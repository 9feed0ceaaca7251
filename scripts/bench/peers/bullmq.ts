/** BullMQ on PostgreSQL, tuned: by default, it runs one job at a time and keeps completed ones. */
import { createPostgresBackend, withBackend } from 'bullmq'
import pg from 'pg'
import type { Job, Peer } from './peer.ts'

const { Queue, Worker } = withBackend(createPostgresBackend)
const queue = 'deliver'

const peer: Peer = {
  schema: 'bullmq',

  open: async connectionString => {
    const jobs = new Queue(queue, {
      connection: { connectionString, migrate: true, max: 2 },
      defaultJobOptions: { removeOnComplete: true }
    })
    jobs.on('error', () => {})
    await jobs.waitUntilReady()
    const sql = new pg.Pool({ connectionString, application_name: 'bench', max: 1 }).on('error', () => {})
    return {
      enqueue: async (list, due) => {
        for (let from = 0; from < list.length; from += 1000) {
          const timestamp = Date.now()
          const delay = Math.max(0, due.getTime() - timestamp)
          await jobs.addBulk(list.slice(from, from + 1000).map(data => ({ name: queue, data, opts: { timestamp, delay } })))
        }
      },
      tidy: async () => {
        await sql.query('vacuum analyze')
      },
      isEmpty: async () => {
        const { rows } = await sql.query('select exists (select from bullmq.job) as left')
        return !rows[0].left
      },
      close: () => jobs.close()
    }
  },

  work: async (connectionString, handle) => {
    const worker = new Worker<Job>(queue, job => handle(job.data), { connection: { connectionString, max: 10 }, concurrency: 100 })
    worker.on('error', error => console.error('bullmq', error.message))
    await worker.waitUntilReady()
  }
}

export default peer
