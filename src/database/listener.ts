import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Config, ConfigError } from '../config.ts'
import { connectDirect, drop } from './pool.ts'

export type ListenerOptions = {
  channels: string[]
  onNotification: (channel: string, payload: string) => void
  /** The listener is connected, for the first time or again: earlier notifications may have been missed. */
  onConnected?: () => void
  onLost?: (error: Error) => void
}

/** `connectedAt` is on the clock of `performance.now()`, and null while the connection is lost. */
export type Listener = {
  readonly connectedAt: number | null
  /** Replaces the connection, which may be dead without a sign. */
  renew: () => void
  close: () => Promise<void>
}

const retryMs = 500
const silenceMs = 15_000
const answerMs = 5000

/**
 * Keeps one connection on LISTEN_URL listening, and reconnects every 500 ms while it is lost. Resolves when it is first connected.
 * @throws {ConfigError} if LISTEN_URL is a pooler in transaction mode; the error of the first attempt to connect
 */
export const createListener = async (config: Pick<Config, 'databaseUrl' | 'listenUrl'>, options: ListenerOptions): Promise<Listener> => {
  const { channels, onNotification, onConnected = () => {}, onLost = () => {} } = options
  const closing = new AbortController()
  let connectedAt: number | null = null

  const connect = async () => {
    const lost = Promise.withResolvers<Error>()
    const client = await connectDirect(config, { name: 'pgcue listener', onLost: lost.resolve })
    client.once('end', () => lost.resolve(new Error('the connection was closed')))
    client.on('notification', ({ channel, payload = '' }) => onNotification(channel, payload))
    await client.query(channels.map(channel => `listen ${pg.escapeIdentifier(channel)}`).join('; ')).catch(error => {
      drop(client) // a standby accepts connections, but not this
      throw error
    })
    askNowAndThen(client)
    connectedAt = performance.now()
    onConnected()
    return { client, lost: lost.promise }
  }

  const reconnect = async () => {
    for (;;) {
      await delay(retryMs, undefined, { signal: closing.signal }).catch(() => {})
      if (closing.signal.aborted) return
      const connection = await connect().catch(() => undefined)
      if (connection) return connection
    }
  }

  await assertDirect(config)
  let connection = await connect()
  const stay = async () => {
    for (;;) {
      if (closing.signal.aborted) await connection.client.end() // connected while closing
      const error = await connection.lost
      connectedAt = null
      if (closing.signal.aborted) return
      onLost(error)
      const next = await reconnect()
      if (!next) return
      connection = next
    }
  }
  const staying = stay()

  return {
    get connectedAt() {
      return connectedAt
    },
    renew: () => drop(connection.client),
    close: async () => {
      closing.abort()
      await connection.client.end()
      await staying
    }
  }
}

/** Detects a dead connection by a query that gets no answer. */
const askNowAndThen = (client: pg.Client) => {
  let heardAt = performance.now()
  client.on('notification', () => {
    heardAt = performance.now()
  })
  const timer = setInterval(() => {
    if (performance.now() - heardAt < silenceMs) return
    const patience = setTimeout(drop, answerMs, client)
    client.query('select 1').then(
      () => clearTimeout(patience),
      () => clearTimeout(patience)
    )
  }, silenceMs)
  client.once('end', () => clearInterval(timer))
}

/**
 * Checks that LISTEN_URL is not a pooler in transaction mode, which assigns server connections to transactions, so that a LISTEN is lost.
 * @throws {ConfigError} if it is: one of two open sessions is seen on the other's server process
 */
export const assertDirect = async (config: Pick<Config, 'databaseUrl' | 'listenUrl'>) => {
  const clients: pg.Client[] = []
  const open = async () => {
    const client = await connectDirect(config, { name: 'pgcue probe' })
    clients.push(client)
    return client
  }
  const processOf = async (client: pg.Client): Promise<number> => (await client.query('select pg_backend_pid() as pid')).rows[0].pid
  const refuse = () => {
    const through = config.listenUrl === config.databaseUrl ? 'DATABASE_URL' : 'it'
    throw new ConfigError(`LISTEN_URL must connect directly to PostgreSQL: ${through} is a pooler in transaction mode`)
  }
  try {
    const ours = await open()
    await ours.query('listen pgcue_probe')
    const process = await processOf(ours)
    // A server reports its own process when a session starts; a pooler makes up a number.
    if (process === (ours as unknown as { processID: number }).processID) return
    for (let i = 0; i < 4; i++) {
      const other = await open()
      await other.query('begin').catch(refuse) // keeps its server connection; in statement mode, this is refused
      if ((await processOf(other)) === process || (await processOf(ours)) !== process) refuse()
    }
  } finally {
    await Promise.all(clients.map(client => client.end()))
  }
}

/** Whether DATABASE_URL is a pooler in transaction mode and LISTEN_URL is not. */
export const isPooled = async ({ databaseUrl, listenUrl }: Pick<Config, 'databaseUrl' | 'listenUrl'>): Promise<boolean> => {
  if (listenUrl === databaseUrl) return false
  try {
    await assertDirect({ databaseUrl, listenUrl: databaseUrl })
    return false
  } catch (error) {
    if (error instanceof ConfigError) return true
    throw error
  }
}
