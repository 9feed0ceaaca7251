import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import root, { type Test } from 'tap'
import { type Config, loadConfig } from '../../src/config.ts'
import { createPool } from '../../src/database/pool.ts'
import { connectAdmin, prepareTemplate } from './template.ts'

export type TestDatabase = {
  url: string
  name: string
  pool: pg.Pool
  config: Config
  /** Resets it to the template; false if that's impossible because its tables or functions have changed or a connection is in use. */
  empty: () => Promise<boolean>
}

/** By the URLs of databases: the server's processes that serve this file's tests, and pools that nobody uses at the moment. */
const connections = new Map<string, { processes: Set<number>; unused: Map<string, pg.Pool[]> }>()

/**
 * Opens a pool, or one again that a former test has ended: the first statements of a connection, which it has to plan, take the server longer than
 * most tests do.
 */
export const reusePool: typeof createPool = (config, options = {}) => {
  const { processes, unused } = connections.get(config.databaseUrl) ?? {}
  if (!processes || !unused) return createPool(config, options)
  const { name, max, answerMs, onError = () => {} } = options
  const kind = `${name} ${max} ${answerMs} ${config.pooled}`
  const pools = unused.get(kind) ?? []
  unused.set(kind, pools)
  const pool = pools.pop() ?? noteProcesses(createPool(config, options), processes)
  pool.removeAllListeners('error').on('error', onError)
  const { end } = Object.getPrototypeOf(pool)
  return Object.assign(pool, {
    end: async () => {
      Object.assign(pool, { end })
      if (connections.has(config.databaseUrl) && (await isIdle(pool))) pools.push(pool)
      else await pool.end()
    }
  })
}

const noteProcesses = (pool: pg.Pool, processes: Set<number>) =>
  pool.on('connect', client => processes.add((client as pg.PoolClient & { processID: number }).processID))

/** Waits for queries that nobody waits for; false if they don't end soon. */
const isIdle = async (pool: pg.Pool): Promise<boolean> => {
  for (let n = 0; pool.idleCount < pool.totalCount && n < 200; n++) await delay(10)
  return pool.idleCount === pool.totalCount
}

/** Emptied databases of this test file, by cell. */
const spare = new Map<number, TestDatabase[]>()
root.teardown(() => Promise.all([...spare.values()].flat().map(drop)))

/**
 * A database for a test or a file: a clone of the migrated template, or an empty one. Later tests of the file reuse it. At the end it is
 * dropped, unless the test failed; then its name is printed, and it remains for an hour, or as long as the tests' server.
 */
export const createDatabase = async (t: Test, { migrated = true, cell = 1 } = {}): Promise<TestDatabase> => {
  const spares = spare.get(cell) ?? []
  spare.set(cell, spares)
  const database = (migrated && spares.pop()) || (await clone(migrated, cell))
  t.teardown(async () => {
    delete (database.pool as Partial<pg.Pool>).query // some tests wrap it
    if (!t.passing()) {
      await endPools(database)
      t.comment(`the database stays for a while: ${database.url}`)
    } else if (migrated && t !== root && (await database.empty().catch(() => false))) spares.push(database)
    else await drop(database)
  })
  return database
}

const clone = async (migrated: boolean, cell: number): Promise<TestDatabase> => {
  const file = basename(process.argv[1] ?? '').replace(/\W.*/, '')
  const name = `test_${Math.floor(Date.now() / 1000)}_${file}_${randomBytes(4).toString('hex')}`
  const admin = await connectAdmin()
  try {
    const template = migrated ? await prepareTemplate(admin, cell) : 'template0'
    await admin.client.query(`create database ${name} template ${template} strategy file_copy`) // with fsync off the faster one
  } finally {
    await admin.end()
  }
  const url = admin.urlOf(name)
  const config = testConfig(url)
  const processes = new Set<number>()
  connections.set(url, { processes, unused: new Map() })
  const pool = noteProcesses(createPool(config), processes)
  const shape = migrated ? await shapeOf(pool) : ''
  const empty = async () => {
    if (pool.ending || !(await isIdle(pool)) || (await shapeOf(pool)) !== shape) return false
    await pool.query(`select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where datname = current_database() and pid <> all ('{${[...processes]}}')`)
    await pool.query(emptied)
    return true
  }
  return { url, name, pool, config, empty }
}

const endPools = async ({ url, pool }: TestDatabase) => {
  const unused = [...(connections.get(url)?.unused.values() ?? [])].flat()
  connections.delete(url)
  await Promise.all([pool, ...unused].map(pool => pool.ending || pool.end()))
}

const drop = async (database: TestDatabase) => {
  await endPools(database)
  const { name } = database
  const admin = await connectAdmin()
  await admin.client.query(`drop database if exists ${name} with (force)`)
  await admin.end()
}

/** Differs after any change of this database's tables, functions, triggers, constraints or settings. */
const shapeOf = async (pool: pg.Pool): Promise<string> => {
  const ours = 'where oid >= 16384'
  const here = 'where setdatabase = (select oid from pg_catalog.pg_database where datname = current_database())'
  const catalogs = [`pg_class ${ours}`, `pg_proc ${ours}`, `pg_trigger ${ours}`, `pg_constraint ${ours}`, `pg_db_role_setting ${here}`]
  const { rows } = await pool.query(
    catalogs.map(name => `select count(*) || ' ' || max(xmin::text::bigint) as shape from pg_catalog.${name}`).join(' union all ')
  )
  return rows.map(row => row.shape).join()
}

/** Restarts sequences, and restores the few rows of a migrated database from the template's copy. */
const emptied = `
do $$
declare
  v_name text;
begin
  set local session_replication_role = replica; -- the order of tables does not matter then
  for v_name in select oid::regclass from pg_catalog.pg_class
                 where relkind = 'r' and relnamespace in ('cue'::regnamespace, 'pgboss'::regnamespace) and pg_relation_size(oid) > 0 loop
    execute 'delete from ' || v_name;
  end loop;
  for v_name in select relname from pg_catalog.pg_class where relkind = 'r' and relnamespace = 'pristine'::regnamespace loop
    execute format('insert into %s select * from pristine.%I', v_name, v_name);
  end loop;
  perform setval(seqrelid::regclass, seqstart, false) from pg_catalog.pg_sequence;
end $$`

/** The configuration of a service under test: quiet, on any port, with callbacks to this machine allowed. */
export const testConfig = (url: string, env: Record<string, string> = {}): Config =>
  loadConfig({
    DATABASE_URL: url,
    HOST: '127.0.0.1',
    PORT: '0',
    ENCRYPTION_KEYS: Buffer.alloc(32, 1).toString('base64'),
    SESSION_SECRET: 'a secret that is only for tests, of 32 characters',
    CALLBACK_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
    CALLBACK_ALLOW_HTTP: 'on',
    LOG_LEVEL: 'silent',
    ...env
  })
