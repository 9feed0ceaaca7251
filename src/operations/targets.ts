/** The targets of an operation: what its filter or its ids select, in the order in which they are acted on. */
import { type Kysely, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Static } from 'typebox'
import { matching as matchingCues } from '../cues/read.ts'
import type { DB } from '../db.types.ts'
import { fault, invalid } from '../errors.ts'
import { matching as matchingExecutions } from '../executions/queries.ts'
import { validatorCompiler } from '../http/validation.ts'
import { isCueId } from '../schemas.ts'
import * as schemas from './schemas.ts'

/** Executions are those of this many milliseconds, unless the filter says otherwise, or they wait for approval. */
const WINDOW_MS = 7 * 86_400_000

/** Either view: their columns differ, and only those of `columns` are selected. */
type Query = SelectQueryBuilder<DB, 'cue_view', object>
export type Targets = { query: Query; order: ('created_at' | 'id')[]; columns: string[]; ids: string[] | null }

const compile = (schema: typeof schemas.CueFilter | typeof schemas.ExecutionFilter) =>
  validatorCompiler({ schema, method: 'POST', url: '', httpPart: 'body' })
const validate = { cues: compile(schemas.CueFilter), executions: compile(schemas.ExecutionFilter) }

/** @throws ApiError unless there is either a filter or a list of ids, and the filter fits the type */
export const targetsOf = (db: Kysely<DB>, account_id: string, request: schemas.CreateOperation, now: Date): Targets => {
  const { type, filter = null, ids = null } = request
  if (filter && ids) throw invalid([fault(['ids'], 'give filter or ids, not both')])
  if (!filter && !ids) throw invalid([fault(['filter'], 'give a filter, or ids')])
  if (filter && Object.keys(filter).length === 0) throw invalid([fault(['filter'], 'must have at least one member')])
  const isOnExecutions = schemas.isOnExecutions(type)
  const { error } = validate[isOnExecutions ? 'executions' : 'cues']({ filter }) as { error?: Error }
  if (error) throw error
  const conditions = { ...filter, tag: typeof filter?.tag === 'string' ? [filter.tag] : filter?.tag }
  return isOnExecutions
    ? executionsOf(db, account_id, type, conditions as Parameters<typeof matchingExecutions>[2], ids, now)
    : cuesOf(db, account_id, type, conditions as Parameters<typeof matchingCues>[2], ids)
}

const executionsOf = (
  db: Kysely<DB>,
  account_id: string,
  type: schemas.OperationType,
  filter: Parameters<typeof matchingExecutions>[2],
  ids: string[] | null,
  now: Date
): Targets => {
  const isDecision = type === 'approve' || type === 'reject'
  const from = isDecision ? filter.from : (filter.from ?? new Date(+now - WINDOW_MS).toISOString())
  const implied = { ...(type === 'dismiss' && { dead: true }), ...(isDecision && { held: 'approval' as const }) }
  const window = ids ? {} : { ...filter, from, ...implied }
  let query = matchingExecutions(db, account_id, window, now) as unknown as Query
  if (ids) query = query.where(sql<boolean>`id = any (${ids.filter(isUuid)}::uuid[])`)
  else if (type === 'replay') query = query.where(sql<boolean>`ended_at is not null`)
  else if (type === 'cancel') query = query.where(sql<boolean>`ended_at is null`)
  const columns = ['id', 'cue_id', 'cue_name', 'status', 'scheduled_for', 'error_message']
  return { query, order: ['id'], columns, ids: ids && unique(ids.map(id => id.toLowerCase())) }
}

const cuesOf = (
  db: Kysely<DB>,
  account_id: string,
  type: schemas.OperationType,
  filter: Parameters<typeof matchingCues>[2],
  ids: string[] | null
): Targets => {
  let query = matchingCues(db, account_id, ids ? {} : filter)
  if (ids) query = query.where(sql<boolean>`id = any (${ids.filter(isCueId)}::text[])`)
  else if (type === 'resume') query = query.where('status', '=', 'paused')
  else if (type !== 'delete') query = query.where('status', 'in', ['active', 'paused'])
  return { query, order: ['created_at', 'id'], columns: ['id', 'key', 'name', 'status'], ids: ids && unique(ids) }
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const isUuid = (text: string) => uuid.test(text)
const unique = (ids: string[]) => [...new Set(ids)]

const inOrder = <O>(query: SelectQueryBuilder<DB, 'cue_view', O>, order: Targets['order']) =>
  order.reduce((sorted, column) => sorted.orderBy(column), query)

/** @throws ApiError if there are too many */
export const countTargets = async ({ query, ids }: Targets): Promise<number> => {
  if (ids) return ids.length
  const { total } = await query.select(sql<number>`count(*)`.as('total')).executeTakeFirstOrThrow()
  if (total <= schemas.MAX_TARGETS) return total
  const msg = `matches ${total} targets; an operation has at most ${schemas.MAX_TARGETS}. Narrow it, for example with from and to`
  throw invalid([fault(['filter'], msg)])
}

export const sampleTargets = ({ query, order, columns }: Targets) =>
  inOrder(query.select(columns as never), order)
    .limit(10)
    .execute() as unknown as Promise<Static<typeof schemas.DryRun>['sample']>

/** The ids of all targets and their states as JSON arrays, which are only passed on, and the ids that were not found. */
export const listTargets = async (db: Kysely<DB>, type: schemas.OperationType, { query, order, ids }: Targets) => {
  const ordered = inOrder(query.select(['id', 'created_at']), order)
    .limit(schemas.MAX_TARGETS)
    .as('target')
  const listOf = (column: RawBuilder<unknown>) => sql<string>`coalesce(json_agg(${column} order by ${sql.raw(String(order))}), '[]')::text`
  const { targets, states } = await db
    .selectFrom(ordered)
    .select([listOf(sql`id`).as('targets'), listOf(sql`cue.target_state(${type}, id::text)`).as('states')])
    .executeTakeFirstOrThrow()
  const listed = new Set(ids && (JSON.parse(targets) as string[]))
  return { targets, states, missing: ids?.filter(id => !listed.has(id)) ?? [] }
}
