/** A replica on two cells, of which one fails, hangs, or is not there at the start. */
import t from 'tap'
import { addAccount, patienceMs, stage } from '../support/cells-stage.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { receiver } from '../support/receiver.ts'
import { startReplica } from '../support/replica.ts'

t.test('a cell that fails or hangs affects only its own accounts, and recovers', async t => {
  const { pools, wire, start } = await stage(t)
  const one = await addAccount(pools[0], 1)
  const two = await addAccount(pools[1], 2)
  const hook = await receiver(t)
  const { call, tick, lines } = await start()
  for (const account of [one, two]) await tick(account.api_key, `${hook.url}${account.id}`)
  const of = (account: { id: string }) => hook.requests.filter(({ path }) => path === `/${account.id}`)
  await eventually(() => of(one).length > 1 && of(two).length > 1, patienceMs)

  const list = (account: { api_key: string }) => call('GET', '/v1/cues', { key: account.api_key })

  for (const fault of ['interrupt', 'stall'] as const) {
    const mended = wire[fault](9000)
    const before = of(one).length
    const answer = list(two)
    const email = `during-${fault}@example.com`
    t.same(
      [await list(one), await call('POST', '/v1/auth/register', { body: { email } }), await call('GET', '/status')].map(
        ({ status }) => status
      ),
      [200, 201, 200]
    )
    const { status, reason, cells } = await eventually(async () => {
      const { body } = await call('GET', '/health')
      return body.cells[1].status === 'down' && body
    }, patienceMs)
    t.same([status, cells[0].status], ['degraded', 'healthy'])
    t.match(reason, /^cell 2: the database is unreachable/)
    await mended
    t.ok(of(one).length - before >= 6, `cell 1 fired ${of(one).length - before} times`)
    const then = of(two).length
    await eventually(() => of(two).length > then + 1, patienceMs)
    t.equal((await answer).status, 503, 'a hanging database has 8 seconds to answer')
    await eventually(async () => (await list(two)).status === 200, patienceMs)
    await eventually(async () => (await call('GET', '/health')).body.status === 'healthy', patienceMs)
  }
  t.ok(
    lines().some(({ msg, cell }) => msg === 'database unavailable' && cell === 2),
    'the log names the cell'
  )
  t.same(
    lines().filter(({ cell }) => cell === 1),
    []
  )
})

t.test('a replica starts without an unavailable cell, and serves it when it is back', async t => {
  const { pools, wire, start } = await stage(t)
  const one = await addAccount(pools[0], 1)
  const two = await addAccount(pools[1], 2)
  const hook = await receiver(t)
  const back = Promise.withResolvers<void>()
  const mended = wire.interrupt(back.promise)
  const { call, tick, lines } = await start()
  t.equal((await tick(one.api_key, hook.url)).status, 201)
  t.equal((await call('GET', '/v1/cues', { key: two.api_key })).status, 503)
  back.resolve()
  await mended
  await eventually(() => lines().some(({ msg, cell }) => msg === 'cell available' && cell === 2), patienceMs)
  const { status } = await tick(two.api_key, `${hook.url}two`)
  t.equal(status, 201)
  await eventually(() => hook.requests.some(({ path }) => path === '/two'), patienceMs)
})

t.test('ENGINE_CELLS names the cells whose cues a replica fires', async t => {
  const { pools, start } = await stage(t)
  const two = await addAccount(pools[1], 2)
  const { call } = await start({ ENGINE_CELLS: '1' })
  const replicas = await Promise.all(
    pools.map(async pool => (await pool.query('select count(*)::int as count from cue.engines')).rows[0].count)
  )
  t.same(replicas, [1, 0])
  t.equal((await call('GET', '/v1/cues', { key: two.api_key })).status, 200)
})

t.test('refuses databases in the wrong order with one line that names CELLS', async t => {
  const { urls } = await stage(t)
  const cases: [string, string][] = [
    [`${urls[1]} ${urls[0]}`, 'CELLS must list the databases in the order of their numbers: URL 1 is cell 2'],
    [urls[1], 'DATABASE_URL is cell 2 of several: list all of them in CELLS, in the order of their numbers']
  ]
  for (const [CELLS, message] of cases) {
    const { code, err } = await startReplica(t, { CELLS }).ended
    t.equal(code, 1)
    t.equal(err.trim().split('\n').at(-1), `pgcue: ${message}`)
  }
})

t.test('a new database in the wrong place does not take its number', async t => {
  const { urls } = await stage(t)
  const added = await createDatabase(t, { migrated: false })
  const { code, err } = await startReplica(t, { CELLS: `${added.url} ${urls[0]}` }).ended
  t.equal(code, 1)
  t.match(err, /^pgcue: CELLS must list .*: URL 2 is cell 1\n$/)
  t.same((await added.pool.query("select to_regnamespace('cue') as schema")).rows, [{ schema: null }])
})
