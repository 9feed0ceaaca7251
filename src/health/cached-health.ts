/** One look at the health of the service, shared by requests that come at about the same time. */
import type { FastifyInstance } from 'fastify'

const maxAgeMs = 5000
/** Whoever asks for health must not wait as long as a lost connection takes to be noticed. */
const patienceMs = 2000

/** Makes a function that returns what `read` returned, at most 5 seconds old; null if the database does not answer. */
export const createLook = <T>({ now, away, log }: Pick<FastifyInstance, 'now' | 'away' | 'log'>, read: () => Promise<T>) => {
  let asked = Number.NEGATIVE_INFINITY
  let answer: Promise<T | null>

  return (): Promise<T | null> => {
    const time = now().getTime()
    if (Math.abs(time - asked) < maxAgeMs) return answer
    asked = time
    let timer: NodeJS.Timeout
    const late = new Promise<null>(resolve => {
      timer = setTimeout(resolve, patienceMs, null)
    })
    const found = read().catch(error => {
      if (!away.lost(error, 'health check')) log.warn({ err: error }, 'health check failed')
      return null
    })
    answer = Promise.race([found, late]).finally(() => clearTimeout(timer))
    return answer
  }
}
