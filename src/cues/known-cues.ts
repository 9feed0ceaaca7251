/**
 * Remembers cues that were read lately. Admission returns how a cue has run, and a tag that changes with any write to the rest of it: only then is
 * the rest read again. So what is returned is never older than the request.
 */
import type { Static } from 'typebox'
import type { CueRun } from '../accounts/admission.ts'
import type { ReadTaggedCuesRow } from '../database/functions.ts'
import type { Owned } from '../database/reader.ts'
import { type ExecutionRow, summary } from '../executions/queries.ts'
import { createRecent } from '../memoize/recent.ts'
import { unknownCue } from './read.ts'
import type { CueDetail } from './schemas.ts'
import { type StoredCue, shown } from './stored.ts'

type Known = { tag: string; cue: StoredCue; characters: number }

/** Characters of JSON: of one cue, and of all. */
const mostOfOne = 8192
const mostOfAll = 4 * 1024 * 1024

/** @returns a function that completes a cue of an account. It throws ApiError cue_not_found if the cue was deleted meanwhile. */
export const createKnownCues = (read: (asked: Owned) => Promise<ReadTaggedCuesRow | undefined>) => {
  const known = createRecent<string, Known>(mostOfAll, ({ characters }) => characters)

  const readAgain = async (account_id: string, id: string): Promise<StoredCue> => {
    const row = await read({ account_id, id })
    if (!row) throw unknownCue()
    const { tag, ...rest } = row
    const cue = shown(rest)
    const characters = rest.payload.length > mostOfOne ? Number.POSITIVE_INFINITY : JSON.stringify(rest).length
    if (characters <= mostOfOne) known.set(id, { tag, cue, characters })
    return cue
  }

  return async (account_id: string, id: string, run: CueRun): Promise<Static<typeof CueDetail>> => {
    const one = known.get(id)
    const cue = one?.tag === run.tag ? { ...one.cue, ...run } : { ...run, ...(await readAgain(account_id, id)) }
    return Object.assign(cue as typeof cue & Static<typeof CueDetail>, { executions: (run.executions as ExecutionRow[]).map(summary) })
  }
}
