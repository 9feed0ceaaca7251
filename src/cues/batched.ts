/** Reads and creates single cues; concurrent requests share one statement. */
import { createBatches, type Pacer } from '../database/batched.ts'
import type { Functions } from '../database/functions.ts'
import { createReader } from '../database/reader.ts'
import { ApiError } from '../errors.ts'
import type { LargeJson } from '../json/large-json.ts'
import { createdCue } from './created.ts'
import type { Change, Columns } from './next-runs.ts'
import { unknownCue } from './read.ts'
import { type StoredCue, shown } from './stored.ts'

/** The change from `newCue`, and its columns as JSON. `isAlone`: it may be refused in a way that would affect others. */
type NewCue = Change & { account_id: string; actor?: string; cue: string; isAlone?: boolean }

/** Characters of JSON above which a cue is created alone: a statement with many of these would delay everyone. */
const LARGE = 64 * 1024
type Created = Awaited<ReturnType<Functions['createEachCue']>>[number]

type Options = Pick<Functions, 'readCues' | 'readTaggedCues' | 'createCue' | 'createEachCue'>

export const createCueBatches = (fn: Options, pacer?: Pacer, pipelined?: Options) => {
  const read = createReader((account_ids, cue_ids) => fn.readCues({ account_ids, cue_ids }), pacer)
  const readTagged = createReader((account_ids, cue_ids) => fn.readTaggedCues({ account_ids, cue_ids }), pacer)

  const createMany = (fn: Options) => async (asked: NewCue[]) => {
    const created = await fn.createEachCue({
      account_ids: asked.map(({ account_id }) => account_id),
      cues: `[${asked.map(({ cue }) => cue)}]`,
      next_runs: asked.map(({ next_run }) => next_run),
      actors: asked.map(({ actor = null }) => actor),
      ...(asked.some(({ next_slot }) => next_slot) && { next_slots: asked.map(({ next_slot }) => next_slot) })
    })
    return created.map(cue => (cue.is_locked ? null : cue))
  }
  const options = { many: createMany(fn), ownerOf: ({ account_id }: NewCue) => account_id, pacer, isDurable: true }
  const create = createBatches<NewCue, Created>({ ...options, pipelined: pipelined && createMany(pipelined) })
  const createLarge = createBatches<NewCue, Created>({ ...options, size: 1 })

  /** @throws ApiError cue_not_found, also for another account's cue */
  const find = async (account_id: string, id: string): Promise<StoredCue> => {
    const row = await read({ account_id, id })
    if (!row) throw unknownCue()
    return shown(row)
  }

  return {
    /** Reads a cue with its tag. */
    readTagged,

    find,

    /** @throws ApiError cue_limit_exceeded, key_taken, or DatabaseError if the caller's key may not set a callback */
    create: async (cue: NewCue): Promise<StoredCue> => {
      const { id, created_at, taken_by, message } = await (cue.isAlone || cue.cue.length > LARGE ? createLarge : create)(cue)
      if (id !== null) return createdCue(cue, { id, created_at })
      if (taken_by !== null) throw new ApiError('key_taken', message!, { about: { cue_id: taken_by } })
      if (message !== null) throw new ApiError('cue_limit_exceeded', message)
      return find(cue.account_id, await fn.createCue(cue)) // throws the reason
    }
  }
}

/** Single cues. */
export type Cues = Pick<ReturnType<typeof createCueBatches>, 'find' | 'create'>

/** The same for one transaction: nothing is shared. */
export const createSingleCues = (fn: Pick<Functions, 'readCues' | 'createCue'>): Cues => {
  const find = async (account_id: string, id: string) => {
    const [row] = await fn.readCues({ account_ids: [account_id], cue_ids: [id] })
    if (!row) throw unknownCue()
    return shown(row)
  }
  return { find, create: async cue => find(cue.account_id, await fn.createCue(cue)) }
}

/** Columns as JSON. A payload may be large, so another thread serialises it. */
export const columnsText = async ({ payload, ...others }: Columns, json: LargeJson): Promise<string> => {
  const text = JSON.stringify(others)
  // A change of the payload always includes its task.
  return typeof payload === 'string' ? `${text.slice(0, -1)},"payload":${await json.literal(payload)}}` : text
}
