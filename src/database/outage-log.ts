/** What the log tells of a lost database. All that fails meanwhile fails for that: a line for each would bury what else is there. */
import { isAway } from '../errors.ts'

export type OutageLog = ReturnType<typeof createOutageLog>

const quietMs = 60_000

export const createOutageLog = (log: { warn: (fields: object, message: string) => void }, now = () => performance.now()) => {
  let lostAt: number | undefined
  let toldAt = Number.NEGATIVE_INFINITY
  let told = false

  return {
    /** Whether this error means that the database is away. Told at most once a minute, however often it comes and goes. */
    lost: (error: unknown, task: string): boolean => {
      if (!isAway(error)) return false
      const time = now()
      lostAt ??= time
      if (time - toldAt >= quietMs) {
        toldAt = time
        told = true
        log.warn({ err: error, task }, 'database unavailable')
      }
      return true
    },

    /** The database has answered. */
    back: (): void => {
      if (told && lostAt !== undefined) log.warn({ ms: Math.round(now() - lostAt) }, 'database available again')
      lostAt = undefined
      told = false
    }
  }
}
