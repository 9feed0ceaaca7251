import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { ConfigError, readOrMake } from '../config.ts'
import { shortPath } from '../directories.ts'
import { isUnavailable } from '../errors.ts'
import { settle } from './postgres-home.ts'
import {
  dropStalePidFile,
  endedImmediately,
  findServer,
  initialize,
  lastPort,
  launch,
  majorOf,
  owner,
  shutDown,
  signal
} from './postgres-server.ts'

export type EmbeddedOptions = {
  dataDir: string
  log?: (line: string) => void
  /** Directory with the `initdb` and `postgres` to use instead of the packaged ones. */
  binDir?: string
  /** false: without fsync, for databases that may be lost. */
  durable?: boolean
  settings?: Record<string, string>
}

export type Embedded = { url: string; port: number; readonly pid: number; stop: () => Promise<void> }

const patienceMs = 60_000

/**
 * Starts the PostgreSQL in `dataDir`, creating it on first use, and owns it until `stop`. It listens on loopback with a password; port and
 * password are remembered. A server left by a killed process is shut down first. A server that crashes while owned is restarted on the same
 * port.
 * @throws {ConfigError} one line: the directory is in use, or the server cannot run
 */
export const startEmbedded = async (options: EmbeddedOptions): Promise<Embedded> => {
  const { dataDir, log = () => {}, binDir, durable = true, settings = {} } = options
  const home = settle(dataDir, binDir)
  const passwordFile = join(home.dir, 'password')
  const password = readOrMake(passwordFile, () => randomBytes(18).toString('base64url'))
  const startedAt = performance.now()
  const isNew = initialize(home, passwordFile, durable)
  const urlOf = (port: number, database: string) => `postgres://${owner}:${password}@127.0.0.1:${port}/${database}`
  const inUse = () => new ConfigError(`DATA_DIR ${dataDir} is in use by another pgcue; stop it, or set another DATA_DIR`)

  const evict = async () => {
    const end = Date.now() + patienceMs
    for (let orphan = findServer(home); orphan; orphan = findServer(home)) {
      const claim = await claimOwnership(urlOf(orphan.port, 'postgres')).catch(() => undefined)
      if (claim === 'taken') throw inUse()
      if (claim) {
        log('Stopping a PostgreSQL left behind by a killed process')
        await shutDown(home, orphan.pid)
        await claim.client.end()
      } else if (Date.now() > end) throw new ConfigError(`PostgreSQL process ${orphan.pid} in DATA_DIR ${dataDir} does not respond`)
      await delay(100) // the server is starting, recovering or stopping
    }
    dropStalePidFile(home)
  }

  const start = async () => {
    let vanished = 0
    let port = lastPort(home) ?? (await freePort())
    for (const end = Date.now() + patienceMs; ; await delay(50)) {
      await evict()
      try {
        return { server: await launch(home, port, durable, settings), port }
      } catch (error) {
        const said = (error as Error).message
        if (/could not (bind|create any TCP)/.test(said)) port = await freePort()
        // A concurrent start may have stopped the server to start its own, or may not have written its pid file yet.
        else if ((said === endedImmediately || /terminating connection/.test(said)) && ++vanished < 5) continue
        else if (/incompatible with server/.test(said)) throw otherMajor(dataDir, majorOf(home))
        else if (!/still in use|already exists|pid" is empty/.test(said) || Date.now() > end)
          throw new ConfigError(`PostgreSQL in DATA_DIR ${dataDir} failed to start: ${said}`)
      }
    }
  }

  let { server, port } = await start()
  // Fails if a concurrent start owns the server, or is stopping it to start its own.
  const claimed = await claimOwnership(urlOf(port, 'postgres')).catch(error => {
    if (isUnavailable(error) && !/^28/.test(error.code)) return 'taken' as const
    throw error
  })
  if (claimed === 'taken') throw inUse()
  let claim = claimed
  await createDatabase(claim.client)
  if (isNew) {
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    log(`Created a PostgreSQL ${majorOf(home)} database in ${shortPath(dataDir)} (${seconds} s)`)
  }

  let stopping = false
  const hurry = () => signal(server.pid, 'SIGINT')
  process.on('exit', hurry)

  const revive = async () => {
    log('PostgreSQL ended unexpectedly; restarting it')
    while (!stopping) {
      try {
        server = await launch(home, port, durable, settings)
        return
      } catch (error) {
        log(`PostgreSQL failed to start: ${(error as Error).message}`)
        await delay(1000)
      }
    }
  }

  const supervise = async () => {
    while (!stopping) {
      await Promise.race([server.exited, claim.lost])
      while (!stopping) {
        if (server.process.exitCode !== null || server.process.signalCode !== null) await revive()
        const again = await claimOwnership(urlOf(port, 'postgres')).catch(() => undefined)
        if (again && again !== 'taken') {
          claim = again
          break
        }
        await delay(100)
      }
    }
  }
  const supervision = supervise()

  return {
    url: urlOf(port, owner),
    port,
    get pid() {
      return server.pid
    },
    stop: async () => {
      stopping = true
      await claim.client.end()
      await supervision
      await shutDown(home, server.pid)
      await server.exited
      process.off('exit', hurry)
    }
  }
}

const otherMajor = (dataDir: string, major: string) =>
  new ConfigError(
    `DATA_DIR ${dataDir} holds a database of PostgreSQL ${major}: start the pgcue release whose embedded PostgreSQL is ${major}, and move it with pgcue-admin cells move; see "Outgrow the embedded database" in src/guide/self-hosting.md`
  )

/** Finds a free port, or checks that `preferred` is free. */
export const freePort = async (host = '127.0.0.1', preferred = 0) => {
  const server = createServer().listen(preferred, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

type Claim = { client: pg.Client; lost: Promise<void> }

/**
 * Ownership is a lock in the server's own database postgres, held by a connection. The kernel closes the connection however its holder
 * dies, so no stale lock can block a start. An idle server without an owner is an orphan.
 */
const claimOwnership = async (connectionString: string): Promise<Claim | 'taken'> => {
  const client = new pg.Client({ connectionString, application_name: 'pgcue owner', connectionTimeoutMillis: 5000 })
  const lost = new Promise<void>(resolve => client.once('end', resolve))
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query("select pg_try_advisory_lock(hashtext('pgcue owner')) as held")
    if (rows[0].held) return { client, lost }
    await client.end()
    return 'taken'
  } catch (error) {
    client.connection.stream.destroy()
    throw error
  }
}

const createDatabase = async (client: pg.Client) => {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [owner])
  if (!rowCount) await client.query(`create database ${owner}`)
}
