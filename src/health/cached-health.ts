/** Caches health checks, so that simultaneous requests share one. */
import type { FastifyInstance } from 'fastify'
import { inTime } from '../errors.ts'

const maxAgeMs = 5000
/** A health check must not wait until a lost connection is noticed. */
const healthMs = 2000

/** Returns a function that returns the result of `read`, at most 5 seconds old; null if the database does not respond in time. */
export const createLook = <T>(
  { now, outageLog, log }: Pick<FastifyInstance, 'now' | 'outageLog' | 'log'>,
  read: () => Promise<T>,
  patienceMs = healthMs
) => {
  let readAt = Number.NEGATIVE_INFINITY
  let answer: Promise<T | null>

  return (): Promise<T | null> => {
    const time = now().getTime()
    if (Math.abs(time - readAt) < maxAgeMs) return answer
    readAt = time
    const reading = read().then(
      answer => {
        outageLog.back('health check')
        return answer
      },
      error => {
        if (!outageLog.lost(error, 'health check')) log.warn({ err: error }, 'health check failed')
        return null
      }
    )
    answer = inTime(reading, patienceMs).catch(() => null)
    return answer
  }
}
