/** A due cue, prepared for the moment at which it is taken: which engine takes it and when, and the slots after it. Pure. */
import type { LookAheadRow } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { type Plan, planOf, type Run, runAfter } from '../schedule/plan.ts'
import { nthRun } from '../schedule/runs.ts'
import { type Rules, scheduleOf } from '../schedule/schedule.ts'

export type DueCue = LookAheadRow & {
  /** When this engine takes it, in epoch milliseconds. */
  due: number
  /** Whether it is this engine's to take first. */
  isOwn: boolean
  /** The slot after it. */
  following: Run | null
  /** The slot after it if it runs: none after the last run that `max_runs` allows. */
  next: Run | null
  /** Whether its own slot is excluded after all: then it is passed over. */
  isExcluded: boolean
  /** The contents of its calendars. */
  excludes: readonly Calendar[]
  /** The end of the window for a success that firing it opens. */
  successDue: Date | null
}

/** The number of live engines, and this one's place among them, from 0. */
export type Share = { engines: number; place: number }

/** How long engines leave a cue to the one it belongs to. Then each asks which are left of all that it has seen within as many milliseconds. */
export const leaveMs = 50
/** With fewer cues near than this, all belong to the first engine, since a statement that takes one costs nearly as much as one that takes ten. */
const few = 2000
/** Engines look at different times: around the limit, a cue may belong to two of them, but never to none. */
const spread = 0.2
/** Nobody reports whether a cue of workers, or a tracked one, was taken, so it is taken when it is surely due by the database's clock too. */
const surelyMs = 2
/** How long a success may be late, beyond its window. */
const graceMs = 15_000

/** Prepares a cue that was read ahead. Slots that came due during an outage are left to catch_up: they have no next slot here. */
export const prepare = (cue: LookAheadRow, isOwn: boolean, excludes: readonly Calendar[] = []): DueCue => {
  const plan = cue.schedule_type === 'recurring' && !cue.outage_until ? planOf(scheduleOf(cue), cue.cue_id, excludes) : undefined
  const slot = cue.next_slot ?? cue.next_run
  const following = (plan && runAfter(plan, slot)) ?? null
  const instant = cue.next_run.getTime()
  return {
    ...cue,
    due: isOwn ? instant + (cue.transport === 'worker' || cue.tracked ? surelyMs : 0) : (Math.floor(instant / leaveMs) + 2) * leaveMs,
    isOwn,
    following,
    next: cue.runs_left !== null && cue.runs_left <= 1 ? null : following,
    isExcluded: plan?.excludedAt(+slot) !== undefined,
    excludes,
    successDue: (plan && cue.window_slots && windowEnd(plan, slot, cue.window_slots)) || null
  }
}

/** Whether a cue completes with this slot. */
export const isLast = (cue: Pick<DueCue, 'next' | 'schedule_type'>): boolean => cue.next === null && cue.schedule_type === 'recurring'

/** Columns for functions that move cues on to their next runs. Only slots that fire later than their nominal time have a `next_slot`. */
export const nextColumns = <C extends { schedule_rules: object | null }>(cues: readonly C[], runOf: (cue: C) => Run | null) => ({
  next: cues.map(cue => runOf(cue)?.due ?? null),
  ...(cues.some(hasWindow) && { next_slots: cues.map(cue => slotIn(cue, runOf(cue))) })
})

const hasWindow = ({ schedule_rules }: { schedule_rules: object | null }) => (schedule_rules as Rules | null)?.window !== undefined

/** The nominal time of a run, if the cue has a window. */
export const slotIn = (cue: { schedule_rules: object | null }, run: Run | null | undefined): Date | null =>
  (hasWindow(cue) && run?.slot) || null

/** Whether a cue belongs to an engine, when so many cues are near. */
export const belongsTo = ({ engines, place }: Share, cueId: string, near: number): boolean =>
  (place === 0 && near < few * (1 + spread)) || (near > few * (1 - spread) && engineOf(cueId, engines) === place)

/**
 * The place of the engine to which a waiting attempt belongs, or a cue when many are near, so that engines don't compete for each. The others
 * take it 50 to 100 ms later if it is left: its engine may be busy or gone, or count other engines.
 */
export const engineOf = (id: string, engines: number): number => {
  let hash = 0
  for (let n = 0; n < id.length; n++) hash = (Math.imul(hash, 31) + id.charCodeAt(n)) >>> 0
  return hash % engines
}

/** The end of the window for a success: 15 seconds after the given number of slots; null if the schedule has fewer. */
export const windowEnd = (plan: Plan, after: Date, count: number): Date | null => {
  const slot = nthRun(plan, after, count)
  return slot ? new Date(plan.due(+slot) + graceMs) : null
}
