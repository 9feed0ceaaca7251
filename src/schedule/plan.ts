/** A cue's plan: the slots that run, and when each of them fires. Pure. */
import { createHash } from 'node:crypto'
import { type Calendar, excludedBy } from './exclusions.ts'
import { lengthOf } from './offset.ts'
import { nominalSlots, type Recurring, type Schedule, timetableOf } from './schedule.ts'
import { effort } from './slots.ts'
import { type Stretch, stepsPerSearch, type Timetable } from './timetable.ts'

export type Plan = Timetable & {
  /** When a slot fires: at once, or later within its window. */
  due: (slot: number) => number
  /** The excluded stretch that contains a slot. */
  excludedAt: (slot: number) => Stretch | undefined
  /** The slots that run and those that are excluded; undefined if none can be excluded. */
  all?: Timetable
  excluded?: ReturnType<typeof excludedBy>
}

/** A slot, and when it fires. */
export type Run = { slot: Date; due: Date }

export const longestWindow = lengthOf('24h')

/** Which part of its window delays each slot of a cue: from 0 to less than 1. */
export const fractionOf = (cueId: string): number => createHash('sha256').update(cueId).digest().readUInt32BE(0) / 2 ** 32

/** A slot's window in milliseconds: no longer than the distance to the next slot, whether that is excluded or not. */
const windowAt = (nominal: Timetable, window: string, slot: number): number => {
  const distance = nominal.next(slot) - slot
  if (!window.endsWith('%')) return Math.min(lengthOf(window), distance)
  return Number.isFinite(distance) ? Math.min((Number(window.slice(0, -1)) / 100) * distance, longestWindow) : 0
}

/**
 * @param cueId determines the delay within windows; without it, slots fire at once
 * @param calendars those that the schedule names
 * @throws CronError for an invalid cron, RangeError for an invalid zone
 */
export const planOf = (schedule: Schedule, cueId?: string, calendars: readonly Calendar[] = []): Plan => {
  const { window, exclude = [], timezone } = schedule.type === 'once' ? ({ timezone: schedule.timezone } as Recurring) : schedule
  const nominal = nominalSlots(schedule)
  const excluded = exclude.length + calendars.length > 0 ? excludedBy(exclude, timezone, calendars) : undefined
  const fraction = window === undefined || cueId === undefined ? 0 : fractionOf(cueId)
  return {
    ...timetableOf(schedule, nominal, excluded),
    due: slot => (fraction > 0 ? slot + Math.floor(fraction * windowAt(nominal, window!, slot)) : slot),
    excludedAt: slot => excluded?.at(slot),
    ...(excluded && { all: timetableOf(schedule, nominal), excluded })
  }
}

export const runOf = (plan: Plan, slot: number): Run | undefined =>
  Number.isFinite(slot) ? { slot: new Date(slot), due: new Date(plan.due(slot)) } : undefined

/** The first slot strictly after an instant. */
export const runAfter = (plan: Plan, after: Date): Run | undefined => runOf(plan, plan.next(+after))

/** The last slot that fires at or before an instant: at most the last one before it fires later. */
export const lastDueBy = (plan: Plan, until: Date): Date | undefined => {
  const latest = plan.previous(+until + 1)
  const slot = plan.due(latest) > +until ? plan.previous(latest) : latest
  return Number.isFinite(slot) ? new Date(slot) : undefined
}

/** The first slot that fires after an instant, and is after another slot. */
export const runDueAfter = (plan: Plan, instant: Date, after: Date | null): Run | undefined => {
  const latest = plan.previous(+instant + 1)
  const isAhead = latest > +(after ?? -Infinity) && plan.due(latest) > +instant
  return runOf(plan, isAhead ? latest : plan.next(Math.max(+instant, +(after ?? 0))))
}

/** The first excluded slot at or after an instant. If that takes too many steps, an instant before it, from which to search on. */
export const excludedFrom = ({ all, excluded }: Plan, from: Date): Date | null => {
  if (!all || !excluded) return null
  let at = +from
  for (const end = effort.steps + stepsPerSearch; effort.steps < end; effort.steps++) {
    const stretch = excluded.at(at) ?? excluded.after(at)
    const slot = stretch ? all.next(Math.max(stretch.from, at) - 1) : Infinity
    if (slot === Infinity) return null
    if (excluded.at(slot)) return new Date(slot)
    at = slot
  }
  return new Date(at)
}
