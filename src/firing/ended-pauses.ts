/** Pauses that end by themselves: cues resume, and count from the instant at which their pause ended. */
import type { EndedPausesRow, Functions } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { planOf, type Run, runDueAfter } from '../schedule/plan.ts'
import { scheduleOf } from '../schedule/schedule.ts'
import { type Calendars, createCalendars } from './calendars.ts'
import { nextColumns } from './due-cue.ts'

type Options = { fn: Pick<Functions, 'endedPauses' | 'resumeCues' | 'calendarsByRevision'>; calendars?: Calendars }

const batchSize = 200

/** @returns a function that ends pauses, and resolves to their number, at most `batchSize` */
export const createPauseSweep =
  ({ fn, calendars = createCalendars(fn) }: Options) =>
  async (): Promise<number> => {
    const rows = await fn.endedPauses({ limit: batchSize, rules: true })
    if (rows.length === 0) return 0
    await calendars.load(rows)
    const ended = rows.filter(row => calendars.of(row))
    const { next: next_runs, next_slots } = nextColumns(
      ended,
      ended.map(row => resumedRun(row, calendars.of(row)))
    )
    return fn.resumeCues({
      cue_ids: ended.map(({ cue_id }) => cue_id),
      versions: ended.map(({ version }) => version),
      next_runs,
      ...(next_slots && { next_slots })
    })
  }

/** The first run that fires at or after the end of a pause, after the slots that have run; null if there is none. */
export const resumedRun = (
  { paused_until, last_slot, ...row }: Omit<EndedPausesRow, 'version' | 'calendars'>,
  calendars?: readonly Calendar[]
): Run | null => runDueAfter(planOf(scheduleOf(row), row.cue_id, calendars), new Date(+paused_until - 1), last_slot) ?? null
