/** Reloading functions and views when sql/ changes: which release loads its own, and upgrades between releases. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { migrate } from '../../src/migrate/migrate.ts'
import { readSources, releaseFile, statementsOf } from '../../src/migrate/sql-files.ts'
import { requireFunctions } from '../../src/startup/required-functions.ts'
import { createDatabase } from '../support/database.ts'

type Files = Record<string, string>

const base: Files = {
  'release.json': '{ "number": 1 }',
  'migrations/0001_init.sql': "create table cue.things (id int primary key, name text); insert into cue.things values (1, 'one');",
  'functions/things.sql': 'create or replace function cue.number() returns int language sql as $$ select 1 $$;',
  'views.sql': `create or replace view cue.thing_view as select id from cue.things;
create or replace function cue.read_things() returns setof cue.thing_view language sql as $$ select * from cue.thing_view $$;`,
  'roles.sql': 'revoke execute on all functions in schema cue from public;'
}

const write = (sqlDir: string, files: Files) => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(sqlDir, name)), { recursive: true })
    writeFileSync(join(sqlDir, name), text)
  }
}

/** A database with a release loaded; `release` loads another one, with the given changes. */
const setUp = async (t: Test) => {
  const { url, pool } = await createDatabase(t, { migrated: false })
  const lines: string[] = []
  const release = async (number: number, files: Files = {}, lockTimeout = '5s') => {
    const sqlDir = t.testdir({})
    write(sqlDir, { ...base, 'release.json': `{ "number": ${number} }`, ...files })
    lines.length = 0
    await migrate({ connectionString: url, sqlDir, queues: [], lockTimeout, log: line => lines.push(line) })
  }
  const rows = async (text: string) => (await pool.query(text)).rows
  await release(1)
  return { pool, release, rows, lines }
}

const numberIs = (n: number) => ({ 'functions/things.sql': base['functions/things.sql']!.replace('select 1', `select ${n}`) })

t.test('an older release with the same migrations keeps the functions of a newer one', async t => {
  const { release, rows, lines } = await setUp(t)
  await release(2, numberIs(2))
  await release(1)
  t.same(lines, ['Functions of release 2 are loaded; this release, 1, is older and keeps them'])
  t.same(await rows('select cue.number() as n'), [{ n: 2 }])
  await release(2, numberIs(2))
  t.same(lines, [])
})

t.test('a changed file requires the next number, and a merge a number after both', async t => {
  const sqlDir = t.testdir({})
  write(sqlDir, base)
  const first = releaseFile(sqlDir)
  t.match(first, /"number": 2,/)
  write(sqlDir, { 'release.json': first })
  t.equal(releaseFile(sqlDir), first)
  write(sqlDir, { 'migrations/0002_more.sql': 'select 1;' })
  t.match(releaseFile(sqlDir), /"number": 3,/)
  write(sqlDir, { 'release.json': `<<<<<<< ours\n  "number": 4,\n=======\n  "number": 7,\n>>>>>>> theirs\n` })
  t.match(releaseFile(sqlDir), /"number": 8,/)
})

t.test('splits statements at semicolons outside bodies, quotes and comments, with their lines', t => {
  const text = `-- one; two\nselect ';';\n\n-- why\ncreate function f() as $x$ a; $y$ b; $x$;\nselect 1 -- end;\n`
  t.same(statementsOf({ id: 1, name: 'x.sql', text, checksum: '' }), [
    { text: "select ';';", line: 2 },
    { text: 'create function f() as $x$ a; $y$ b; $x$;', line: 5 },
    { text: 'select 1 -- end;\n', line: 6 }
  ])
  t.end()
})

const insertedColumn = { 'views.sql': base['views.sql']!.replace('select id from', 'select name, id from') }

t.test('inserting a column changes a view and the functions that return its rows', async t => {
  const { release, rows } = await setUp(t)
  await release(2, insertedColumn)
  t.same(await rows('select * from cue.read_things()'), [{ name: 'one', id: 1 }])
})

t.test('a function may change its result and parameter names', async t => {
  const { release, rows } = await setUp(t)
  await release(2, { 'functions/things.sql': "create or replace function cue.number() returns text language sql as $$ select 'two' $$;" })
  t.same(await rows('select cue.number() as n'), [{ n: 'two' }])
})

t.test('a function with another argument replaces the former one', async t => {
  const { release, rows } = await setUp(t)
  await release(2, {
    'functions/things.sql': `create or replace function cue.number(p_plus int default 1) returns int language sql as $$ select 1 + p_plus $$;
      comment on function cue.number is 'A number.';`
  })
  t.same(await rows('select cue.number() as n'), [{ n: 2 }])
})

t.test('keeps a removed function or view for one more release', async t => {
  const { release, rows } = await setUp(t)
  const gone = { 'functions/things.sql': '', 'views.sql': '' }
  const present = () => rows("select to_regproc('cue.number') is not null as function, to_regclass('cue.thing_view') is not null as view")
  await release(2, gone)
  await release(2, { ...gone, 'functions/other.sql': '-- another file' })
  t.same(await present(), [{ function: true, view: true }])
  await release(3, gone)
  t.same(await present(), [{ function: false, view: false }])
})

t.test('grants made by operators survive a changed view', async t => {
  const { release, rows } = await setUp(t)
  await rows('grant select on cue.thing_view to pg_monitor; grant execute on function cue.read_things to pg_monitor with grant option')
  await release(2, insertedColumn)
  t.same(
    await rows(`select has_table_privilege('pg_monitor', 'cue.thing_view', 'select') as view,
      has_function_privilege('pg_monitor', 'cue.read_things()', 'execute with grant option') as function`),
    [{ view: true, function: true }]
  )
})

t.test("names an operator's object that depends on a changed view, and changes nothing", async t => {
  const { release, rows } = await setUp(t)
  await rows('create view public.report as select * from cue.thing_view')
  await t.rejects(release(2, insertedColumn), {
    message: 'cue.thing_view has changed, but view public.report depends on it: drop that, migrate, and create it again'
  })
  t.same(await rows('select * from public.report'), [{ id: 1 }])
})

t.test('a reload that meets a reader of a changed view gives way and is retried', async t => {
  const { release, rows, pool, lines } = await setUp(t)
  const client = await pool.connect()
  await client.query('begin; select * from cue.thing_view')
  const reloading = release(2, insertedColumn, '50ms')
  while (!lines.some(line => /lock timeout; retrying$/.test(line))) await new Promise(resolve => setTimeout(resolve, 10))
  await client.query('commit')
  client.release()
  await reloading
  t.same(await rows('select * from cue.thing_view'), [{ name: 'one', id: 1 }])
})

const fast = { 'settings.sql': 'alter function cue.number set enable_seqscan = off;' }

t.test('applies settings again to a function that is replaced', async t => {
  const { release, rows } = await setUp(t)
  await release(2, fast)
  await release(3, { ...fast, 'functions/things.sql': base['functions/things.sql']!.replace('select 1', 'select 2') })
  t.same(await rows("select proconfig, prosrc from pg_proc where proname = 'number'"), [
    { proconfig: ['enable_seqscan=off'], prosrc: ' select 2 ' }
  ])
})

t.test('rejects settings of a function that does not exist', async t => {
  const { release, rows } = await setUp(t)
  await t.rejects(release(2, { 'settings.sql': 'alter function cue.gone set enable_seqscan = off;', ...numberIs(2) }), {
    message: 'settings.sql: could not find a function named "cue.gone"'
  })
  t.same(await rows('select cue.number() as n'), [{ n: 1 }])
})

// The last commit whose functions or views differ from the present files, and whose migrations are the same as far as it has them.
const formerRelease = (): string | undefined => {
  const git = (...args: string[]) =>
    execFileSync('git', args, {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore']
    })
      .trim()
      .split('\n')
  try {
    const commits = git('log', '-100', '--format=%H', '--', 'sql/functions', 'sql/views.sql', 'sql/view_functions.sql', 'sql/migrations')
    const isClean = git('status', '--porcelain', 'sql')[0] === ''
    const { migrations } = readSources()
    const isKept = ([name, text]: [string, string]) => migrations.some(file => file.name === name && file.text === text)
    return commits.slice(isClean ? 1 : 0).find(commit => {
      const names = git('ls-tree', '--name-only', commit, 'sql/migrations/')
      return names.every(path => isKept([path.replace(/.*\//, ''), `${git('show', `${commit}:${path}`).join('\n')}\n`]))
    })
  } catch {}
}

const former = formerRelease()
t.test(
  'upgrades the previous release to one with other views and results',
  { skip: !former && 'no commit has the same tables and other functions' },
  async t => {
    const { url, pool } = await createDatabase(t, { migrated: false })
    const root = t.testdir({ former: {}, next: {} })
    execFileSync('sh', ['-c', `git archive ${former} sql | tar -x -C '${root}/former'`], {
      cwd: fileURLToPath(new URL('../..', import.meta.url))
    })
    const formerDir = join(root, 'former/sql')
    await migrate({ connectionString: url, sqlDir: formerDir })

    const nextDir = join(root, 'next')
    cpSync(new URL('../../sql', import.meta.url), nextDir, { recursive: true })
    const edit = (name: string, from: string, to: string) => {
      const text = readFileSync(join(nextDir, name), 'utf8')
      t.ok(text.includes(from), `${name} has ${from}`)
      write(nextDir, { [name]: text.replace(from, to) })
    }
    edit('views.sql', 'select c.id, c.account_id, c.name, c.description', 'select c.id, c.account_id, 1 as priority, c.name, c.description')
    edit('functions/health.sql', 'service_health(', 'service_health(p_brief boolean default false, ')
    write(nextDir, { 'release.json': '{ "number": 1000000 }' })
    await migrate({ connectionString: url, sqlDir: nextDir })

    const { rows } = await pool.query(
      `select (select count(*) from information_schema.columns where table_schema = 'cue' and column_name = 'priority'
                                                               and table_name in ('cue_view', 'cue_detail_view')) as views,
            (select string_agg(pg_get_function_arguments(oid), '; ') from pg_proc where proname = 'service_health') as arguments,
            (select count(*) from pg_proc where pronamespace = 'cue'::regnamespace and prorettype = 'cue.cue_view'::regtype) as row_functions`
    )
    t.same(rows, [{ views: 2, arguments: 'p_brief boolean DEFAULT false, p_now timestamp with time zone DEFAULT now()', row_functions: 1 }])
  }
)

t.test("a release that cannot call a newer one's functions refuses in one line", async t => {
  const { pool } = await createDatabase(t)
  await requireFunctions(pool, { migrate: true })
  await pool.query('drop function cue.read_echo; alter function cue.stop_engine rename to end_engine')
  await t.rejects(requireFunctions(pool, { migrate: true }), {
    name: 'ConfigError',
    message:
      'The database was migrated by a newer release, whose functions this one cannot call (read_echo, stop_engine): start the newer release'
  })
})

t.test('a release can call functions with additional optional arguments', async t => {
  const { pool } = await createDatabase(t)
  const readEcho = (more: string) =>
    pool.query(`drop function cue.read_echo; create function cue.read_echo(p_token uuid, ${more}) returns int language sql as 'select 1'`)
  await readEcho('p_now timestamptz default now(), p_more int default 1')
  await requireFunctions(pool, { migrate: true })
  await readEcho('p_more int, p_now timestamptz default now()')
  await t.rejects(requireFunctions(pool, { migrate: true }), { message: /\(read_echo\)/ })
})
