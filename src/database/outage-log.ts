/** Logs the start and the end of database outages. Everything fails during one, and a line for each failure would bury all others. */
import { isAway } from '../errors.ts'

export type OutageLog = ReturnType<typeof createOutageLog>

const quietMs = 60_000

/** Makes the log of one process. `now` returns milliseconds of a monotonic clock. */
export const createOutageLog = (log: { warn: (fields: object, message: string) => void }, now = () => performance.now()) => {
  let lostAt: number | undefined
  let loggedAt = Number.NEGATIVE_INFINITY
  let isLogged = false

  return {
    /** Returns whether an error means that the database is unavailable, and logs that at most once a minute. */
    lost: (error: unknown, task: string): boolean => {
      if (!isAway(error)) return false
      const time = now()
      lostAt ??= time
      if (time - loggedAt >= quietMs) {
        loggedAt = time
        isLogged = true
        log.warn({ err: error, task }, 'database unavailable')
      }
      return true
    },

    /** The database has answered: logs the end of an outage whose start was logged. */
    back: (): void => {
      if (isLogged && lostAt !== undefined) log.warn({ ms: Math.round(now() - lostAt) }, 'database available again')
      lostAt = undefined
      isLogged = false
    }
  }
}
