/** Lists of alerts. */
import { type Kysely, sql } from 'kysely'
import type { Static } from 'typebox'
import { pageInfo } from '../database/keyset-page.ts'
import type { DB } from '../db.types.ts'
import type { Alert, Alerts, ListAlerts } from './schemas.ts'

type Listed = Static<typeof ListAlerts>

/** An account's alerts, newest first. Ids contain the time of creation; the order by id keeps the planner to the account's index. */
export const listAlerts = async (db: Kysely<DB>, account_id: string, asked: Listed): Promise<Static<typeof Alerts>> => {
  const { alert_type, cue_id, acknowledged, limit, offset, cursor, count_to, search_to } = asked
  // A cue has few.
  const isSearch = search_to !== undefined && cue_id === undefined && (alert_type !== undefined || acknowledged !== undefined)
  const end = isSearch ? await searchEnd(db, account_id, cursor, search_to) : null
  let found = db.selectFrom('alert_view').where('account_id', '=', account_id)
  if (alert_type !== undefined) found = found.where('alert_type', '=', alert_type)
  if (cue_id !== undefined) found = found.where('cue_id', '=', cue_id)
  if (acknowledged !== undefined) found = found.where('acknowledged', '=', acknowledged)
  if (end !== null) found = found.where('id', '>=', end)
  const following = cursor === undefined ? found : found.where('id', '<', cursor)
  const counted = (isSearch ? following : found).select('id').orderBy('id', 'desc')
  const [rows, { total }] = await Promise.all([
    (cursor === undefined ? found.offset(offset) : following)
      .selectAll()
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .execute(),
    db
      .selectFrom((count_to === undefined ? counted : counted.limit(count_to + 1)).as('counted'))
      .select(sql<number>`count(*)`.as('total'))
      .executeTakeFirstOrThrow()
  ])
  const alerts = rows.slice(0, limit) as Static<typeof Alert>[]
  const next = rows.length > limit ? alerts.at(-1)!.id : null
  return { alerts, ...pageInfo(asked, isSearch, { total, next, end }) }
}

/** The id of the alert at which a search ends; null if it goes through all. */
const searchEnd = async (db: Kysely<DB>, account_id: string, cursor: string | undefined, search_to: number): Promise<string | null> => {
  const { rows } = await sql<{ id: string }>`
    select id from cue.alerts where account_id = ${account_id} and ${cursor === undefined ? sql`true` : sql`id < ${cursor}`}
     order by id desc limit 1 offset ${search_to - 1}`.execute(db)
  return rows[0]?.id ?? null
}
