/** Reading cues. */
import { type Kysely, sql } from 'kysely'
import type { Static } from 'typebox'
import { constants } from '../catalog.ts'
import { pageInfo, placeOf } from '../database/keyset-page.ts'
import type { DB } from '../db.types.ts'
import { ApiError } from '../errors.ts'
import { type ExecutionRow, summary } from '../executions/queries.ts'
import { PAGE_BYTES } from '../schemas.ts'
import type { Cues, ListCues } from './list-schemas.ts'
import { type CueDetail, noSuchCue } from './schemas.ts'
import { type StoredCue, shown } from './stored.ts'

/** Also for another account's cue. */
export const unknownCue = () => new ApiError('cue_not_found', noSuchCue)

/** A cue with its latest executions and missed slots, from a row of `cue_detail_view`. @throws ApiError cue_not_found without one */
export const detail = (row: object | null | undefined): Static<typeof CueDetail> => {
  if (!row) throw unknownCue()
  const { executions } = row as { executions: ExecutionRow[] }
  return Object.assign(shown(row) as StoredCue & Static<typeof CueDetail>, { executions: executions.map(summary) })
}

export type Filters = Omit<Static<typeof ListCues>, 'limit' | 'offset' | 'cursor' | 'count_to' | 'search_to' | 'summary' | 'sort'>

/** Selects an account's matching cues. */
export const matching = (
  db: Kysely<DB>,
  account_id: string,
  { status, key, set, key_prefix, name, transport, paused_by, tag, calendar, search, chain }: Filters
) => {
  let query = db.selectFrom('cue_view').where('account_id', '=', account_id)
  if (status) query = query.where('status', '=', status)
  if (key !== undefined) query = query.where('key', '=', key)
  if (set !== undefined) query = query.where('managed_by', '=', set)
  if (key_prefix !== undefined) query = query.where(sql<boolean>`starts_with(key, ${key_prefix})`)
  if (name !== undefined) query = query.where(sql<boolean>`strpos(lower(name), lower(${name})) > 0`)
  if (transport) query = query.where('transport', '=', transport)
  if (paused_by) query = query.where('paused_by', '=', paused_by)
  if (tag) query = query.where('tags', '@>', sql<string[]>`${tag}`)
  if (calendar !== undefined)
    query = query.where(sql<boolean>`id = any (array(select cue.cue_ids_of_calendar(${account_id}, ${calendar})))`)
  if (chain !== undefined) query = query.where(sql<boolean>`id = any (array(select cue.chain_of(${account_id}, ${chain})))`)
  if (search !== undefined) query = query.where(sql<boolean>`id = any (array(select cue.find_cues(${account_id}, ${search})))`)
  return query
}

const byAge = 'created_at desc, id desc'
const orders = {
  next_run: sql.raw(`next_run, ${byAge}`),
  name: sql.raw(`lower(name), ${byAge}`),
  failures: sql.raw(`failures desc, ${byAge}`)
}

/** An account's cues, newest first or in another order. */
export const listCues = async (
  db: Kysely<DB>,
  account_id: string,
  { limit, offset, cursor, count_to, search_to, sort, ...filters }: Static<typeof ListCues>
): Promise<Static<typeof Cues>> => {
  const { key, search, chain, summary: _, ...unindexed } = filters
  const place = placeOf({ sort, cursor, offset })
  const isFiltered = search_to !== undefined && !key && !search && !chain && Object.values(unindexed).some(value => value !== undefined)
  const isSearch = isFiltered && place === undefined
  const [from, most] = place === undefined ? [cursor, search_to] : [undefined, search_to ?? constants.countedTo]
  const end = isSearch || place !== undefined ? await searchEnd(db, account_id, from, most!) : null
  const order = sort === undefined ? sql.raw(byAge) : orders[sort]
  const all = matching(db, account_id, filters)
  const searched = end === null ? all : all.where(sql<boolean>`(created_at, id) >= ${instantAndId(end)}`)
  const page = (from === undefined ? searched.offset(place ?? offset) : searched.where(after(from)))
    .selectAll()
    .orderBy(order)
    .limit(limit + 1)
    .as('page')
  const sized = db
    .selectFrom(page)
    .selectAll()
    .select([
      sql<number>`row_number() over w`.as('place'),
      sql<number>`sum(${storedBytes}) over w`.as('bytes'),
      sql<number>`count(*) over ()`.as('found'),
      cursorOf.as('cursor')
    ])
    .modifyEnd(sql`window w as (order by ${order})`)
    .as('sized')
  const window = isSearch && from !== undefined ? searched.where(after(from)) : searched
  const counted = count_to === undefined ? window : window.limit(count_to + 1)
  const [rows, { total }] = await Promise.all([
    db
      .selectFrom(sized)
      .selectAll()
      .where('place', '<=', limit)
      .where(eb => eb.or([eb('place', '=', 1), eb('bytes', '<=', PAGE_BYTES)]))
      .orderBy('place')
      .execute(),
    db.selectFrom(counted.select('id').as('counted')).select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow()
  ])
  const last = rows.at(-1)
  const next = last !== undefined && last.found > rows.length ? (place === undefined ? last.cursor : String(place + rows.length)) : null
  return { cues: rows.map(shown), ...pageInfo({ limit, offset, cursor, count_to, sort }, isSearch, { total, next, end }) }
}

const cursorOf = sql<string>`(date_part('epoch', created_at) * 1000000)::bigint || '.' || id`

/** The time of creation in microseconds, and the id. */
const instantAndId = (cursor: string) => {
  const [micros, id] = cursor.split('.')
  return sql`(timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond', ${id})`
}
const after = (cursor: string) => sql<boolean>`(created_at, id) < ${instantAndId(cursor)}`

/** The cursor of the cue at which a search ends; null if it goes through all. */
const searchEnd = async (db: Kysely<DB>, account_id: string, cursor: string | undefined, search_to: number): Promise<string | null> => {
  const { rows } = await sql<{ cursor: string }>`
    select ${cursorOf} as cursor from cue.cues
     where account_id = ${account_id} and deleted_at is null and ${cursor === undefined ? sql`true` : after(cursor)}
     order by created_at desc, id desc limit 1 offset ${search_to - 1}`.execute(db)
  return rows[0]?.cursor ?? null
}

/** Approximate size of a cue in a list: PostgreSQL knows the size of a long text without reading it. */
const storedBytes = sql<number>`octet_length(payload) + coalesce(octet_length(description), 0) + 2048`
