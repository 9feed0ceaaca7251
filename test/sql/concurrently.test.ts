/** Migrations outside a transaction, and indexes built while others write. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { migrate } from '../../src/migrate/migrate.ts'
import { createDatabase } from '../support/database.ts'

const init = `create table cue.things (id int primary key, n int);
create table cue.events (id int primary key, n int) partition by range (id);
create table cue.events_1 partition of cue.events for values from (0) to (10);
create table cue.events_2 partition of cue.events for values from (10) to (20);
insert into cue.things select g, g from generate_series(1, 5) g;
insert into cue.events select g, g from generate_series(1, 15) g;`

/** A database with two tables, to which `apply` brings a second migration. */
const setUp = async (t: Test) => {
  const { url, pool } = await createDatabase(t, { migrated: false })
  const sqlDir = t.testdir({})
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(sqlDir, name)), { recursive: true })
    writeFileSync(join(sqlDir, name), text)
  }
  for (const name of ['views.sql', 'roles.sql', 'functions/none.sql']) write(name, '')
  write('release.json', '{ "number": 1 }')
  write('migrations/0001_init.sql', init)
  const lines: string[] = []
  const run = () => migrate({ connectionString: url, sqlDir, queues: [], lockTimeout: '100ms', log: line => lines.push(line) })
  await run()
  const apply = (text: string) => {
    lines.length = 0
    write('migrations/0002_more.sql', `-- no-transaction\n${text}`)
    return run()
  }
  const rows = async (text: string) => (await pool.query(text)).rows
  const indexes = async (table: string) =>
    (
      await rows(
        `select indexrelid::regclass::text as name, indisvalid as valid from pg_index
          where indrelid = '${table}'::regclass and not indisprimary order by 1`
      )
    ).map(({ name, valid }) => `${name}${valid ? '' : ', invalid'}`)
  const applied = async () => (await rows('select id from cue.migrations order by id')).map(row => row.id)
  return { pool, rows, apply, indexes, applied, lines }
}

const invalid = 'update pg_index set indisvalid = false where indexrelid ='

t.test('builds an index concurrently, and applies the migration once', async t => {
  const { apply, indexes, applied, lines } = await setUp(t)
  await apply('create index concurrently things_n on cue.things (n);')
  t.same(await indexes('cue.things'), ['cue.things_n'])
  t.same(await applied(), [0, 1, 2])
  await apply('create index concurrently things_n on cue.things (n);')
  t.same(lines, [])
})

t.test('continues an interrupted migration and keeps what was built', async t => {
  const { apply, indexes, applied, rows } = await setUp(t)
  const statements = 'create index concurrently things_n on cue.things (n);\ninsert into cue.things values (5, 5);'
  await t.rejects(apply(statements), { message: /^0002_more\.sql: duplicate key/ })
  t.same(await applied(), [0, 1])
  const [built] = await rows("select 'cue.things_n'::regclass::oid")
  await rows('delete from cue.things where id = 5')
  await apply(statements)
  t.same(await applied(), [0, 1, 2])
  t.same(await rows("select 'cue.things_n'::regclass::oid"), [built])
  t.same(await indexes('cue.things'), ['cue.things_n'])
})

t.test('drops an index left unfinished by a crash and builds it again', async t => {
  const { apply, indexes, rows } = await setUp(t)
  await rows(`create index things_n on cue.things (n); ${invalid} 'cue.things_n'::regclass`)
  t.same(await indexes('cue.things'), ['cue.things_n, invalid'])
  await apply('create index concurrently things_n on cue.things (n);')
  t.same(await indexes('cue.things'), ['cue.things_n'])
})

t.test('builds the index of a partitioned table one partition at a time', async t => {
  const { apply, indexes, rows, lines } = await setUp(t)
  await apply('create index concurrently events_n on cue.events (n) where n > 3;')
  t.same(await indexes('cue.events'), ['cue.events_n'])
  t.same(await indexes('cue.events_1'), ['cue.events_1_events_n'])
  t.same(await indexes('cue.events_2'), ['cue.events_2_events_n'])
  t.same(
    lines.filter(line => /^Building/.test(line)),
    ['1', '2'].map(n => `Building index cue.events_${n}_events_n: no writer waits for it, and it waits for transactions that are open`)
  )
  await rows('create table cue.events_3 partition of cue.events for values from (20) to (30)')
  t.equal((await indexes('cue.events_3')).length, 1)
})

t.test('continues building the index of a partitioned table after a crash', async t => {
  const { apply, indexes, rows, lines } = await setUp(t)
  await rows(`create index events_n on only cue.events (n);
    create index events_1_events_n on cue.events_1 (n); alter index cue.events_n attach partition cue.events_1_events_n;
    create index events_2_events_n on cue.events_2 (n); ${invalid} 'cue.events_2_events_n'::regclass`)
  await apply('create index concurrently events_n on cue.events (n);')
  t.same(await indexes('cue.events'), ['cue.events_n'])
  t.same(await indexes('cue.events_2'), ['cue.events_2_events_n'])
  t.equal(lines.filter(line => /^Building/.test(line)).length, 1)
})

t.test('waits for an open transaction while others can write', async t => {
  const { apply, indexes, pool, lines } = await setUp(t)
  const client = await pool.connect()
  await client.query('begin; insert into cue.things values (100, 1)')
  const applying = apply('create index concurrently things_n on cue.things (n);')
  const waits =
    "select from pg_stat_activity where wait_event = 'virtualxid' and query like 'create index%' and datname = current_database()"
  while ((await pool.query(waits)).rowCount === 0) await new Promise(resolve => setTimeout(resolve, 10))
  await pool.query("set lock_timeout = '5s'; insert into cue.things values (101, 1)")
  await client.query('commit')
  client.release()
  await applying
  t.same(await indexes('cue.things'), ['cue.things_n'])
  t.notOk(lines.some(line => /trying again/.test(line)))
})

t.test('replicas waiting for the migration do not block it', async t => {
  const { apply, indexes, applied, lines } = await setUp(t)
  const statements = 'create index concurrently things_n on cue.things (n);'
  await Promise.all(Array.from({ length: 10 }, () => apply(statements)))
  t.same(await applied(), [0, 1, 2])
  t.same(await indexes('cue.things'), ['cue.things_n'])
  t.same(
    lines.filter(line => !/^Building/.test(line)),
    ['Applied 0002_more.sql', 'Loaded functions, views and roles']
  )
})
