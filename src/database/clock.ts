/** The time by the database's clock, which decides what is due. */
import type { FastifyInstance } from 'fastify'
import { sql } from 'kysely'

export type Clock = {
  now: () => Date
  /** Adopts the database's time, requested at `askedAt` on the clock of `performance.now()`. */
  learn: (databaseNow: Date, askedAt: number) => void
}

const askEveryMs = 30_000
const askAgainMs = 2000
/** The middle of a round trip is the best estimate, but a poor one if the round trip took longer than this. */
const longMs = 250

/**
 * Continues from the latest answer by this process's monotonic clock, so that a step of the host's clock changes nothing. Before the first
 * answer, it follows the host's clock. Tests pass a `fixed` clock.
 */
export const createClock = (fixed?: () => Date): Clock => {
  let offset = Date.now() - performance.now()
  let learned = false
  return {
    now: fixed ?? (() => new Date(offset + performance.now())),
    learn: (databaseNow, askedAt) => {
      const answeredAt = performance.now()
      if (learned && answeredAt - askedAt > longMs) return
      offset = databaseNow.getTime() - (askedAt + answeredAt) / 2
      learned = true
    }
  }
}

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
