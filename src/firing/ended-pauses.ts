/** Pauses that end by themselves: cues resume, and count from the instant at which their pause ended. */
import type { EndedPausesRow, Functions } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { planOf, type Run, runDueAfter } from '../schedule/plan.ts'
import { scheduleOf } from '../schedule/schedule.ts'
import { nextColumns } from './due-cue.ts'
import { createSweep, type SweepOptions, untilMoved } from './sweep.ts'

type Options = SweepOptions & { fn: Pick<Functions, 'endedPauses' | 'resumeCues'> }

/** @returns a function that ends pauses, and resolves to their number */
export const createPauseSweep = (options: Options) => {
  const { fn } = options
  return untilMoved(
    createSweep<EndedPausesRow, Run | null>(options, {
      task: 'end pause',
      read: fn.endedPauses,
      compute: resumedRun,
      write: ended => {
        const rows = ended.map(({ row }) => row)
        const { next, next_slots } = nextColumns(
          rows,
          ended.map(({ move }) => move)
        )
        return fn.resumeCues({
          cue_ids: rows.map(({ cue_id }) => cue_id),
          versions: rows.map(({ version }) => version),
          next_runs: next,
          ...(next_slots && { next_slots })
        })
      }
    })
  )
}

/** The first run that fires at or after the end of a pause, after the slots that have run; null if there is none, or no schedule. */
export const resumedRun = (
  { paused_until, last_slot, ...row }: Omit<EndedPausesRow, 'account_id' | 'version' | 'calendars'>,
  calendars?: readonly Calendar[]
): Run | null =>
  row.schedule_type === null
    ? null
    : (runDueAfter(planOf(scheduleOf(row), row.cue_id, calendars), new Date(+paused_until - 1), last_slot) ?? null)
