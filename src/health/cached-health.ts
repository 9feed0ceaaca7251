/** One look at how the service fares, shared by those who ask at about the same time. */
import type { FastifyInstance } from 'fastify'
import type { ServiceHealthRow } from '../database/functions.ts'

const maxAgeMs = 5000
/** Whoever asks for health must not wait as long as a lost connection takes to be noticed. */
const patienceMs = 2000

/** Makes a function that tells what the database says, at most 5 seconds old; null if it says nothing. */
export const createLook = ({ fn, now, away, log }: Pick<FastifyInstance, 'fn' | 'now' | 'away' | 'log'>) => {
  let asked = Number.NEGATIVE_INFINITY
  let answer: Promise<ServiceHealthRow | null>

  return (): Promise<ServiceHealthRow | null> => {
    const time = now().getTime()
    if (Math.abs(time - asked) < maxAgeMs) return answer
    asked = time
    let timer: NodeJS.Timeout
    const late = new Promise<null>(resolve => {
      timer = setTimeout(resolve, patienceMs, null)
    })
    const found = fn.serviceHealth({}).catch(error => {
      if (!away.lost(error, 'reading health')) log.warn({ err: error }, 'health could not be read')
      return null
    })
    answer = Promise.race([found, late]).finally(() => clearTimeout(timer))
    return answer
  }
}
