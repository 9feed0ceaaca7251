// Firing: look_ahead_by_schedule, take_due_cues, and what a schedule does over the plan's limit.
import t from 'tap'
import { eventually } from '../support/eventually.ts'
import { exactly } from '../support/exactly.ts'
import { fire, look, lookAhead } from '../support/firing-stage.ts'
import { awaiting, dueCues, once, stage } from '../support/stage.ts'

t.test('fires a due webhook cue: execution, flight, counters and next run in one statement', async t => {
  const { cue, take, execution, run, rows, clock, used, jobs } = await stage(t)
  const id = await cue({ payload: '{"task": "x"}', task: 'x', callback_method: 'PUT', callback_headers: { 'x-a': 'b' } })
  const next = new Date('2030-01-15T09:01:00Z')
  const [attempt, ...others] = await take([id], { next })
  t.same(others, [])
  exactly(t, attempt, {
    attempt: 1,
    cue_id: id,
    scheduled_for: clock.now(),
    callback_url: 'http://127.0.0.1/hook',
    callback_method: 'PUT',
    callback_headers: { 'x-a': 'b' },
    payload: '{"task": "x"}',
    timeout_seconds: 30,
    secrets: [`whsec_${'a'.repeat(64)}`],
    api_key: null,
    plain: true
  })
  exactly(t, await execution(attempt!.execution_id), {
    status: 'delivering',
    triggered_by: 'schedule',
    attempts: 1,
    lost_attempts: 0,
    started_at: clock.now(),
    last_attempt_at: clock.now(),
    scheduled_for: clock.now(),
    created_at: clock.now(),
    flight_id: attempt!.flight_id,
    payload: null,
    task: 'x',
    attempt_due_at: null
  })
  exactly(t, await rows('select * from cue.flights'), [
    { id: attempt!.flight_id, execution_ids: [attempt!.execution_id], lease_expires_at: new Date(clock.now().getTime() + 4000) }
  ])
  exactly(t, await run(id), {
    next_run: next,
    last_slot: clock.now(),
    last_run: clock.now(),
    run_count: 1,
    fired_count: 1,
    status: 'active'
  })
  t.equal(await used(), 1)
  t.same(await jobs(), [])
})

t.test('a due worker cue becomes claimable, without a flight', async t => {
  const { cue, take, rows, clock, used } = await stage(t)
  const id = await cue({ transport: 'worker', callback_url: null })
  t.same(await take([id]), [])
  exactly(t, await rows('select * from cue.executions'), [
    { cue_id: id, transport: 'worker', status: 'pending', attempts: 0, claimable_at: clock.now(), started_at: null, flight_id: null }
  ])
  t.same(await rows('select * from cue.flights'), [])
  t.equal(await used(), 1)
})

t.test('takes webhook and worker cues in one call', async t => {
  const { cue, take, rows } = await stage(t)
  const ids = [await cue(), await cue({ transport: 'worker', callback_url: null }), await cue()]
  const attempts = await take(ids)
  t.equal(attempts.length, 2)
  t.equal(new Set(attempts.map(attempt => attempt.flight_id)).size, 1)
  exactly(t, await rows('select cardinality(execution_ids) as n from cue.flights'), [{ n: 2 }])
  t.equal((await rows('select from cue.executions')).length, 3)
})

for (const [what, columns, plain] of [
  ['a recurring cue', {}, true],
  ['a cue that awaits an outcome', awaiting, false],
  ['a one-time cue', once, false]
] as const) {
  t.test(`${what} is ${plain ? '' : 'not '}plain`, async t => {
    const { cue, take } = await stage(t)
    exactly(t, await take([await cue(columns)], { next: null }), [{ plain }])
  })
}

// Cues that are not taken: each row violates one condition.
type Spoil = (s: Awaited<ReturnType<typeof stage>>, id: string) => Promise<unknown>
const spoils: [string, Spoil][] = [
  ['before it is due', s => Promise.resolve(s.clock.set('2030-01-15T08:59:59.999Z'))],
  ['with another version', (s, id) => s.rows('update cue.cue_runs set version = version + 1 where cue_id = $1', [id])],
  ['with another next_run', (s, id) => s.rows("update cue.cue_runs set next_run = next_run - interval '1 minute' where cue_id = $1", [id])],
  ['when paused', (s, id) => s.fn.updateCue({ account_id: s.account_id, cue_id: id, version: 1, changes: { status: 'paused' } })],
  ['when deleted', (s, id) => s.fn.deleteCue({ account_id: s.account_id, cue_id: id })],
  ['when it came due during an outage', s => s.rows("insert into cue.outages values ('2030-01-15T08:50:00Z', '2030-01-15T09:00:00Z')")],
  ['when no engine is alive', s => s.rows('delete from cue.engines')],
  [
    'over the limit, after the day of grace',
    s => s.rows("update cue.accounts set limit_reached_at = '2030-01-14T08:59:00Z' where id = $1", [s.account_id])
  ]
]
for (const [what, spoil] of spoils) {
  t.test(`a cue is not taken ${what}`, async t => {
    const s = await stage(t)
    const id = await s.cue()
    const read = await s.rows('select * from cue.cue_runs')
    await spoil(s, id)
    t.same(await s.fn.takeDueCues({ ...dueCues(read, new Date('2030-01-15T10:00:00Z')), missed_after: '100 years' }), [])
    t.same(await s.rows('select * from cue.executions'), [])
    t.same(await s.rows('select * from cue.flights'), [])
    t.equal(await s.used(), 0)
  })
}

// The same conditions, just satisfied.
const kept: [string, Spoil][] = [
  ['when an outage ended before its slot', s => s.rows("insert into cue.outages values ('2030-01-15T08:50:00Z', '2030-01-15T08:59:59Z')")],
  ['when an outage began with its slot', s => s.rows("insert into cue.outages values ('2030-01-15T09:00:00Z', '2030-01-15T09:05:00Z')")],
  [
    'within the day of grace',
    s => s.rows("update cue.accounts set limit_reached_at = '2030-01-14T09:00:01Z' where id = $1", [s.account_id])
  ],
  [
    'when the limit was reached last month',
    s => s.rows("update cue.accounts set limit_reached_at = '2029-12-31T23:59:59Z' where id = $1", [s.account_id])
  ]
]
for (const [what, prepare] of kept) {
  t.test(`a cue is taken ${what}`, async t => {
    const s = await stage(t)
    const id = await s.cue()
    await prepare(s, id)
    t.equal((await s.take([id])).length, 1)
  })
}

t.test("an engine's heartbeat must be younger than missed_after", async t => {
  const { cue, take, clock, beat } = await stage(t)
  const id = await cue()
  clock.advance('60 seconds')
  t.same(await take([id], { missed_after: '60 seconds' }), [])
  await beat()
  t.equal((await take([id], { missed_after: '60 seconds' })).length, 1)
})

t.test('two simultaneous takers fire a slot once', async t => {
  const { cue, connect, rows, clock, run } = await stage(t)
  const ids = await Promise.all(Array.from({ length: 6 }, () => cue()))
  const read = await rows('select * from cue.cue_runs order by cue_id')
  const cues = { ...dueCues(read, new Date(clock.now().getTime() + 60_000)), missed_after: '100 years' }
  const [a, b] = [await connect(), await connect()]
  await a.client.query('begin')
  await b.client.query('begin')
  t.equal((await a.fn.takeDueCues(cues)).length, 6)
  t.same(await b.fn.takeDueCues(cues), [], 'it neither waits nor fires')
  await a.client.query('commit')
  t.same(await b.fn.takeDueCues(cues), [])
  await b.client.query('commit')
  exactly(t, await run(ids[0]!), { run_count: 1, fired_count: 1 })
  t.equal((await rows('select from cue.executions')).length, 6)
})

t.test('a taker that rolls back leaves its cues to others', async t => {
  const { cue, take, connect } = await stage(t)
  const id = await cue()
  const a = await connect()
  await a.client.query('begin')
  await take([id], { by: a.fn })
  await a.client.query('rollback')
  t.equal((await take([id])).length, 1)
})

t.test('a cue read before another taker fired it is not fired again', async t => {
  const { cue, connect, rows, clock } = await stage(t)
  await cue()
  const read = await rows('select * from cue.cue_runs')
  const [a, b] = [await connect(), await connect()]
  const cues = { ...dueCues(read, new Date(clock.now().getTime() + 60_000)), missed_after: '100 years' }
  // A snapshot taken before the other's commit still shows the slot as due.
  await b.client.query('begin isolation level repeatable read; select 1')
  await b.client.query('select from cue.cues')
  await a.fn.takeDueCues(cues)
  await t.rejects(b.fn.takeDueCues(cues), { code: '40001' })
  await b.client.query('rollback')
  t.equal((await rows('select from cue.executions')).length, 1)
})

t.test('a fired slot cannot become next_run again', async t => {
  const { cue, take, rows, clock } = await stage(t)
  const id = await cue()
  await t.rejects(take([id], { next: clock.now() }), { code: '23514' })
  await eventually(async () => (await take([id])).length === 1) // a refusal is told before its locks are let go
  await t.rejects(rows('update cue.cue_runs set next_run = last_slot'), { code: '23514' })
})

t.test('requests are also signed with the previous secret during an overlap', async t => {
  const { cue, take, account, clock } = await stage(t)
  const previous = `whsec_${'b'.repeat(64)}`
  const account_id = await account({ previous_webhook_secret: previous, previous_webhook_secret_until: '2030-01-15T09:30:00Z' })
  const id = await cue({}, { account_id })
  exactly(t, (await take([id], { next: new Date('2030-01-15T09:30:00Z') }))[0]!.secrets, [/^whsec_a/, previous])
  clock.set('2030-01-15T09:30:00Z')
  t.equal((await take([id]))[0]!.secrets.length, 1)
})

t.test("includes the account's key only if the account is configured so", async t => {
  const { cue, take, account, rows } = await stage(t)
  const account_id = await account()
  await rows(
    `insert into cue.api_keys (id, account_id, key_hash, prefix, label, created_by, is_default, ciphertext)
     values (gen_random_uuid(), $1, sha256('one'), 'p', 'l', 'user', true, 'the default key'),
            (gen_random_uuid(), $1, sha256('two'), 'p', 'l', 'user', false, null)`,
    [account_id]
  )
  t.equal((await take([await cue({}, { account_id })]))[0]!.api_key, null)
  await rows("update cue.accounts set webhook_authorization = 'api_key' where id = $1", [account_id])
  t.equal((await take([await cue({}, { account_id })]))[0]!.api_key, 'the default key')
})

// look_ahead_by_schedule ---------------------------------------------------------------------------------------------------------------------------

t.test('look_ahead_by_schedule returns cues due soon, and the first later one', async t => {
  const { cue, fn, clock, rows } = await stage(t)
  const at = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000)
  const ids = await Promise.all([-60, 1, 5, 60, 120].map(seconds => cue({ name: String(seconds) }, { next_run: at(seconds) })))
  await rows("insert into cue.outages values ('2030-01-15T08:55:00Z', '2030-01-15T08:59:30Z')")
  const seen = await lookAhead(fn, { until: at(5) })
  t.same(
    seen.map(row => row.cue_id),
    ids.slice(0, 4)
  )
  exactly(t, seen[0], {
    version: 1,
    transport: 'webhook',
    cron: '* * * * *',
    timezone: 'UTC',
    outage_until: new Date('2030-01-15T08:59:30Z'),
    over_limit: false
  })
  t.equal(seen[1]!.outage_until, null)
})

t.test('look_ahead_by_schedule returns cues of every account although one has more due than fit a page', async t => {
  const { cue, fn, clock, account, rows } = await stage(t)
  const earlier = new Date(clock.now().getTime() - 60_000)
  for (let i = 0; i < 30; i++) await cue({}, { next_run: earlier })
  const others = await Promise.all([account(), account(), account()])
  for (const account_id of others) await cue({}, { account_id })
  await rows("update cue.accounts set limit_reached_at = '2030-01-14T08:00:00Z' where id = $1", [others[1]])
  const seen = await lookAhead(fn, { until: clock.now(), limit: 20 })
  t.ok(seen.length <= 21)
  t.same(new Set(seen.map(row => row.account_id)).size, 4)
  t.strictSame(
    seen.filter(row => row.over_limit).map(row => row.account_id),
    [others[1]]
  )
  const skipping = await lookAhead(fn, { until: clock.now(), limit: 20, skip_accounts: [others[0]!] })
  t.same(new Set(skipping.map(row => row.account_id)).size, 3)
})

t.test('look_ahead_by_schedule returns cues that share a schedule in one row, and those with rules alone', async t => {
  const { cue, fn, clock, account, rows } = await stage(t)
  const at = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000)
  const other = await account()
  const refused = await account()
  await rows("update cue.accounts set limit_reached_at = '2030-01-14T08:00:00Z' where id = $1", [refused])
  const shared = [await cue(), await cue({}, { account_id: other }), await cue({}, { next_run: at(1) })]
  const ruled = [await cue({ schedule_rules: { max_runs: 3 } }), await cue({ schedule_rules: { max_runs: 3 } })]
  const late = await cue({}, { account_id: refused })
  const worker = await cue({ transport: 'worker', callback_url: null })
  const seen = await fn.lookAheadBySchedule({ until: at(5) })
  const rowOf = (id: string) => seen.find(row => row.cue_ids.includes(id))!
  t.equal(seen.length, 5)
  const row = rowOf(shared[0]!)
  const inRow = row.cue_ids.map((id, n) => [id, row.account_ids[n], row.versions[n], row.next_runs[n]])
  const { account_id: own } = (await rows('select account_id from cue.cues where id = $1', [shared[0]]))[0]!
  t.strictSame(inRow.sort(), shared.map((id, n) => [id, n === 1 ? other : own, 1, +(n === 2 ? at(1) : at(0))]).sort())
  for (const id of ruled) exactly(t, rowOf(id), { cue_ids: [id], runs_left: 3, schedule_rules: { max_runs: 3 } })
  exactly(t, rowOf(late), { cue_ids: [late], over_limit: true })
  exactly(t, rowOf(worker), { cue_ids: [worker], transport: 'worker', over_limit: false })
})

t.test('look_ahead_by_schedule separates cues whose schedules differ, even after a change by hand', async t => {
  const { cue, fn, clock, rows } = await stage(t)
  const alerts = { alert_consecutive_failures: 3, alert_missed_window_multiplier: 2 }
  const [first, changed] = [await cue(alerts), await cue(alerts)]
  const seenWith = async () => (await fn.lookAheadBySchedule({ until: clock.now() })).find(row => row.cue_ids.includes(changed))!
  const changes: { set: Record<string, unknown>; seen?: object }[] = [
    { set: { cron: '*/2 * * * *' } },
    { set: { timezone: 'Asia/Tokyo' } },
    { set: { catch_up: 'skip_missed' } },
    { set: { schedule_rules: { max_runs: 3 } } },
    { set: { schedule_type: 'once', cron: null, at: clock.now() }, seen: { schedule_type: 'once', cron: null } },
    { set: { alert_missed_window_multiplier: 3 }, seen: { window_slots: 3 } }
  ]
  const update = (columns: Record<string, unknown>) =>
    rows(`update cue.cues set ${Object.keys(columns).map((name, n) => `${name} = $${n + 2}`)} where id = $1`, [
      changed,
      ...Object.values(columns)
    ])
  for (const { set, seen = set } of changes) {
    const [former] = await rows(`select ${Object.keys(set)} from cue.cues where id = $1`, [changed])
    t.same((await seenWith()).cue_ids.sort(), [first, changed].sort(), `${Object.keys(set)}: shared`)
    await update(set)
    exactly(t, await seenWith(), { cue_ids: [changed], ...seen })
    await update(former)
  }
  // Of the cue's columns that a look returns, two are in cue_runs. Each of the others is changed above, and must be in schedule_key.
  const ofCues = (await rows("select attname as name from pg_attribute where attrelid = 'cue.cues'::regclass")).map(({ name }) => name)
  const returned = Object.keys(await seenWith()).filter(name => ofCues.includes(name) && name !== 'transport' && name !== 'tracked')
  t.same(returned.sort(), ['catch_up', 'cron', 'schedule_rules', 'schedule_type', 'timezone'])

  const [{ account_id, version }] = await rows('select account_id, version from cue.cue_runs where cue_id = $1', [changed])
  await fn.updateCue({ account_id, cue_id: changed, changes: { cron: '*/3 * * * *' }, version, next_run: clock.now() })
  exactly(t, await seenWith(), { cue_ids: [changed], cron: '*/3 * * * *' })
})

// Over the limit ------------------------------------------------------------------------------------------------------------------------

const overLimit = async (t: Parameters<typeof stage>[0]) => {
  const s = await stage(t)
  await s.rows("update cue.accounts set limit_reached_at = '2030-01-14T08:00:00Z'")
  const refuse = async (next: Date | null) =>
    s.fn.refuseDueCues(dueCues(await s.rows('select * from cue.cue_runs where next_run <= $1', [s.clock.now()]), next))
  return { ...s, refuse }
}

/** What an engine does at an instant. */
const turnAt = async (s: Awaited<ReturnType<typeof overLimit>>, at: Date | string) => {
  s.clock.set(at)
  await s.beat()
  return fire(await look(s), s.fn)
}
const tenMinutes = 600_000

t.test(
  'a cue over the limit leaves one failed execution per hour, is not due in between, and its other slots are recorded as dropped',
  async t => {
    const s = await overLimit(t)
    const { cue, fn, rows, run, used, jobs, account_id } = s
    const id = await cue({ cron: '*/10 * * * *', on_failure_email: true })
    let slot = new Date('2030-01-15T09:00:00Z')
    const failed: Date[] = []
    for (let hour = 9; hour < 12; hour++) {
      t.same(await turnAt(s, slot), [])
      failed.push(slot)
      const refused = await run(id)
      exactly(t, refused, { status: 'active', refused_from: new Date(+slot + tenMinutes), next_slot: null, run_count: failed.length })
      t.equal(refused.next_run.getUTCHours(), hour + 1)
      await fn.updateCue({ account_id, cue_id: id, version: refused.version, changes: { name: `changed ${hour}` } })
      t.same(await turnAt(s, new Date(+refused.next_run - 1)), [])
      exactly(t, await run(id), { next_run: refused.next_run, refused_from: refused.refused_from })
      await turnAt(s, refused.next_run)
      const { next_run, refused_from, last_slot } = await run(id)
      t.same([refused_from, last_slot], [null, new Date(+next_run - tenMinutes)])
      t.ok(next_run >= refused.next_run && +next_run < +refused.next_run + tenMinutes)
      slot = next_run
    }
    exactly(
      t,
      await rows('select * from cue.executions order by id'),
      failed.map(at => ({ status: 'failed', scheduled_for: at, attempts: 0, started_at: null, error_message: /^execution_limit_exceeded/ }))
    )
    const slots = (+slot - Date.parse('2030-01-15T09:00:00Z')) / tenMinutes
    exactly(t, await rows('select * from cue.missed_slots'), [
      { count: slots - 3, first: new Date('2030-01-15T09:10:00Z'), last: new Date(+slot - tenMinutes), reason: 'execution_limit' }
    ])
    t.equal(await used(), 0)
    t.same(await jobs('mails'), [])
  }
)

t.test('a cue over the limit goes on when the limit ends: with another plan, and with the month', async t => {
  for (const [plan, at] of [
    ['pro', '2030-01-15T09:25:00Z'],
    ['', '2030-02-01T00:00:00Z']
  ] as const) {
    const s = await overLimit(t)
    const { cue, rows, row, run, account_id, clock } = s
    const first = new Date(Date.parse(plan ? '2030-01-15T09:00:00Z' : '2030-01-31T23:10:00Z'))
    clock.set(first)
    const id = await cue({ cron: '*/10 * * * *' })
    await turnAt(s, first)
    clock.set(at)
    if (plan) await rows('select cue.set_plan($1, $2, p_now => $3)', [account_id, plan, clock.now()])
    const { next_run, version } = await run(id)
    t.ok(next_run <= new Date(+new Date(at) + 1), next_run.toISOString())
    t.same(await turnAt(s, next_run), [])
    const next = plan ? new Date('2030-01-15T09:30:00Z') : next_run
    exactly(t, await run(id), { next_run: next, refused_from: null, version })
    t.same(await turnAt(s, next), [next])
    const { last, count } = await row('select * from cue.missed_slots')
    t.same([last, count], [new Date(+next - tenMinutes), (+next - +first) / tenMinutes - 1])
    exactly(t, await rows('select status from cue.executions order by id'), [{ status: 'failed' }, { status: 'delivering' }])
  }
})

t.test('another schedule and a pause end the refusal of slots', async t => {
  const s = await overLimit(t)
  const { cue, fn, run, account_id, clock } = s
  const ids = [await cue(), await cue()]
  await turnAt(s, clock.now())
  const next_run = new Date('2030-01-15T09:30:00Z')
  await fn.updateCue({ account_id, cue_id: ids[0]!, version: 1, changes: { cron: '30 * * * *' }, next_run })
  await fn.updateCue({ account_id, cue_id: ids[1]!, version: 1, changes: { status: 'paused' } })
  exactly(t, await run(ids[0]!), { next_run, refused_from: null })
  exactly(t, await run(ids[1]!), { next_run: null, refused_from: null })
})

t.test('a one-time cue over the limit fails', async t => {
  const { cue, refuse, run, rows, fn } = await overLimit(t)
  const failed = async () => (await fn.endedExecutions({})).find(({ status }) => status === 'failed')!.count
  const id = await cue(once)
  const before = await failed()
  t.equal(await refuse(null), 1)
  t.equal(await failed(), before + 1)
  exactly(t, await run(id), { status: 'failed', next_run: null })
  exactly(t, await rows('select status from cue.executions'), [{ status: 'failed' }])
})

t.test('does not refuse cues that are within the limit, paused or already fired', async t => {
  const { cue, fn, rows, clock, account_id } = await overLimit(t)
  const id = await cue()
  const read = dueCues(await rows('select * from cue.cue_runs'), new Date(clock.now().getTime() + 60_000))
  await rows('update cue.accounts set limit_reached_at = null')
  t.equal(await fn.refuseDueCues(read), 0)
  await rows("update cue.accounts set limit_reached_at = '2030-01-14T08:00:00Z'")
  await fn.updateCue({ account_id, cue_id: id, version: 1, changes: { status: 'paused' } })
  t.equal(await fn.refuseDueCues(read), 0)
  t.same(await rows('select * from cue.executions'), [])
})

t.test('refused slots that one engine has recorded are left alone by another that saw them before', async t => {
  const { cue, fn, clock, rows, run } = await stage(t)
  const cue_id = await cue()
  const expected = clock.now()
  await rows("update cue.cue_runs set refused_from = next_run - interval '10 minutes' where cue_id = $1", [cue_id])
  const [first, last] = [10, 1].map(minutes => new Date(expected.getTime() - minutes * 60_000))
  const dropped = { first, last, count: 10, reason: 'execution_limit' }
  const cues = JSON.stringify([{ cue_id, version: 1, expected, next_run: expected, slots: [], dropped }])
  t.equal(await fn.catchUpCues({ cues }), 1)
  exactly(t, await run(cue_id), { next_run: expected, last_slot: last, refused_from: null })
  t.equal(await fn.catchUpCues({ cues }), 0)
  exactly(t, await rows('select count from cue.missed_slots'), [{ count: 10 }])
})
