/** A page of a list that is counted as a whole. */
import type { SelectQueryBuilder } from 'kysely'
import type { DB } from '../db.types.ts'

type Page = { limit: number; offset: number }

/** Reads the rows of a page, and counts those of all. */
export const readPage = async <T extends keyof DB, R>(query: SelectQueryBuilder<DB, T, R>, { limit, offset }: Page) => {
  const [rows, { total }] = await Promise.all([
    query.limit(limit).offset(offset).execute(),
    query
      .clearSelect()
      .clearOrderBy()
      .select(eb => eb.fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow()
  ])
  return { rows, total, limit, offset }
}
