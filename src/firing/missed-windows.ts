/**
 * Windows for a success. When one has passed, the last success since decides: it moves the window on, or there was none and an alert tells of
 * it. A success itself writes nothing, so healthy cues cost one look per window.
 */
import type { Functions, PassedWindowsRow } from '../database/functions.ts'
import { parseCron } from '../schedule/cron.ts'
import { windowEnd } from './due-cue.ts'

type Options = { fn: Pick<Functions, 'passedWindows' | 'moveWindows'>; now: () => number }

const batchSize = 200

/** Looks at the windows that have passed. Returns how many alerts were raised. */
export const createWindowSweep =
  ({ fn, now }: Options) =>
  async (): Promise<number> => {
    let raised = 0
    for (;;) {
      const passed = await fn.passedWindows({ limit: batchSize })
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

/** Where a window that has passed goes: N slots after the last success, or, when that has passed too, N slots on from now with an alert. */
export const move = ({ cron, timezone, slots, last_success_at }: PassedWindowsRow, now: Date): { next: Date | null; missed: boolean } => {
  const parsed = parseCron(cron)
  const earned = last_success_at && windowEnd(parsed, timezone, last_success_at, slots)
  if (earned && earned > now) return { next: earned, missed: false }
  return { next: windowEnd(parsed, timezone, now, slots), missed: true }
}
