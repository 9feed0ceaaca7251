// `pgcue-admin cells`: list, migrate, add and report over several databases.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { runAdmin } from '../../scripts/chaos/cells/stage.ts'
import { query } from '../../scripts/stage/stage.ts'
import { runHere } from '../support/admin-stage.ts'
import { createDatabase } from '../support/database.ts'
import { exactly, pluck } from '../support/exactly.ts'

/** Two cells, and a URL that nothing answers. */
const stage = async (t: Test) => {
  const one = await createDatabase(t)
  const two = await createDatabase(t, { cell: 2 })
  return { one, two, cells: [one.url, two.url], gone: 'postgres://nobody@127.0.0.1:1/gone' }
}

const run = (cells: readonly string[], ...args: string[]) => runHere(cells, args)

t.test('list shows each cell, and one that does not answer', async t => {
  const { cells, gone } = await stage(t)
  const { code, out } = await run([...cells, gone], 'list', '--json')
  t.equal(code, 1)
  const { cells: listed } = JSON.parse(out)
  t.equal(listed.length, 3)
  exactly(t, listed[1], {
    cell: 2,
    server: /127\.0\.0\.1:\d+\/test_/,
    lateness_seconds: 0,
    status: 'down',
    reason: 'no engine has run yet'
  })
  t.ok(listed[1].size_bytes > 1e6 && listed[1].release > 0 && /^\d+/.test(listed[1].postgres))
  exactly(t, listed[2], {
    cell: 3,
    server: '127.0.0.1:1/gone',
    size_bytes: null,
    accounts: null,
    status: 'unavailable',
    reason: /ECONNREFUSED/
  })
  t.match((await run(cells, 'list')).out, /^CELL +SERVER +SIZE .*\n1 .*\n2 /)
})

t.test('list says which cell is in the wrong place', async t => {
  const { cells } = await stage(t)
  const { out } = await run(cells.toReversed(), 'list', '--json')
  t.same(pluck(JSON.parse(out).cells, 'status', 'reason'), [
    ['misplaced', 'is cell 2'],
    ['misplaced', 'is cell 1']
  ])
})

t.test('migrate migrates in order, and stops at the first failure', async t => {
  const { cells, gone } = await stage(t)
  const three = await createDatabase(t, { migrated: false })
  const failed = await run([...cells, gone, three.url], 'migrate')
  t.equal(failed.code, 1)
  t.match(failed.out, /^Cell 3: failed: Cannot connect .*\nCells before it are migrated; 1 after it is not\./m)
  t.notMatch(failed.out, /^Cell 4/m)
  const done = await run([...cells, three.url], 'migrate')
  t.equal(done.code, 0, done.out)
  t.match(done.out, /^Cell 3: Created the schema cue in an empty database$/m)
  t.match(done.out, /^All 3 cells are migrated$/m)
  t.same(await query(three.url, 'select id from cue.cell'), [{ id: 3 }])
})

t.test('add makes an empty database the next cell, and prints what remains', async t => {
  const { cells, gone } = await stage(t)
  const three = await createDatabase(t, { migrated: false })
  const { code, out } = await run(cells, 'add', three.url)
  t.equal(code, 0)
  t.match(out, /^1\. Append its URL to CELLS for all replicas, as number 3\.$/m)
  t.notOk(out.includes(new URL(three.url).password))
  t.match(out, /REGISTER_CELLS=1,2/)
  t.same(await query(three.url, 'select id from cue.cell'), [{ id: 3 }])
  t.equal((await run(cells, 'add', three.url)).code, 0, 'again, as nothing uses it yet')

  const refused: [string[], string, RegExp][] = [
    [[...cells, three.url], three.url, /is cell 3 already, not 4$/m],
    [cells, cells[0]!, /is cell 1 already, not 3$/m],
    [cells, gone, /ECONNREFUSED/],
    [cells.toReversed(), (await createDatabase(t, { migrated: false })).url, /the first of CELLS is not cell 1$/m]
  ]
  for (const [before, url, message] of refused) {
    const { code, err } = await run(before, 'add', url)
    t.equal(code, 1)
    t.match(err, new RegExp(message))
  }
})

t.test('report merges the views of all cells, and lists a cell that fails', async t => {
  const { one, two, cells, gone } = await stage(t)
  for (const [n, { pool }] of [one, two, two].entries())
    await pool.query("insert into cue.accounts (id, email, webhook_secret) values (cue.uuid_v7(), $1, 'whsec_' || repeat('0', 64))", [
      `${n}-${randomUUID()}@example.com`
    ])
  await two.pool.query(
    "insert into cue.usage_counters (account_id, month, slot, executions) select id, cue.usage_month(now()), 0, 7 from cue.accounts where email like '1-%'"
  )
  const whole = await run(cells, 'report', 'usage', 'health', '--json')
  t.equal(whole.code, 0, whole.err)
  const { usage, health } = JSON.parse(whole.out)
  t.same(usage.rows.map(({ cell, executions_used }: { cell: number; executions_used: number }) => [cell, executions_used]).slice(0, 1), [
    [2, 7]
  ])
  t.equal(usage.rows.length, 3)
  t.same(usage.failed, [])
  t.equal(JSON.parse((await run(cells, 'report', 'usage', '--limit', '1', '--json')).out).usage.rows.length, 1)
  t.same(pluck(health.rows, 'cell', 'status'), [
    [1, 'down'],
    [2, 'down']
  ])
  const partial = await run([...cells, gone], 'report', 'queues', 'health', '--json')
  t.equal(partial.code, 1)
  const { queues, health: looked } = JSON.parse(partial.out)
  exactly(t, queues.failed, [{ cell: 3, error: /ECONNREFUSED/ }])
  t.same(new Set(queues.rows.map(({ cell }: { cell: number }) => cell)), new Set([1, 2]))
  t.equal(looked.rows.length, 3)
  const text = await run([...cells, gone], 'report')
  t.equal(text.code, 1)
  for (const name of ['health', 'queues', 'usage', 'due', 'stuck', 'failures']) t.match(text.out, new RegExp(`^${name}:$`, 'm'))
  t.match(text.out, /^cell 3 does not answer: .*ECONNREFUSED/m)
})

t.test('invalid arguments end with 2, and no password is repeated', async t => {
  const url = 'postgres://nobody:secret@127.0.0.1:1/b'
  for (const [args, message] of [
    [['nothing'], /^pgcue-admin: unknown command cells nothing; see --help\n$/],
    [[], /^pgcue-admin: unknown command cells; /],
    [[url], /^pgcue-admin: unknown command cells; /],
    [['toString'], /^pgcue-admin: unknown command /],
    [['list', 'more'], /^pgcue-admin: too many arguments for cells list; /],
    [['add', url, url], /^pgcue-admin: too many arguments for cells add; /],
    [['add', url, '--abort'], /^pgcue-admin: cells add has no option --abort; /],
    [['report', 'nothing'], /^pgcue-admin: unknown report nothing; reports are health, /],
    [['report', '--limit', '0'], /^pgcue-admin: --limit must be /],
    [['add', 'x:secret'], /^pgcue-admin: the new database must be a PostgreSQL URL\n$/],
    [['list', '--what'], /^pgcue-admin: Unknown option '--what'\n$/],
    [['move', '2', url], /^pgcue-admin: CELL must be a number from 1 to 1\n$/],
    [['move', '1', 'b'], /^pgcue-admin: the new server must be a PostgreSQL URL\n$/],
    [['move', '1', url, '--source-url', 'b'], /^pgcue-admin: --source-url must be a PostgreSQL URL\n$/]
  ] as [string[], RegExp][]) {
    const { code, out, err } = await run(['postgres://nobody@127.0.0.1:1/a'], ...args)
    t.equal(code, 2, args.join(' '))
    t.match(err, new RegExp(message))
    t.notMatch(out + err, /secret/)
  }
})

t.test('wrong settings, and servers that do not answer, end with 1', async t => {
  const gone = 'postgres://nobody:secret@127.0.0.1:1/b'
  for (const [cells, args, message] of [
    [[], ['list'], /^pgcue-admin: DATABASE_URL is required\n$/],
    [[gone, gone], ['list'], /^pgcue-admin: CELLS must be PostgreSQL URLs /],
    [['/nowhere'], ['list'], /^pgcue-admin: CELLS must be PostgreSQL URLs /],
    [[gone], ['move', '1', gone], /^pgcue-admin: cannot connect to 127\.0\.0\.1:1\/b: connect ECONNREFUSED /],
    [[gone], ['add', gone], /^pgcue-admin: cannot connect to 127\.0\.0\.1:1\/b: connect ECONNREFUSED /]
  ] as [string[], string[], RegExp][]) {
    const { code, out, err } = await run(cells, ...args)
    t.equal(code, 1, args.join(' '))
    t.match(err, new RegExp(message))
    t.notMatch(out + err, /secret/)
  }
})

t.test('the executable passes on its arguments, settings and exit code', async t => {
  const { code, out, err } = await runAdmin(['postgres://nobody@127.0.0.1:1/a'], ['list', '--json']).ended
  t.same([code, err], [1, ''])
  t.equal(JSON.parse(out).cells[0].status, 'unavailable')
})
