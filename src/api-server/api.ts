/** The API of a replica: one app per cell, each with its own connection pool, behind one server. */

import { type App, build, type Options } from '../app.ts'
import { type Config, engineConnections } from '../config.ts'
import type { OutageLog } from '../database/outage-log.ts'
import { answerMs, createPool } from '../database/pool.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { collectGarbage } from '../startup/garbage.ts'
import { createCellOf } from './cell-of-request.ts'
import { claimAddresses, createDirectory } from './directory.ts'
import { routeByCell } from './router.ts'

export type Api = { listen: () => Promise<void>; stop: () => Promise<void> }

/** One cell as the API sees it. */
export type ApiCell = { config: Config; metrics: Metrics; outageLog: OutageLog }
type ApiOptions = Pick<Options, 'logger' | 'logStream' | 'traces'> & { cells: readonly ApiCell[] }

export const createApi = async ({ cells, ...options }: ApiOptions): Promise<Api> => {
  const open = await Promise.all(cells.map(cell => openCell(cell, options)))
  const apps = open.map(({ app }) => app)
  const [home] = apps as [App]
  if (apps.length > 1) await joinCells(apps)
  return {
    listen: async () => {
      const { host, port } = home.config
      await home.listen({ host, port, backlog: 2048 })
      collectGarbage()
    },
    stop: async () => {
      await Promise.all(apps.map(app => app.close()))
      await Promise.all(open.map(({ pool }) => pool.end()))
    }
  }
}

/** Lets the home cell's app serve all cells. */
export const joinCells = async (apps: readonly App[]): Promise<void> => {
  const [home, ...rest] = apps as [App, ...App[]]
  const served = new Promise<void>(resolve => home.addHook('onClose', async () => resolve()))
  for (const app of apps) app.cells.splice(0, 1, ...apps)
  // The home cell's server has their connections: they close when it has finished their requests.
  for (const app of rest) app.addHook('preClose', () => served)
  await Promise.all(apps.map(app => app.ready()))
  claimAddresses(apps)
  routeByCell(apps, createCellOf(apps.length, createDirectory(apps)))
}

const openCell = async ({ config, metrics, outageLog }: ApiCell, options: Omit<ApiOptions, 'cells'>) => {
  const max = config.pgPoolMax - (config.roles.engine ? engineConnections : 0)
  const onError = (error: Error) =>
    outageLog.lost(error, 'idle connection') || app.log.warn({ err: error }, 'idle database connection lost')
  const pool = createPool(config, { max, onError, answerMs })
  const app = await build({ ...options, config, metrics, outageLog, pool })
  return { app, pool }
}
