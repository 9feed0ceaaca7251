/** Connections of the operator's tool. Unlike a replica's, they reach databases that are not a cell any more, or not yet. */
import pg from 'pg'
import { drop } from '../database/pool.ts'
import { pinSettings } from '../database/session.ts'

export type Client = pg.Client

/** Opens a connection, runs `work` on it, and closes it. */
export const withClient = async <T>(url: string, work: (client: Client) => Promise<T>): Promise<T> => {
  const client = await connect(url)
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export const connect = async (connectionString: string): Promise<Client> => {
  const client = new pg.Client({
    connectionString,
    application_name: 'pgcue admin',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    types: { getTypeParser: (oid, format) => (oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as 'text')) }
  })
  client.on('error', () => {}) // the statement under way fails with it
  try {
    await client.connect()
    await client.query(pinSettings({ jit: 'off', default_transaction_read_only: 'off' }))
    return client
  } catch (error) {
    drop(client)
    throw new Error(`cannot connect to ${nameOf(connectionString)}: ${reasonOf(error)}`, { cause: error })
  }
}

/** The rows of a query. */
export const read = async <T extends pg.QueryResultRow>(client: Client, text: string, values: unknown[] = []): Promise<T[]> =>
  (await client.query<T>(text, values)).rows

/** The first row of a query that has one. */
export const readOne = async <T extends pg.QueryResultRow>(client: Client, text: string, values: unknown[] = []): Promise<T> =>
  (await read<T>(client, text, values))[0]!

/** A server and database, without the password. */
export const nameOf = (url: string): string => {
  const { hostname, port, pathname } = new URL(url)
  return `${hostname}${port && `:${port}`}${pathname}`
}

/** What is wrong, in one line. Of several addresses that refused there is only a code. */
export const reasonOf = (error: unknown): string => {
  const { message, code } = error as Error & { code?: string }
  return (message || code || String(error)).split('\n')[0]!
}
