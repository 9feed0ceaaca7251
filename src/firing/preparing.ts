/** Prepares cues for which that may take long: those with rules, and those that missed slots. */
import { isDeepStrictEqual } from 'node:util'
import type { Calendar } from '../schedule/exclusions.ts'
import { lastDueBy, planOf, runAfter } from '../schedule/plan.ts'
import { nthRun, previousRun, slotsBetween, slotsCounted } from '../schedule/runs.ts'
import { scheduleOf } from '../schedule/schedule.ts'
import type { Computing, Steps } from './computing.ts'
import { type DueCue, type Missed, prepare, type ReadCue, slotIn } from './due-cue.ts'

type Options = {
  computing: Computing
  onPrepared: (cue: DueCue) => void
  onError: (cue: ReadCue, error: unknown) => void
}

/** Whether preparing a cue may take long. One with rules shares its schedule with no other. */
export const takesLong = ({ schedule_rules, outage_until }: ReadCue['schedule']): boolean => Boolean(schedule_rules ?? outage_until)

/** `due`: once it is prepared. */
type Job = { cue: ReadCue; due?: DueCue }

/** Prepares each cue when it is its account's turn. */
export const createPreparing = ({ computing, onPrepared, onError }: Options) => {
  let jobs = new Map<string, Job>()

  const start = (cue: ReadCue, excludes: readonly Calendar[]) => {
    const job: Job = { cue }
    jobs.set(cue.cue_id, job)
    const isCurrent = () => jobs.get(cue.cue_id) === job
    const compute = () => (isCurrent() ? prepareInSteps(cue, excludes) : undefined)
    computing.run<DueCue | undefined>(cue.account_id, compute).then(
      due => {
        if (!due || !isCurrent()) return
        job.due = due
        onPrepared(due)
      },
      error => {
        if (!isCurrent()) return
        jobs.delete(cue.cue_id)
        onError(cue, error)
      }
    )
  }

  return {
    /** Replaces the cues that are to be prepared. Returns those that are, and haven't changed since. */
    fill: (cues: readonly ReadCue[], excludesOf: (cue: ReadCue) => readonly Calendar[]): DueCue[] => {
      const former = jobs
      jobs = new Map()
      return cues.flatMap(cue => {
        const job = former.get(cue.cue_id)
        if (!job || !isDeepStrictEqual(job.cue, cue)) start(cue, excludesOf(cue))
        else jobs.set(cue.cue_id, job)
        return jobs.get(cue.cue_id)!.due ?? []
      })
    }
  }
}

/** Prepares a cue step by step. */
export function* prepareInSteps(cue: ReadCue, excludes: readonly Calendar[]): Steps<DueCue> {
  const due = prepare([cue], excludes)[0]!
  const { outage_until, over_limit, schedule_type } = cue.schedule
  // A recurring cue over its limit catches up like any other, running no slot; later slots are refused.
  const isMissed = due.slot.isExcluded || (outage_until && !(over_limit && schedule_type === 'once'))
  return isMissed ? { ...due, missed: yield* catchUp(due) } : due
}

const kept = { skip_missed: 0, run_once_if_missed: 1, replay_all_missed: 100 }

type MissedCue = Pick<DueCue, 'cue_id' | 'version'> & {
  schedule: Pick<
    DueCue['schedule'],
    'schedule_type' | 'cron' | 'timezone' | 'schedule_rules' | 'runs_left' | 'next_slot' | 'catch_up' | 'outage_until' | 'over_limit'
  >
  slot: { next_run: Date; excludes: readonly Calendar[] }
}

/**
 * Decides about the slots of a cue that came due during an outage: which run (none if the account is over its limit), which are dropped, and when
 * the schedule goes on. If all are replayed, the last run that `max_runs` allows may be among them; slots after it don't exist.
 */
export function* catchUp({ cue_id, version, schedule, slot: { next_run, excludes } }: MissedCue): Steps<Missed> {
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
  const { count, first, last, newest } = yield* slotsBetween(plan, before, until, keep)
  const droppedCount = count >= slotsCounted ? slotsCounted : count - newest.length
  return {
    ...moved,
    ...goesOn(until),
    slots: newest,
    due: newest.map(at => new Date(plan.due(+at))),
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
