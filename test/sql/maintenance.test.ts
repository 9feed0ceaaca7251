// Housekeeping: partitions, retention, purging of deleted cues, and pruning.
import t, { type Test } from 'tap'
import { migrate } from '../../src/migrate/migrate.ts'
import { exactly } from '../support/exactly.ts'
import { refused, stage } from '../support/stage.ts'

const months = `select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bounds, c.reloptions as options
                  from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass order by 1`

/** Each test uses years of its own, so that tests do not share partitions. */
const stageIn = async (t: Test, start: string) => {
  const s = await stage(t, start)
  const names = async (parent = 'executions') => (await s.rows(months, [`cue.${parent}`])).map(row => row.name as string)
  /** An execution created at one time and ended at another, with its attempt. */
  const ended = async (cue_id: string, made_at: string, ended_at: string | null = made_at) => {
    const [{ id }] = await s.rows('select cue.uuid_v7($1) as id', [made_at])
    await s.rows(
      `insert into cue.executions (id, account_id, cue_id, transport, status, triggered_by, scheduled_for, payload, attempts, started_at, ended_at,
                                   attempt_due_at, created_at, updated_at)
       values ($1, $2, $3, 'webhook', $4, 'schedule', $5, '{}', 1, $5, $6, $7, $5, $5)`,
      [id, s.account_id, cue_id, ended_at ? 'success' : 'retrying', made_at, ended_at, ended_at ? null : made_at]
    )
    await s.rows(`insert into cue.attempts values ($1, 1, $2, 'success', $3, $3, 5)`, [id, s.account_id, made_at])
    return id as string
  }
  return { ...s, names, ended }
}

t.test('creates partitions for this month and those ahead, without gaps, across the end of a year', async t => {
  const { fn, rows, names } = await stageIn(t, '2040-11-30T23:59:59Z')
  t.equal(await fn.maintainPartitions({ months: 4 }), 6, 'two more of each than the stage made')
  t.equal(await fn.maintainPartitions({ months: 4 }), 0)
  const own = (await names()).filter(name => name >= 'executions_2040_11')
  t.same(own, ['executions_2040_11', 'executions_2040_12', 'executions_2041_01', 'executions_2041_02', 'executions_2041_03'])
  for (const parent of ['attempts', 'fixed_requests'])
    t.same(
      (await names(parent)).slice(-5),
      own.map(name => name.replace('executions', parent))
    )
  const bounds = (await rows(months, ['cue.executions'])).slice(-5).map(row => /FROM \('(.*)'\) TO \('(.*)'\)/.exec(row.bounds)!.slice(1))
  for (let i = 1; i < bounds.length; i++) t.equal(bounds[i]![0], bounds[i - 1]![1])
})

t.test('an id belongs to the partition of its month, to the millisecond', async t => {
  const { cue, ended, row } = await stageIn(t, '2042-02-15T00:00:00Z')
  const id = await cue()
  for (const [at, month] of [
    ['2042-02-28T23:59:59.999Z', '2042_02'],
    ['2042-03-01T00:00:00.000Z', '2042_03']
  ] as const) {
    const execution = await ended(id, at)
    for (const [table, key] of [
      ['executions', 'id'],
      ['attempts', 'execution_id']
    ]) {
      t.equal(
        (await row(`select tableoid::regclass::text as name from cue.${table} where ${key} = $1`, [execution])).name,
        `cue.${table}_${month}`
      )
    }
  }
})

t.test('partitions of executions leave room for a second version of each row', async t => {
  const { rows } = await stage(t)
  for (const { options } of await rows(months, ['cue.executions'])) t.ok(options.includes('fillfactor=45'))
})

t.test('creating partitions waits neither for readers nor for writers', async t => {
  const { fn, begun, connect, finish } = await stageIn(t, '2043-01-15T00:00:00Z')
  const attempt = await begun()
  const { client, fn: other } = await connect()
  await client.query('begin')
  await finish([attempt], other)
  await client.query('select from cue.executions')
  t.equal(await fn.maintainPartitions({ months: 3 }), 3)
  await client.query('commit')
})

t.test('simultaneous calls create each partition once', async t => {
  const { fn, connect } = await stageIn(t, '2044-01-15T00:00:00Z')
  const a = await connect()
  const b = await connect()
  await a.client.query('begin')
  t.equal(await a.fn.maintainPartitions({ months: 3 }), 3)
  const second = b.fn.maintainPartitions({ months: 3 })
  await b.blocked()
  await a.client.query('commit')
  t.equal(await second, 0)
  t.equal(await fn.maintainPartitions({ months: 3 }), 0)
})

t.test('recording a delivery is a HOT update: no indexed column changes, and the page has room', async t => {
  const { cue, take, finish, fn, connect, row } = await stageIn(t, '2045-01-15T00:00:00Z')
  await fn.maintainPartitions({})
  const { client, fn: by } = await connect()
  const ids = await Promise.all(Array.from({ length: 50 }, () => cue({ payload: JSON.stringify({ text: 'x'.repeat(300) }) })))
  t.equal(await finish(await take(ids, { by }), by), 50)
  await client.query('select pg_stat_force_next_flush()')
  await client.query('select 1')
  exactly(t, await row(`select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'executions_2045_01'`), {
    n_tup_upd: 50,
    n_tup_hot_upd: 50
  })
})

// Retention ---------------------------------------------------------------------------------------------------------------------------

t.test('drops a month that is entirely before the instant, with its attempts', async t => {
  const { cue, ended, fn, names, rows, clock } = await stageIn(t, '2050-01-15T00:00:00Z')
  const id = await cue()
  await ended(id, '2050-01-31T23:59:59.999Z')
  const kept = await ended(id, '2050-02-01T00:00:00Z')
  clock.set('2050-06-01T00:00:00Z')
  await fn.dropOldExecutions({ before: new Date('2050-01-31T23:59:59.999Z') })
  t.ok((await names()).includes('executions_2050_01'))
  t.ok((await fn.dropOldExecutions({ before: new Date('2050-02-01T00:00:00Z') })).includes('2050_01'))
  t.notOk((await names()).includes('executions_2050_01'))
  t.notOk((await names('attempts')).includes('attempts_2050_01'))
  t.same(
    (await rows('select id from cue.executions')).map(row => row.id),
    [kept]
  )
  t.same(
    (await rows('select execution_id from cue.attempts')).map(row => row.execution_id),
    [kept]
  )
})

t.test('refuses to drop anything younger than the minimum retention', async t => {
  const { ended, cue, fn, names, clock } = await stageIn(t, '2053-01-15T00:00:00Z')
  await ended(await cue(), '2053-01-16T00:00:00Z')
  clock.set('2053-03-08T00:00:00Z')
  await t.rejects(fn.dropOldExecutions({ before: new Date('2053-02-01T00:00:00.001Z') }), { message: /kept for at least 35 days/ })
  t.ok((await names()).includes('executions_2053_01'))
  t.ok((await fn.dropOldExecutions({ before: new Date('2053-02-01T00:00:00Z') })).includes('2053_01'))
})

t.test('months end at midnight UTC in every session time zone', async t => {
  const { connect, rows } = await stageIn(t, '2051-03-15T00:00:00Z')
  for (const zone of ['America/New_York', 'Asia/Kolkata', 'Pacific/Kiritimati', 'UTC']) {
    const { client } = await connect()
    await client.query(`set timezone = '${zone}'`)
    const before = async (at: string) =>
      (await client.query('select months_before as m from cue.months_before($1)', [at])).rows.map(row => row.m)
    t.notOk((await before('2051-03-31T23:59:59.999Z')).includes('2051_03'), zone)
    t.ok((await before('2051-04-01T00:00:00Z')).includes('2051_03'), zone)
  }
  await rows('select 1')
})

t.test('deletes only the finished executions of a month with unfinished ones, in batches', async t => {
  const { cue, ended, fn, names, rows, clock } = await stageIn(t, '2052-01-15T00:00:00Z')
  const id = await cue()
  for (let i = 0; i < 7; i++) await ended(id, `2052-01-1${i}T00:00:00Z`)
  const open = await ended(id, '2052-01-17T00:00:00Z', null)
  const late = await ended(id, '2052-01-18T00:00:00Z', '2052-04-30T00:00:00Z')
  const before = new Date('2052-04-15T00:00:00Z')
  clock.set('2052-10-01T00:00:00Z')
  t.notOk((await fn.dropOldExecutions({ before })).includes('2052_01'))
  t.equal(await fn.deleteOldExecutions({ before, batch: 5 }), 5)
  t.equal(await fn.deleteOldExecutions({ before, batch: 5 }), 2)
  t.equal(await fn.deleteOldExecutions({ before, batch: 5 }), 0)
  t.same(
    (await rows('select id from cue.executions order by id')).map(row => row.id),
    [open, late]
  )
  t.same(
    (await rows('select execution_id as id from cue.attempts order by 1')).map(row => row.id),
    [open, late]
  )

  await rows("update cue.executions set status = 'failed', ended_at = '2052-04-30T00:00:00Z', attempt_due_at = null where id = $1", [open])
  t.notOk((await fn.dropOldExecutions({ before })).includes('2052_01'), 'executions ended since are kept')
  const after = new Date('2052-07-30T00:00:00Z')
  t.ok((await fn.dropOldExecutions({ before: after })).includes('2052_01'), 'until those are old, too')
  t.notOk((await names()).includes('executions_2052_01'))
})

const waits: [string, string][] = [
  ['pending for a worker', `transport = 'worker', status = 'pending', claimable_at = now(), ended_at = null, started_at = null`],
  [
    'claimed',
    `transport = 'worker', status = 'delivering', lease_expires_at = now(), claim_token = gen_random_uuid(), claimed_by_worker = 'w', claimed_at = now(), ended_at = null`
  ],
  ['pending_outcome', `status = 'pending_outcome', outcome_deadline_at = now(), ended_at = null`],
  ['in flight', `status = 'delivering', flight_id = 77, ended_at = null`],
  ['retry_ready', `status = 'retry_ready', attempt_due_at = now(), ended_at = null`]
]
for (const [i, [what, columns]] of waits.entries()) {
  t.test(`keeps a month that has an execution that is ${what}`, async t => {
    const year = 2053 + i
    const { cue, ended, fn, rows, clock } = await stageIn(t, `${year}-01-15T00:00:00Z`)
    const id = await ended(await cue(), `${year}-01-15T00:00:00Z`)
    await rows('insert into cue.flights (id, execution_ids, lease_expires_at) values (77, $1, now())', [[id]])
    await rows(`update cue.executions set ${columns} where id = $1`, [id])
    const before = new Date(`${year}-05-01T00:00:00Z`)
    clock.set(`${year}-10-01T00:00:00Z`)
    const dropped = await fn.dropOldExecutions({ before })
    t.notOk(dropped.includes(`${year}_01`))
    t.ok(dropped.includes(`${year}_02`), 'no other month is kept')
    t.equal(await fn.deleteOldExecutions({ before }), 0)
  })
}

t.test('does not wait for a month being read, and drops nothing of it', async t => {
  const { fn, connect, names, clock } = await stageIn(t, '2060-01-15T00:00:00Z')
  clock.set('2060-06-01T00:00:00Z')
  const { client } = await connect()
  await client.query('begin; select from cue.attempts_2060_01')
  await t.rejects(fn.dropOldExecutions({ before: new Date('2060-02-01T00:00:00Z') }), { code: '55P03' })
  t.ok((await names()).includes('executions_2060_01'))
  await client.query('commit')
  t.ok((await fn.dropOldExecutions({ before: new Date('2060-02-01T00:00:00Z') })).includes('2060_01'))
})

// Deleted cues ------------------------------------------------------------------------------------------------------------------------

t.test("removes a deleted cue's history in batches, and the cue with the last", async t => {
  const { cue, take, settle, fn, rows, account_id, jobs } = await stage(t)
  const [id, other] = [await cue(), await cue()]
  for (let i = 0; i < 4; i++) await fn.fireCue({ account_id, cue_id: id })
  await settle(await take([other]), refused)
  t.equal((await rows('select from cue.executions where cue_id = $1', [id])).length, 4)
  t.equal(await fn.purgeCue({ cue_id: id }), 0, 'a cue that is not deleted is not purged')
  await fn.deleteCue({ account_id, cue_id: id })
  exactly(t, await jobs('purges'), [{ data: { cue_id: id } }])
  t.equal((await rows('select from cue.execution_view where cue_id = $1', [id])).length, 0, 'hidden at once')
  t.equal(await fn.purgeCue({ cue_id: id, batch: 3 }), 3)
  t.equal((await rows('select from cue.cues where id = $1', [id])).length, 1)
  t.equal(await fn.purgeCue({ cue_id: id, batch: 3 }), 1)
  t.equal(await fn.purgeCue({ cue_id: id, batch: 3 }), 0)
  t.same(await rows('select from cue.cues where id = $1', [id]), [])
  t.same(await rows('select cue_id from cue.executions'), [{ cue_id: other }])
  t.same((await rows('select from cue.attempts')).length, 1)
  t.same((await jobs()).length, 1)
  t.same((await rows('select from cue.fires')).length, 0)
})

t.test('simultaneous purges share the batches', async t => {
  const { cue, fn, rows, account_id, connect } = await stage(t)
  const id = await cue()
  for (let i = 0; i < 6; i++) await fn.fireCue({ account_id, cue_id: id })
  await fn.deleteCue({ account_id, cue_id: id })
  const a = await connect()
  await a.client.query('begin')
  t.equal(await a.fn.purgeCue({ cue_id: id, batch: 4 }), 4)
  t.equal(await fn.purgeCue({ cue_id: id, batch: 4 }), 2)
  t.equal(await fn.purgeCue({ cue_id: id, batch: 4 }), 0, 'the cue stays while the other has not committed')
  await a.client.query('commit')
  t.equal((await rows('select from cue.cues where id = $1', [id])).length, 1)
  t.equal(await fn.purgeCue({ cue_id: id }), 0)
  t.same(await rows('select from cue.cues where id = $1', [id]), [])
})

t.test('a purge whose job was lost gets a new job, only once', async t => {
  const { cue, fn, rows, account_id, clock, jobs } = await stage(t)
  const id = await cue()
  await fn.deleteCue({ account_id, cue_id: id })
  await rows('delete from pgboss.job')
  t.equal(await fn.requeuePurges({}), 0, 'not immediately')
  clock.advance('6 minutes')
  await fn.requeuePurges({})
  await fn.requeuePurges({})
  exactly(t, await jobs('purges'), [{ data: { cue_id: id } }])
})

t.test('prunes rows past their retention and keeps younger ones', async t => {
  const { cue, fn, rows, account_id, clock, beat } = await stage(t)
  const id = await cue()
  await fn.fireCue({ account_id, cue_id: id })
  await rows(`insert into cue.outages values ('2030-01-14T00:00:00Z', '2030-01-15T00:00:00Z')`)
  await rows(
    `insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason, recorded_at)
              values ($1, $2, $3, $3, 1, 'skip_missed', 'service_away', $3)`,
    [id, account_id, clock.now()]
  )
  await rows(`insert into cue.echoes values ('a token of sixteen', '{}', '{}', $1, $2)`, [
    clock.now(),
    new Date(clock.now().getTime() + 300_000)
  ])
  const left = async () => {
    const [counts] = await rows(`select (select count(*) from cue.fires) as fires, (select count(*) from cue.outages) as outages,
      (select count(*) from cue.missed_slots) as missed, (select count(*) from cue.echoes) as echoes`)
    return Object.values(counts)
  }
  clock.advance('299 seconds')
  await fn.prune({})
  t.same(await left(), [1, 1, 1, 1])
  clock.advance('2 seconds')
  await fn.prune({})
  t.same(await left(), [1, 1, 1, 0])
  clock.advance('24 hours')
  await fn.prune({})
  t.same(await left(), [0, 1, 1, 0])
  clock.advance('90 days')
  await beat()
  await fn.prune({})
  t.same(await left(), [0, 0, 0, 0])
})

t.test('removes engines silent for an hour, but never the one seen last', async t => {
  const { fn, rows, clock, beat } = await stage(t)
  await beat('100 years', '00000000-0000-0000-0000-000000000002')
  clock.advance('30 minutes')
  await beat('100 years', '00000000-0000-0000-0000-000000000003')
  clock.advance('2 hours')
  await fn.prune({})
  exactly(t, await rows('select id from cue.engines'), [{ id: '00000000-0000-0000-0000-000000000003' }])
})

t.test('removes workers silent for a week, unless they hold a claim', async t => {
  const { fn, rows, account_id, clock, cue, account } = await stage(t)
  const cue_id = await cue({ transport: 'worker', callback_url: null }, { next_run: null })
  const other = await account()
  const beat = (worker_id: string, account_id: string) => fn.heartbeatWorker({ account_id, worker_id, handlers: [] })
  for (const id of ['silent', 'holder']) for (const owner of [account_id, other]) await beat(id, owner)
  await fn.fireCue({ account_id, cue_id })
  const [claim] = await fn.claimExecutions({ account_id, worker_id: 'holder' })
  const left = async () => {
    await fn.prune({})
    return (await rows('select worker_id, account_id from cue.workers order by worker_id')).map(row => [row.worker_id, row.account_id])
  }
  clock.advance('7 days')
  await beat('young', account_id)
  t.equal((await left()).length, 5)
  clock.advance('1 second')
  t.strictSame(await left(), [
    ['holder', account_id],
    ['young', account_id]
  ])
  await fn.reportOutcome({ account_id, execution_id: claim!.execution_id, success: true })
  t.strictSame(await left(), [['young', account_id]])
})

t.test('migrating again keeps the partitions', async t => {
  const { url, row } = await stage(t)
  await migrate({ connectionString: url })
  const { made } = await row(`select count(*) as made from generate_series(0, 2) m
    where to_regclass('cue.executions_' || to_char((now() at time zone 'utc') + m * interval '1 month', 'YYYY_MM')) is not null`)
  t.equal(made, 3)
})
