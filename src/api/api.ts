/** The API of a replica: listens and stops, with its own connection pool. */

import { build, type Options } from '../app.ts'
import { type Config, engineConnections } from '../config.ts'
import type { OutageLog } from '../database/outage-log.ts'
import { createPool } from '../database/pool.ts'
import { collectGarbage } from '../startup/garbage.ts'

export type Api = { listen: () => Promise<void>; stop: () => Promise<void> }

type ApiOptions = Pick<Options, 'metrics' | 'logger' | 'logStream'> & { config: Config; outageLog: OutageLog }

export const createApi = async ({ config, outageLog, ...options }: ApiOptions): Promise<Api> => {
  const max = config.pgPoolMax - (config.roles.engine ? engineConnections : 0)
  const onError = (error: Error) =>
    outageLog.lost(error, 'idle connection') || app.log.warn({ err: error }, 'idle database connection lost')
  const pool = createPool(config, { max, onError })
  const app = await build({ ...options, config, outageLog, pool })
  return {
    listen: async () => {
      await app.listen({ host: config.host, port: config.port, backlog: 2048 })
      collectGarbage()
    },
    stop: async () => {
      await app.close()
      await pool.end()
    }
  }
}
