/** pg-boss, tuned: its defaults fetch one job every two seconds. */
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import type { Job, Peer } from './peer.ts'

const queue = 'deliver'
const connect = async (connectionString: string, options: { supervise?: boolean; schedule?: boolean } = {}) => {
  const boss = new PgBoss({ connectionString, max: 10, ...options })
  boss.on('error', error => console.error('pg-boss', error.message))
  await boss.start()
  await boss.createQueue(queue)
  return boss
}

const peer: Peer = {
  schema: 'pgboss',

  open: async databaseUrl => {
    const boss = await connect(databaseUrl, { supervise: false, schedule: false })
    const sql = new pg.Pool({ connectionString: databaseUrl, application_name: 'bench', max: 1 }).on('error', () => {})
    return {
      enqueue: async (jobs, startAfter) => {
        for (let from = 0; from < jobs.length; from += 1000) {
          await boss.insert(
            queue,
            jobs.slice(from, from + 1000).map(data => ({ data, startAfter }))
          )
        }
      },
      tidy: async () => {
        await sql.query("delete from pgboss.job where name = $1 and state = 'completed'", [queue])
        await sql.query('vacuum analyze')
      },
      isEmpty: async () => {
        const { rows } = await sql.query("select exists (select from pgboss.job where name = $1 and state < 'completed') as left", [queue])
        return !rows[0].left
      },
      close: () => boss.stop({ graceful: false })
    }
  },

  work: async (databaseUrl, handle) => {
    const boss = await connect(databaseUrl)
    const options = {
      batchSize: 100,
      localConcurrency: 4,
      pollingIntervalSeconds: 0.5,
      burstWhenBatchFull: true,
      perJobResults: true
    } as const
    // Jobs complete individually, so that a failed one doesn't cause its batch to be sent again.
    await boss.work<Job>(queue, options, jobs =>
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

export default peer
