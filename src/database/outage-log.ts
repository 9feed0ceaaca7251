/** Logs the start and the end of database outages. Everything fails during one, and a line for each failure would bury all others. */
import { isUnavailable } from '../errors.ts'

export type OutageLog = ReturnType<typeof createOutageLog>

const quietMs = 60_000

/** A server that refuses a statement, as with a full disk, or never answers it, goes on answering others. */
const isOfStatement = ({ code = '', message = '' }: { code?: string; message?: string }) =>
  /^(?!08|57|E)[0-9A-Z]{5}$/.test(code) || message.startsWith('Query read timeout')

/** Makes the log of one process. `now` returns milliseconds of a monotonic clock. */
export const createOutageLog = (log: { warn: (fields: object, message: string) => void }, now = () => performance.now()) => {
  // `task`: the only one whose success ends it.
  let outage: { lostAt: number; task: string | undefined; isLogged: boolean } | undefined
  let loggedAt = Number.NEGATIVE_INFINITY

  return {
    /**
     * Returns whether an error means that the database is unavailable, and logs that at most once a minute. `isReported`: `back` is called when the
     * task succeeds.
     */
    lost: (error: unknown, task: string, isReported = true): boolean => {
      if (!isUnavailable(error)) return false
      const time = now()
      outage ??= { lostAt: time, task: isReported && isOfStatement(error as Error) ? task : undefined, isLogged: false }
      if (time - loggedAt >= quietMs) {
        loggedAt = time
        outage.isLogged = true
        log.warn({ err: error, task }, 'database unavailable')
      }
      return true
    },

    /** The task has succeeded: logs the end of an outage whose start was logged. */
    back: (task?: string): void => {
      if (!outage || (outage.task !== undefined && outage.task !== task)) return
      if (outage.isLogged) log.warn({ task, ms: Math.round(now() - outage.lostAt) }, 'database available again')
      outage = undefined
    }
  }
}
