/** Deadlines that engines meet: outcomes, claims and leases of claims, ends of pauses, approvals that expire, waits for signals, and excluded slots. */
import type { Functions } from '../database/functions.ts'
import type { Metrics } from '../metrics/metrics.ts'

type Options = {
  fn: Pick<Functions, 'recoverLeases' | 'expireOutcomes' | 'missUnclaimed' | 'meetApprovals' | 'expireSignals'>
  /** Ends pauses, and resolves to their number. */
  endPauses: () => Promise<number>
  /** Records excluded slots that have passed, and resolves to the number of cues. */
  recordExclusions: () => Promise<number>
  /** Reads the next deadline, and calls `isAt` with it. */
  readNext: () => Promise<unknown>
  metrics: Pick<Metrics, 'claimsLost'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
}

/** Rows that can't be moved, because they are locked, remain past their deadline. So after a try in vain, the next one waits this long. */
const restMs = 500

export type Deadlines = ReturnType<typeof createDeadlines>

export const createDeadlines = ({ fn, endPauses, recordExclusions, readNext, metrics, now }: Options) => {
  let at = Number.POSITIVE_INFINITY
  let restUntil = 0

  return {
    /** The next known deadline, in epoch milliseconds. */
    get at() {
      return at
    },
    /** There is a deadline at `instant`, in epoch milliseconds. */
    expect: (instant: number): void => {
      at = Math.min(at, instant)
    },
    /** A reading found that the first deadline is at `instant`, in epoch milliseconds. */
    isAt: (instant: number): void => {
      at = Math.min(at, instant > now() ? instant : restUntil)
    },
    /** Ends what has passed its deadline, a batch of each kind. */
    meet: async (): Promise<void> => {
      at = Number.POSITIVE_INFINITY
      const lost = await fn.recoverLeases({})
      if (lost > 0) metrics.claimsLost(lost)
      const ended =
        (await fn.expireOutcomes({})) + (await fn.missUnclaimed({})) + (await fn.meetApprovals({})) + (await fn.expireSignals({}))
      const moved = ended + (await endPauses()) + (await recordExclusions()) + lost
      if (moved > 0) {
        at = 0
        return
      }
      restUntil = now() + restMs
      await readNext()
    }
  }
}
