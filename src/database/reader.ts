/** Single things that accounts own, read by their ids: what is asked for at the same time is read together. */
import { createBatches, type Turns } from './batched.ts'

/** An id, and the account that must own it. */
export type Owned = { account_id: string; id: string }

/** @param read the rows of those that exist, in any order. @returns undefined also for what belongs to others */
export const createReader = <Row extends Owned>(
  read: (account_ids: string[], ids: string[]) => Promise<Row[]>,
  turns?: Turns
): ((asked: Owned) => Promise<Row | undefined>) => {
  const many = async (asked: Owned[]) => {
    const rows = await read(
      asked.map(({ account_id }) => account_id),
      asked.map(({ id }) => id)
    )
    const found = new Map(rows.map(row => [`${row.account_id} ${row.id}`, row]))
    return asked.map(({ account_id, id }) => found.get(`${account_id} ${id}`))
  }
  return createBatches<Owned, Row | undefined>({ many, ownerOf: ({ account_id }) => account_id, turns })
}
