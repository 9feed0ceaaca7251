import type { FastifyInstance } from 'fastify'
import type { Clock } from './clock.ts'
import type { Functions } from './functions.ts'

const askEveryMs = 30_000
const askAgainMs = 2000

/** Reads the database's time. */
export const readClock = async (fn: Pick<Functions, 'databaseTime'>, clock: Pick<Clock, 'learn'>): Promise<void> => {
  const askedAt = performance.now()
  clock.learn(await fn.databaseTime({}), askedAt)
}

/** Reads the database's time before the service is ready and every 30 seconds. While the database is unavailable, the clock goes on. */
export const followDatabase = (app: FastifyInstance): void => {
  let timer: NodeJS.Timeout
  let closed = false
  const ask = async () => {
    let next = askEveryMs
    try {
      await readClock(app.shared, app.clock)
      app.outageLog.back('read clock')
    } catch (error) {
      app.outageLog.lost(error, 'read clock')
      next = askAgainMs
    }
    if (!closed) timer = setTimeout(ask, next).unref()
  }
  app.addHook('onReady', ask)
  app.addHook('onClose', async () => {
    closed = true
    clearTimeout(timer)
  })
}
