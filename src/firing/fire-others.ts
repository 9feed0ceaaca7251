/**
 * Fires due cues that need no delivery slot: those of workers, whose executions become claimable; those that came due during an outage, which
 * follow their catch_up; those of accounts over their limit; and tracked ones, which follow their overlap. And asks which cues other engines have
 * left.
 */
import type { FastifyBaseLogger } from 'fastify'
import { bisect } from '../database/bisect.ts'
import type { Functions } from '../database/functions.ts'
import { lastDueBy, planOf, runAfter } from '../schedule/plan.ts'
import { nthRun, previousRun, slotsBetween, slotsCounted } from '../schedule/runs.ts'
import { scheduleOf } from '../schedule/schedule.ts'
import { type DueCue, dueColumns, followingColumns, isLast, movedColumns, slotIn } from './due-cue.ts'
import type { Ahead } from './look-ahead.ts'

type Options = {
  fn: Pick<Functions, 'takeDueCues' | 'takeLastSlots' | 'catchUpCues' | 'refuseDueCues' | 'fireTrackedCues' | 'cuesLeft'>
  ahead: Ahead
  missedAfter: string
  log: Pick<FastifyBaseLogger, 'error'>
}

const batchSize = 500
/** They are fired one by one. */
const trackedBatchSize = 100
/** Few enough that they are taken before another engine can have taken many of them. */
const leftBatchSize = 300
const kept = { skip_missed: 0, run_once_if_missed: 1, replay_all_missed: 100 }

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

  /** Takes due cues of a lane in batches and does something with each batch. */
  const inBatches = async (lane: 'other' | 'tracked', size: number, work: (cues: DueCue[]) => Promise<void>) => {
    for (let cues = ahead.takeDue(lane, size); cues.length > 0; cues = ahead.takeDue(lane, size)) {
      await work(cues).finally(() => ahead.doneWith(cues))
    }
  }

  const others = () =>
    inBatches('other', batchSize, async cues => {
      // A recurring cue over its limit catches up like any other, running no slot; later slots are refused one by one.
      const missed = cues.filter(
        ({ slot, schedule }) => slot.isExcluded || (schedule.outage_until && !(schedule.over_limit && schedule.schedule_type === 'once'))
      )
      const refused = cues.filter(cue => cue.schedule.over_limit && !missed.includes(cue))
      const queued = cues.filter(cue => !cue.schedule.over_limit && !missed.includes(cue))
      await fire(refused, some => fn.refuseDueCues({ ...dueColumns(some), ...followingColumns(some) }))
      await fire(missed, some => fn.catchUpCues({ cues: JSON.stringify(some.map(catchUp)) }))
      await fire(
        queued.filter(cue => !isLast(cue)),
        some => fn.takeDueCues({ ...dueColumns(some), ...movedColumns(some), missed_after: missedAfter })
      )
      await fire(queued.filter(isLast), some => fn.takeLastSlots({ ...dueColumns(some), missed_after: missedAfter }))
      for (const cue of [...refused, ...queued]) ahead.putBack(cue)
      // Their next slot was computed only now, and may be due.
      if (missed.length > 0) ahead.expect(0)
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
      for (const cue of cues) ahead.putBack(cue)
    })

  const left = async (): Promise<void> => {
    const cues = ahead.takeDue('left', leftBatchSize)
    if (cues.length === 0) return
    const ids = new Set(await fn.cuesLeft(dueColumns(cues)).finally(() => ahead.doneWith(cues)))
    ahead.takeOver(cues.filter(cue => ids.has(cue.cue_id)))
    for (const cue of cues) if (!ids.has(cue.cue_id)) ahead.putBack(cue)
  }

  return { others, tracked, left }
}

type MissedCue = Pick<DueCue, 'cue_id' | 'version'> & {
  schedule: Pick<
    DueCue['schedule'],
    'schedule_type' | 'cron' | 'timezone' | 'schedule_rules' | 'runs_left' | 'next_slot' | 'catch_up' | 'outage_until' | 'over_limit'
  >
  slot: Pick<DueCue['slot'], 'next_run' | 'excludes'>
}

/**
 * Decides about the slots of a cue that came due during an outage, as the JSON that `catch_up_cues` takes: which run (none if the account is over
 * its limit), which are dropped, and when the schedule goes on. If all are replayed, the last run that `max_runs` allows may be among them; slots
 * after it don't exist.
 */
export const catchUp = ({ cue_id, version, schedule, slot: { next_run, excludes } }: MissedCue) => {
  const { catch_up, outage_until, over_limit, runs_left } = schedule
  const moved = { cue_id, version, expected: next_run }
  if (schedule.schedule_type === 'once')
    return { ...moved, next_run: null, slots: catch_up === 'skip_missed' ? [] : [next_run], dropped: null }
  const plan = planOf(scheduleOf(schedule), cue_id, excludes)
  const slot = schedule.next_slot ?? next_run
  const goesOn = (after: Date) => {
    const run = runAfter(plan, after) ?? null
    return { next_run: run?.due ?? null, next_slot: slotIn(schedule, run) }
  }
  if (!outage_until) return { ...moved, ...goesOn(slot), slots: [], dropped: null } // it is excluded
  const before = new Date(slot.getTime() - 1)
  const keep = over_limit ? 0 : kept[catch_up]
  const final = keep > 1 && runs_left !== null && runs_left <= keep ? nthRun(plan, before, runs_left) : undefined
  const ended = lastDueBy(plan, outage_until) ?? slot
  const until = final && final < ended ? final : ended
  const { count, first, last, newest } = slotsBetween(plan, before, until, keep)
  // A search that has passed very many stretches ends at an excluded slot.
  const runs = newest.filter(at => !plan.excludedAt(+at))
  const droppedCount = count >= slotsCounted ? slotsCounted : count - newest.length
  return {
    ...moved,
    ...goesOn(until),
    slots: runs,
    due: runs.map(at => new Date(plan.due(+at))),
    dropped:
      droppedCount > 0
        ? {
            first,
            last: newest.length > 0 ? previousRun(plan, newest[0]!) : last,
            count: droppedCount,
            reason: over_limit ? 'execution_limit' : 'service_away'
          }
        : null
  }
}
