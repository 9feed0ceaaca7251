/** The time by the database's clock, which decides what is due. */

export type Clock = {
  now: () => Date
  /** Learns from an answer: the database's time in epoch milliseconds; when it was requested and arrived, on the clock of `performance.now()`. */
  learn: (databaseNow: number, askedAt: number, answeredAt?: number) => void
}

/** How far the two clocks may drift apart, as a part of the time that passes. If they drift more, old answers soon contradict new ones. */
const drift = 2e-5

/** A smaller step delays or hastens what is due by less than a slow answer does. */
const jumpMs = 1000

/**
 * Continues from the answers by this process's monotonic clock, so that a step of the host's clock changes nothing. Before the first answer, it
 * follows the host's clock. Tests pass a `fixed` clock. `onJump` is called when the database's clock was set, with the milliseconds that it skipped.
 */
export const createClock = (fixed?: () => Date, onJump: (ms: number) => void = () => {}): Clock => {
  let offset = Date.now() - performance.now()
  // The answers until `learnedAt` say that the offset is between these.
  let least = Number.NEGATIVE_INFINITY
  let most = Number.POSITIVE_INFINITY
  let learnedAt = 0
  return {
    now: fixed ?? (() => new Date(offset + performance.now())),
    // The database read its clock between request and answer, so each answer gives a range for the offset, and the offset is in all of them.
    learn: (databaseNow, askedAt, answeredAt = performance.now()) => {
      const slack = (answeredAt - learnedAt) * drift
      const [low, high] = [databaseNow - answeredAt, databaseNow - askedAt]
      least = Math.max(least - slack, low)
      most = Math.min(most + slack, high)
      // The database's clock was set, drifts more, or is another one since a failover.
      if (least > most) {
        ;[least, most] = [low, high]
        const jump = Math.round((least + most) / 2 - offset)
        if (Math.abs(jump) >= jumpMs) onJump(jump)
      }
      offset = (least + most) / 2
      learnedAt = answeredAt
    }
  }
}
