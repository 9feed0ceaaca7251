/** What is asked of single cues by many requests at the same time, asked of the database together. */
import { createBatches, type Turns } from '../batches.ts'
import type { LargeJson } from '../deliveries/large-json.ts'
import type { Functions } from '../functions.ts'
import { createReader } from '../reader.ts'
import type { Columns } from './changes.ts'
import { type StoredCue, shown, unknownCue } from './read.ts'

/** Columns as `newCue` makes them, as JSON. */
type NewCue = Omit<Parameters<Functions['createCue']>[0], 'cue'> & { cue: string }

/** Characters of JSON from which a cue is created alone: many such in one statement would hold up everyone. */
const LARGE = 64 * 1024

type Options = Pick<Functions, 'readCues' | 'createCue' | 'createCues'>

export const createCueBatches = (fn: Options, turns?: Turns) => {
  const read = createReader((account_ids, cue_ids) => fn.readCues({ account_ids, cue_ids }), turns)

  const createMany = async (asked: NewCue[]) => {
    const created = await fn.createCues({
      account_ids: asked.map(({ account_id }) => account_id),
      cues: `[${asked.map(({ cue }) => cue)}]`,
      next_runs: asked.map(({ next_run }) => next_run)
    })
    return created.map(cue => (cue.id === null ? null : cue))
  }
  const one = async (cue: NewCue): Promise<object> => {
    const [created] = await createMany([cue])
    if (created) return created
    const cue_id = await fn.createCue(cue) // tells why not
    return (await fn.readCues({ account_ids: [cue.account_id], cue_ids: [cue_id] }))[0]!
  }
  const create = createBatches<NewCue, object>({ one, many: createMany, turns, isDurable: true })
  const createLarge = createBatches<NewCue, object>({ one, many: createMany, turns, isDurable: true, size: 1 })

  return {
    /** @throws ApiError cue_not_found, also for what belongs to others */
    find: async (account_id: string, id: string): Promise<StoredCue> => {
      const row = await read({ account_id, id })
      if (!row) throw unknownCue()
      return shown(row)
    },

    /** @throws DatabaseError QU030 where the plan allows no more */
    create: async (cue: NewCue): Promise<StoredCue> => shown(await (cue.cue.length > LARGE ? createLarge : create)(cue))
  }
}

/** Columns as JSON. A payload, which is long already, is written beside the event loop. */
export const columnsText = async ({ payload, ...others }: Columns, json: LargeJson): Promise<string> => {
  const text = JSON.stringify(others)
  // What has a payload has its task, too.
  return typeof payload === 'string' ? `${text.slice(0, -1)},"payload":${await json.literal(payload)}}` : text
}
