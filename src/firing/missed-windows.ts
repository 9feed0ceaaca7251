/**
 * Windows for a success. When one has passed, it moves on from the latest success, or raises an alert if there was none. A success itself writes
 * nothing, so a healthy cue costs one query per window.
 */
import type { Functions, PassedWindowsRow } from '../database/functions.ts'
import { scheduleOf, timetableOf } from '../schedule/schedule.ts'
import { windowEnd } from './due-cue.ts'

type Options = { fn: Pick<Functions, 'passedWindows' | 'moveWindows'>; now: () => number }

const batchSize = 200

/** @returns a function that moves all windows that have passed, and resolves to the number of alerts raised */
export const createWindowSweep =
  ({ fn, now }: Options) =>
  async (): Promise<number> => {
    let raised = 0
    for (;;) {
      const passed = await fn.passedWindows({ limit: batchSize, rules: true })
      if (passed.length === 0) return raised
      const moves = passed.map(window => move(window, new Date(now())))
      raised += await fn.moveWindows({
        cue_ids: passed.map(window => window.cue_id),
        versions: passed.map(window => window.version),
        expected: passed.map(window => window.success_due_at),
        next: moves.map(({ next }) => next),
        missed: moves.map(({ missed }) => missed)
      })
      if (passed.length < batchSize) return raised
    }
  }

/** The next end of a window that has passed: N slots after the latest success or, if that has passed too, N slots from now, with an alert. */
export const move = ({ slots, last_success_at, ...row }: PassedWindowsRow, now: Date): { next: Date | null; missed: boolean } => {
  const timetable = timetableOf(scheduleOf(row))
  const earned = last_success_at && windowEnd(timetable, last_success_at, slots)
  if (earned && earned > now) return { next: earned, missed: false }
  return { next: windowEnd(timetable, now, slots), missed: true }
}
