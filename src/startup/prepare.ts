/** Prepares a database for a replica: migrations, its number, this release's functions, the same secrets, and the limits of the plans. */
import type pg from 'pg'
import { currentUrl } from '../cells/moved.ts'
import { type Config, ConfigError } from '../config.ts'
import { createFunctions } from '../database/functions.ts'
import { isPooled } from '../database/listener.ts'
import { connectDirect, createPool } from '../database/pool.ts'
import { createdSchema, migrate, unusable } from '../migrate/migrate.ts'
import { requireFunctions } from './required-functions.ts'
import { requireSecrets } from './secrets.ts'

/**
 * Prepares the database of a cell, and completes its configuration.
 * @throws {Unreachable} if it is unavailable
 * @throws {ConfigError} naming the reason if this replica cannot use it
 */
export const prepareCell = async (configured: Config, log: (line: string) => void): Promise<Config> => {
  const current = await followMoves(configured, log)
  // A new embedded database has its own line.
  const say = (line: string) => {
    if (!current.embedded || line !== createdSchema) log(line)
  }
  if (current.migrate) await migrate({ connectionString: current.listenUrl, cell: current.cell, log: say })
  const pooled = await isPooled(current).catch(error => Promise.reject(unusable(error)))
  const config = Object.freeze({ ...current, pooled })
  return connected(config, async pool => {
    await requireFunctions(pool, config)
    requireNumber(await readNumber(pool), config)
    const fn = createFunctions(pool)
    await requireSecrets(fn, config)
    await fn.setPlans({ plans: config.plans })
    return config
  })
}

/**
 * Checks the number of a database that already has one.
 * @throws {Unreachable} if it is unavailable
 * @throws {ConfigError} if it is listed in another place
 */
export const requireOrder = (config: Config): Promise<void> =>
  connected(config, async pool => {
    const { rows } = await pool.query("select to_regclass('cue.cell') is not null as exists")
    if (rows[0].exists) requireNumber(await readNumber(pool), config)
  })

const connected = async <T>(config: Config, work: (pool: pg.Pool) => Promise<T>): Promise<T> => {
  const pool = createPool(config, { max: 1 })
  try {
    const connection = await pool.connect().catch(error => Promise.reject(unusable(error)))
    connection.release()
    return await work(pool)
  } finally {
    await pool.end()
  }
}

/** The configuration with the URL that the database has now: a server that a cell has left says where it is. */
const followMoves = async (configured: Config, log: (line: string) => void): Promise<Config> => {
  for (let url = ''; ; ) {
    try {
      const client = await connectDirect(configured, { name: 'pgcue probe' })
      await client.end()
      break
    } catch (error) {
      if (currentUrl(configured.listenUrl) === (url || configured.listenUrl)) throw unusable(error)
      url = currentUrl(configured.listenUrl)
    }
  }
  const url = currentUrl(configured.listenUrl)
  if (url === configured.listenUrl) return configured
  log(`Cell ${configured.cell} has moved to ${new URL(url).host}: update ${configured.databases.length > 1 ? 'CELLS' : 'DATABASE_URL'}`)
  return Object.freeze({ ...configured, databaseUrl: url, listenUrl: url })
}

const readNumber = async (pool: pg.Pool): Promise<number | undefined> => (await pool.query('select id from cue.cell')).rows[0]?.id

const requireNumber = (id: number | undefined, { cell, databases }: Pick<Config, 'cell' | 'databases'>): void => {
  if (id === cell) return
  if (id === undefined) throw new ConfigError('The table cue.cell is empty: insert the number that the database had, such as 1')
  throw new ConfigError(
    databases.length === 1
      ? `DATABASE_URL is cell ${id} of several: list all of them in CELLS, in the order of their numbers`
      : `CELLS must list the databases in the order of their numbers: URL ${cell} is cell ${id}`
  )
}
