/** A due cue, prepared for the moment at which it is taken: which engine takes it and when, and the slots after it. Pure. */
import type { LookAheadRow } from '../database/functions.ts'
import { nextRun, nthRun } from '../schedule/runs.ts'
import { scheduleOf, timetableOf } from '../schedule/schedule.ts'
import type { Timetable } from '../schedule/timetable.ts'

export type DueCue = LookAheadRow & {
  /** When this engine takes it, in epoch milliseconds. */
  due: number
  /** Whether it is this engine's to take first. */
  isOwn: boolean
  /** The slot after it. */
  following: Date | null
  /** The slot after it if it runs: none after the last run that `max_runs` allows. */
  next: Date | null
  /** The end of the window for a success that firing it opens. */
  successDue: Date | null
}

/** The number of live engines, and this one's place among them, from 0. */
export type Share = { engines: number; place: number }

/** How long engines leave a cue to the one it belongs to. Then each tries all that it has seen within as many milliseconds, in one statement. */
export const leaveMs = 50
/** Nobody reports whether a cue of workers, or a tracked one, was taken, so it is taken when it is surely due by the database's clock too. */
const surelyMs = 2
/** How long a success may be late, beyond its window. */
const graceMs = 15_000

/** Prepares a cue that was read ahead. Slots that came due during an outage are left to catch_up: they have no next slot here. */
export const prepare = (cue: LookAheadRow, share: Share): DueCue => {
  const slots = cue.schedule_type === 'recurring' && !cue.outage_until ? timetableOf(scheduleOf(cue)) : undefined
  const following = (slots && nextRun(slots, cue.next_run)) ?? null
  const isOwn = engineOf(cue.cue_id, share.engines) === share.place
  const instant = cue.next_run.getTime()
  return {
    ...cue,
    due: isOwn ? instant + (cue.transport === 'worker' || cue.tracked ? surelyMs : 0) : (Math.floor(instant / leaveMs) + 2) * leaveMs,
    isOwn,
    following,
    next: cue.runs_left !== null && cue.runs_left <= 1 ? null : following,
    successDue: (slots && cue.window_slots && windowEnd(slots, cue.next_run, cue.window_slots)) || null
  }
}

/** Whether a cue completes with this slot. */
export const isLast = (cue: Pick<DueCue, 'next' | 'schedule_type'>): boolean => cue.next === null && cue.schedule_type === 'recurring'

/**
 * The place of the engine to which a cue or a waiting attempt belongs, so that engines don't compete for each. The others take it 50 to 100 ms
 * later, together with all else that is left: its engine may be busy or gone, or count other engines.
 */
export const engineOf = (id: string, engines: number): number => {
  let hash = 0
  for (let n = 0; n < id.length; n++) hash = (Math.imul(hash, 31) + id.charCodeAt(n)) >>> 0
  return hash % engines
}

/** The end of the window for a success: 15 seconds after the given number of slots; null if the schedule has fewer. */
export const windowEnd = (slots: Timetable, after: Date, count: number): Date | null => {
  const slot = nthRun(slots, after, count)
  return slot ? new Date(slot.getTime() + graceMs) : null
}
