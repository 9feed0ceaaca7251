// `pgcue-admin cells move`: a running cell to another server, on two servers of their own. The long form is `npm run chaos -- cells`.
import t from 'tap'
import '../scripts/chaos/unpinned.ts'
import { startLoad } from '../scripts/chaos/cells/load.ts'
import { addDatabase, interruptAdmin, openStage, runAdmin, withDatabase } from '../scripts/chaos/cells/stage.ts'

t.setTimeout(300_000)
const stage = await openStage({ durable: false, replicas: 2 })
t.teardown(() => stage.close())
const { cells, empty, addresses, connect } = stage
const move = ['move', '2', empty]

const leftIn = async (url: string) =>
  (
    await withDatabase(
      url,
      `select (select count(*)::int from pg_publication) as publications, (select count(*)::int from pg_subscription where subdbid = d.oid) as subscriptions,
              (select count(*)::int from pg_replication_slots where database = d.datname) as slots,
              (select count(*)::int from pg_namespace where nspname in ('cue', 'pgboss', 'pgcue_copy')) as schemas
         from pg_database d where d.datname = current_database()`
    )
  )[0]
const nothing = { publications: 0, subscriptions: 0, slots: 0 }

await t.test('refuses what cannot be moved, before anything is changed', async t => {
  const cases: [string[], RegExp][] = [
    [['move', '2', cells[1]], /is where cell 2 is$/m],
    [['move', '2', cells[0]], /is not empty: it has the schemas cue or pgboss$/m]
  ]
  for (const [args, message] of cases) {
    const { code, err } = await runAdmin(cells, args).ended
    t.equal(code, 1)
    t.match(err, message)
  }
  t.same(await leftIn(cells[1]), { ...nothing, schemas: 2 })
  t.same(await leftIn(empty), { ...nothing, schemas: 0 })
})

await t.test('moves a cell under load: every slot once, and no acknowledged write is lost', async t => {
  const hook = await stage.receive()
  const load = await startLoad({ addresses, pool: connect(cells[1]), cell: 2, accounts: 4, cues: 3, hook: hook.url })

  const killed = await interruptAdmin(cells, move, /^Comparing/, 'SIGKILL')
  t.same([killed.seen, killed.code], [true, null])
  await withDatabase(empty, "insert into cue.stripe_events (id, type, received_at) values ('evt_1', 'x', now())")
  const refused = await runAdmin(cells, move).ended
  t.equal(refused.code, 1)
  t.match(refused.out, /^Going on with the copy that an earlier run has begun$/m)
  t.match(refused.err, /^pgcue-admin: rows are missing or too many: cue\.stripe_events has 0 in the source and 1 in the target$/m)
  t.equal((await runAdmin(cells, [...move, '--abort']).ended).code, 0)
  t.same(await leftIn(cells[1]), { ...nothing, schemas: 2 })
  t.same(await leftIn(empty), { ...nothing, schemas: 0 })

  const moved = await runAdmin(cells, move, line => t.comment(line)).ended
  t.equal(moved.code, 0, moved.err)
  t.same(await leftIn(cells[1]), { ...nothing, schemas: 2 })
  t.same(await leftIn(empty), { ...nothing, schemas: 2 })

  const { figures, wrong } = await load.stop(connect(empty), hook.sends)
  t.comment(JSON.stringify(figures))
  t.same(wrong, [])
  t.ok(figures.slots > 50 && figures.edits > 50 && figures.outcomes > 3 && figures.sign_ins > 10)
})

await t.test('the former server refuses every change, and leads replicas to the new one', async t => {
  await t.rejects(withDatabase(cells[1], 'begin read write; delete from cue.accounts'), /terminat|moved/)
  await t.rejects(withDatabase(cells[1], 'select cue.set_plan(id, $$pro$$) from cue.accounts limit 1'), /read-only/)
  const { address, stop } = await stage.startReplica(cells)
  t.equal((await fetch(`${address}/status`)).status, 200)
  const [{ count }] = await withDatabase(
    empty,
    'select count(*)::int as count from cue.engines where stopped_at is null and last_seen_at > now() - interval $$15 s$$'
  )
  t.equal(count, 3)
  await stop()
})

await t.test('says where a moved cell is, and finishes only what it began', async t => {
  const again = await runAdmin(cells, move).ended
  t.equal(again.code, 0, again.err)
  t.match((await runAdmin(cells, [...move, '--abort']).ended).err, /has moved: nothing can be aborted/)
  const other = await addDatabase(empty, 'other')
  t.match((await runAdmin(cells, ['move', '2', other]).ended).err, /cell 2 has moved to .*\/two already/)
  const { out } = await runAdmin(cells, ['list', '--json']).ended
  t.same(
    JSON.parse(out).cells.map(({ cell, status }: { cell: number; status: string }) => [cell, status]),
    [
      [1, 'healthy'],
      [2, 'moved']
    ]
  )
})
