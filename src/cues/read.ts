/** What is read of cues. */
import { type Kysely, sql } from 'kysely'
import type { Static } from 'typebox'
import type { DB } from '../db.types.ts'
import { Json } from '../deliveries/canonical-json.ts'
import { ApiError } from '../errors.ts'
import type { Cue, CueDetail, Cues, ListCues } from './schemas.ts'

/** A cue as the API shows it, and besides what a change must know: `version` and `last_slot`, and whether the user set await_outcome. */
export type StoredCue = Static<typeof Cue> & {
  version: number
  last_slot: Date | null
  await_outcome_set: boolean | null
}

const shown = (row: object): StoredCue => ({
  ...(row as StoredCue),
  payload: new Json((row as { payload: string }).payload),
  warning: null
})

/** @throws ApiError cue_not_found, also for what belongs to others */
export const findCue = async (db: Kysely<DB>, account_id: string, cue_id: string): Promise<StoredCue> => {
  const row = await db.selectFrom('cue_view').selectAll().where('id', '=', cue_id).where('account_id', '=', account_id).executeTakeFirst()
  if (!row) throw unknown()
  return shown(row)
}

/** An account's cues, newest first. */
export const listCues = async (
  db: Kysely<DB>,
  account_id: string,
  { status, limit, offset }: Static<typeof ListCues>
): Promise<Static<typeof Cues>> => {
  let matching = db.selectFrom('cue_view').where('account_id', '=', account_id)
  if (status) matching = matching.where('status', '=', status)
  const [rows, { total }] = await Promise.all([
    matching.selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').limit(limit).offset(offset).execute(),
    matching.select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow()
  ])
  return { cues: rows.map(shown), total, limit, offset }
}

/** A cue with its latest executions and missed slots, in one read. @throws ApiError cue_not_found, also for what belongs to others */
export const showCue = async (db: Kysely<DB>, account_id: string, cue_id: string): Promise<Static<typeof CueDetail>> => {
  const row = await db
    .selectFrom('cue_detail_view')
    .selectAll()
    .where('id', '=', cue_id)
    .where('account_id', '=', account_id)
    .executeTakeFirst()
  if (!row) throw unknown()
  return shown(row) as StoredCue & Pick<Static<typeof CueDetail>, 'executions' | 'execution_total' | 'missed'>
}

const unknown = () => new ApiError('cue_not_found', 'There is no such cue, or it is not yours.')
