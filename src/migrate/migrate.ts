import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { ConfigError, loadMigrateUrl } from '../config.ts'
import { assertDirect } from '../database/listener.ts'
import { queues as ourQueues } from '../jobs/boss.ts'
import { isOutsideTransaction, runOutsideTransaction } from './concurrently.ts'
import { loadSources, run } from './reload.ts'
import { type File, hash, type Queues, type Release, readSources } from './sql-files.ts'

export type MigrateOptions = {
  /** Must be a direct connection: what keeps two migrations apart is a session's lock. */
  connectionString: string
  log?: (line: string) => void
  sqlDir?: string
  lockTimeout?: string
  queues?: Queues
}

const lockTries = 60

/**
 * Brings a database to what this code needs: migrations that it lacks, then pg-boss's schema and queues, then functions,
 * comments, views and roles if any of them changed. Any number may run at once, one works and the others find nothing to do.
 * A database that a newer release has migrated, or loaded its functions into, is left as it is.
 * @throws {ConfigError} when the server cannot be reached or is of another version
 * @throws {Error} naming the file at fault; it is applied whole or not at all, or goes on with the next run where it says `-- no-transaction`
 */
export const migrate = async (options: MigrateOptions) => {
  const { connectionString, log = () => {}, sqlDir, lockTimeout = '800ms', queues = ourQueues } = options
  const { migrations, forQueues, sources, release } = readSources(sqlDir, queues)
  await reach(connectionString)
  const client = new pg.Client({ connectionString, application_name: 'pgcue migrate' })
  client.on('error', () => {}) // the statement under way fails with it
  client.on('notice', ({ message = '' }) => {
    if (!/skipping$|already been granted/.test(message)) log(message)
  })
  await client.connect()
  try {
    await requireVersion(client)
    await client.query(`set search_path = pg_catalog, pg_temp; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0`)
    await takeTurn(client)
    await client.query("select set_config('lock_timeout', $1, false)", [lockTimeout])
    const applied = await readLedger(client)

    const newest = migrations.at(-1)?.id ?? 0
    if ([...applied.keys()].some(id => id > newest)) return log('Database migrated by a newer release; not changed')

    for (const file of migrations) {
      const checksum = applied.get(file.id)
      if (checksum === file.checksum) continue
      if (checksum !== undefined)
        throw new Error(`${file.name} was edited after it was applied; undo that and put the change into a new migration`)
      await applyMigration(client, file, log)
    }

    const loaded = applied.get(0)
    if (numberOf(loaded) > release.number)
      return log(`Functions of release ${numberOf(loaded)} are loaded; this release, ${release.number}, is older and keeps them`)
    if (loaded !== (await stampOf(client, sources, release))) {
      await prepareQueues(client, queues)
      for (const file of forQueues) await runOutsideTransaction(client, file, work => retryLocked(work, log), log)
      await retryLocked(() => reload(client, sources, release), log)
      log('Loaded functions, views and roles')
    }
    const { rows } = await client.query("select to_regproc('cue.maintain_partitions') is not null as there")
    if (rows[0].there) await client.query('select cue.maintain_partitions()')
  } finally {
    await client.end()
  }
}

/** Asked for again and again: waiting within a statement would hold a snapshot, and building an index concurrently waits for those. */
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

/** What a database that cannot be reached is to whoever starts something. */
export const unusable = (error: unknown): ConfigError => {
  const { message, code } = error as Error & { code?: string } // of several addresses that refused there is only a code
  return new ConfigError(`Cannot connect to the server of DATABASE_URL or LISTEN_URL: ${message || code}`)
}

const requireVersion = async (client: pg.Client) => {
  const { rows } = await client.query(
    "select current_setting('server_version_num')::int / 10000 as major, current_setting('server_version') as name"
  )
  if (rows[0].major < 15 || rows[0].major > 18) throw new ConfigError(`DATABASE_URL must point to PostgreSQL 15 to 18, not ${rows[0].name}`)
}

/** Compares before it is known whether another release was here: its number comes first. Before there were numbers it was a checksum only. */
const stampOf = async (client: pg.Client, sources: File[], { number, checksum }: Release) =>
  `${number} ${hash(JSON.stringify([checksum, await rolesNamedIn(client, sources)]))}`
const numberOf = (stamp = '') => Number(/^(\d+) /.exec(stamp)?.[1] ?? 0)

/** What has been applied, as checksums by id. Id 0 is the stamp of all that is reloaded. */
const readLedger = async (client: pg.Client): Promise<Map<number, string>> => {
  // Asked first, since `if not exists` wants the right to create even where the schema is there.
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

/** Those that the files quote and that exist: one that is made later has no grants yet. */
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
      await record(client, file.id, file.name, file.checksum)
    }
    await retry(() => inTransaction(client, work))
  }
  log(`Applied ${file.name}`)
}

const reload = (client: pg.Client, sources: File[], release: Release) =>
  inTransaction(client, async () => {
    await loadSources(client, sources, release, await rolesNamedIn(client, sources))
    await record(client, 0, 'functions, comments, views, roles, queues', await stampOf(client, sources, release))
  })

/**
 * A statement that would wait for a lock keeps others waiting behind it: it gives up early, and tries again. Earlier than PostgreSQL looks for
 * deadlocks, so that a writer is never the one that has to go.
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

/** pg-boss makes and migrates its own schema, on our connection and so under our lock. */
const prepareQueues = async (client: pg.Client, queues: Queues) => {
  const db = { executeSql: (text: string, values?: unknown[]) => client.query(text, values) }
  const boss = new PgBoss({ db, schema: 'pgboss', supervise: false, schedule: false })
  boss.on('error', () => {}) // what fails here is thrown as well
  await boss.start()
  try {
    const known = new Map((await boss.getQueues()).map(queue => [queue.name, queue]))
    for (const { name, options = {} } of queues) {
      const { policy, partition, ...changeable } = options
      if (!known.has(name)) await boss.createQueue(name, options)
      else if (Object.keys(changeable).length) await boss.updateQueue(name, changeable)
    }
  } finally {
    await boss.stop({ graceful: false })
  }
}

if (import.meta.main) {
  try {
    await migrate({ connectionString: loadMigrateUrl(process.env), log: line => console.log(line) })
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 1
  }
}
