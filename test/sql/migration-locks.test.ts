/**
 * Locks that migrations after the baseline take on growing tables, while others write. There is none yet, so made-up ones show that safe
 * migrations pass and unsafe ones are found. 20,000 executions stand for many; SCALE=500 makes ten million.
 */
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import t, { type Test } from 'tap'
import { isOutsideTransaction } from '../../src/migrate/concurrently.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { readSources, statementsOf } from '../../src/migrate/sql-files.ts'
import { createDatabase } from '../support/database.ts'
import { scaled, spelled } from '../support/scale.ts'

const sqlRoot = fileURLToPath(new URL('../../sql', import.meta.url))

type Files = Record<string, string>

/** As a release would add a column to cues and executions. */
const next: Files = {
  '0101_priorities.sql': `-- 0101_priorities.sql: locks cues for milliseconds: the default is constant, so no row is written.
alter table cue.cues add column priority smallint not null default 0, add constraint cues_priority check (priority between 0 and 9) not valid;`,
  '0102_priorities_of_executions.sql': `-- 0102_priorities_of_executions.sql: locks executions for milliseconds.
alter table cue.executions add column priority smallint, add constraint priority_known check (priority between 0 and 9) not valid;`,
  '0103_priorities_checked.sql': `-- no-transaction
-- 0103_priorities_checked.sql: reads cues and executions, while everybody goes on writing them.
create index concurrently executions_priority on cue.executions (account_id, priority, id) where claimable_at is not null;
alter table cue.cues validate constraint cues_priority;
alter table cue.executions validate constraint priority_known;`
}

/** Tables that grow with use. */
const isBig =
  /^cue\.(executions|attempts|fixed_requests|cues|cue_runs|accounts|usage_counters|missed_slots|flights|api_keys)(_\d{4}_\d\d)?$/
/** Lock modes that block writers, weakest first. */
const blocking = ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock']

/** A database with the baseline, without its functions: writers use their own statements. `upgrade` adds migrations. */
const setUp = async (t: Test, files = next) => {
  const { pool, url } = await createDatabase(t, { migrated: false })
  const sqlDir = t.testdir({})
  cpSync(sqlRoot, sqlDir, { recursive: true })
  for (const name of readdirSync(join(sqlDir, 'migrations'))) if (!name.startsWith('0001_')) rmSync(join(sqlDir, 'migrations', name))
  rmSync(join(sqlDir, 'functions'), { recursive: true })
  cpSync(join(sqlRoot, 'functions'), join(sqlDir, 'functions'), { recursive: true, filter: name => !name.endsWith('.sql') })
  for (const name of ['views.sql', 'view_functions.sql', 'settings.sql', 'roles.sql']) writeFileSync(join(sqlDir, name), '')
  await migrate({ connectionString: url, sqlDir })
  await pool.query(`do $$ begin
    for n in 0..1 loop
      execute format('create table cue.executions_2030_0%s partition of cue.executions for values from (%L) to (%L)', n + 1,
        lpad(n::text, 8, '0') || '-0000-0000-0000-000000000000', lpad((n + 1)::text, 8, '0') || '-0000-0000-0000-000000000000');
    end loop;
  end $$`)
  const upgrade = async (log = (_: string) => {}) => {
    cpSync(join(sqlRoot, 'migrations'), join(sqlDir, 'migrations'), { recursive: true })
    for (const [name, text] of Object.entries(files)) writeFileSync(join(sqlDir, 'migrations', name), text)
    const { migrations } = readSources(sqlDir)
    for (const file of migrations.filter(isOutsideTransaction))
      for (const { text } of statementsOf(file)) if (!isHarmless.test(text)) alone.set(text, file.name)
    await migrate({ connectionString: url, sqlDir, log })
    return migrations
      .filter(file => file.id > 1 && (!isOutsideTransaction(file) || [...alone.values()].includes(file.name)))
      .map(({ name }) => name)
  }
  return { pool, url, upgrade }
}

/** Statements that run outside a transaction, with their file, except those that block nobody. */
const alone = new Map<string, string>()
const isHarmless = /^(create (unique )?|drop )index concurrently|validate constraint/

const account = '00000000-0000-0000-0000-00000000000a'

const fill = async (url: string, count: number) => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('set session_replication_role = replica')
  await client.query(
    `insert into cue.accounts (id, email, webhook_secret) values ('${account}', 'a@example.com', 'whsec_' || repeat('a', 64));
     insert into cue.cues (id, account_id, name, transport, schedule_type, cron, callback_url, payload)
     select 'cue_' || lpad(g::text, 12, '0'), '${account}', 'c', 'webhook', 'recurring', '* * * * *', 'http://127.0.0.1/', '{"n": 1}'
       from generate_series(1, ${count / 10}) g;
     insert into cue.cue_runs (cue_id, account_id, transport, next_run) select id, account_id, transport, '2030-01-01' from cue.cues;
     insert into cue.usage_counters (account_id, month, slot, executions)
     select gen_random_uuid(), '2030-01-01', 0, 1 from generate_series(1, ${count / 10});
     insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason)
     select id, account_id, now(), now(), 1, 'skip_missed', 'service_away' from cue.cues`
  )
  await client.query(
    `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                 created_at, updated_at)
     select (lpad((g % 2)::text, 8, '0') || substr(gen_random_uuid()::text, 9))::uuid, '${account}',
            'cue_' || lpad((1 + g % ${count / 10})::text, 12, '0'), 'webhook', 'success', 'schedule', now(), '{"n": 1}', 1, now(), now(), now(), now()
       from generate_series(1, ${count}) g`
  )
  await client.end()
}

type Held = { name: string; mode: string }

/** Observes each statement of the migrations: the locks it holds afterwards, and the rows it has read. */
const observe = (t: Test) => {
  const faults: string[] = []
  const names: string[] = []
  const query = pg.Client.prototype.query
  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads
  const ask = (client: pg.Client, text: string): Promise<any> => Reflect.apply(query, client, [text])
  const heldBy = async (client: pg.Client): Promise<Held[]> =>
    (
      await ask(
        client,
        `select n.nspname || '.' || c.relname as name, l.mode from pg_locks l join pg_class c on c.oid = l.relation
           join pg_namespace n on n.oid = c.relnamespace where l.pid = pg_backend_pid() and l.granted and c.relkind in ('r', 'p')`
      )
    ).rows.filter((lock: Held) => isBig.test(lock.name) && blocking.includes(lock.mode))
  const readBy = async (client: pg.Client): Promise<number> =>
    Number(
      (
        await ask(
          client,
          `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as n from pg_stat_xact_user_tables
            where schemaname = 'cue' and relname <> 'plans' and relname <> 'migrations'`
        )
      ).rows[0].n
    )

  const inTransaction = async <T>(client: pg.Client, work: () => Promise<T>) => {
    await ask(client, 'begin')
    const result = await work()
    await ask(client, 'commit')
    return result
  }
  const observed = async (client: pg.Client, file: string, text: string) => {
    names.push(file)
    let before: Held[] = []
    const read = await readBy(client)
    for (const statement of statementsOf({ id: 0, name: file, text, checksum: '' })) {
      await ask(client, statement.text)
      const held = await heldBy(client)
      const tables = [...new Set(held.map(({ name }) => name.replace(/_\d{4}_\d\d$/, '')))].sort()
      if (tables.length > 1) faults.push(`${file}:${statement.line} holds locks of ${tables.join(' and ')}`)
      for (const { name, mode } of held) {
        const weaker = before.some(lock => lock.name === name) && !before.some(lock => lock.name === name && rank(lock.mode) >= rank(mode))
        if (weaker) faults.push(`${file}:${statement.line} strengthens its lock of ${name}`)
      }
      const rows = (await readBy(client)) - read
      if (held.length > 0 && rows > 0) faults.push(`${file}:${statement.line} read ${rows} rows while writers of ${tables[0]} wait`)
      before = held
    }
    return { rows: [] }
  }
  t.intercept(pg.Client.prototype, 'query', {
    value(this: pg.Client, ...args: unknown[]) {
      const [text] = args
      if (typeof text === 'string') {
        const [, file] = /^-- (\d{4}_\w+\.sql)/.exec(text) ?? []
        if (file) return observed(this, file, text)
        const outside = alone.get(text)
        if (outside) return inTransaction(this, () => observed(this, outside, text))
      }
      return Reflect.apply(query, this, args)
    }
  })
  return { faults, names }
}

const rank = (mode: string) => blocking.indexOf(mode)

t.test('a migration locks one growing table at a time, strongest lock first, and reads none meanwhile', async t => {
  const { url, upgrade } = await setUp(t)
  await fill(url, 200)
  const { faults, names } = observe(t)
  const expected = await upgrade()
  t.same([...new Set(names)], expected)
  t.same(faults, [])
})

for (const [what, text, fault] of [
  [
    'locks two tables',
    'alter table cue.cues add column a int;\nalter table cue.cue_runs add column a int;',
    '0101_bad.sql:3 holds locks of cue.cue_runs and cue.cues'
  ],
  [
    'strengthens a lock',
    'lock table cue.cues in share mode;\nalter table cue.cues add column a int;',
    '0101_bad.sql:3 strengthens its lock of cue.cues'
  ],
  [
    'reads a locked table',
    'alter table cue.cues add check (length(name) > 0);',
    '0101_bad.sql:2 read 20 rows while writers of cue.cues wait'
  ]
] as const)
  t.test(`a migration that ${what} is found`, async t => {
    const { url, upgrade } = await setUp(t, { '0101_bad.sql': `-- 0101_bad.sql: made up.\n${text}` })
    await fill(url, 200)
    const { faults } = observe(t)
    await upgrade()
    t.same(faults, [fault])
  })

t.test('functions and views change only in the transaction of the reload', async t => {
  t.same(
    readSources()
      .migrations.filter(({ text }) => /\b(function|view)\b/.test(text.replace(/--.*/g, '')))
      .map(({ name }) => name),
    []
  )
})

t.test(`writers continue while ${spelled(20_000)} executions are migrated`, async t => {
  const { url, pool, upgrade } = await setUp(t)
  await fill(url, scaled(20_000))
  const client = await pool.connect()
  await client.query('set statement_timeout = 0; set synchronous_commit = off')
  let migrating = true
  let writes = 0
  let longest = 0
  const write = async (text: string) => {
    const since = performance.now()
    await client.query(text)
    longest = Math.max(longest, performance.now() - since)
    writes++
  }
  const writing = (async () => {
    while (migrating) {
      const cue_id = `cue_${String(1 + (writes % 1000)).padStart(12, '0')}`
      await write(`update cue.cue_runs set run_count = run_count + 1 where cue_id = '${cue_id}'`)
      await write(`update cue.cues set updated_at = now() where id = '${cue_id}'`)
      await write(`update cue.accounts set updated_at = now() where id = '${account}'`)
      await write(`insert into cue.usage_counters (account_id, month, slot, executions) values ('${account}', '2030-01-01', 7, 1)
        on conflict (account_id, month, slot) do update set executions = usage_counters.executions + 1`)
      await write(`insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, started_at,
          ended_at, created_at, updated_at)
        values ((lpad('1', 8, '0') || substr(gen_random_uuid()::text, 9))::uuid, '${account}', '${cue_id}', 'webhook', 'success', 'schedule',
          now(), '{}', now(), now(), now(), now())`)
    }
  })()
  const since = performance.now()
  await upgrade(line => t.comment(line)).finally(() => {
    migrating = false
  })
  await writing
  client.release()
  t.comment(`${writes} writes in ${Math.round(performance.now() - since)} ms, of which the longest took ${Math.round(longest)} ms`)
  // A lock not granted within 800 ms is requested again later, and locks are held briefly; the rest is a margin for busy machines.
  t.ok(longest < 6000, `${Math.round(longest)} ms`)
  const { rows } = await pool.query(
    `select (select array_agg(conname) from pg_constraint where not convalidated) as checks,
            (select array_agg(indexrelid::regclass) from pg_index where not indisvalid) as indexes`
  )
  t.same(rows, [{ checks: null, indexes: null }])
})
