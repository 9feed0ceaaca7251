import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { migrate } from '../../src/migrate/migrate.ts'
import { createDatabase } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'

type Files = Record<string, string>

const base: Files = {
  'release.json': '{ "number": 1 }',
  'migrations/0001_init.sql': `--- Things that
--- have ids.
create table cue.things (
  id int primary key --- A thing's id.
);`,
  'functions/things.sql':
    'create or replace function cue.count_things() returns bigint language sql as $$ select count(*) from cue.things $$;',
  'views.sql': 'create or replace view cue.all_things as select id from cue.things;',
  'roles.sql': 'revoke all on schema cue from public;'
}

const write = (sqlDir: string, files: Files) => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(sqlDir, name)), { recursive: true })
    writeFileSync(join(sqlDir, name), text)
  }
}

/** An empty database, an sql directory, and the log. */
const setUp = async (t: Test, files: Files = {}) => {
  const { url, pool } = await createDatabase(t, { migrated: false })
  const sqlDir = t.testdir({})
  write(sqlDir, { ...base, ...files })
  const lines: string[] = []
  const options = { connectionString: url, sqlDir, queues: [], log: (line: string) => lines.push(line) }
  const ids = async () => (await pool.query('select id from cue.migrations order by id')).rows.map(row => row.id)
  return { pool, sqlDir, lines, options, ids, run: () => migrate(options) }
}

t.test('migrates an empty database', async t => {
  const { run, pool, lines, ids } = await setUp(t)
  await run()
  t.same(await ids(), [0, 1])
  t.same((await pool.query('select cue.count_things() as n')).rows, [{ n: 0 }])
  t.same((await pool.query('select * from cue.all_things')).rows, [])
  const comments = await pool.query(
    "select obj_description('cue.things'::regclass) as table, col_description('cue.things'::regclass, 1) as column"
  )
  t.same(comments.rows, [{ table: 'Things that have ids.', column: "A thing's id." }])
  t.same(lines, ['Created the schema cue in an empty database'])
})

t.test('a second run changes nothing and locks no table in use', async t => {
  const { run, pool, lines } = await setUp(t)
  await run()
  const client = await pool.connect()
  await client.query('begin; lock table cue.things, cue.migrations in share mode')
  const oid = (
    await client.query("select 'cue.count_things'::regproc::oid as oid, xmin from pg_proc where oid = 'cue.count_things'::regproc")
  ).rows
  lines.length = 0
  await run()
  t.same((await client.query("select oid, xmin from pg_proc where oid = 'cue.count_things'::regproc")).rows, oid)
  await client.query('rollback')
  client.release()
  t.same(lines, [])
})

t.test('twenty simultaneous runs migrate one database', async t => {
  const { run, lines, ids } = await setUp(t)
  await Promise.all(Array.from({ length: 20 }, run))
  t.same(await ids(), [0, 1])
  t.same(lines, ['Created the schema cue in an empty database'])
})

t.test('applies only a new migration, and loads an edited function', async t => {
  const { run, pool, sqlDir, lines } = await setUp(t)
  await run()
  lines.length = 0
  write(sqlDir, {
    'migrations/0002_more.sql': 'insert into cue.things values (1), (2);',
    'functions/things.sql': base['functions/things.sql']!.replace('count(*)', 'count(*) * 10')
  })
  await run()
  t.same((await pool.query('select cue.count_things() as n')).rows, [{ n: 20 }])
  t.same(lines, ['Applied 0002_more.sql', 'Loaded functions, views and roles'])
})

t.test('rolls back a failed migration and names its line', async t => {
  const { run, pool, sqlDir, ids } = await setUp(t)
  await run()
  write(sqlDir, { 'migrations/0002_bad.sql': 'create table cue.half ();\nselect from cue.nowhere;' })
  await t.rejects(run(), { message: '0002_bad.sql:2: relation "cue.nowhere" does not exist' })
  t.same(await ids(), [0, 1])
  t.same((await pool.query("select to_regclass('cue.half') as half")).rows, [{ half: null }])
  write(sqlDir, { 'migrations/0002_bad.sql': 'create table cue.half ();' })
  await run()
  t.same(await ids(), [0, 1, 2])
})

t.test('rejects a migration that was edited after it was applied', async t => {
  const { run, sqlDir } = await setUp(t, { 'migrations/0002_more.sql': 'select 1;' })
  await run()
  write(sqlDir, { 'migrations/0002_more.sql': 'select 2;' })
  await t.rejects(run(), { message: /^0002_more\.sql was edited after it was applied/ })
})

t.test('refuses a database with another baseline in one line that says what to do, also one with more migrations', async t => {
  const { run, sqlDir, pool } = await setUp(t)
  await run()
  write(sqlDir, { 'migrations/0001_init.sql': 'create table cue.things (id bigint primary key);' })
  const message = /^This database was made by another development version.*: drop the database \(.*DATA_DIR\) and start again$/
  await t.rejects(run(), { name: 'ConfigError', message })
  await pool.query("insert into cue.migrations (id, name, checksum) values (2, '0002_more.sql', 'x')")
  await t.rejects(run(), { name: 'ConfigError', message })
})

t.test('leaves a database of a newer release unchanged', async t => {
  const { run, pool, sqlDir, lines } = await setUp(t)
  await run()
  await pool.query("insert into cue.migrations (id, name, checksum) values (2, '0002_newer.sql', 'x')")
  write(sqlDir, { 'functions/things.sql': base['functions/things.sql']!.replace('count(*)', '-1') })
  lines.length = 0
  await run()
  t.same((await pool.query('select cue.count_things() as n')).rows, [{ n: 0 }])
  exactly(t, lines, [/newer release/])
})

t.test('functions may reference each other in any order, and a wrong name is an error', async t => {
  const { run, pool, sqlDir } = await setUp(t, {
    'functions/a.sql': 'create or replace function cue.a() returns bigint language sql as $$ select cue.count_things() $$;'
  })
  await run()
  t.same((await pool.query('select cue.a() as n')).rows, [{ n: 0 }])
  write(sqlDir, { 'functions/a.sql': 'create or replace function cue.a() returns bigint language sql as $$ select cue.count_thinks() $$;' })
  await t.rejects(run(), { message: /cue\.count_thinks\(\) does not exist/ })
})

t.test('a failed reload keeps the loaded functions', async t => {
  const { run, pool, sqlDir } = await setUp(t)
  await run()
  write(sqlDir, {
    'functions/things.sql': base['functions/things.sql']!.replace('count(*)', '-1'),
    'views.sql': 'create or replace view cue.all_things as select nothing from cue.things;'
  })
  await t.rejects(run(), { message: /^views\.sql:1: column "nothing" does not exist/ })
  t.same((await pool.query('select cue.count_things() as n')).rows, [{ n: 0 }])
})

t.test('a migration that meets a lock gives way and is retried', async t => {
  const { run, pool, sqlDir, lines, options, ids } = await setUp(t)
  await run()
  write(sqlDir, { 'migrations/0002_column.sql': 'alter table cue.things add column note text;' })
  const client = await pool.connect()
  await client.query('begin; lock table cue.things in access share mode')
  const running = migrate({
    ...options,
    lockTimeout: '50ms',
    log: line => {
      lines.push(line)
      if (/lock timeout; retrying/.test(line)) client.query('commit')
    }
  })
  await running
  client.release()
  t.same(await ids(), [0, 1, 2])
  t.ok(lines.some(line => /0002_column\.sql: canceling statement due to lock timeout; retrying/.test(line)))
})

t.test('creates queues and updates their options', async t => {
  const { pool, options } = await setUp(t)
  const limits = async () =>
    (await pool.query('select name, retry_limit from pgboss.queue where name not like $1 order by name', ['\\_\\_%'])).rows
  await migrate({ ...options, queues: [{ name: 'mails', options: { policy: 'short', retryLimit: 3 } }] })
  t.same(await limits(), [{ name: 'mails', retry_limit: 3 }])
  await migrate({ ...options, queues: [{ name: 'mails', options: { policy: 'short', retryLimit: 5 } }, { name: 'purges' }] })
  t.same(await limits(), [
    { name: 'mails', retry_limit: 5 },
    { name: 'purges', retry_limit: 2 }
  ])
})

t.test('rejects an unsupported server version in one line', async t => {
  const { options } = await setUp(t)
  const query = pg.Client.prototype.query
  t.intercept(pg.Client.prototype, 'query', {
    value(this: pg.Client, text: string) {
      if (text.includes('server_version_num')) return Promise.resolve({ rows: [{ major: 14, name: '14.9' }] })
      return Reflect.apply(query, this, [text])
    }
  })
  await t.rejects(migrate(options), { message: 'DATABASE_URL must point to PostgreSQL 15 to 18, not 14.9' })
})

t.test('reports an unreachable server in one line that names the variable', async t => {
  await t.rejects(migrate({ connectionString: 'postgres://nobody:secretword@localhost:1/none' }), {
    name: 'ConfigError',
    message: /^Cannot connect to the server of DATABASE_URL or LISTEN_URL: .*ECONNREFUSED[^\n]*$/
  })
})

t.test('migrates an empty database with our own sql/, twice', async t => {
  const { pool, url } = await createDatabase(t, { migrated: false })
  const lines: string[] = []
  await migrate({ connectionString: url, log: line => lines.push(line) })
  lines.length = 0
  await migrate({ connectionString: url, log: line => lines.push(line) })
  t.same(lines, [])
  t.ok((await pool.query('select from pgboss.queue')).rowCount)
})

t.test('an edited comment in our own functions reloads with data in use', async t => {
  const { pool, url } = await createDatabase(t)
  const sqlDir = t.testdir({})
  cpSync(new URL('../../sql', import.meta.url), sqlDir, { recursive: true })
  write(sqlDir, { 'functions/zz_more.sql': '-- nothing but a comment' })
  const client = await pool.connect()
  await client.query('begin; set local idle_in_transaction_session_timeout = 0; select * from cue.cues')
  await migrate({ connectionString: url, sqlDir, lockTimeout: '2s' })
  await client.query('commit')
  client.release()
})
