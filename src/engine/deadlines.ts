/** Deadlines that engines meet: outcomes not reported, claims not made and leases of claims not extended in time, pauses that end, and excluded slots. */
import type { Functions } from '../database/functions.ts'
import type { Metrics } from '../metrics/metrics.ts'

type Options = {
  fn: Pick<Functions, 'recoverLeases' | 'expireOutcomes' | 'missUnclaimed' | 'nextWakes'>
  /** An attempt waits that is due at `at`, in epoch milliseconds. */
  expectWaiting: (at: number) => void
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  /** Ends pauses, and resolves to their number. */
  endPauses: () => Promise<number>
  /** Records excluded slots that have passed, and resolves to the number of cues. */
  recordExclusions: () => Promise<number>
  metrics: Pick<Metrics, 'claimsLost'>
}

/** Rows that another transaction has locked remain past their deadline: they are not tried again sooner than this. */
const restMs = 100

export type Deadlines = ReturnType<typeof createDeadlines>

export const createDeadlines = ({ fn, expectWaiting, now, endPauses, recordExclusions, metrics }: Options) => {
  let at = Number.POSITIVE_INFINITY

  const read = async (): Promise<void> => {
    const { waiting_at, deadline_at } = await fn.nextWakes({})
    if (waiting_at) expectWaiting(waiting_at.getTime())
    if (deadline_at) at = Math.min(at, Math.max(deadline_at.getTime(), now() + restMs))
  }

  return {
    /** The next known deadline, in epoch milliseconds. */
    get at() {
      return at
    },
    /** There is a deadline at `instant`, in epoch milliseconds. */
    expect: (instant: number): void => {
      at = Math.min(at, instant)
    },
    /** Reads the next deadline, and when the next waiting attempt is due: notifications of them may have been lost. */
    read,
    /** Ends what has passed its deadline, a batch of each kind. */
    meet: async (): Promise<void> => {
      at = Number.POSITIVE_INFINITY
      const lost = await fn.recoverLeases({})
      if (lost > 0) metrics.claimsLost(lost)
      const moved = (await fn.expireOutcomes({})) + (await fn.missUnclaimed({})) + (await endPauses()) + (await recordExclusions()) + lost
      if (moved > 0) at = 0
      else await read()
    }
  }
}
