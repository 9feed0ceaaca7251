/**
 * Extends this engine's leases, and recovers flights whose lease has expired. Others' leases are judged only by an engine that has itself been
 * in touch with the database for a while: one that was frozen or cut off sees expired leases that nobody could extend.
 */
import type { FastifyBaseLogger } from 'fastify'
import { constants } from '../catalog.ts'
import type { Functions } from '../database/functions.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Flights } from './flights.ts'

type Options = {
  fn: Pick<Functions, 'recoverFlights'>
  flights: Pick<Flights, 'extend'>
  now: () => number
  /** When the listener connected, on the clock of `performance.now()`; null while it is disconnected. */
  connectedAt: () => number | null
  metrics: Pick<Metrics, 'attemptEnded'>
  log: Pick<FastifyBaseLogger, 'warn'>
  leaseMs?: number
}

/** Everything that must fit into the lease of a flight, as milliseconds. */
export const leaseTimes = (leaseMs = constants.flightLeaseMs) => ({
  /** Between extensions. */
  extendMs: leaseMs / 4,
  /** After which an extension counts as failed. It is repeated once at once: two fit in before the lease ends. */
  answerMs: leaseMs * (3 / 8),
  /** After which an answer is late: the engine was out of touch. */
  silentMs: leaseMs / 2,
  /** How long to be in touch before judging others, so that they can be back too and have extended their leases. */
  settledMs: leaseMs * (3 / 4),
  /** Between recoveries. */
  recoverMs: leaseMs / 2,
  /** Between looks for flights while there are none: one that begins after a look doesn't lapse before the next. */
  idleMs: leaseMs
})

/** `leaseMs` is the lease that flights are begun with; that of `createFlights` by default. */
export const createLeases = ({ fn, flights, now, connectedAt, metrics, log, leaseMs }: Options) => {
  const { silentMs, settledMs, recoverMs } = leaseTimes(leaseMs)
  let lookedAt = performance.now()
  let silentAt = 0
  let recoveredAt = 0

  /** Sends a statement, and notes if the answer is late or missing. */
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
    /** Extends our leases. Tries again at once if that fails, as the first statement on a dead connection does. */
    extend: (): Promise<void> => inTouch(() => flights.extend().catch(flights.extend)),

    /** Whether to recover flights now. To be called at every `extendMs` while there are flights: after a longer gap, as after a freeze, others come first. */
    isRecoveryDue: (): boolean => {
      const time = performance.now()
      if (time - lookedAt > silentMs) silentAt = time
      lookedAt = time
      const inTouchSince = Math.max(connectedAt() ?? time, silentAt)
      return time - inTouchSince >= settledMs && time - recoveredAt >= recoverMs
    },

    /** Recovers the attempts of all flights whose lease has expired. */
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
