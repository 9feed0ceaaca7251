import type pg from 'pg'
import t from 'tap'
import { layWire } from '../../scripts/stage/wire.ts'
import { connect, withClient } from '../../src/admin/database.ts'
import { createListener } from '../../src/database/listener.ts'
import { connectDirect, createPool, startDatabase } from '../../src/database/pool.ts'
import { migrate } from '../../src/migrate/migrate.ts'
import { createDatabase, testConfig } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { expected, setOddDefaults, settings } from '../support/odd-defaults.ts'

const { config, pool, url } = await createDatabase(t, { migrated: false })
const pidOf = async (client: { query: (text: string) => Promise<{ rows: { pid: number }[] }> }) =>
  (await client.query('select pg_backend_pid() as pid')).rows[0]!.pid

t.test('parses values to the right types', async t => {
  const { rows } = await pool.query(`
    select 9007199254740991::int8 as count, null::int8 as nothing, array[1, null, 3]::int8[] as counts, array[1, 2]::int[] as numbers,
           '2030-01-01T09:00:00.123Z'::timestamptz as instant, '2030-01-01'::date as day,
           '{"a": [1]}'::jsonb as object, '00000000-0000-7000-8000-000000000000'::uuid as id, '1.10'::numeric as amount`)
  t.same(rows, [
    {
      count: 9007199254740991,
      nothing: null,
      counts: [1, null, 3],
      numbers: [1, 2],
      instant: new Date('2030-01-01T09:00:00.123Z'),
      day: '2030-01-01',
      object: { a: [1] },
      id: '00000000-0000-7000-8000-000000000000',
      amount: '1.10'
    }
  ])
  t.type(rows[0].count, 'number')
})

t.test("no connection has its role's or its database's defaults, and all have time limits and prefer indexes", async t => {
  const odd = await createDatabase(t, { migrated: false })
  await setOddDefaults(odd)
  const pool = createPool(odd.config)
  const direct = await connectDirect(odd.config)
  const admin = await connect(odd.url)
  t.teardown(() => Promise.all([pool.end(), direct.end(), admin.end()]))
  const read = async (client: pg.ClientBase) =>
    Object.fromEntries((await client.query(settings)).rows.map(({ name, setting }) => [name, setting]))
  const pooled = await pool.connect()
  for (const client of [pooled, direct]) t.same(await read(client), expected)
  pooled.release()
  const { enable_seqscan, constraint_exclusion, tcp_user_timeout, ...common } = expected
  const unlimited = { statement_timeout: '0', lock_timeout: '0', idle_in_transaction_session_timeout: '0' }
  exactly(t, await read(admin), { ...common, ...unlimited })
})

t.test('PG_POOL_MAX bounds the pool', async t => {
  const small = createPool(testConfig(url, { PG_POOL_MAX: '2', ROLES: 'api' }), { name: 'small' })
  t.teardown(() => small.end())
  await Promise.all(Array.from({ length: 10 }, () => small.query('select 1')))
  t.equal(small.totalCount, 2)
})

t.test('reports and replaces a lost idle connection', async t => {
  const errors: Error[] = []
  const own = createPool(config, { name: 'idle', onError: error => errors.push(error) })
  t.teardown(() => own.end())
  const pid = await pidOf(own)
  await pool.query('select pg_terminate_backend($1)', [pid])
  await eventually(() => errors.length)
  t.not(await pidOf(own), pid)
})

t.test('a connection lost within a transaction fails its next statement only', async t => {
  const own = createPool(config, { name: 'busy' })
  t.teardown(() => own.end())
  const client = await own.connect()
  await client.query('begin')
  const gone = new Promise(resolve => client.once('end', () => resolve(true)))
  await pool.query('select pg_terminate_backend($1)', [await pidOf(client)])
  await gone
  await t.rejects(client.query('select 1'))
  client.release(true)
  t.same((await own.query('select 1 as n')).rows, [{ n: 1 }])
})

t.test('reports a lost direct connection once, with the reason', async t => {
  const reasons: string[] = []
  const client = await connectDirect(config, { onLost: error => reasons.push(error.message) })
  const gone = new Promise(resolve => client.once('end', () => resolve(true)))
  await pool.query('select pg_terminate_backend($1)', [await pidOf(client)])
  await gone
  t.same(reasons, ['terminating connection due to administrator command'])
  const quiet = await connectDirect(config, { onLost: error => reasons.push(error.message) })
  await quiet.end()
  t.equal(reasons.length, 1, 'ending it is not losing it')
})

t.test('starts no server with DATABASE_URL', async t => {
  const database = await startDatabase(config)
  t.equal(database.config, config)
  await t.resolves(database.stop())
})

t.test('whichever step of connecting fails, the connection is closed', async t => {
  const wire = await layWire(url)
  t.teardown(() => wire.close())
  // The server asks for a password, the driver has none and gives up, and the server would wait for a minute.
  const passwordless = Object.assign(new URL(wire.url), { password: '' }).href
  const own = createPool({ databaseUrl: passwordless, pgPoolMax: 3 })
  t.teardown(() => own.end())
  const listen = () => createListener({ databaseUrl: url, listenUrl: passwordless }, { channels: ['x'], onNotification: () => {} })
  const steps: Record<string, () => Promise<unknown>> = {
    pool: () => own.query('select 1'),
    direct: () => connectDirect({ listenUrl: passwordless }),
    listener: listen,
    migrations: () => migrate({ connectionString: passwordless, isCopy: true }),
    'pgcue-admin': () => withClient(passwordless, async () => {})
  }
  for (const [name, connect] of Object.entries(steps)) {
    await t.rejects(async () => void (await connect()), /password/, name)
    await eventually(() => wire.open === 0, 5000)
  }
})

t.test('a connection without an answer in time takes the idle ones with it, which lead to the same silence', async t => {
  const wire = await layWire(url)
  t.teardown(() => wire.close())
  const own = createPool({ databaseUrl: wire.url, pgPoolMax: 4 }, { answerMs: 1000 })
  t.teardown(() => own.end())
  const four = () => Promise.allSettled(Array.from({ length: 4 }, () => own.query('select pg_sleep(0.1)')))
  await four()
  t.equal(own.idleCount, 4)
  wire.silence()
  await t.rejects(own.query('select 1'), { message: 'Query read timeout' })
  t.same(pluck(await four(), 'status'), ['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled'])
})
