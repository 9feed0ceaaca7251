import pg from 'pg'
import type { Config } from '../config.ts'
import { startEmbedded } from '../embedded-postgres/embedded-postgres.ts'

export type Database = { config: Config; stop: () => Promise<void> }

/**
 * In embedded mode starts the server, and hands back the configuration with its address; otherwise there is nothing to start.
 * @throws {ConfigError} when the embedded server cannot run
 */
export const startDatabase = async (config: Config, log?: (line: string) => void): Promise<Database> => {
  if (!config.embedded) return { config, stop: async () => {} }
  const { url, stop } = await startEmbedded({ dataDir: config.dataDir, log })
  return { config: Object.freeze({ ...config, databaseUrl: url, listenUrl: url }), stop }
}

// Set by a statement rather than in the startup packet, where PgBouncer refuses what it does not know. A stuck statement would hold a
// connection, and so would one that waits for a lock; an idle transaction its locks, and so would one with a long answer for a client that is
// frozen. Names are always qualified, so nothing a user creates can stand in. Everything here looks rows up by an index: a plan that was made
// while a table was small, and reads all of it, would be kept while it grows.
const session = `set search_path = pg_catalog, pg_temp; set enable_seqscan = off; set statement_timeout = '30s'; set lock_timeout = '2s';
  set idle_in_transaction_session_timeout = '10s'; set tcp_user_timeout = '5s'; set jit = off`

// Missing among the names that pg-types knows.
const textArrayType: number = 1009
const int8Array: number = 1016

// Most arrays of texts hold nothing that is quoted, and splitting them is many times cheaper than parsing.
const textArray = (text: string) => {
  if (/["\\[{]/.test(text.slice(1))) return pg.types.getTypeParser(textArrayType)(text)
  return text === '{}' ? [] : text.slice(1, -1).split(',').map(nullable)
}
const nullable = (text: string) => (text === 'NULL' ? null : text)
const number = (text: string | null) => (text === null ? null : Number(text))
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.INT8) return number // counts, which stay far below 2^53
    if (oid === textArrayType) return textArray
    if (oid === int8Array) return (text: string) => pg.types.getTypeParser(int8Array)(text).map(number)
    if (oid === pg.types.builtins.DATE) return String // a day; a Date would put it in some time zone
    return pg.types.getTypeParser(oid, format as 'text')
  }
}

const connection = (connectionString: string, name: string): pg.ClientConfig => ({
  connectionString,
  application_name: name,
  types,
  connectionTimeoutMillis: 5000,
  query_timeout: 35_000, // past statement_timeout: only a server that is gone without a word gets here
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000
})

/**
 * For a pooler in transaction mode: a statement prepared under a name stays on the server connection, where another of our connections
 * meets it, or misses it. Without a name it is prepared and run in one go.
 */
class UnnamedClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: pg's many forms of a query
  override query(query: any, ...rest: any[]): any {
    const plain = typeof query === 'object' && query?.name ? { ...query, name: undefined } : query
    return (super.query as (...args: unknown[]) => unknown)(plain, ...rest)
  }
}

/** `answerMs` bounds connecting and every statement: for those that are worth nothing when they come late. */
export type PoolOptions = { max?: number; name?: string; onError?: (error: Error) => void; answerMs?: number }

/**
 * A pool on DATABASE_URL. `timestamptz` is read as Date, `int8` as number, `date` as text, `json` and `jsonb` as values.
 * A connection that breaks is told to `onError` and replaced; it never ends the process.
 */
export const createPool = (
  config: Pick<Config, 'databaseUrl' | 'pgPoolMax'> & { pooled?: boolean },
  options: PoolOptions = {}
): pg.Pool => {
  const { max = config.pgPoolMax, name = 'pgcue', onError = () => {}, answerMs } = options
  const pool = new pg.Pool({
    ...connection(config.databaseUrl, name),
    ...(config.pooled && { Client: UnnamedClient }),
    ...(answerMs && { connectionTimeoutMillis: answerMs, query_timeout: answerMs }),
    max,
    idleTimeoutMillis: 60_000,
    onConnect: async client => {
      // The pool itself listens to idle clients only, and one that breaks within a transaction would throw.
      client.on('error', () => {})
      await client.query(session)
    }
  })
  return pool.on('error', onError)
}

export type DirectOptions = { name?: string; onLost?: (error: Error) => void }

/** One connection on LISTEN_URL, for what a pooler would break: LISTEN, session state, prepared statements. `onLost` is told once. */
export const connectDirect = async (config: Pick<Config, 'listenUrl'>, options: DirectOptions = {}): Promise<pg.Client> => {
  const { name = 'pgcue', onLost = () => {} } = options
  const client = new pg.Client(connection(config.listenUrl, name))
  client.once('error', onLost).on('error', () => {})
  await client.connect()
  await client.query(session)
  return client
}
