// Connections after a failed statement.
import t from 'tap'
import { createPool } from '../../src/database/pool.ts'
import { createDatabase } from '../support/database.ts'

const refuse = "do $$ begin raise 'no' using errcode = 'QU001'; end $$"

const setup = async (t: Parameters<typeof createDatabase>[0], max: number) => {
  const { config } = await createDatabase(t)
  const pool = createPool(config, { max })
  t.teardown(() => pool.end())
  const pid = async () => (await pool.query('select pg_backend_pid() as pid')).rows[0].pid
  return { pool, pid }
}

t.test('a refusal leaves the connection open, and what is prepared on it', async t => {
  const { pool, pid } = await setup(t, 1)
  const before = await pid()
  const double = (value: string) => pool.query({ name: 'double', text: 'select 2 * $1::int as twice', values: [value] })
  await t.rejects(pool.query(refuse), { code: 'QU001' })
  await t.rejects(double('x'), { code: '22P02' })
  t.same((await double('3')).rows, [{ twice: 6 }])
  t.equal(await pid(), before)
  t.same((await pool.query('select name from pg_prepared_statements')).rows, [{ name: 'double' }])
})

t.test('a statement that fails within a transaction ends its connection', async t => {
  const { pool, pid } = await setup(t, 1)
  const before = await pid()
  await t.rejects(pool.query(`begin; ${refuse}`), { code: 'QU001' })
  t.not(await pid(), before)
})

t.test('an outdated statement ends its connection, and so does an end by the server', async t => {
  const { pool, pid } = await setup(t, 1)
  const first = await pid()
  await pool.query('create table public.shape (a int)')
  const query = { name: 'all', text: 'select * from public.shape' }
  await pool.query(query)
  await pool.query('alter table public.shape add b int')
  await t.rejects(pool.query(query), { code: '0A000' })
  const second = await pid()
  t.not(second, first)
  t.same((await pool.query(query)).rows, [])
  await t.rejects(pool.query('select pg_terminate_backend(pg_backend_pid())'), { code: '57P01' })
  t.not(await pid(), second)
  await pool.query('drop table public.shape')
})

t.test('the locks of a failed statement are released before its error is known', async t => {
  const { pool } = await setup(t, 2)
  await Promise.all([1, 2].map(() => pool.query('select pg_sleep(0.05)'))) // both are connected
  const count = 3000
  const lock = `do $$ begin perform pg_advisory_xact_lock(n) from generate_series(1, ${count}) n; raise 'no'; end $$`
  for (let n = 0; n < 20; n++) {
    await t.rejects(pool.query(lock))
    const { rows } = await pool.query('select pg_try_advisory_xact_lock($1) as is_free', [count])
    if (!rows[0].is_free) t.fail('still locked')
  }
})
