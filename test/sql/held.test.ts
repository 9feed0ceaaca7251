// SQL functions that serve several accounts, while another transaction holds rows of one.
import t, { type Test } from 'tap'
import type { Functions } from '../../src/database/functions.ts'
import { createPool } from '../../src/database/pool.ts'
import { beginWaiting } from '../support/begin-waiting.ts'
import { testConfig } from '../support/database.ts'
import { awaiting, cueDefaults, once, type Row, refused, stage } from '../support/stage.ts'

/** The stage with a second account, and a transaction that locks the rows of a query. */
const holding = async (t: Test) => {
  const s = await stage(t)
  const other = await s.account()
  const { client } = await s.connect()
  const hold = async (query: string, values: unknown[] = []) => {
    await client.query('begin')
    await client.query(`${query} for update`, values)
  }
  return { ...s, other, hold, letGo: () => client.query('rollback') }
}

const two = { cues: JSON.stringify([cueDefaults, cueDefaults]), next_runs: [null, null] }

for (const [table, column] of [
  ['accounts', 'id'],
  ['cue_rooms', 'account_id']
]) {
  t.test(`creates the cues of all accounts except one whose row in ${table} is locked, and says nothing about that one`, async t => {
    const { fn, account_id, other, hold, letGo, cue } = await holding(t)
    await cue()
    const account_ids = [account_id, other]
    await hold(`select from cue.${table} where ${column} = $1`, [account_id])
    const made = await fn.createEachCue({ account_ids, ...two })
    t.same(
      made.map(({ id, is_locked }) => [id !== null, is_locked]),
      [
        [false, true],
        [true, false]
      ]
    )
    if (table === 'accounts') await t.rejects(fn.createCue({ account_id, cue: cueDefaults, next_run: null }), { code: '55P03' })
    await letGo()
    t.same(
      (await fn.createEachCue({ account_ids, ...two })).map(({ id, is_locked }) => [id !== null, is_locked]),
      [
        [true, false],
        [true, false]
      ]
    )
  })
}

t.test('says why a cue was refused, beside cues that were created', async t => {
  const { fn, account_id, other, rows } = await holding(t)
  await rows("update cue.accounts set plan = 'free' where id = $1", [other])
  await rows("update cue.plans set cues = 0 where plan = 'free'")
  t.teardown(() => rows("update cue.plans set cues = 10 where plan = 'free'"))
  const made = await fn.createEachCue({ account_ids: [other, account_id], ...two })
  t.same(
    made.map(({ id, message }) => [id !== null, message]),
    [
      [false, 'Cue limit reached: the plan allows 0 cues. Delete one or change the plan.'],
      [true, null]
    ]
  )
})

const ask = (fn: Functions, addresses: string[]) =>
  fn.admit({
    key_hashes: addresses.map(() => null),
    session_ids: addresses.map(() => null),
    execution_ids: addresses.map(() => null),
    addresses,
    scopes: addresses.map(() => null)
  })

t.test('returns unavailable for a locked rate window and counts the others', async t => {
  const { fn, hold, rows } = await holding(t)
  await rows("delete from cue.rate_windows where subject like 'address:192.0.2.%'")
  await ask(fn, ['192.0.2.1', '192.0.2.2'])
  await hold("select from cue.rate_windows where subject = 'address:192.0.2.1'")
  t.same(
    (await ask(fn, ['192.0.2.1', '192.0.2.2', '192.0.2.3'])).map(({ error, rate_remaining }) => [error, rate_remaining]),
    [
      ['unavailable', 60],
      [null, 58],
      [null, 59]
    ]
  )
  await t.rejects(fn.allow({ subject: 'address:192.0.2.1', limit: 1 }), { code: '55P03' })
})

t.test('returns unavailable for a rate window that another transaction is adding, and counts the others', async t => {
  const { fn, connect, rows } = await holding(t)
  await rows("delete from cue.rate_windows where subject like 'address:192.0.2.%'")
  const { client, fn: theirs } = await connect()
  await client.query('begin')
  await theirs.allow({ subject: 'address:192.0.2.1', limit: 60 })
  t.same(
    (await ask(fn, ['192.0.2.1', '192.0.2.2'])).map(({ error, rate_remaining }) => [error, rate_remaining]),
    [
      ['unavailable', 60],
      [null, 59]
    ]
  )
  await client.query('rollback')
})

t.test('fires cues of all accounts while one account is locked', async t => {
  const { cue, take, other, hold, used, account_id } = await holding(t)
  const ids = [await cue(), await cue({}, { account_id: other })]
  await hold('select from cue.accounts where id = $1', [account_id])
  t.equal((await take(ids)).length, 2)
  t.same([await used(), await used(other)], [1, 1])
})

t.test('records all results except a locked one, and returns its id', async t => {
  const { cue, take, other, hold, letGo, finish, fn, execution, settle } = await holding(t)
  const attempts = await take([await cue(), await cue({}, { account_id: other })])
  const [one, two] = attempts.map(attempt => attempt.execution_id)
  const asked = { execution_ids: [one!, two!], cue_ids: attempts.map(attempt => attempt.cue_id) }
  t.same(await fn.heldAttempts(asked), [])
  await hold('select from cue.executions where id = $1', [one])
  await t.rejects(finish(attempts), { code: '55P03' })
  await t.rejects(settle(attempts, refused), { code: '55P03' })
  t.same(await fn.heldAttempts(asked), [one])
  await finish([attempts[1]!])
  t.equal((await execution(two!)).status, 'success')
  await letGo()
  for (const query of ['select from cue.cues where id = $1', 'select from cue.cue_runs where cue_id = $1']) {
    await hold(query, [asked.cue_ids[1]])
    t.same(await fn.heldAttempts(asked), [two], query)
    await letGo()
  }
  await finish(attempts)
  t.equal((await execution(one!)).status, 'success')
})

t.test('begins all waiting attempts except one whose job is locked', async t => {
  const { cue, take, settle, fn, clock, hold, letGo } = await holding(t)
  const attempts = await take([await cue(), await cue()])
  await settle(attempts, refused)
  clock.advance('1 hour')
  const [one, two] = attempts.map(attempt => attempt.execution_id)
  await hold('select from pgboss.job where id = $1', [one])
  t.same(
    (await beginWaiting(fn, { limit: 10 })).map(attempt => attempt.execution_id),
    [two]
  )
  await letGo()
  t.same(
    (await beginWaiting(fn, { limit: 10 })).map(attempt => attempt.execution_id),
    [one]
  )
})

t.test('recovers an expired flight except its locked execution, which the next sweep recovers', async t => {
  const { cue, take, fn, clock, hold, letGo, execution, rows } = await holding(t)
  const attempts = await take([await cue(), await cue()])
  const [one, two] = attempts.map(attempt => attempt.execution_id)
  clock.advance('1 minute')
  await hold('select from cue.executions where id = $1', [one])
  t.equal(await fn.recoverFlights({}), 1)
  t.same([(await execution(one!)).status, (await execution(two!)).status], ['delivering', 'retry_ready'])
  t.equal((await rows('select from cue.flights')).length, 1)
  await letGo()
  t.equal(await fn.recoverFlights({}), 1)
  t.equal((await execution(one!)).status, 'retry_ready')
  t.equal((await rows('select from cue.flights')).length, 0)
})

t.test('extends all leases except a locked one, and returns all as held', async t => {
  const { begun, fn, clock, hold, row } = await holding(t)
  const [one, two] = [await begun(), await begun()].map(attempt => attempt.flight_id)
  const leaseOf = async (id: number) => (await row('select lease_expires_at as at from cue.flights where id = $1', [id])).at
  const before = await leaseOf(one!)
  clock.advance('1 second')
  await hold('select from cue.flights where id = $1', [one])
  t.same((await fn.extendFlights({ flight_ids: [one!, two!, 999_999] })).sort(), [one, two].sort())
  t.same([await leaseOf(one!), await leaseOf(two!)], [before, new Date(clock.now().getTime() + 4000)])
})

const worker = { transport: 'worker', callback_url: null }
/** Executions that a sweep ends: how to create them, and the sweep to call when they are due. It reads one, if that is possible. */
const sweeps: Record<string, { made: object; call: (fn: Row) => Promise<number> }> = {
  expire_outcomes: { made: awaiting, call: fn => fn.expireOutcomes({ limit: 1 }) },
  miss_unclaimed: { made: worker, call: fn => fn.missUnclaimed({ limit: 1 }) },
  recover_leases: { made: { ...worker, name: 'claimed' }, call: fn => fn.recoverLeases({ limit: 1 }) },
  recover_stuck: { made: {}, call: fn => fn.recoverStuck({}) }
}
/** Rows of cue $1 that a sweep would wait for. */
const rowsOf = {
  'its cue': 'select from cue.cues where id = $1',
  'its run': 'select from cue.cue_runs where cue_id = $1',
  'its execution': 'select from cue.executions where cue_id = $1',
  'an open alert': 'select from cue.alerts where cue_id = $1',
  'its account': 'select from cue.accounts where id = (select account_id from cue.cues where id = $1)'
}
for (const [sweep, { made, call }] of Object.entries(sweeps)) {
  for (const [what, query] of Object.entries(rowsOf)) {
    t.test(`${sweep} continues with the next execution while ${what} is locked`, async t => {
      const { cue, take, settle, fn, clock, rows, other, hold, letGo, account_id } = await holding(t)
      const ids = [await cue(made), await cue(made, { account_id: other })]
      for (const id of ids) {
        clock.advance('1 second')
        const begun = await take([id])
        if (sweep === 'expire_outcomes') await settle(begun)
        if (sweep === 'recover_leases') await fn.claimExecutions({ account_id: id === ids[0] ? account_id : other, worker_id: 'w' })
      }
      await rows(
        `insert into cue.alerts (id, account_id, cue_id, alert_type, severity, message, created_at)
         values (gen_random_uuid(), $1, $2, 'missed_window', 'high', 'x', now())`,
        [account_id, ids[0]]
      )
      clock.advance('1 hour')
      await hold(query, [ids[0]])
      t.equal(await call(fn), 1)
      await letGo()
      t.equal(await call(fn), 1)
      t.equal(await call(fn), 0)
    })
  }
}

t.test('drops the slots of one-time cues after an outage except for a locked one', async t => {
  const { cue, fn, rows, hold, letGo, clock } = await holding(t)
  const ids = [await cue({ ...once, catch_up: 'skip_missed' }), await cue({ ...once, catch_up: 'skip_missed' })]
  const runs = await rows('select * from cue.cue_runs where cue_id = any ($1) order by cue_id', [ids])
  const cues = JSON.stringify(
    runs.map(run => ({ cue_id: run.cue_id, version: run.version, expected: run.next_run, next_run: null, slots: [], dropped: null }))
  )
  clock.advance('1 minute')
  await hold('select from cue.cue_runs where cue_id = $1', [ids[0]])
  t.equal(await fn.catchUpCues({ cues }), 1)
  await letGo()
  t.equal(await fn.catchUpCues({ cues }), 1)
})

t.test('plans made while tables are small lock rows of large ones without reading the others one by one', async t => {
  const others = 5000
  const { begun, url, account_id, hold, rows } = await holding(t)
  const { cue_id, execution_id } = await begun()
  const pool = createPool(testConfig(url), { max: 1 })
  t.teardown(() => pool.end())
  const pages = async (call: string, values: unknown[]): Promise<number> => {
    const explained = await pool.query({ name: call, text: `explain (analyze, buffers, format json) select ${call}`, values })
    const { Plan } = explained.rows[0]['QUERY PLAN'][0]
    return Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
  }
  const calls: Record<string, unknown[]> = {
    'cue.lock_accounts($1)': [[account_id]],
    'cue.lock_free_cues($1)': [[cue_id]],
    'cue.held_attempts($1, $2)': [[execution_id], [cue_id]]
  }
  const measure = async () => {
    const least: Record<string, number> = {}
    // A plan invalidated meanwhile, for example by an analyze, is made again, which reads the catalogs.
    for (let round = 0; round < 7; round++)
      for (const [call, values] of Object.entries(calls))
        least[call] = Math.min(least[call] ?? Number.POSITIVE_INFINITY, await pages(call, values))
    return least
  }
  await rows('vacuum analyze cue.cues, cue.cue_runs, cue.cue_rooms, cue.executions')
  await hold('select from cue.executions where id = $1', [execution_id]) // held_attempts looks whether it still exists
  const small = await measure()
  await rows(
    `with a as (
       insert into cue.accounts (id, email, plan, webhook_secret)
       select id, id || '@example.com', 'scale', 'whsec_' || repeat('a', 64) from (select gen_random_uuid() as id from generate_series(1, $2::int)) n
       returning id),
     k as (insert into cue.cue_rooms select id, 1, 1 from a),
     c as (
       insert into cue.cues (id, account_id, name, transport, schedule_type, cron, payload)
       select 'cue_' || left(md5(id::text), 12), id, 'c', 'worker', 'recurring', '* * * * *', '{}' from a returning id, account_id),
     r as (insert into cue.cue_runs (cue_id, account_id, transport) select id, account_id, 'worker' from c)
     insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, claimable_at, created_at, updated_at)
     select cue.uuid_v7($1), account_id, id, 'worker', 'pending', 'schedule', $1, '{}', $1, $1, $1 from c`,
    ['2030-01-15T09:00:00Z', others]
  )
  const large = await measure()
  // Such a plan may read another index instead, of which a page has many rows.
  for (const call of Object.keys(calls))
    t.ok(large[call]! <= small[call]! + others / 10, `${call}: ${small[call]} pages, then ${large[call]}`)
})
