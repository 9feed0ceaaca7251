/** Reads and creates single cues; concurrent requests share one statement. */
import type { Static } from 'typebox'
import { createBatches } from '../database/batched.ts'
import type { Functions } from '../database/functions.ts'
import { createReader } from '../database/reader.ts'
import { ApiError } from '../errors.ts'
import type { Change } from './next-runs.ts'
import { detail, unknownCue } from './read.ts'
import type { CueDetail } from './schemas.ts'
import { type StoredCue, shown } from './stored.ts'

/** The change from `newCue`, and its columns as JSON. `isAlone`: it may be refused in a way that would affect others. */
type NewCue = Change & { account_id: string; actor?: string; cue: string; isAlone?: boolean }

/** Characters of JSON above which a cue is created alone: a statement with many of these would delay everyone. */
const LARGE = 64 * 1024
type Created = Awaited<ReturnType<Functions['createEachCue']>>[number]

type Find = (account_id: string, id: string) => Promise<StoredCue>

/** Single cues. */
export type Cues = {
  /** @throws ApiError cue_not_found, also for another account's cue */
  find: Find
  /** @throws ApiError cue_limit_exceeded, key_taken, or DatabaseError if the caller's key may not set a callback */
  create: (cue: NewCue) => Promise<StoredCue>
}

const finder =
  (read: (query: { account_id: string; id: string }) => Promise<object | undefined>): Find =>
  async (account_id, id) => {
    const row = await read({ account_id, id })
    if (!row) throw unknownCue()
    return shown(row)
  }

/** @param single creates cues that cannot share a statement */
export const createCueBatches = (
  fn: Pick<Functions, 'readCues' | 'readCueDetails' | 'createEachCue'>,
  single: Pick<Functions, 'createCue'>
): Cues & { findDetail: (account_id: string, id: string) => Promise<Static<typeof CueDetail>> } => {
  const find = finder(createReader((account_ids, cue_ids) => fn.readCues({ account_ids, cue_ids })))
  const readDetail = createReader((account_ids, cue_ids) => fn.readCueDetails({ account_ids, cue_ids }))

  const createTogether = createBatches<NewCue, Created>({
    many: async cues => {
      const created = await fn.createEachCue({
        account_ids: cues.map(({ account_id }) => account_id),
        cues: `[${cues.map(({ cue }) => cue)}]`,
        next_runs: cues.map(({ next_run }) => next_run),
        next_slots: cues.map(({ next_slot }) => next_slot),
        actors: cues.map(({ actor = null }) => actor)
      })
      return created.map(cue => (cue.is_locked ? null : cue))
    }
  })

  const create = async (cue: NewCue): Promise<StoredCue> => {
    const createAlone = async () => find(cue.account_id, await single.createCue(cue))
    if (cue.isAlone || cue.cue.length > LARGE) return createAlone()
    const created = await createTogether(cue)
    const { id, taken_by, message } = created
    if (taken_by !== null) throw new ApiError('key_taken', message!, { about: { cue_id: taken_by } })
    if (message !== null) throw new ApiError('cue_limit_exceeded', message)
    return id === null ? createAlone() : shown(created) // alone, it throws the reason
  }

  return { find, findDetail: async (account_id, id) => detail(await readDetail({ account_id, id })), create }
}

/** The same for one transaction: nothing is shared. */
export const createSingleCues = (fn: Pick<Functions, 'readCues' | 'createCue'>): Cues => {
  const find = finder(async ({ account_id, id }) => (await fn.readCues({ account_ids: [account_id], cue_ids: [id] }))[0])
  return { find, create: async cue => find(cue.account_id, await fn.createCue(cue)) }
}
