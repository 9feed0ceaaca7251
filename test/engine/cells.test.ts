import fc from 'fast-check'
import type pg from 'pg'
import t from 'tap'
import { cellOfKey, createKey, isKey } from '../../src/accounts/keys.ts'
import { cellOfToken, createToken } from '../../src/accounts/sessions.ts'
import { cellOfId, cellOfValue, maxCells } from '../../src/cells/ids.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { createDatabase } from '../support/database.ts'
import { exactly } from '../support/exactly.ts'
import { always, below } from '../support/seed.ts'

const before = new Date('2026-01-01T00:00:00Z')
const cells = fc.integer({ min: 1, max: maxCells })

/** Gives a test database another number, as if it had been migrated with that. */
const setCell = (pool: pg.Pool, cell: number) =>
  pool.query(`create or replace function cue.cell_id() returns int language sql stable parallel safe as 'select ${cell}'`)

t.test('ids created by SQL encode their cell and their instant', async t => {
  const { pool } = await createDatabase(t)
  const instants = fc.date({ min: before, max: new Date('2200-01-01T00:00:00Z'), noInvalidDate: true })
  for (let cell = 1; cell <= maxCells; cell++) {
    await setCell(pool, cell)
    const { rows } = await pool.query(
      `select id, cue.cell_of(id) as in_sql, id >= cue.uuid_v7_floor(at) and id < cue.uuid_v7_floor(at + interval '1 millisecond') as in_order
         from ((select at, cue.uuid_v7(at) as id from unnest($1::timestamptz[]) as u (at) offset 0)
               union all select at, unnest(cue.uuids_v7(3, at)) from unnest($1::timestamptz[]) as u (at)) made`,
      [fc.sample(instants, { seed: below(2 ** 31), numRuns: 20 })]
    )
    t.equal(rows.length, 80)
    for (const { id, in_sql, in_order } of rows) {
      t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      t.ok(in_order, id)
      t.same([in_sql, cellOfId(id)], [cell, cell], id)
    }
  }
})

t.test('ids of one millisecond differ', async t => {
  const { pool } = await createDatabase(t)
  const { rows } = await pool.query('select count(distinct cue.uuid_v7(now()))::int as count from generate_series(1, 10000)')
  t.same(rows, [{ count: 10_000 }])
})

t.test('ids made together ascend in unpredictable steps, and differ from those made at the same time', async t => {
  const { pool } = await createDatabase(t)
  const { rows } = await pool.query(
    `select cardinality(ids) as count, ids = array(select u.id from unnest(ids) as u (id) order by u.id) as ascend,
            (select count(distinct u.id)::int from unnest(ids || others) as u (id)) as different,
            (select count(distinct u.step)::int from (
               select ('x' || right(x.id::text, 12))::bit(48)::bigint - lag(('x' || right(x.id::text, 12))::bit(48)::bigint) over (order by x.id) as step
                 from unnest(ids) as x (id)) u) > 9900 as unpredictable
       from (select cue.uuids_v7(10000) as ids, cue.uuids_v7(10000) as others offset 0) made`
  )
  exactly(t, rows, [{ count: 10_000, ascend: true, different: 20_000, unpredictable: true }])
})

t.test('random ids belong to cell 1', async t => {
  const { pool } = await createDatabase(t)
  await setCell(pool, 7)
  const { rows } = await pool.query("select cue.uuid_v7('2026-01-01T00:00:00Z') as id, gen_random_uuid() as random")
  t.equal(cellOfId(rows[0].id), 7)
  for (const id of [rows[0].random, '', 'cue_0123456789ab', `${rows[0].id}0`]) t.equal(cellOfId(id), 1, id)
})

t.test('keys and tokens name their cell', async t => {
  always(
    fc.property(cells, cell => {
      const key = createKey(cell)
      return isKey(key) && cellOfKey(key) === cell && cellOfToken(createToken(cell)) === cell
    })
  )
  t.match(createKey(), /^svc_sk_1[0-9A-Za-z]{37}$/, 'where there is one cell')
  t.equal(cellOfKey('svc_sk_1'), undefined)
  t.equal(cellOfKey(`eyJ${createKey(2)}`), undefined)
  for (const text of ['', '-'.repeat(44)]) t.equal(cellOfToken(text), 1)
})

t.test('values chosen by clients are spread over the cells, and move only to an added cell', async t => {
  const counts = new Map<number, number>()
  always(
    fc.property(fc.string(), fc.integer({ min: 1, max: maxCells - 1 }), (value, count) => {
      const cell = cellOfValue(value, count)
      return cell >= 1 && cell <= count && [cell, count + 1].includes(cellOfValue(value, count + 1))
    })
  )
  for (let i = 0; i < 6000; i++) {
    const cell = cellOfValue(`code-${i}`, 3)
    counts.set(cell, (counts.get(cell) ?? 0) + 1)
  }
  t.same([...counts.keys()].sort(), [1, 2, 3])
  for (const count of counts.values()) t.ok(Math.abs(count - 2000) < 250, `${count}`)
})

t.test('the number of a database cannot be changed, removed or joined by another', async t => {
  const { pool } = await createDatabase(t)
  const rows = async () => (await pool.query('select id from cue.cell')).rows
  await pool.query('delete from cue.cell')
  await pool.query('update cue.cell set id = 2')
  t.same(await rows(), [{ id: 1 }])
  await t.rejects(pool.query('insert into cue.cell (id) values (2)'), { code: '23505' })
  t.same(await rows(), [{ id: 1 }])
})

t.test('a new database takes the number it is given, and keeps it when functions are loaded again', async t => {
  const { url, pool } = await createDatabase(t, { migrated: false })
  const numbers = 'select id, cue.cell_id() as encoded from cue.cell'
  await migrate({ connectionString: url, cell: 61 })
  t.same((await pool.query(numbers)).rows, [{ id: 61, encoded: 61 }])
  await setCell(pool, 5)
  await pool.query('update cue.migrations set checksum = $1 where id = 0', ['loaded before'])
  await migrate({ connectionString: url, cell: 3 })
  t.same((await pool.query(numbers)).rows, [{ id: 61, encoded: 61 }])
})

t.test('ids of accounts, executions and deletions encode the cell, and ticket numbers start far from those of others', async t => {
  const { url, pool } = await createDatabase(t, { migrated: false })
  await migrate({ connectionString: url, cell: 2 })
  const rows = async (text: string, values: unknown[] = []) => (await pool.query(text, values)).rows
  const key = createKey(2)
  const [{ id }] = await rows("select id from cue.register(cue.new_account_id(), 'a@example.com', $1, $2, 'x', null, null)", [
    Buffer.from(key),
    key.slice(0, 12)
  ])
  await rows('select cue.request_deletion($1)', [id])
  const [{ cue }] = await rows(
    `insert into cue.cues (id, account_id, name, transport, schedule_type, cron, payload)
     values (cue.new_cue_id(), $1, 'c', 'worker', 'recurring', '0 9 * * *', '{}') returning id as cue`,
    [id]
  )
  await rows("insert into cue.cue_runs (cue_id, account_id, transport) values ($1, $2, 'worker')", [cue, id])
  const [fired] = await rows('select id from cue.fire_cue($1, $2)', [id, cue])
  const [deletion] = await rows('select id from cue.deletions')
  for (const made of [id, fired.id, deletion.id]) t.equal(cellOfId(made), 2, made)
  await rows("update cue.accounts set created_at = now() - interval '2 hours'")
  const [ticket] = await rows("select cue.create_ticket($1, 'Ten letters', 'At least thirty letters in a message') as number", [id])
  exactly(t, ticket, { number: 35_000_001 })
  t.ok((maxCells - 1) * 35_000_000 < 2 ** 31 - 35_000_000)
})
