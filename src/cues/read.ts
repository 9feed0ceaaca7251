/** What is read of cues. */
import { type Kysely, sql } from 'kysely'
import type { Static } from 'typebox'
import type { DB } from '../db.types.ts'
import { Json } from '../deliveries/canonical-json.ts'
import type { Cue, Cues, ListCues } from './schemas.ts'

/** A cue as the API shows it, and besides what a change must know: `version` and `last_slot`, and whether the user set await_outcome. */
export type StoredCue = Static<typeof Cue> & {
  version: number
  last_slot: Date | null
  await_outcome_set: boolean | null
}

/** A row of cue_view as a cue. */
export const shown = (row: object): StoredCue => ({
  ...(row as StoredCue),
  payload: new Json((row as { payload: string }).payload),
  warning: null
})

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
