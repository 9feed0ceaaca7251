/** Queries for executions. */
import { type Kysely, type SelectQueryBuilder, sql } from 'kysely'
import type { Static } from 'typebox'
import { constants } from '../catalog.ts'
import type { Functions } from '../database/functions.ts'
import { pageInfo, placeOf } from '../database/keyset-page.ts'
import { createReader, type Owned } from '../database/reader.ts'
import type { DB } from '../db.types.ts'
import { ApiError } from '../errors.ts'
import { Json } from '../json/canonical-json.ts'
import { PAGE_BYTES } from '../schemas.ts'
import { sent } from '../templates/sent.ts'
import { Execution, type ExecutionDetail, type Executions, type ListExecutions } from './schemas.ts'

type Listed = Static<typeof ListExecutions>
export type Filters = Omit<Listed, 'limit' | 'offset' | 'cursor' | 'count_to' | 'search_to' | 'sort'>
type View = SelectQueryBuilder<DB, 'execution_view', object>

/** Totals are counted up to this number. */
const { countedTo } = constants

/** Free JSON of the outcome is beside it, as text. */
const columns = [...(Object.keys(Execution.properties) as (keyof typeof Execution.properties)[]), 'metadata', 'artifacts'] as const

/** Approximate size of an execution in a list. Control characters take six times as much there, but are not expected. */
const listedBytes = sql<number>`coalesce(octet_length(metadata), 0) + coalesce(octet_length(artifacts), 0)
  + coalesce(octet_length(outcome::text), 0) + coalesce(octet_length(error_message), 0) + 1024`

/**
 * Selects an account's matching executions. With a cue_id, they are found by the cue alone, after checking that it belongs to the account:
 * one index then returns them in order. Ids contain the creation time, so time bounds become bounds on ids and thereby on partitions.
 */
export const matching = (db: Kysely<DB>, account_id: string, filters: Filters, now: Date): View => {
  const isDead = filters.dead || filters.error_group !== undefined
  let query: View = db.selectFrom(
    isDead ? sql<DB['execution_view']>`cue.dead_execution_view`.as('execution_view') : 'execution_view'
  ) as View
  const { cue_id } = filters
  const since = latest(filters.from, filters.since)
  const until = earliest(filters.to, filters.until)
  if (cue_id === undefined || filters.error_group) query = query.where('account_id', '=', account_id)
  if (cue_id !== undefined) {
    const owned = db.selectFrom('cue_view').select('id').where('id', '=', cue_id).where('account_id', '=', account_id)
    query = query.where('cue_id', '=', cue_id).where(eb => eb.exists(owned))
  }

  // A catch-up spreads ids over 100 ms after created_at.
  query = query.where('id', '<', idAt(Math.min(+(until ?? Number.POSITIVE_INFINITY) + 1000, tomorrow(now))))
  if (until !== undefined) query = query.where('created_at', '<', until)
  if (since !== undefined) query = query.where('id', '>=', idAt(+since)).where('created_at', '>=', since)

  if (filters.held !== undefined || filters.gate !== undefined)
    query = query.where(sql<boolean>`id = any (${heldIds(account_id, filters)})`)
  if (filters.status !== undefined) query = query.where('status', '=', filters.status)
  // A literal, which the planner can compare with the condition of the index.
  if (filters.outcome_state === 'verification_pending') query = query.where(sql<boolean>`outcome_state = 'verification_pending'`)
  else if (filters.outcome_state !== undefined) query = query.where('outcome_state', '=', filters.outcome_state)
  if (filters.result_type !== undefined) query = query.where('result_type', '=', filters.result_type)
  if (filters.has_evidence !== undefined) query = query.where('has_evidence', '=', filters.has_evidence)
  if (filters.triggered_by !== undefined) query = query.where('triggered_by', '=', filters.triggered_by)
  // A dead letter's cue is found before its execution.
  if (filters.tag && isDead)
    query = query.where(sql<boolean>`exists (select from cue.cues c where c.id = execution_view.cue_id and c.tags @> ${filters.tag})`)
  else if (filters.tag) query = query.where('cue_tags', '@>', sql<string[]>`${filters.tag}`)
  if (filters.worker_id !== undefined) query = query.where('claimed_by_worker', '=', filters.worker_id)
  if (filters.dead === false)
    query = query.where(sql<boolean>`not exists (select from cue.dead_letters d where d.execution_id = execution_view.id)`)
  if (filters.error_group !== undefined) query = query.where('error_group', '=', filters.error_group)
  if (filters.error !== undefined)
    query = query.where(sql<boolean>`strpos(lower(concat_ws(chr(10), error_message, reported_error)), lower(${filters.error})) > 0`)
  return query
}

/** Literals, which the planner can compare with the conditions of the indexes. At most as many wait at a gate. */
const heldIds = (account_id: string, { held = 'gate', gate }: Filters) => sql`array(
    select h.execution_id from cue.held_executions h
     where h.account_id = ${account_id} and h.held_by = ${sql.lit(held)} ${gate === undefined ? sql`` : sql`and h.gate = ${gate}`}
     order by h.due_at, h.execution_id limit ${countedTo})`

const dates = (texts: (string | undefined)[]) => texts.filter(text => text !== undefined).map(text => new Date(text))
const latest = (...texts: (string | undefined)[]) => dates(texts).sort((a, b) => +b - +a)[0]
const earliest = (...texts: (string | undefined)[]) => dates(texts).sort((a, b) => +a - +b)[0]

/** No execution is created later; the bound excludes partitions created ahead. */
const tomorrow = (now: Date): number => now.getTime() + 86_400_000

/** The smallest UUIDv7 of a millisecond, like `cue.uuid_v7_floor`. */
const idAt = (ms: number): string => {
  const hex = Math.min(Math.max(Math.floor(ms), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`
}

/** Of the last attempt, as the dashboard shows it. */
const duration = sql`coalesce((outcome ->> 'recorded_at')::timestamptz, delivered_at,
    case when status in ('failed', 'outcome_timeout') then updated_at end) - coalesce(last_attempt_at, claimed_at, started_at)`
const heldDueAt = sql`(select h.due_at from cue.held_executions h where h.execution_id = id)`
const orders = { duration: sql`${duration} desc nulls last, id desc`, due: sql`${heldDueAt}, id` }
/** Lists ordered by duration have so many. */
const SORTED = 1000

/**
 * Selects one page, newest first unless it is sorted, which ends early at `bytes`. `found` is the number of rows including one beyond the limit.
 * Ids come from an index; rows are read only for the page.
 */
export const pageQuery = (
  db: Kysely<DB>,
  account_id: string,
  { limit, offset, cursor, sort, ...filters }: Listed,
  now: Date,
  bytes = PAGE_BYTES,
  end: string | null = null
) => {
  const searched = endingAt(end, matching(db, account_id, filters, now))
  const place = placeOf({ sort, cursor, offset })
  const order = sort === undefined ? sql`id desc` : orders[sort]
  const source: View =
    place === undefined
      ? startingAt(cursor, cursor === undefined ? searched.offset(offset) : searched)
      : sort === 'due'
        ? searched.offset(place)
        : (db.selectFrom(searched.selectAll().orderBy('id', 'desc').limit(SORTED).as('execution_view')).offset(place) as View)
  const ids = source
    .select('id')
    .orderBy(order)
    .limit(limit + 1)
    .as('page')
  const rows = db
    .selectFrom('execution_view')
    .select(columns)
    .where('id', '<', idAt(tomorrow(now)))
    .where('id', 'in', eb => eb.selectFrom(ids).select('page.id'))
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .as('execution')
  const sized = db
    .selectFrom(rows)
    .selectAll()
    .select([
      sql<number>`count(*) over ()`.as('found'),
      sql<number>`row_number() over (order by ${order})`.as('place'),
      sql<number>`sum(${listedBytes}) over (order by ${order})`.as('bytes')
    ])
    .as('sized')
  return db
    .selectFrom(sized)
    .select([...columns, 'found'])
    .where('place', '<=', limit)
    .where(eb => eb.or([eb('place', '=', 1), eb('bytes', '<=', bytes)]))
    .orderBy('place')
}

/**
 * Counts the matching executions up to one more than `mostCounted`, those of a search from the cursor on. Ordered like an index, so that only the
 * index is read; dead letters have one of their own.
 */
export const totalQuery = (db: Kysely<DB>, account_id: string, filters: Listed, now: Date, end: string | null = null) => {
  const { limit: _, offset: __, cursor, count_to: ___, search_to: ____, sort: _____, ...conditions } = filters
  const { dead, error_group, ...rest } = conditions
  const isAllDead = (dead || (error_group && dead !== false)) && Object.values(rest).every(value => value === undefined)
  const ofGroup = error_group ? sql`and d.error_group = ${error_group}` : sql``
  const most = mostCounted(filters) + 1
  const counted = isAllDead
    ? sql`select from cue.dead_letters d cross join lateral (select from cue.cues c where c.id = d.cue_id and c.deleted_at is null limit 1) c
           where d.account_id = ${account_id} ${ofGroup} order by d.execution_id limit ${most}`
    : startingAt(cursor, endingAt(end, matching(db, account_id, filters, now)))
        .select('id')
        .orderBy('id', 'desc')
        .limit(most)
  return db.selectFrom(sql<object>`(${counted})`.as('counted')).select(sql<number>`count(*)`.as('total'))
}

const startingAt = (cursor: string | undefined, query: View): View => (cursor === undefined ? query : query.where('id', '<', cursor))
const endingAt = (end: string | null, query: View): View => (end === null ? query : query.where('id', '>=', end))

/** Whether an index has nothing but what matches: then a search needs no end. */
const isIndexed = ({ cue_id, dead, error_group, outcome_state, held, gate, from, to, since, until, ...rest }: Filters): boolean => {
  const kinds = [dead || error_group, outcome_state, held ?? gate].filter(Boolean)
  const isWaiting = outcome_state === undefined || (outcome_state === 'verification_pending' && cue_id === undefined)
  return dead !== false && kinds.length < 2 && isWaiting && Object.values(rest).every(value => value === undefined)
}

/** The id at which a search ends; null if it goes through all. Of an index alone, so that this is quick. */
const searchEnd = async (db: Kysely<DB>, account_id: string, { cursor, search_to, ...filters }: Listed, now: Date) => {
  const { cue_id } = filters
  const isDead = filters.dead || filters.error_group !== undefined
  const source = isDead ? sql`(select execution_id as id, account_id, cue_id from cue.dead_letters)` : sql`cue.execution_brief_view`
  const since = latest(filters.from, filters.since) ?? new Date(0)
  const until = earliest(filters.to, filters.until)
  const start = cursor ?? idAt(Math.min(+(until ?? Number.POSITIVE_INFINITY) + 1000, tomorrow(now)))
  const owner = cue_id === undefined ? sql`e.account_id = ${account_id}` : sql`e.cue_id = ${cue_id}`
  const { rows } = await sql<{ id: string }>`
    select e.id from ${source} e where ${owner} and e.id < ${start} and e.id >= ${idAt(+since)}
     order by e.id desc limit 1 offset ${search_to! - 1}`.execute(db)
  return rows[0]?.id ?? null
}

const mostCounted = ({ count_to }: Listed): number => count_to ?? countedTo

/** Lists an account's executions, newest first. */
export const listExecutions = async (
  db: Kysely<DB>,
  account_id: string,
  filters: Listed,
  now: Date
): Promise<Static<typeof Executions>> => {
  const { limit, offset, cursor, count_to: _, search_to, sort, ...conditions } = filters
  const place = placeOf(filters)
  const isSearch = search_to !== undefined && !isIndexed(conditions)
  const begin = place === undefined ? cursor : undefined
  const end = isSearch ? await searchEnd(db, account_id, { ...filters, cursor: begin }, now) : null
  const rows = await pageQuery(db, account_id, filters, now, PAGE_BYTES, end).execute()
  const is_full = rows.length > 0 && rows[0]!.found > rows.length
  // On the last page, the total is known.
  const most = mostCounted(filters)
  const total =
    !is_full && place === undefined && (cursor === undefined || isSearch) && (rows.length > 0 || offset === 0)
      ? offset + rows.length
      : (await totalQuery(db, account_id, { ...filters, cursor: isSearch ? begin : undefined }, now, end).executeTakeFirstOrThrow()).total
  const next = is_full ? (place === undefined ? rows.at(-1)!.id : String(place + rows.length)) : null
  return {
    executions: rows.map(({ found: rowCount, ...row }) => summary(row)),
    ...pageInfo({ limit, offset, cursor, count_to: most, sort }, isSearch && place === undefined, { total, next, end })
  }
}

/**
 * Returns a function that reads one execution with its payload and attempts. @throws ApiError execution_not_found, also for other accounts'
 * executions
 */
export const createShow = ({ readExecutionDetails }: Pick<Functions, 'readExecutionDetails'>) => {
  const read = createReader((account_ids, execution_ids) => readExecutionDetails({ account_ids, execution_ids }))
  return async (account_id: string, id: string): Promise<Static<typeof ExecutionDetail>> => {
    const row = await read({ account_id, id: id.toLowerCase() })
    if (!row) throw new ApiError('execution_not_found', 'Execution not found in this account.')
    const { payload, response_body, attempt_log, followers, ...rest } = sent(row as Owned & DetailRow)
    return { ...summary(rest), payload: new Json(payload), response_body, attempt_log, followers }
  }
}

export type ExecutionRow = { metadata: string | null; artifacts: string | null; outcome: unknown }
type DetailRow = ExecutionRow &
  Pick<Static<typeof ExecutionDetail>, 'response_body' | 'attempt_log' | 'followers'> & {
    payload: string
    template_values: string | null
  }

/** Converts a row, with free JSON as text beside its outcome, to an execution as shown in lists. */
export const summary = ({ metadata, artifacts, ...row }: ExecutionRow): Static<typeof Execution> => {
  const execution = row as Static<typeof Execution>
  if (!execution.outcome) return execution
  const free = { ...(metadata !== null && { metadata: new Json(metadata) }), ...(artifacts !== null && { artifacts: new Json(artifacts) }) }
  return { ...execution, outcome: { ...execution.outcome, ...free } }
}
