// `pgcue-admin cells move`: a running cell to another database of a server of their own. The long form is `npm run chaos -- cells`.
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { startLoad } from '../../scripts/chaos/cells/load.ts'
import { interruptAdmin, openCells, settings } from '../../scripts/chaos/cells/stage.ts'
import { endStage } from '../../scripts/stage/processes.ts'
import { addDatabase, openStage, query, secrets } from '../../scripts/stage/stage.ts'
import { moveCell } from '../../src/admin/move/move.ts'
import { cellConfig } from '../../src/cells/settings.ts'
import { prepareCell } from '../../src/startup/prepare.ts'
import { runHere } from '../support/admin-stage.ts'
import { testConfig } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { pluck } from '../support/exactly.ts'
import { memoryDir } from '../support/memory-dir.ts'
import { receiver } from '../support/receiver.ts'
import { startReplica } from '../support/replica.ts'

t.setTimeout(300_000)
t.teardown(() => endStage())
const stage = await openStage({ durable: false, settings })
const { cells, empty, addresses } = await openCells(stage, { replicas: 1 })
const move = ['move', '2', empty]

const leftIn = async (url: string) =>
  (
    await query(
      url,
      `select (select count(*)::int from pg_publication) as publications, (select count(*)::int from pg_subscription where subdbid = d.oid) as subscriptions,
              (select count(*)::int from pg_replication_slots where database = d.datname) as slots,
              (select count(*)::int from pg_namespace where nspname in ('cue', 'pgboss', 'pgcue_copy')) as schemas
         from pg_database d where d.datname = current_database()`
    )
  )[0]
/**
 * Makes the target wait with all later changes, from the call of `begin` until `end`: for a key that is being inserted there, too. While it waits
 * for a locked row instead, it would keep a page of the index, and `vacuum` would wait for that.
 */
const stopApplying = async () => {
  const [source, target] = await Promise.all(
    [cells[1], empty].map(async connectionString => {
      const client = new pg.Client({ connectionString })
      await client.connect()
      return client
    })
  )
  const insert = "insert into cue.stripe_events (id, type, received_at) values ('evt_2', 'x', now())"
  await target!.query(`begin; ${insert}`)
  return { begin: () => source!.query(insert), end: () => Promise.all([source!.end(), target!.end()]) }
}
const nothing = { publications: 0, subscriptions: 0, slots: 0 }

await t.test('refuses what cannot be moved, before anything is changed', async t => {
  const cases: [string[], RegExp][] = [
    [['move', '2', cells[1]], /is where cell 2 is$/m],
    [['move', '2', cells[0]], /is not empty: it has the schemas cue or pgboss$/m]
  ]
  for (const [args, message] of cases) {
    const { code, err } = await runHere(cells, args)
    t.equal(code, 1)
    t.match(err, new RegExp(message))
  }
  t.same(await leftIn(cells[1]), { ...nothing, schemas: 2 })
  t.same(await leftIn(empty), { ...nothing, schemas: 0 })
})

await t.test('--abort removes what a killed move has left', async t => {
  await query(empty, 'create schema pgcue_copy; create schema cue; create table cue.accounts (id int); create schema pgboss')
  await query(cells[1], 'create publication pgcue_move')
  await query(cells[1], "select pg_create_logical_replication_slot('pgcue_move', 'pgoutput')")
  await query(
    empty,
    `create subscription pgcue_move connection ${pg.escapeLiteral(cells[1])} publication pgcue_move with (connect = false, slot_name = 'pgcue_move')`
  )
  const { code, out } = await runHere(cells, [...move, '--abort'])
  t.equal(code, 0)
  t.match(out, /^Nothing is left of the move; cell 2 stays at /m)
  t.same(await leftIn(cells[1]), { ...nothing, schemas: 2 })
  t.same(await leftIn(empty), { ...nothing, schemas: 0 })
})

await t.test('moves a cell under load: every slot once, and no acknowledged write is lost', async t => {
  const load = await startLoad(stage, { addresses, pool: stage.connect(cells[1]), accounts: 4, cues: 3 })

  const killed = await interruptAdmin(cells, move, /^Comparing/, 'SIGKILL')
  t.same([killed.seen, killed.code], [true, null])
  await query(empty, "insert into cue.stripe_events (id, type, received_at) values ('evt_1', 'x', now())")
  const refused = await runHere(cells, move)
  t.equal(refused.code, 1)
  t.match(refused.out, /^Going on with the copy that an earlier run has begun$/m)
  t.match(refused.err, /^pgcue-admin: rows are missing or too many: cue\.stripe_events has 0 in the source and 1 in the target$/m)
  await query(empty, 'delete from cue.stripe_events')

  const said: string[] = []
  const lag = await stopApplying()
  const late = 'the target needs more than 0.5 s to catch up; the cell goes on at the source'
  const code = await moveCell({
    cell: 2,
    source: cells[1],
    sourceForTarget: cells[1],
    target: empty,
    targetForReplicas: empty,
    isAborting: false,
    maxPauseMs: 500,
    signal: new AbortController().signal,
    say: line => {
      t.comment(line)
      said.push(line)
      if (line === 'Catching up' && !said.slice(0, -1).includes(line)) void lag.begin()
      if (line.includes(late)) void lag.end() // the load may also end a try, by a deadlock
    }
  })
  t.equal(code, 0)
  t.ok(said.some(line => line.includes(late)))
  t.same(await leftIn(cells[1]), { ...nothing, schemas: 2 })
  t.same(await leftIn(empty), { ...nothing, schemas: 2 })

  const { figures, wrong } = await load.stop(empty)
  t.comment(JSON.stringify(figures))
  t.same(wrong, [])
  t.ok(figures.slots > 50 && figures.edits > 50 && figures.outcomes > 3 && figures.sign_ins > 10)
})

await t.test('the former server refuses every change, and leads replicas to the new one', async t => {
  await t.rejects(query(cells[1], 'begin read write; delete from cue.accounts'), /terminat|moved/)
  await t.rejects(query(cells[1], 'select cue.set_plan(id, $$pro$$) from cue.accounts limit 1'), /read-only/)
  const said: string[] = []
  const config = testConfig('', { CELLS: cells.join(' '), ...secrets })
  const { databaseUrl, listenUrl } = await prepareCell(cellConfig(config, 2), line => said.push(line))
  t.same([databaseUrl, listenUrl], [empty, empty])
  t.match(said.join('\n'), /^Cell 2 has moved to 127\.0\.0\.1:\d+: update CELLS$/)
  const running = "select count(*)::int as count from cue.engines where stopped_at is null and last_seen_at > now() - interval '15 s'"
  t.same(await query(empty, running), [{ count: 1 }])
})

await t.test('moves a replica out of its embedded database, which goes on with the keys in DATA_DIR', async t => {
  const DATA_DIR = mkdtempSync(join(memoryDir(), 'pgcue-outgrown-'))
  chmodSync(DATA_DIR, 0o755) // the server's system user must get in
  t.teardown(() => rmSync(DATA_DIR, { recursive: true, force: true }))
  const kept = (name: string) => readFileSync(join(DATA_DIR, name), 'utf8').trim()
  const hook = await receiver(t)
  const start = async (env: Record<string, string>) => {
    const replica = startReplica(t, { ENCRYPTION_KEYS: '', SESSION_SECRET: '', CALLBACK_ALLOW_HTTP: 'on', DATA_DIR, ...env })
    const [, port] = await eventually(() => / at http:\/\/localhost:(\d+)/.exec(replica.stderr()))
    const call = async (method: string, path: string, key?: string, body?: object) => {
      const headers = { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) }
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
      return (await answer.json()) as any
    }
    return { ...replica, call }
  }
  const embedded = await start({})
  const { api_key } = await embedded.call('POST', '/v1/auth/register', undefined, { email: 'someone@example.com' })
  const { id } = await embedded.call('POST', '/v1/cues', api_key, { name: 'tick', cron: '* * * * * *', callback_url: hook.url })
  await eventually(() => hook.requests.length > 0)

  const port = readFileSync(join(DATA_DIR, 'postgres/data/postmaster.pid'), 'utf8').split('\n')[3]
  const source = `postgres://pgcue:${kept('postgres/password')}@127.0.0.1:${port}/pgcue`
  const target = await addDatabase(empty, 'outgrown')
  const { code, out, err } = await runHere([source], ['move', '1', target])
  t.equal(code, 0, err)
  t.match(out, /^Cell 1 is handed over; writes were paused for \d+ ms$/m)
  const running = "select count(*)::int as count from cue.engines where stopped_at is null and last_seen_at > now() - interval '15 s'"
  await eventually(async () => (await query(target, running))[0].count === 1)
  const moved = hook.requests.length
  await eventually(() => hook.requests.length > moved, 20_000)
  embedded.signal('SIGTERM')
  t.equal((await embedded.ended).code, 0)

  const keys = { ENCRYPTION_KEYS: kept('encryption_keys'), SESSION_SECRET: kept('session_secret') }
  const { call } = await start({ DATABASE_URL: target, CALLBACK_ALLOW_CIDRS: '127.0.0.0/8', ...keys })
  t.equal((await call('GET', `/v1/cues/${id}`, api_key)).name, 'tick')
  const restarted = hook.requests.length
  await eventually(() => hook.requests.length > restarted + 1, 20_000)
  const slots = hook.requests.map(({ headers }) => headers['x-service-scheduled-for'])
  t.equal(new Set(slots).size, slots.length, 'each slot once')
})

await t.test('says where a moved cell is, and finishes only what it began', async t => {
  const again = await runHere(cells, move)
  t.equal(again.code, 0, again.err)
  t.match(
    (await runHere(cells, [...move, '--abort'])).err,
    /^pgcue-admin: cell 2 has moved: nothing can be aborted\. Run the command without --abort to finish$/m
  )
  const other = await addDatabase(empty, 'other')
  t.match((await runHere(cells, ['move', '2', other])).err, /^pgcue-admin: cell 2 has moved to 127\.0\.0\.1:\d+\/moved already$/m)
  const { out } = await runHere(cells, ['list', '--json'])
  t.same(pluck(JSON.parse(out).cells, 'cell', 'status'), [
    [1, 'healthy'],
    [2, 'moved']
  ])
})
