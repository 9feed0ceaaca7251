// Slots that came due while no engine was alive: outages and catch-up.
import t, { type Test } from 'tap'
import { beginWaiting } from '../support/begin-waiting.ts'
import { exactly } from '../support/exactly.ts'
import { catchUpRow, lookAhead } from '../support/firing-stage.ts'
import { once, stage } from '../support/stage.ts'

const minute = '* * * * *'
const engines = ['00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000003', '00000000-0000-0000-0000-000000000004']

/** A stage whose service was away from 09:00 to 12:00; cues made at 09:00 have their first slot a minute later. */
const away = async (t: Test) => {
  const s = await stage(t)
  const cue = (columns: object) => s.cue(columns, { next_run: new Date('2030-01-15T09:01:00Z') })
  const comeBack = async (at = '2030-01-15T12:00:00Z') => {
    s.clock.set(at)
    exactly(t, await s.beat('60 seconds'), { outage_recorded: true })
  }
  /** What an engine does with all that is due. */
  const run = async () => {
    const ahead = (await lookAhead(s.fn, { until: s.clock.now() })).filter(row => row.next_run <= s.clock.now())
    return s.fn.catchUpCues({ cues: JSON.stringify(ahead.filter(row => row.outage_until).map(catchUpRow)) })
  }
  const slots = async () =>
    (await s.rows('select scheduled_for from cue.executions order by id')).map(row => row.scheduled_for.toISOString())
  return { ...s, cue, comeBack, run, slots }
}

t.test('run_once_if_missed runs the latest slot and records the others', async t => {
  const { cue, comeBack, run, slots, rows, fn, used, clock, jobs } = await away(t)
  const id = await cue({ cron: minute })
  await comeBack()
  t.equal(await run(), 1)
  t.same(await slots(), ['2030-01-15T12:00:00.000Z'])
  exactly(t, await rows('select * from cue.missed_slots'), [
    {
      cue_id: id,
      first: new Date('2030-01-15T09:01:00Z'),
      last: new Date('2030-01-15T11:59:00Z'),
      count: 179,
      policy: 'run_once_if_missed',
      reason: 'service_away',
      recorded_at: clock.now()
    }
  ])
  exactly(t, await rows('select * from cue.cue_runs'), [
    {
      next_run: new Date('2030-01-15T12:01:00Z'),
      last_slot: new Date('2030-01-15T12:00:00Z'),
      run_count: 1,
      fired_count: 1,
      last_run: null
    }
  ])
  t.equal(await used(), 1)
  t.equal((await jobs()).length, 1)
  exactly(t, await beginWaiting(fn, { limit: 10 }), [{ cue_id: id, scheduled_for: new Date('2030-01-15T12:00:00Z'), attempt: 1 }])
  t.equal(await run(), 0)
})

t.test('skip_missed runs no slot and records all', async t => {
  const { cue, comeBack, run, slots, rows, used } = await away(t)
  await cue({ cron: minute, catch_up: 'skip_missed' })
  await comeBack()
  t.equal(await run(), 1)
  t.same(await slots(), [])
  exactly(t, await rows('select * from cue.missed_slots'), [
    { first: new Date('2030-01-15T09:01:00Z'), last: new Date('2030-01-15T12:00:00Z'), count: 180, policy: 'skip_missed' }
  ])
  exactly(t, await rows('select * from cue.cue_runs'), [
    { next_run: new Date('2030-01-15T12:01:00Z'), last_slot: new Date('2030-01-15T12:00:00Z'), run_count: 0, last_run: null }
  ])
  t.equal(await used(), 0)
})

t.test('replay_all_missed runs every slot, oldest first', async t => {
  const { cue, comeBack, run, slots, rows, used, fn, clock } = await away(t)
  await cue({ cron: '0 * * * *', catch_up: 'replay_all_missed' })
  await rows("update cue.cue_runs set next_run = '2030-01-15T10:00:00Z'")
  await comeBack()
  await run()
  const expected = [10, 11, 12].map(hour => `2030-01-15T${hour}:00:00.000Z`)
  t.same(await slots(), expected)
  t.same(await rows('select * from cue.missed_slots'), [])
  t.equal(await used(), 3)
  clock.advance('1 second')
  const begun = [
    ...(await beginWaiting(fn, { limit: 1 })),
    ...(await beginWaiting(fn, { limit: 1 })),
    ...(await beginWaiting(fn, { limit: 1 }))
  ]
  t.same(
    begun.map(attempt => attempt.scheduled_for.toISOString()),
    expected
  )
})

t.test('replay_all_missed runs at most the newest 100 slots and records the others', async t => {
  const { cue, comeBack, run, slots, rows } = await away(t)
  await cue({ cron: minute, catch_up: 'replay_all_missed' })
  await comeBack()
  await run()
  const ran = await slots()
  t.equal(ran.length, 100)
  t.same([ran[0], ran[99]], ['2030-01-15T10:21:00.000Z', '2030-01-15T12:00:00.000Z'])
  exactly(t, await rows('select * from cue.missed_slots'), [
    { first: new Date('2030-01-15T09:01:00Z'), last: new Date('2030-01-15T10:20:00Z'), count: 80 }
  ])
  exactly(t, await rows('select * from cue.cue_runs'), [{ run_count: 100, fired_count: 100, last_slot: new Date('2030-01-15T12:00:00Z') }])
})

t.test('worker cues that catch up become claimable, oldest first', async t => {
  const { cue, comeBack, run, rows } = await away(t)
  await cue({ transport: 'worker', callback_url: null, cron: '30 * * * *', catch_up: 'replay_all_missed' })
  await rows("update cue.cue_runs set next_run = '2030-01-15T09:30:00Z'")
  await comeBack()
  await run()
  exactly(t, await rows('select * from cue.executions order by claimable_at'), [
    { status: 'pending', scheduled_for: new Date('2030-01-15T09:30:00Z') },
    { status: 'pending', scheduled_for: new Date('2030-01-15T10:30:00Z') },
    { status: 'pending', scheduled_for: new Date('2030-01-15T11:30:00Z') }
  ])
})

for (const catch_up of ['run_once_if_missed', 'replay_all_missed', 'skip_missed'] as const) {
  t.test(`a missed one-time cue ${catch_up === 'skip_missed' ? 'fails' : 'runs'} under ${catch_up}`, async t => {
    const { cue, comeBack, run, rows, jobs } = await away(t)
    await cue({ ...once, at: '2030-01-15T09:01:00Z', catch_up, on_failure_email: true })
    await comeBack()
    t.equal(await run(), 1)
    const runs = catch_up !== 'skip_missed'
    exactly(t, await rows('select * from cue.executions'), [
      { status: runs ? 'pending' : 'missed', scheduled_for: new Date('2030-01-15T09:01:00Z'), triggered_by: 'schedule' }
    ])
    exactly(t, await rows('select status from cue.cues'), [{ status: runs ? 'active' : 'failed' }])
    exactly(t, await rows('select * from cue.cue_runs'), [{ next_run: null, run_count: 1, fired_count: 1 }])
    t.equal((await jobs('mails')).length, runs ? 0 : 1, 'a miss runs on_failure')
  })
}

t.test('a cue that is years behind catches up in one step', async t => {
  const { cue, comeBack, run, slots, rows, clock, fn } = await away(t)
  await cue({ cron: minute, catch_up: 'replay_all_missed' })
  await fn.maintainPartitions({})
  clock.set('2035-01-15T12:00:30Z')
  await fn.maintainPartitions({ months: 1 })
  await comeBack('2035-01-15T12:00:30Z')
  t.equal(await run(), 1)
  t.equal((await slots()).length, 100)
  exactly(t, await rows('select * from cue.missed_slots'), [
    { count: 10_000, first: new Date('2030-01-15T09:01:00Z'), last: new Date('2035-01-15T10:20:00Z') }
  ])
  exactly(t, await rows('select * from cue.cue_runs'), [{ next_run: new Date('2035-01-15T12:01:00Z') }])
})

t.test('slots after the outage run normally, however late', async t => {
  const { cue, comeBack, clock, fn, beat, rows, take } = await away(t)
  const id = await cue({ cron: minute })
  await comeBack()
  await rows("update cue.cue_runs set next_run = '2030-01-15T12:01:00Z'")
  for (let i = 0; i < 10; i++) {
    clock.advance('50 seconds')
    exactly(t, await beat('60 seconds'), { outage_recorded: false })
  }
  exactly(t, await lookAhead(fn, { until: clock.now() }), [{ cue_id: id, outage_until: null }])
  exactly(t, await take([id], { missed_after: '60 seconds' }), [{ scheduled_for: new Date('2030-01-15T12:01:00Z') }])
})

// What has moved since an engine looked is left alone.
for (const [what, move] of [
  ['was edited', 'update cue.cue_runs set version = version + 1'],
  ['was paused', 'update cue.cue_runs set next_run = null'],
  ['was caught up by another', "update cue.cue_runs set next_run = '2030-01-15T12:01:00Z', last_slot = '2030-01-15T12:00:00Z'"]
] as const) {
  t.test(`skips a cue that ${what} in the meantime`, async t => {
    const { cue, comeBack, fn, clock, rows } = await away(t)
    await cue({ cron: minute })
    await comeBack()
    const [seen] = await lookAhead(fn, { until: clock.now() })
    await rows(move)
    const before = await rows('select * from cue.cue_runs')
    t.equal(await fn.catchUpCues({ cues: JSON.stringify([catchUpRow(seen!)]) }), 0)
    t.same(await rows('select * from cue.cue_runs'), before)
    t.same(await rows('select * from cue.executions'), [])
    t.same(await rows('select * from cue.missed_slots'), [])
  })
}

t.test('of two engines, one catches up a cue and neither waits', async t => {
  const { cue, comeBack, fn, clock, rows, connect } = await away(t)
  for (let i = 0; i < 3; i++) await cue({ cron: minute })
  await comeBack()
  const cues = JSON.stringify((await lookAhead(fn, { until: clock.now() })).map(catchUpRow))
  const a = await connect()
  await a.client.query('begin')
  t.equal(await a.fn.catchUpCues({ cues }), 3)
  t.equal(await fn.catchUpCues({ cues }), 0)
  await a.client.query('commit')
  t.equal(await fn.catchUpCues({ cues }), 0)
  t.equal((await rows('select from cue.executions')).length, 3)
})

// Outages ----------------------------------------------------------------------------------------------------------------------------

t.test('the first engine of a database records no outage', async t => {
  const { rows, beat } = await stage(t)
  await rows('delete from cue.engines')
  exactly(t, await beat('60 seconds'), { outage_recorded: false })
  t.same(await rows('select * from cue.outages'), [])
})

t.test('a gap longer than missed_after is an outage, a shorter one is not', async t => {
  const { rows, beat, clock } = await stage(t)
  clock.advance('60 seconds')
  exactly(t, await beat('60 seconds'), { outage_recorded: false, database_now: clock.now() })
  const from = clock.now()
  clock.advance('61 seconds')
  exactly(t, await beat('60 seconds'), { outage_recorded: true })
  t.same(await rows('select * from cue.outages'), [{ from_at: from, until_at: clock.now() }])
  exactly(t, await beat('60 seconds'), { outage_recorded: false })
})

t.test('there is no outage while one engine is alive', async t => {
  const { rows, beat, clock } = await stage(t)
  for (let i = 0; i < 5; i++) {
    clock.advance('30 seconds')
    await beat('60 seconds', engines[0])
  }
  exactly(t, await beat('60 seconds', engines[1]), { outage_recorded: false })
  t.same(await rows('select * from cue.outages'), [])
})

t.test('of several engines that return at the same time, one records the outage and the others wait for it', async t => {
  const { rows, clock, connect } = await stage(t)
  clock.advance('1 hour')
  const beatOf = (engine_id: string) => ({ engine_id, version: 'test', lateness_ms: null, open_deliveries: 0, missed_after: '60 seconds' })
  const [a, b, c] = [await connect(), await connect(), await connect()]
  await a.client.query('begin')
  exactly(t, await a.fn.beatEngine(beatOf(engines[0]!)), { outage_recorded: true })
  const others = Promise.all([b.fn.beatEngine(beatOf(engines[1]!)), c.fn.beatEngine(beatOf(engines[2]!))])
  await Promise.all([b.blocked(), c.blocked()])
  await a.client.query('commit')
  exactly(t, await others, [{ outage_recorded: false }, { outage_recorded: false }])
  t.equal((await rows('select * from cue.outages')).length, 1)
  t.equal((await rows('select * from cue.engines')).length, 4)
})

t.test("takes nothing after a gap until an engine's heartbeat has recorded the outage", async t => {
  const { cue, take, clock, beat } = await stage(t)
  const id = await cue({}, { next_run: new Date('2030-01-15T09:30:00Z') })
  clock.advance('1 hour')
  t.same(await take([id], { missed_after: '60 seconds' }), [])
  await beat('60 seconds')
  t.same(await take([id], { missed_after: '60 seconds' }), [], 'afterwards catch_up decides')
})
