/** What is asked of single cues by many requests at the same time, asked of the database together. */
import type { Static } from 'typebox'
import { createBatches, type Turns } from '../batches.ts'
import { ApiError } from '../errors.ts'
import type { Functions } from '../functions.ts'
import { createReader } from '../reader.ts'
import { type StoredCue, shown } from './read.ts'
import type { CueDetail } from './schemas.ts'

type NewCue = Parameters<Functions['createCue']>[0]

type Options = Pick<Functions, 'readCues' | 'readCueDetails' | 'createCue' | 'createCues'>

export const createCueBatches = (fn: Options, turns?: Turns) => {
  const reading = <T extends StoredCue>(read: Functions['readCues']) => {
    const ask = createReader((account_ids, cue_ids) => read({ account_ids, cue_ids }), turns)
    return async (account_id: string, id: string) => {
      const row = await ask({ account_id, id })
      if (!row) throw new ApiError('cue_not_found', 'There is no such cue, or it is not yours.')
      return shown(row) as T
    }
  }

  const createMany = async (asked: NewCue[]) => {
    const created = await fn.createCues({
      account_ids: asked.map(({ account_id }) => account_id),
      cues: JSON.stringify(asked.map(({ cue }) => cue)),
      next_runs: asked.map(({ next_run }) => next_run)
    })
    return created.map(cue => (cue.id === null ? null : cue))
  }
  const create = createBatches<NewCue, object>({
    one: async cue => {
      const [created] = await createMany([cue])
      if (created) return created
      const cue_id = await fn.createCue(cue) // tells why not
      return (await fn.readCues({ account_ids: [cue.account_id], cue_ids: [cue_id] }))[0]!
    },
    many: createMany,
    turns,
    isDurable: true
  })

  return {
    /** @throws ApiError cue_not_found, also for what belongs to others */
    find: reading<StoredCue>(fn.readCues),

    /** With its latest executions and missed slots. @throws ApiError cue_not_found, also for what belongs to others */
    show: reading<StoredCue & Static<typeof CueDetail>>(fn.readCueDetails),

    /** @throws DatabaseError QU030 where the plan allows no more */
    create: async (cue: NewCue): Promise<StoredCue> => shown(await create(cue))
  }
}
