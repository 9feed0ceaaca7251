/**
 * Fires due cues that need no delivery slot: those of workers, whose executions become claimable; those that came due during an outage, which
 * follow their catch_up, and those of accounts over their limit; and tracked ones, which follow their overlap.
 */
import type { FastifyBaseLogger } from 'fastify'
import { bisect } from '../database/bisect.ts'
import type { Functions } from '../database/functions.ts'
import { type DueCue, dueColumns, followingColumns, isLast, movedColumns } from './due-cue.ts'
import type { Ahead } from './look-ahead.ts'

type Options = {
  fn: Pick<Functions, 'takeDueCues' | 'takeLastSlots' | 'catchUpCues' | 'refuseDueCues' | 'fireTrackedCues'>
  ahead: Ahead
  missedAfter: string
  log: Pick<FastifyBaseLogger, 'error'>
}

const batchSize = 500
/** Those of which an execution has not ended are fired one by one. */
const trackedBatchSize = 250

/** @returns functions that fire due cues in batches until none are due, and reject if the database doesn't answer */
export const createFiring = ({ fn, ahead, missedAfter, log }: Options) => {
  const fire = async (cues: DueCue[], run: (cues: DueCue[]) => Promise<unknown>) => {
    if (cues.length === 0) return
    await bisect(
      cues,
      async some => {
        await run(some)
        return []
      },
      (cue, err) => {
        log.error({ err, cue_id: cue.cue_id }, 'due cue skipped: it cannot be fired')
        ahead.passOver(cue)
      }
    )
  }

  /** Takes due cues of a kind in batches and does something with each batch. */
  const inBatches = async (kind: 'workers' | 'missed' | 'tracked', size: number, work: (cues: DueCue[]) => Promise<void>) => {
    for (let { cues } = ahead.takeDue(kind, size); cues.length > 0; cues = ahead.takeDue(kind, size).cues) {
      await work(cues).finally(() => ahead.doneWith(cues))
    }
  }

  const workers = () =>
    inBatches('workers', batchSize, async cues => {
      await fire(
        cues.filter(cue => !isLast(cue)),
        some => fn.takeDueCues({ ...dueColumns(some), ...movedColumns(some), missed_after: missedAfter })
      )
      await fire(cues.filter(isLast), some => fn.takeLastSlots({ ...dueColumns(some), missed_after: missedAfter }))
      for (const cue of cues) ahead.fired(cue)
    })

  const missed = () =>
    inBatches('missed', batchSize, async cues => {
      const caughtUp = cues.filter(cue => cue.missed)
      await fire(
        cues.filter(cue => !cue.missed),
        some => fn.refuseDueCues({ ...dueColumns(some), ...followingColumns(some) })
      )
      await fire(caughtUp, some => fn.catchUpCues({ cues: JSON.stringify(some.map(cue => cue.missed)) }))
      // Their next slot was computed only now, and may be due.
      if (caughtUp.length > 0) ahead.expect(0)
    })

  const tracked = () =>
    inBatches('tracked', trackedBatchSize, async cues => {
      await fire(cues, some =>
        fn.fireTrackedCues({
          ...dueColumns(some),
          ...followingColumns(some),
          success_due: some.map(cue => cue.slot.successDue),
          missed_after: missedAfter
        })
      )
      for (const cue of cues) ahead.fired(cue)
    })

  return { workers, missed, tracked }
}
