import type { FastifyInstance } from 'fastify'
import { sql } from 'kysely'

const askEveryMs = 30_000
const askAgainMs = 2000

/** Reads the database's time before the service is ready and every 30 seconds. While the database is unavailable, the clock goes on. */
export const followDatabase = (app: FastifyInstance): void => {
  let timer: NodeJS.Timeout
  let closed = false
  const ask = async () => {
    let next = askEveryMs
    const askedAt = performance.now()
    try {
      const { now } = await app.db.selectNoFrom(sql<Date>`clock_timestamp()`.as('now')).executeTakeFirstOrThrow()
      app.clock.learn(now, askedAt)
      app.outageLog.back()
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
