import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { ConfigError, loadMigrateUrls } from '../config.ts'
import { assertDirect } from '../database/listener.ts'
import { drop } from '../database/pool.ts'
import { pinSettings } from '../database/session.ts'
import { queues as ourQueues } from '../jobs/boss.ts'
import { isOutsideTransaction, runOutsideTransaction } from './concurrently.ts'
import { loadSources, run } from './reload.ts'
import { commentsOf, type File, hash, type Queues, type Release, readSources } from './sql-files.ts'

export type MigrateOptions = {
  /** Must be a direct connection, because a session lock keeps migrations apart. */
  connectionString: string
  log?: (line: string) => void
  sqlDir?: string
  lockTimeout?: string
  /** Number of a new database among those of the service. */
  cell?: number
  /** The database is marked as an incomplete copy, which replicas cannot use. */
  isCopy?: true
  queues?: Queues
}

const lockTries = 60
/** The only line about an empty database. */
export const createdSchema = 'Created the schema cue in an empty database'

/**
 * Brings a database up to date: missing migrations, then pg-boss's schema and queues, then functions, views and roles if any of
 * them changed. Concurrent calls wait, and then find nothing to do. A database used by a newer release is left unchanged.
 * @throws {ConfigError} if the server is unreachable or has an unsupported version, or the database another baseline (0001_init.sql)
 * @throws {Error} naming the file that failed. A file is applied completely or not at all; one with `-- no-transaction` continues with the
 * next call
 */
export const migrate = async (options: MigrateOptions) => {
  const { connectionString, log = () => {}, sqlDir, lockTimeout = '800ms', queues = ourQueues, cell = 1, isCopy } = options
  const { migrations, forQueues, sources, release } = readSources(sqlDir, queues)
  if (!isCopy) await reach(connectionString)
  const client = new pg.Client({ connectionString, application_name: 'pgcue migrate', connectionTimeoutMillis: 10_000, keepAlive: true })
  client.on('error', () => {}) // the running statement fails with it
  client.on('notice', ({ message = '' }) => {
    if (!/skipping$|already been granted/.test(message)) log(message)
  })
  await client.connect().catch(error => {
    drop(client)
    throw error
  })
  try {
    await client.query(pinSettings())
    await requireVersion(client)
    await takeTurn(client)
    await client.query("select set_config('lock_timeout', $1, false), set_config('pgcue.cell', $2, false)", [lockTimeout, String(cell)])
    const applied = await readLedger(client)
    const isNew = applied.size === 0
    const step = isNew ? () => {} : log

    const baseline = migrations[0]!
    if (applied.has(baseline.id) && applied.get(baseline.id) !== baseline.checksum)
      throw new ConfigError(
        'This database was made by another development version, and before 1.0.0 there are no upgrades: drop the database ' +
          '(an embedded one: delete the folder DATA_DIR) and start again'
      )
    const newest = migrations.at(-1)!.id
    if ([...applied.keys()].some(id => id > newest)) return log('Database migrated by a newer release; not changed')

    for (const file of migrations) {
      const checksum = applied.get(file.id)
      if (checksum === file.checksum) continue
      if (checksum !== undefined)
        throw new Error(`${file.name} was edited after it was applied; undo that and put the change into a new migration`)
      await applyMigration(client, file, step)
    }

    const loaded = applied.get(0)
    if (numberOf(loaded) > release.number)
      return log(`Functions of release ${numberOf(loaded)} are loaded; this release, ${release.number}, is older and keeps them`)
    if (loaded !== (await stampOf(client, sources, release))) {
      await prepareQueues(client, queues)
      for (const file of forQueues) await runOutsideTransaction(client, file, work => retryLocked(work, log), step)
      await retryLocked(() => reload(client, sources, release), log)
      log(isNew ? createdSchema : 'Loaded functions, views and roles')
    }
    const { rows } = await client.query("select to_regproc('cue.maintain_partitions') is not null as there")
    if (rows[0].there) await client.query('select cue.maintain_partitions()')
  } finally {
    await client.end()
  }
}

/** Polls for the lock: a statement that waits holds a snapshot, and building an index concurrently waits for all snapshots. */
const takeTurn = async (client: pg.Client) => {
  for (;;) {
    const { rows } = await client.query("select pg_try_advisory_lock(hashtext('pgcue migrate')) as is_ours")
    if (rows[0].is_ours) return
    await delay(100)
  }
}

const reach = async (url: string) => {
  try {
    await assertDirect({ databaseUrl: url, listenUrl: url })
  } catch (error) {
    throw error instanceof ConfigError ? error : unusable(error)
  }
}

/** A database cannot be reached at present. */
export class Unreachable extends ConfigError {}

/** Converts an error from an unreachable database to one line. */
export const unusable = (error: unknown): Unreachable => {
  const { message, code } = error as Error & { code?: string } // if all of several addresses refused, there is only a code
  return new Unreachable(`Cannot connect to the server of DATABASE_URL or LISTEN_URL: ${message || code}`)
}

const requireVersion = async (client: pg.Client) => {
  const { rows } = await client.query(
    "select current_setting('server_version_num')::int / 10000 as major, current_setting('server_version') as name"
  )
  if (rows[0].major < 15 || rows[0].major > 18) throw new ConfigError(`DATABASE_URL must point to PostgreSQL 15 to 18, not ${rows[0].name}`)
}

/** The stamp of a database starts with the release number, so that releases can be compared. */
const stampOf = async (client: pg.Client, sources: File[], { number, checksum }: Release) =>
  `${number} ${hash(JSON.stringify([checksum, await rolesNamedIn(client, sources)]))}`
const numberOf = (stamp = '0') => Number.parseInt(stamp, 10)

/** Reads the checksums of applied migrations, by id. Id 0 is the stamp of everything that is reloaded. */
const readLedger = async (client: pg.Client): Promise<Map<number, string>> => {
  // Checked first, because `create … if not exists` requires the right to create even if it exists.
  const { rows } = await client.query(
    "select to_regclass('cue.migrations') is not null as there, to_regnamespace('cue') is not null as schema"
  )
  if (!rows[0].there)
    await client.query(`begin;
      ${rows[0].schema ? '' : 'create schema cue;'}
      create table cue.migrations (id int primary key, name text not null, checksum text not null, applied_at timestamptz not null default now());
      comment on table cue.migrations is 'What src/migrate has applied. Row 0 stands for all that is loaded again when it changes.';
      comment on column cue.migrations.id is 'The number its file name begins with.';
      comment on column cue.migrations.name is 'The file.';
      comment on column cue.migrations.checksum is 'SHA-256 of its content; in row 0 behind the number of the release that loaded it.';
      comment on column cue.migrations.applied_at is 'When it was applied.';
      commit`)
  const ledger = await client.query('select id, checksum from cue.migrations')
  return new Map(ledger.rows.map(row => [row.id, row.checksum]))
}

const record = (client: pg.Client, id: number, name: string, checksum: string) =>
  client.query(
    `insert into cue.migrations (id, name, checksum) values ($1, $2, $3)
     on conflict (id) do update set name = excluded.name, checksum = excluded.checksum, applied_at = now()`,
    [id, name, checksum]
  )

/** Roles that the files quote and that exist. A role created later has no grants yet. */
const rolesNamedIn = async (client: pg.Client, sources: File[]): Promise<string[]> => {
  const { rows } = await client.query('select rolname as name from pg_roles where strpos($1, quote_literal(rolname)) > 0 order by 1', [
    sources.map(source => source.text).join('\n')
  ])
  return rows.map(row => row.name)
}

const inTransaction = async (client: pg.Client, work: () => Promise<unknown>) => {
  await client.query('begin')
  try {
    await work()
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

const applyMigration = async (client: pg.Client, file: File, log: (line: string) => void) => {
  const retry = (work: () => Promise<unknown>) => retryLocked(work, log)
  if (isOutsideTransaction(file)) {
    await runOutsideTransaction(client, file, retry, log)
    await record(client, file.id, file.name, file.checksum)
  } else {
    const work = async () => {
      await run(client, file, { text: file.text, line: 1 })
      await client.query(commentsOf(file.text))
      await record(client, file.id, file.name, file.checksum)
    }
    await retry(() => inTransaction(client, work))
  }
  log(`Applied ${file.name}`)
}

const reload = (client: pg.Client, sources: File[], release: Release) =>
  inTransaction(client, async () => {
    await loadSources(client, sources, release, await rolesNamedIn(client, sources))
    await record(client, 0, 'functions, views, roles, queues', await stampOf(client, sources, release))
  })

/**
 * A statement that waits for a table lock blocks all later statements on that table, so it gives up early and is retried: before PostgreSQL
 * checks for deadlocks, so that no writer is cancelled.
 */
const retryLocked = async (work: () => Promise<unknown>, log: (line: string) => void) => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (!/^(55P03|40P01)$/.test((error as pg.DatabaseError).code ?? '') || attempt === lockTries) throw error
      log(`${(error as Error).message}; retrying`)
      await delay(1000)
    }
  }
}

/** pg-boss creates and migrates its own schema, on our connection and therefore under our lock. */
const prepareQueues = async (client: pg.Client, queues: Queues) => {
  const db = { executeSql: (text: string, values?: unknown[]) => client.query(text, values) }
  const boss = new PgBoss({ db, schema: 'pgboss', supervise: false, schedule: false })
  boss.on('error', () => {}) // the same error is also thrown
  await boss.start()
  try {
    const existing = new Map((await boss.getQueues()).map(queue => [queue.name, queue]))
    for (const { name, options = {} } of queues) {
      const { policy, partition, ...changeable } = options
      if (!existing.has(name)) await boss.createQueue(name, options)
      else if (Object.keys(changeable).length) await boss.updateQueue(name, changeable)
    }
  } finally {
    await boss.stop({ graceful: false })
  }
}

if (import.meta.main) {
  try {
    const urls = loadMigrateUrls(process.env)
    for (const [index, connectionString] of urls.entries()) {
      const log = (line: string) => console.log(urls.length > 1 ? `Cell ${index + 1}: ${line}` : line)
      await migrate({ connectionString, cell: index + 1, log })
    }
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 1
  }
}
