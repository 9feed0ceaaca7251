/** Wakes the queues of pg-boss when their waiting jobs are due. pg-boss itself would find those at its next poll. */

type Options = {
  /** Reads the next waiting job of each queue, including those that became due within `past`, an interval. */
  read: (past: string) => Promise<{ queue: string; wait_ms: number }[]>
  wake: (queue: string) => void
  onError: (error: unknown) => void
}

/** Between queries. A job that is delayed by less than this may start late by as much. */
const readEveryMs = 5000
/** Between waking a queue and the next query, since its next job may follow soon. */
const followMs = 1000
/** A timer may fire a little early. */
const slackMs = 20
/** Jobs that start within this time get a timer. */
const soonMs = 2 * readEveryMs

/** Starts the timers. Reads at once, and then every few seconds until `stop` is called, except while `firstIn` says that no job starts soon. */
export const createJobTimers = ({ read, wake, onError }: Options) => {
  let stopped = false
  let readAt = performance.now() - readEveryMs
  let nextRead: NodeJS.Timeout | undefined
  let timers: NodeJS.Timeout[] = []

  const readIn = (ms: number) => {
    clearTimeout(nextRead)
    if (!stopped) nextRead = setTimeout(look, ms)
  }

  const look = async () => {
    const askedAt = performance.now()
    try {
      const waiting = await read(`${Math.ceil(askedAt - readAt)} milliseconds`)
      readAt = askedAt
      if (stopped) return
      // Timers that have not fired yet are for jobs that this query has found again.
      for (const timer of timers) clearTimeout(timer)
      timers = waiting
        .filter(({ wait_ms }) => wait_ms <= soonMs)
        .map(({ queue, wait_ms }) => setTimeout(due, Math.max(wait_ms, 0) + slackMs, queue))
    } catch (error) {
      onError(error)
    } finally {
      readIn(readEveryMs)
    }
  }

  const due = (queue: string) => {
    wake(queue)
    readIn(followMs)
  }

  void look()
  return {
    /** Another reading found that the first waiting job starts in so many milliseconds. */
    firstIn: (ms: number): void => {
      if (ms > soonMs) readIn(readEveryMs)
    },
    stop: (): void => {
      stopped = true
      for (const timer of [nextRead, ...timers]) clearTimeout(timer)
    }
  }
}
