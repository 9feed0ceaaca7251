/**
 * The tests' server and its template database, both created by the first test that needs a database, in a run of all tests, of
 * one file, or in concurrent runs.
 *
 *   TEST_DATABASE_URL=postgres://…             use this server (its user must be allowed to create databases)
 *   TEST_POSTGRES_BIN=/usr/lib/postgresql/15/bin   run these programs instead of the packaged PostgreSQL 18
 *
 * Otherwise this checkout's PostgreSQL runs in the background without fsync, in memory if there is room, and is removed two minutes
 * after its last client.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { migrate } from '../../src/migrate/migrate.ts'
import { memoryDir } from './memory-dir.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const binDir = process.env.TEST_POSTGRES_BIN
const limitMs = 60_000

type Admin = { client: pg.Client; urlOf: (database: string) => string; end: () => Promise<void> }

/** A connection to the server's database postgres, or to that of TEST_DATABASE_URL; starts the server if necessary. */
export const connectAdmin = async (): Promise<Admin> => {
  if (process.env.TEST_DATABASE_URL) return connect(process.env.TEST_DATABASE_URL)
  const dir = join(memoryDir(), `pgcue-test-${hash(`${root} ${binDir ?? ''} ${process.getuid?.()}`).slice(0, 8)}`)
  let nextStart = 0
  for (const end = Date.now() + limitMs; ; await delay(50)) {
    // Its name can be predicted, and its parent belongs to everybody.
    const owner = statSync(dir, { throwIfNoEntry: false })?.uid
    if (owner !== undefined && owner !== (process.getuid?.() ?? owner)) throw new Error(`${dir} belongs to another user: remove it`)
    try {
      const { url, pid } = JSON.parse(readFileSync(join(dir, 'server.json'), 'utf8'))
      process.kill(pid, 0) // throws when nobody would stop the server any more: the next keeper takes it over
      return await connect(url)
    } catch (error) {
      if (Date.now() > end) throw new Error(`the tests' PostgreSQL doesn't start, see ${dir}: ${(error as Error).message}`)
    }
    if (Date.now() < nextStart) continue
    nextStart = Date.now() + 10_000
    startKeeper(dir)
  }
}

const connect = async (connectionString: string): Promise<Admin> => {
  const client = new pg.Client({ connectionString, application_name: 'pgcue test' })
  client.on('error', () => {})
  await client.connect()
  const urlOf = (database: string) => Object.assign(new URL(connectionString), { pathname: database }).href
  return { client, urlOf, end: () => client.end() }
}

const startKeeper = (dir: string) => {
  mkdirSync(dir, { recursive: true, mode: 0o755 })
  const log = openSync(join(dir, 'keeper.log'), 'a')
  const args = [fileURLToPath(new URL('keeper.ts', import.meta.url)), dir, ...(binDir ? [binDir] : [])]
  // Without tap's environment, which would load tap into the background process.
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR }
  spawn(process.execPath, args, { cwd: root, env, detached: true, stdio: ['ignore', log, log] }).unref()
}

const hash = (text: string) => createHash('sha256').update(text).digest('hex')

const templateName = (cell: number) => {
  const sql = readdirSync(join(root, 'sql'), { recursive: true, encoding: 'utf8' }).filter(
    name => name.endsWith('.sql') && name !== 'schema.sql'
  )
  const scripts = ['migrate.ts', 'concurrently.ts', 'reload.ts', 'sql-files.ts'].map(name => join('src/migrate', name))
  const files = [
    ...sql.sort().map(name => join('sql', name)),
    'sql/release.json',
    ...scripts,
    'src/jobs/boss.ts',
    'test/support/template.ts',
    'node_modules/pg-boss/package.json'
  ]
  return `template_${hash([cell, ...files.map(name => `${name} ${readFileSync(join(root, name), 'utf8')}`)].join()).slice(0, 12)}`
}

/** The name of the migrated database to clone, created once per state of sql/ and cell. */
export const prepareTemplate = async ({ client, urlOf }: Admin, cell: number): Promise<string> => {
  const name = templateName(cell)
  const exists = async () => Boolean((await client.query('select from pg_database where datname = $1', [name])).rowCount)
  if (await exists()) return name
  await client.query("select pg_advisory_lock(hashtext('pgcue template'))")
  try {
    if (await exists()) return name
    const draft = `${name}_draft`
    await client.query(`drop database if exists ${draft} with (force)`)
    await client.query(`create database ${draft}`)
    await migrate({ connectionString: urlOf(draft), cell })
    await preparePartitions(urlOf(draft))
    await client.query(`alter database ${draft} rename to ${name}`)
    await sweep(client)
    return name
  } finally {
    await client.query("select pg_advisory_unlock(hashtext('pgcue template'))")
  }
}

// Each partition costs files to clone, time to create, and time in every plan. So the template has only those that most tests write to: this
// month and the next, and the first months of the test clocks' year.
const preparePartitions = async (url: string) => {
  const { client, end } = await connect(url)
  const { rows } = await client.query(
    `select inhrelid::regclass as name from pg_inherits
      where inhparent in ('cue.executions'::regclass, 'cue.attempts'::regclass)
        and to_date(right(inhrelid::regclass::text, 7), 'YYYY_MM') > now() + interval '1 month'`
  )
  for (const { name } of rows) await client.query(`drop table ${name}`)
  await client.query("select cue.maintain_partitions(3, '2030-01-01T00:00:00Z')")
  await client.query(
    "select cue.add_event_day(day) from unnest(array[current_date, current_date + 1, '2030-01-15', '2030-01-16']::date[]) as day"
  )
  await client.query(keepRows)
  await end()
}

// The state to which a database is reset: copies of its tables that have rows, by their full names.
const keepRows = `
do $$
declare
  v_name text;
  v_has_rows boolean;
begin
  create schema pristine;
  for v_name in select oid::regclass from pg_catalog.pg_class
                 where relkind in ('r', 'p') and not relispartition and relnamespace in ('cue'::regnamespace, 'pgboss'::regnamespace) loop
    execute format('select exists (select from %s)', v_name) into v_has_rows;
    if v_has_rows then
      execute format('create table pristine.%I as table %s', v_name, v_name);
    end if;
  end loop;
end $$`

// Templates of earlier versions, and databases kept by failed or killed tests, are dropped after an hour.
const sweep = async (client: pg.Client) => {
  const { rows } = await client.query(
    `select datname as name from pg_database
      where datname ~ '^test_[0-9]+_' and split_part(datname, '_', 2)::bigint < extract(epoch from now()) - 3600
         or datname in (select datname from pg_database where datname ~ '^template_[0-9a-f]{12}$' order by oid desc offset 5)`
  )
  for (const { name } of rows) await client.query(`drop database if exists ${pg.escapeIdentifier(name)}`).catch(() => {}) // in use
}
