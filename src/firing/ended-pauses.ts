/** Pauses that end by themselves: cues resume, and count from the instant at which their pause ended. */
import type { EndedPausesRow, Functions } from '../database/functions.ts'
import { nextRun } from '../schedule/runs.ts'
import { scheduleOf, timetableOf } from '../schedule/schedule.ts'

type Options = { fn: Pick<Functions, 'endedPauses' | 'resumeCues'> }

const batchSize = 200

/** @returns a function that ends pauses, and resolves to their number, at most `batchSize` */
export const createPauseSweep =
  ({ fn }: Options) =>
  async (): Promise<number> => {
    const ended = await fn.endedPauses({ limit: batchSize, rules: true })
    if (ended.length === 0) return 0
    return fn.resumeCues({
      cue_ids: ended.map(({ cue_id }) => cue_id),
      versions: ended.map(({ version }) => version),
      next_runs: ended.map(resumedRun)
    })
  }

/** The first run at or after the end of a pause, and after the slots that have run; null if there is none. */
export const resumedRun = ({ paused_until, last_slot, ...row }: Omit<EndedPausesRow, 'cue_id' | 'version'>): Date | null =>
  nextRun(timetableOf(scheduleOf(row)), new Date(Math.max(paused_until.getTime() - 1, last_slot?.getTime() ?? 0))) ?? null
