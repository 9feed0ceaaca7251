import type { LookAheadByScheduleRow } from '../../src/database/functions.ts'
import type { LookAheadRow } from '../support/firing-stage.ts'

/** Returns the rows in which a look reads these cues: one row for each cue. */
export const bySchedule = (rows: readonly LookAheadRow[]): LookAheadByScheduleRow[] =>
  rows.map(({ cue_id, account_id, version, next_run, ...schedule }) => ({
    ...schedule,
    cue_ids: [cue_id],
    account_ids: [account_id],
    versions: [version],
    next_runs: [next_run.getTime()]
  }))
