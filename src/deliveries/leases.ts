/**
 * Leases, all along: ours are extended, and what lapsed ones hold is freed. Others are judged only by an engine that has itself been in touch
 * with the database for a while: one that was frozen or cut off sees lapsed what nobody could extend.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { Functions } from '../database/functions.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Flights } from './flights.ts'

type Options = {
  fn: Pick<Functions, 'recoverFlights'>
  flights: Flights
  now: () => number
  /** Since when the listener's connection stands, on the clock of `performance.now()`; null while it is lost. */
  connectedAt: () => number | null
  metrics: Pick<Metrics, 'attemptEnded'>
  log: Pick<FastifyBaseLogger, 'warn'>
}

const recoverMs = 2000
/** How long to have been in touch: the holders had time to come back too. */
const settledMs = 3000
/** Who gets no answer for this long is out of touch. */
const silentMs = 2000

export const createLeases = ({ fn, flights, now, connectedAt, metrics, log }: Options) => {
  let lookedAt = performance.now()
  let silentAt = 0
  let recoveredAt = 0

  /** Asks, and notes when there was no answer, or a late one. */
  const inTouch = async <T>(ask: () => Promise<T>): Promise<T> => {
    const askedAt = performance.now()
    let answered = false
    try {
      const answer = await ask()
      answered = performance.now() - askedAt < silentMs
      return answer
    } finally {
      if (!answered) silentAt = performance.now()
    }
  }

  return {
    /** Extends our leases. At once again if that fails: the first statement on a connection that died unnoticed does. */
    extend: (): Promise<void> => inTouch(() => flights.extend().catch(flights.extend)),

    /** Whether to look for lapsed leases now. To be asked every second. */
    isRecoveryDue: (): boolean => {
      const time = performance.now()
      if (time - lookedAt > silentMs) silentAt = time // we were frozen
      lookedAt = time
      const inTouchSince = Math.max(connectedAt() ?? time, silentAt)
      return time - inTouchSince >= settledMs && time - recoveredAt >= recoverMs
    },

    /** Frees what lapsed flights hold. */
    recover: async (): Promise<void> => {
      recoveredAt = performance.now()
      for (;;) {
        const freed = await inTouch(() => fn.recoverFlights({ asked_at: new Date(now()) }))
        if (freed === 0) return
        metrics.attemptEnded('lost', freed)
        log.warn({ freed }, 'recovered attempts of a silent replica')
      }
    }
  }
}
