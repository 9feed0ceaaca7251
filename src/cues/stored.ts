import type { Static } from 'typebox'
import { Json } from '../json/canonical-json.ts'
import type { Cue } from './schemas.ts'

/** A cue as the API shows it, and what a change needs: `last_slot`, and await_outcome as the user set it. */
export type StoredCue = Static<typeof Cue> & {
  last_slot: Date | null
  /** Counts like `version`, and also whenever a calendar moves the next run. */
  revision: number
  await_outcome_set: boolean | null
}

/** Converts a row of cue_view to a cue. */
export const shown = (row: object): StoredCue => ({
  ...(row as StoredCue),
  payload: new Json((row as { payload: string }).payload),
  warning: null
})
