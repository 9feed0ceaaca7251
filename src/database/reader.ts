/** Reads single things that accounts own, by id: concurrent requests share one statement. */
import { createBatches } from './batched.ts'

/** An id, and the account that must own it. */
export type Owned = { account_id: string; id: string }

/**
 * @param read returns the rows that exist, in any order
 * @returns a function that reads one row; undefined if it doesn't exist or belongs to another account
 */
export const createReader = <Row extends Owned>(
  read: (account_ids: string[], ids: string[]) => Promise<Row[]>
): ((query: Owned) => Promise<Row | undefined>) => {
  const many = async (queries: Owned[]) => {
    const rows = await read(
      queries.map(({ account_id }) => account_id),
      queries.map(({ id }) => id)
    )
    const byId = new Map(rows.map(row => [`${row.account_id} ${row.id}`, row]))
    return queries.map(({ account_id, id }) => byId.get(`${account_id} ${id}`))
  }
  return createBatches<Owned, Row | undefined>({ many })
}
