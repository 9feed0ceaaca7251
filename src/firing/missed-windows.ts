/**
 * Windows for a success. When one has passed, it moves on from the latest success, or raises an alert if there was none. A success itself writes
 * nothing, so a healthy cue costs one query per window.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Functions, PassedWindowsRow } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { planOf } from '../schedule/plan.ts'
import { scheduleOf } from '../schedule/schedule.ts'
import { type Calendars, createCalendars } from './calendars.ts'
import { windowEnd } from './due-cue.ts'

type Options = { fn: Pick<Functions, 'passedWindows' | 'moveWindows' | 'calendarsByRevision'>; calendars?: Calendars; now: () => number }

const batchSize = 200
/** Deliveries come first: after a full batch, the sweep rests for this multiple of the time that the batch took. */
const restTimes = 2
/** It rests only at its beginning, for this long, since an alert is due within 30 seconds. */
const restingMs = 10_000

/** @returns a function that moves all windows that have passed, and resolves to the number of alerts raised */
export const createWindowSweep =
  ({ fn, calendars = createCalendars(fn), now }: Options) =>
  async (): Promise<number> => {
    let raised = 0
    const restUntil = performance.now() + restingMs
    let before = new Set<string>()
    for (;;) {
      const startedAt = performance.now()
      const rows = await fn.passedWindows({ limit: batchSize, rules: true })
      await calendars.load(rows)
      // Those of the former batch could not be moved: another session has locked them. The next sweep tries again.
      const passed = rows.every(row => before.has(row.cue_id)) ? [] : rows.filter(row => calendars.of(row))
      if (passed.length === 0) return raised
      before = new Set(rows.map(row => row.cue_id))
      const moves = passed.map(window => move(window, new Date(now()), calendars.of(window)))
      raised += await fn.moveWindows({
        cue_ids: passed.map(window => window.cue_id),
        versions: passed.map(window => window.version),
        expected: passed.map(window => window.success_due_at),
        next: moves.map(({ next }) => next),
        missed: moves.map(({ missed }) => missed)
      })
      if (rows.length < batchSize) return raised
      const endedAt = performance.now()
      if (endedAt < restUntil) await delay((endedAt - startedAt) * restTimes)
    }
  }

/** The next end of a window that has passed: N slots after the latest success or, if that has passed too, N slots from now, with an alert. */
export const move = (
  { slots, last_success_at, ...row }: Omit<PassedWindowsRow, 'calendars'>,
  now: Date,
  calendars?: readonly Calendar[]
): { next: Date | null; missed: boolean } => {
  const plan = planOf(scheduleOf(row), row.cue_id, calendars)
  const earned = last_success_at && windowEnd(plan, last_success_at, slots)
  if (earned && earned > now) return { next: earned, missed: false }
  return { next: windowEnd(plan, now, slots), missed: true }
}
