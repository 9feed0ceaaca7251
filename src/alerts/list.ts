/** Lists of alerts. */
import { type Kysely, sql } from 'kysely'
import type { Static } from 'typebox'
import { pageInfo } from '../database/keyset-page.ts'
import type { DB } from '../db.types.ts'
import type { Alert, Alerts, ListAlerts } from './schemas.ts'

type Listed = Static<typeof ListAlerts>

/** An account's alerts, newest first. Ids contain the time of creation; the order by id keeps the planner to the account's index. */
export const listAlerts = async (db: Kysely<DB>, account_id: string, query: Listed): Promise<Static<typeof Alerts>> => {
  const { alert_type, cue_id, acknowledged, limit, offset, cursor, count_to, search_to } = query
  // A cue has few.
  const isSearch = search_to !== undefined && cue_id === undefined && (alert_type !== undefined || acknowledged !== undefined)
  const end = isSearch ? await searchEnd(db, account_id, cursor, search_to) : null
  let matching = db.selectFrom('alert_view').where('account_id', '=', account_id)
  if (alert_type !== undefined) matching = matching.where('alert_type', '=', alert_type)
  if (cue_id !== undefined) matching = matching.where('cue_id', '=', cue_id)
  if (acknowledged !== undefined) matching = matching.where('acknowledged', '=', acknowledged)
  if (end !== null) matching = matching.where('id', '>=', end)
  const following = cursor === undefined ? matching : matching.where('id', '<', cursor)
  const counted = (isSearch ? following : matching).select('id').orderBy('id', 'desc')
  const [rows, { total }] = await Promise.all([
    (cursor === undefined ? matching.offset(offset) : following)
      .selectAll()
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .execute(),
    db
      .selectFrom((count_to === undefined ? counted : counted.limit(count_to + 1)).as('counted'))
      .select(sql<number>`count(*)`.as('total'))
      .executeTakeFirstOrThrow()
  ])
  const alerts = rows.slice(0, limit) as unknown as Static<typeof Alert>[]
  const next = rows.length > limit ? alerts.at(-1)!.id : null
  return { alerts, ...pageInfo(query, isSearch, { total, next, end }) }
}

/** The id of the alert at which a search ends; null if it goes through all. */
const searchEnd = async (db: Kysely<DB>, account_id: string, cursor: string | undefined, search_to: number): Promise<string | null> => {
  const { rows } = await sql<{ id: string }>`
    select id from cue.alerts where account_id = ${account_id} and ${cursor === undefined ? sql`true` : sql`id < ${cursor}`}
     order by id desc limit 1 offset ${search_to - 1}`.execute(db)
  return rows[0]?.id ?? null
}
