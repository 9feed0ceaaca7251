/**
 * Sends a statement over the connection of the one before it, even if that is still under way: the database begins it without waiting for this
 * process, which may be busy with requests. Statements don't affect each other: each is a transaction.
 */
import type pg from 'pg'
import type { Queryable } from './functions.ts'
import { run } from './pool.ts'

type Connection = { opening: Promise<pg.PoolClient>; isOpen: boolean; underWay: number; isUsable: boolean }

/** @param pool from `createPool`. Nothing of it is taken while no statement is under way, or kept from others who wait for a connection. */
export const createPipeline = (pool: pg.Pool): Queryable => {
  let last: Connection | undefined

  const isTaken = ({ isOpen, underWay }: Connection) => underWay > 0 && !(isOpen && pool.waitingCount > 0)

  const open = (): Connection => ({ opening: pool.connect(), isOpen: false, underWay: 0, isUsable: true })

  const clientOf = async (connection: Connection): Promise<pg.PoolClient> => {
    try {
      const client = await connection.opening
      connection.isOpen = true
      return client
    } catch (error) {
      connection.underWay = 0
      throw error
    }
  }

  return {
    query: async query => {
      const connection = last && isTaken(last) ? last : open()
      last = connection
      connection.underWay++
      const client = await clientOf(connection)
      return run(client, [query], isUsable => {
        connection.isUsable &&= isUsable
        if (--connection.underWay === 0) client.release(!connection.isUsable)
      })
    }
  }
}
