/**
 * Windows for a success. When one has passed, it moves on from the latest success, or raises an alert if there was none. A success itself writes
 * nothing, so a healthy cue costs one query per window.
 */
import type { Functions, PassedWindowsRow } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { planOf } from '../schedule/plan.ts'
import { scheduleOf } from '../schedule/schedule.ts'
import { windowEnd } from './due-cue.ts'
import { createSweep, type SweepOptions } from './sweep.ts'

type Options = SweepOptions & { fn: Pick<Functions, 'passedWindows' | 'moveWindows'>; now: () => number }
type Move = { next: Date | null; missed: boolean }

/** @returns a function that moves all windows that have passed, and resolves to the number of alerts raised */
export const createWindowSweep = (options: Options) => {
  const { fn, now } = options
  const page = createSweep<PassedWindowsRow, Move>(options, {
    task: 'move window',
    read: fn.passedWindows,
    compute: (row, calendars) => move(row, new Date(now()), calendars),
    write: windows =>
      fn.moveWindows({
        cue_ids: windows.map(({ row }) => row.cue_id),
        versions: windows.map(({ row }) => row.version),
        expected: windows.map(({ row }) => row.success_due_at),
        next: windows.map(({ move }) => move.next),
        missed: windows.map(({ move }) => move.missed)
      })
  })
  return async (): Promise<number> => {
    for (let raised = 0; ; ) {
      const { count, isFull } = await page()
      raised += count
      if (!isFull) return raised
    }
  }
}

/** The next end of a window that has passed: N slots after the latest success or, if that has passed too, N slots from now, with an alert. */
export const move = (
  { slots, last_success_at, ...row }: Omit<PassedWindowsRow, 'account_id' | 'calendars'>,
  now: Date,
  calendars?: readonly Calendar[]
): Move => {
  const plan = planOf(scheduleOf(row), row.cue_id, calendars)
  const earned = last_success_at && windowEnd(plan, last_success_at, slots)
  if (earned && earned > now) return { next: earned, missed: false }
  return { next: windowEnd(plan, now, slots), missed: true }
}
