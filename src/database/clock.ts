/** The time by the database's clock, which decides what is due. */

export type Clock = {
  now: () => Date
  /** Adopts the database's time, requested at `askedAt` on the clock of `performance.now()`. */
  learn: (databaseNow: Date, askedAt: number) => void
}

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
