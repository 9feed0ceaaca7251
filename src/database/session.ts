/**
 * Settings of sessions. What comes back, and how transactions behave, must not depend on the defaults of a role or database, which belong to
 * its administrator. They are set by a statement, since PgBouncer refuses startup parameters that it doesn't know.
 */
import pg from 'pg'

const pinned = {
  search_path: 'pg_catalog, pg_temp',
  client_encoding: 'UTF8',
  standard_conforming_strings: 'on',
  quote_all_identifiers: 'off',
  array_nulls: 'on',
  datestyle: 'ISO, MDY',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  transaction_timeout: '0'
}

/** A statement that pins settings, these in addition or instead. What an older server doesn't know is left out. */
export const pinSettings = (settings: Record<string, string> = {}, scope: 'session' | 'transaction' = 'session'): string => {
  const pairs = Object.entries({ ...pinned, ...settings }).map(pair => pair.map(pg.escapeLiteral).join(', '))
  return `select pg_catalog.set_config(name, value, ${scope === 'transaction'})
    from (values (${pairs.join('), (')})) as setting (name, value) where pg_catalog.current_setting(name, true) is not null`
}

/** What pg's class has, of which its types show little. */
interface Query {
  text: string
  name: string | undefined
  callback?: (error: Error | null, result?: unknown) => void
  query_timeout?: number
  requiresPreparation(): boolean
  submit(connection: pg.Connection): Error | null
  prepare(connection: pg.Connection): void
  handleRowDescription(message: unknown): void
  handleDataRow(message: unknown): void
  handleCommandComplete(message: unknown, connection: pg.Connection): void
}
const Query = pg.Query as unknown as new (...query: unknown[]) => Query

/**
 * A query that pins the settings of its transaction, if it begins one. A pooler in transaction mode may run each transaction in another session,
 * whose settings nobody has made; the statements before the query are sent with it, and their results are dropped. Without a name, as a
 * prepared statement would stay in a session that later serves another client.
 */
export class PinningQuery extends Query {
  readonly #pins: readonly string[]
  readonly #isFirst: () => boolean
  #missing = 0

  /** @param query as for pg's `query` */
  constructor(settings: string, isFirst: () => boolean, ...query: unknown[]) {
    super(...query)
    // The isolation level can be changed only before everything else.
    this.#pins = ["set transaction_isolation = 'read committed'", settings]
    this.#isFirst = isFirst
    this.name = undefined
    const [{ query_timeout }] = query as [{ query_timeout?: number }]
    if (query_timeout !== undefined) this.query_timeout = query_timeout
  }

  override submit(connection: pg.Connection): Error | null {
    if (this.#isFirst()) {
      this.#missing = this.#pins.length
      if (!this.requiresPreparation()) this.text = [...this.#pins, this.text].join(';')
    }
    return super.submit(connection)
  }

  override prepare(connection: pg.Connection): void {
    for (const text of this.#missing > 0 ? this.#pins : []) {
      connection.parse({ name: '', text, types: [] }, true)
      connection.bind({}, true)
      connection.execute({}, true)
    }
    super.prepare(connection)
  }

  override handleRowDescription(message: unknown): void {
    if (this.#missing === 0) super.handleRowDescription(message)
  }

  override handleDataRow(message: unknown): void {
    if (this.#missing === 0) super.handleDataRow(message)
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.#missing > 0) this.#missing--
    else super.handleCommandComplete(message, connection)
  }
}
