import pg from 'pg'
import { currentUrl, noteMove, requireHere } from '../cells/moved.ts'
import type { Config } from '../config.ts'
import { startEmbedded } from '../embedded-postgres/embedded-postgres.ts'
import { isOutdated, isSilent, isUnavailable, unsent } from '../errors.ts'
import { PinningQuery, pinSettings } from './session.ts'

export type Database = { config: Config; stop: () => Promise<void> }

/**
 * Starts the embedded server, if it is used, and returns the configuration with its address.
 * @throws {ConfigError} if the embedded server cannot run
 */
export const startDatabase = async (config: Config, log?: (line: string) => void): Promise<Database> => {
  if (!config.embedded) return { config, stop: async () => {} }
  const { url, stop } = await startEmbedded({ dataDir: config.dataDir, log })
  return { config: Object.freeze({ ...config, databaseUrl: url, listenUrl: url, databases: [url] }), stop }
}

// The timeouts free connections from stuck statements and lock waits, and locks from idle transactions and from responses to frozen clients.
// Everything here has an index: without enable_seqscan = off, a plan made while a table is small would scan it when it has grown. Partitions
// are excluded by their bounds: to ask each one's check constraints, too, takes more than half of the time of planning.
const settings = {
  enable_seqscan: 'off',
  statement_timeout: '30s',
  lock_timeout: '2s',
  idle_in_transaction_session_timeout: '10s',
  tcp_user_timeout: '5s',
  jit: 'off',
  constraint_exclusion: 'off'
}
const session = pinSettings(settings)
const transaction = pinSettings(settings, 'transaction')

const { INT8, DATE, INTERVAL } = pg.types.builtins
/** Not among the names that pg-types has. */
const INT8_ARRAY = 1016
const parseArray = pg.types.getTypeParser(INT8_ARRAY as number) as (text: string) => (string | null)[]
const parsers = new Map<number, (text: string) => unknown>([
  [INT8, Number], // counts, which stay far below 2^53
  [INT8_ARRAY, text => parseArray(text).map(element => (element === null ? null : Number(element)))],
  [DATE, String], // a day; a Date would have a time zone
  [INTERVAL, String]
])
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => parsers.get(oid) ?? pg.types.getTypeParser(oid, format as 'text')
}

/** Time to connect, and to wait for a free connection. */
const connectMs = 5000
/** A connection without an answer for so long may be dead without a sign: a network or server that vanishes says nothing. */
export const answerMs = 8000
/** For statements that may take as long as statement_timeout allows. */
export const longAnswerMs = 35_000

const connection = (connectionString: string, name: string): pg.ClientConfig => ({
  connectionString,
  application_name: name,
  types,
  connectionTimeoutMillis: connectMs,
  query_timeout: longAnswerMs,
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000
})

/** Ends a connection at once, whatever its state: saying goodbye to a server that is silent never ends. */
export const drop = (client: pg.ClientBase): void => void (client as pg.Client).connection.stream.destroy()

/** Connects to where the database of its URL is now. Whichever step of that fails, the connection is closed. */
class CellClient extends pg.Client {
  readonly #url: string
  /** Called if there was no answer in time, with the server's process. */
  onSilence = (_process: number) => {}
  /** Whether it is used once only, as it is read-only for a while. */
  isLimited = false

  constructor(config: pg.ClientConfig) {
    const url = currentUrl(config.connectionString!)
    super({ ...config, connectionString: url })
    this.#url = url
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg's two forms
  override connect(callback?: any): any {
    if (!callback) return super.connect().catch(error => Promise.reject(this.#refused(error)))
    super.connect((error: Error | null) => callback(error && this.#refused(error)))
  }

  /** @throws if the cell isn't in this database; if it has moved, later connections go where it is */
  async begin(first = `${session}; ${requireHere}`) {
    try {
      await this.query(first)
    } catch (error) {
      noteMove(this.#url, error)
      throw this.#refused(error)
    }
  }

  #refused<E>(error: E): E {
    drop(this)
    return unsent(error)
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg's many forms of a query
  override query(query: any, ...rest: any[]): any {
    const result = (super.query as (...args: unknown[]) => unknown)(query, ...rest)
    if (result instanceof Promise) result.catch(error => this.noteSilence(error))
    return result
  }

  /** Ends the connection if it gave no answer in time. */
  noteSilence(error: Error): void {
    if (!isSilent(error)) return
    drop(this)
    this.onSilence((this as unknown as { processID: number }).processID)
  }
}

/** For a pooler in transaction mode. */
class PooledClient extends CellClient {
  override begin() {
    return super.begin(requireHere)
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg's many forms of a query
  override query(...query: any[]): any {
    const pinning = new PinningQuery(transaction, () => this.getTransactionStatus() === 'I', ...query)
    const submit = () => (super.query as (query: unknown) => unknown)(pinning)
    if (pinning.callback) return submit()
    return new Promise((resolve, reject) => {
      pinning.callback = (error, result) => {
        if (!error) return resolve(result)
        this.noteSilence(error)
        reject(error)
      }
      submit()
    })
  }
}

/**
 * Runs a statement, and calls `ended` when its connection can be given back: after an error, when the server has ended the transaction, so whoever
 * sees the error finds the locks released.
 */
const run = <R>(client: pg.PoolClient, query: unknown[], ended: (isUsable: boolean) => void): Promise<R> =>
  new Promise((resolve, reject) => {
    const { isLimited } = client as pg.PoolClient & CellClient
    const done = (error: Error | undefined, result: R) => {
      if (!error) {
        ended(!isLimited)
        return resolve(result)
      }
      ;(client as pg.PoolClient & CellClient).noteSilence(error)
      const give = () => {
        client.off('drain', give).off('end', give)
        ended(client.getTransactionStatus() === 'I' && isUsableAfter(error))
        reject(error)
      }
      if (error instanceof pg.DatabaseError) client.once('drain', give).once('end', give)
      else give()
    }
    ;(client.query as (...args: unknown[]) => void)(...query, done)
  })

/**
 * pg's own pool closes the connection of every statement that fails, and reports the error while the server still ends the transaction. Most errors
 * are refusals, and a new connection costs many times what they do: here it stays.
 */
class CellPool extends pg.Pool {
  // biome-ignore lint/suspicious/noExplicitAny: pg's many forms of a query
  override async query(...query: any[]): Promise<any> {
    const client = await this.connect()
    return run(client, query, isUsable => client.release(!isUsable))
  }

  /** The server's processes whose connections gave no answer in time, as far as they are known to be there. */
  #silent: readonly number[] = []

  /** A connection has given no answer in time: the idle ones may lead to the same silence. */
  dropIdle(process: number): void {
    this.#silent = [...this.#silent, process]
    const { _idle: idle } = this as unknown as { _idle: { client: pg.PoolClient }[] }
    for (const { client } of [...idle]) {
      ;(this as unknown as { _remove: (client: pg.PoolClient) => void })._remove(client)
      drop(client)
    }
  }

  /**
   * Makes a new connection read-only while there are as many silent processes as the pool has connections. A commit that waits for a standby keeps
   * its process until that is back, and without a limit, they would soon take all connections of the server.
   */
  async limitSilent(client: CellClient): Promise<void> {
    const processes = this.#silent
    if (processes.length === 0) return
    const endedProcesses = `select p from unnest($1::int[]) as p where not exists (
      select from pg_stat_activity where pid = p and application_name = current_setting('application_name'))`
    for (const { p } of (await client.query(endedProcesses, [processes])).rows) this.#silent = this.#silent.filter(process => process !== p)
    if (this.#silent.length < this.options.max) return
    await client.query('set default_transaction_read_only = on')
    client.isLimited = true
  }
}

/** An outdated statement would remain prepared. */
const isUsableAfter = (error: Error) => error instanceof pg.DatabaseError && !isUnavailable(error) && !isOutdated(error)

/** `answerMs` limits every statement, and connecting if that is allowed more. */
export type PoolOptions = { max?: number; name?: string; onError?: (error: Error) => void; answerMs?: number }

/**
 * Creates a pool on DATABASE_URL. `timestamptz` is read as Date, `int8` as number, `date` as text, `json` and `jsonb` as values.
 * A broken connection is reported to `onError` and replaced; it never ends the process.
 */
export const createPool = (
  config: Pick<Config, 'databaseUrl' | 'pgPoolMax'> & { pooled?: boolean },
  options: PoolOptions = {}
): pg.Pool => {
  const { max = config.pgPoolMax, name = 'pgcue', onError = () => {}, answerMs } = options
  const pool = new CellPool({
    ...connection(config.databaseUrl, name),
    Client: (config.pooled ? PooledClient : CellClient) as unknown as new () => CellClient,
    ...(answerMs && { connectionTimeoutMillis: Math.min(connectMs, answerMs), query_timeout: answerMs }),
    max,
    idleTimeoutMillis: 60_000,
    onConnect: async client => {
      // The pool listens only to idle clients; without this, a connection that breaks in a transaction would throw.
      client.on('error', () => {})
      const opened = client as CellClient
      opened.onSilence = process => pool.dropIdle(process)
      await opened.begin()
      // A pooler's sessions serve other clients, too.
      if (!config.pooled) await pool.limitSilent(opened)
    }
  })
  return pool.on('error', onError)
}

export type DirectOptions = { name?: string; onLost?: (error: Error) => void }

/** Opens a connection on LISTEN_URL, for what a pooler would break: LISTEN, session state, prepared statements. Calls `onLost` once. */
export const connectDirect = async (config: Pick<Config, 'listenUrl'>, options: DirectOptions = {}): Promise<pg.Client> => {
  const { name = 'pgcue', onLost = () => {} } = options
  const client = new CellClient({ ...connection(config.listenUrl, name), query_timeout: answerMs })
  client.once('error', onLost).on('error', () => {})
  await client.connect()
  await client.begin()
  return client
}
