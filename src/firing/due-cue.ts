/** A due cue, prepared for the moment at which it is taken: when that is, and the slots after it. Pure. */
import type { LookAheadByScheduleRow } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { type Plan, planOf, type Run, runAfter } from '../schedule/plan.ts'
import { nthRun } from '../schedule/runs.ts'
import { type Rules, scheduleOf } from '../schedule/schedule.ts'

type CueColumns = { cue_id: string; account_id: string; version: number }
type ScheduleColumns = Omit<LookAheadByScheduleRow, 'cue_ids' | 'account_ids' | 'versions' | 'next_runs'>

/** A cue that was read ahead. */
export type ReadCue = CueColumns & {
  /** The same object for all that were read in one row. */
  schedule: ScheduleColumns
  /** Its instant, in epoch milliseconds. */
  at: number
}

/** What cues share that have one schedule and one instant. */
type DueSlot = {
  next_run: Date
  /** The slot after it. */
  following: Run | null
  /** The slot after it if it runs: none after the last run that `max_runs` allows. */
  next: Run | null
  /** Whether the slot is excluded after all: then it is passed over. */
  isExcluded: boolean
  /** The contents of the schedule's calendars. */
  excludes: readonly Calendar[]
  /** The end of the window for a success that firing it opens. */
  successDue: Date | null
}

/** What becomes of slots that don't run like others, as `catch_up_cues` takes it. */
export type Missed = {
  cue_id: string
  version: number
  expected: Date
  next_run: Date | null
  next_slot?: Date | null
  slots: Date[]
  due?: Date[]
  dropped: { first?: Date; last?: Date; count: number; reason: string } | null
}

/** Small, since engines keep very many: it refers to what it shares with others. */
export type DueCue = Omit<ReadCue, 'at'> & {
  slot: DueSlot
  /** When it is taken, in epoch milliseconds. */
  due: number
  /** Whether it could not be taken the first time. */
  isAgain?: boolean
  missed?: Missed
}

/** Nobody reports whether a cue of workers, or a tracked one, was taken, so it is taken when it is surely due by the database's clock too. */
const surelyMs = 2
/** How long a success may be late, beyond its window. */
const graceMs = 15_000

/** The cues in rows. */
export const cuesOf = (rows: readonly LookAheadByScheduleRow[]): ReadCue[] =>
  rows.flatMap(({ cue_ids, account_ids, versions, next_runs, ...schedule }) =>
    cue_ids.map((cue_id, n) => ({ schedule, cue_id, account_id: account_ids[n]!, version: versions[n]!, at: next_runs[n]! }))
  )

/**
 * Prepares a slot. Those that came due during an outage are left to catch_up: they have no next slot here.
 *
 * @param cueId the only cue that has it, if its schedule has rules
 */
const prepareSlot = (schedule: ScheduleColumns, next_run: Date, cueId: string, excludes: readonly Calendar[] = []): DueSlot => {
  const { schedule_type, runs_left, outage_until, window_slots } = schedule
  const plan = schedule_type === 'recurring' && !outage_until ? planOf(scheduleOf(schedule), cueId, excludes) : undefined
  const slot = schedule.next_slot ?? next_run
  const following = (plan && runAfter(plan, slot)) ?? null
  return {
    next_run,
    following,
    next: runs_left !== null && runs_left <= 1 ? null : following,
    isExcluded: plan?.excludedAt(+slot) !== undefined,
    excludes,
    successDue: (plan && window_slots && windowEnd(plan, slot, window_slots)) || null
  }
}

/** Prepares cues. What follows a slot is computed once for neighbours that share it. */
export const prepare = (cues: readonly ReadCue[], excludes?: readonly Calendar[]): DueCue[] => {
  let last: ReadCue | undefined
  let slot: DueSlot
  return cues.map(cue => {
    if (last?.schedule !== cue.schedule || last.at !== cue.at) slot = prepareSlot(cue.schedule, new Date(cue.at), cue.cue_id, excludes)
    last = cue
    return dueCue(cue, slot)
  })
}

/** A cue with a prepared slot of its schedule. */
const dueCue = ({ cue_id, account_id, version, schedule, at }: ReadCue, slot: DueSlot): DueCue => {
  const due = at + (schedule.transport === 'worker' || schedule.tracked ? surelyMs : 0)
  return { cue_id, account_id, version, schedule, slot, due }
}

/** Whether a cue completes with this slot. */
export const isLast = ({ schedule, slot }: DueCue): boolean => slot.next === null && schedule.schedule_type === 'recurring'

/** Columns for functions that fire due cues. */
export const dueColumns = (cues: readonly DueCue[]) => ({
  cue_ids: cues.map(cue => cue.cue_id),
  versions: cues.map(cue => cue.version),
  expected: cues.map(cue => cue.slot.next_run)
})

/** Columns for functions that move cues on to their next runs. Only slots that fire later than their nominal time have a `next_slot`. */
export const nextColumns = (schedules: readonly Ruled[], runs: readonly (Run | null)[]) => ({
  next: runs.map(run => run?.due ?? null),
  ...(schedules.some(hasWindow) && { next_slots: schedules.map((schedule, n) => slotIn(schedule, runs[n])) })
})

/** The same for due cues that are refused: they move to the following slot, however many runs are left. */
export const followingColumns = (cues: readonly DueCue[]) =>
  nextColumns(
    cues.map(cue => cue.schedule),
    cues.map(cue => cue.slot.following)
  )

/** The same for due cues that run, with the end of the window for a success that this opens. */
export const movedColumns = (cues: readonly DueCue[]) => ({
  ...nextColumns(
    cues.map(cue => cue.schedule),
    cues.map(cue => cue.slot.next)
  ),
  success_due: cues.map(cue => cue.slot.successDue)
})

type Ruled = { schedule_rules: object | null }

const hasWindow = ({ schedule_rules }: Ruled) => (schedule_rules as Rules | null)?.window !== undefined

/** The nominal time of a run, if the cue has a window. */
export const slotIn = (schedule: Ruled, run: Run | null | undefined): Date | null => (hasWindow(schedule) && run?.slot) || null

/** The end of the window for a success: 15 seconds after the given number of slots; null if the schedule has fewer. */
export const windowEnd = (plan: Plan, after: Date, count: number): Date | null => {
  const slot = nthRun(plan, after, count)
  return slot ? new Date(plan.due(+slot) + graceMs) : null
}
