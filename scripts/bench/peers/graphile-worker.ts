/** graphile-worker, tuned: its defaults run one job at a time. Silenced, because it logs a line per job. */
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import type { Job, Peer } from './peer.ts'

const logger = new Logger(() => () => {})

const peer: Peer = {
  schema: 'graphile_worker',

  open: async connectionString => {
    const utils = await makeWorkerUtils({ connectionString, logger })
    await utils.migrate()
    const sql = new pg.Pool({ connectionString, application_name: 'bench', max: 1 }).on('error', () => {})
    return {
      enqueue: async (jobs, runAt) => {
        for (let from = 0; from < jobs.length; from += 1000) {
          await utils.addJobs(jobs.slice(from, from + 1000).map(payload => ({ identifier: 'deliver', payload, runAt })))
        }
      },
      tidy: async () => {
        await sql.query('vacuum analyze')
      },
      isEmpty: async () => {
        const { rows } = await sql.query('select exists (select from graphile_worker._private_jobs) as left')
        return !rows[0].left
      },
      close: async () => utils.release()
    }
  },

  work: async (connectionString, handle) => {
    await run({
      preset: {
        worker: {
          connectionString,
          logger,
          concurrentJobs: 50,
          maxPoolSize: 10,
          pollInterval: 500,
          localQueue: { size: 500 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0
        }
      },
      noHandleSignals: true,
      taskList: { deliver: payload => handle(payload as Job) }
    })
  }
}

export default peer
