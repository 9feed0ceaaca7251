// Recurring cues that complete: after their last slot, or after a number of runs.
import t from 'tap'
import { createPauseSweep } from '../../src/firing/ended-pauses.ts'
import { move } from '../../src/firing/missed-windows.ts'
import { startEngine } from '../support/engine.ts'
import { exactly } from '../support/exactly.ts'
import { fire, look } from '../support/firing-stage.ts'
import { build, error, eventually, receiver } from '../support/setup.ts'
import { once, refused, type Stage, stage } from '../support/stage.ts'

const never = '100 years'
const minute = { cron: null, schedule_rules: { every: '1m', max_runs: 3 } }
const first = new Date('2030-01-15T09:00:00Z')
const at = (minutes: number) => new Date(first.getTime() + minutes * 60_000)
const turn = async (s: Stage) => fire(await look(s), s.fn)
const state = (s: Stage, id: string) =>
  s.row(
    `select v.status, v.completed_reason, v.next_run, v.version, v.fired_count, r.success_due_at
       from cue.cue_view v join cue.cue_runs r on r.cue_id = v.id where v.id = $1`,
    [id]
  )
const completed = (reason: string, others: object = {}) => ({
  status: 'completed',
  completed_reason: reason,
  next_run: null,
  success_due_at: null,
  ...others
})

t.test('a cue takes max_runs slots and completes with the last one', async t => {
  const s = await stage(t)
  const id = await s.cue(minute)
  for (const n of [0, 1]) {
    t.same(await turn(s), [at(n)])
    exactly(t, await state(s, id), { status: 'active', completed_reason: null, next_run: at(n + 1), version: 1 })
    s.clock.advance('1 minute')
  }
  t.same(await turn(s), [at(2)])
  exactly(t, await state(s, id), completed('max_runs', { version: 2, fired_count: 3 }))
  s.clock.advance('1 hour')
  t.same(await turn(s), [])
})

t.test('a cue completes with the last slot until ends_at, for workers too', async t => {
  const s = await stage(t)
  const ids = [
    await s.cue({ schedule_rules: { ends_at: '2030-01-15T09:01:59.000Z' } }),
    await s.cue({ transport: 'worker', callback_url: null, schedule_rules: { ends_at: '2030-01-15T09:01:00.000Z', max_runs: 9 } })
  ]
  t.same(await turn(s), [at(0)])
  s.clock.advance('1 minute')
  t.same(await turn(s), [at(1)])
  for (const id of ids) exactly(t, await state(s, id), completed('ended', { version: 2, fired_count: 2 }))
  t.same((await s.rows('select status from cue.executions order by id')).length, 4)
})

t.test('a last slot whose cue is locked is taken later, as a whole', async t => {
  const s = await stage(t)
  const id = await s.cue({ schedule_rules: { max_runs: 1 } })
  const other = await s.cue({ schedule_rules: { max_runs: 1 } })
  const { client } = await s.connect()
  await client.query('begin')
  await client.query('select from cue.cues where id = $1 for no key update', [id])
  t.equal((await turn(s)).length, 1)
  exactly(t, await state(s, id), { status: 'active', next_run: first, fired_count: 0 })
  exactly(t, await state(s, other), completed('max_runs'))
  await client.query('commit')
  t.equal((await turn(s)).length, 1)
  exactly(t, await state(s, id), completed('max_runs'))
})

/** Cues that were away for ten slots, with the slots that run, and what is left. */
const away: [rules: object, catch_up: string, slots: number[], left: object][] = [
  [{ max_runs: 3 }, 'replay_all_missed', [1, 2, 3], completed('max_runs')],
  [{ max_runs: 10 }, 'replay_all_missed', [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], completed('max_runs')],
  [{ max_runs: 11 }, 'replay_all_missed', [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], { status: 'active', next_run: at(11) }],
  [{ max_runs: 1 }, 'run_once_if_missed', [10], completed('max_runs')],
  [{ max_runs: 2 }, 'run_once_if_missed', [10], { status: 'active', next_run: at(11) }],
  [{ max_runs: 1 }, 'skip_missed', [], { status: 'active', next_run: at(11), fired_count: 0 }],
  [{ ends_at: at(4).toISOString() }, 'replay_all_missed', [1, 2, 3, 4], completed('ended')],
  [{ ends_at: at(4).toISOString() }, 'run_once_if_missed', [4], completed('ended')],
  [{ ends_at: at(4).toISOString() }, 'skip_missed', [], completed('ended')],
  [{ ends_at: at(4).toISOString(), max_runs: 4 }, 'replay_all_missed', [1, 2, 3, 4], completed('max_runs')]
]
for (const [rules, catch_up, slots, left] of away) {
  t.test(`after an outage of ten slots, ${catch_up} respects ${JSON.stringify(rules)}`, async t => {
    const s = await stage(t)
    const id = await s.cue({ schedule_rules: rules, catch_up }, { next_run: at(1) })
    s.clock.set(at(10))
    exactly(t, await s.beat('60 seconds'), { outage_recorded: true })
    await turn(s)
    t.same(
      (await s.rows('select scheduled_for from cue.executions order by id')).map(row => (row.scheduled_for - first.getTime()) / 60_000),
      slots
    )
    exactly(t, await state(s, id), left)
    const dropped = (await s.rows('select count from cue.missed_slots')).map(({ count }) => count)
    const last = 'ends_at' in rules ? 4 : catch_up === 'replay_all_missed' ? slots.length : 10
    t.same(dropped, last > slots.length ? [last - slots.length] : [])
  })
}

t.test('of more runs than it may replay, a cue replays the newest hundred', async t => {
  const s = await stage(t)
  const id = await s.cue({ schedule_rules: { max_runs: 150 }, catch_up: 'replay_all_missed' }, { next_run: at(1) })
  s.clock.set(at(200))
  await s.beat('60 seconds')
  await turn(s)
  exactly(t, await state(s, id), { status: 'active', fired_count: 100, next_run: at(201) })
  exactly(t, await s.rows('select first, last, count from cue.missed_slots'), [{ first: at(1), last: at(100), count: 100 }])
})

t.test('a window for a success spans slots of any schedule, and there is none beyond the last one', async t => {
  const row = { cue_id: 'c', version: 1, success_due_at: at(0), schedule_type: 'recurring', cron: null, timezone: 'UTC', slots: 2 } as const
  const rules = { every: '1m', anchor: at(0).toISOString() }
  const end = (minutes: number) => new Date(at(minutes).getTime() + 15_000)
  t.same(move({ ...row, schedule_rules: rules, last_success_at: at(1) }, at(2)), { next: end(3), missed: false })
  t.same(move({ ...row, schedule_rules: rules, last_success_at: null }, at(2)), { next: end(4), missed: true })
  t.same(move({ ...row, schedule_rules: { ...rules, ends_at: at(3).toISOString() }, last_success_at: null }, at(2)), {
    next: null,
    missed: true
  })
})

t.test('a pause that outlasts the schedule completes the cue', async t => {
  const s = await stage(t)
  const id = await s.cue({ schedule_rules: { ends_at: at(5).toISOString() } })
  const changes = { status: 'paused', paused_until: at(5) }
  await s.fn.updateCue({ account_id: s.account_id, cue_id: id, version: 1, changes })
  await s.fn.updateCue({ account_id: s.account_id, cue_id: id, version: 2, changes: { schedule_rules: { ends_at: at(4).toISOString() } } })
  s.clock.set(at(6))
  t.equal(await createPauseSweep(s)(), 1)
  exactly(t, await state(s, id), completed('ended', { version: 4 }))
  exactly(t, await s.rows('select paused_at, paused_by, pause_reason, paused_until from cue.cues'), [
    { paused_at: null, paused_by: null, pause_reason: null, paused_until: null }
  ])
})

t.test('a completed cue becomes active again when a change gives it slots', async t => {
  const { post, patch, call, get, fn, clock } = await build(t, '2030-01-15T08:59:30Z')
  await fn.beatEngine({ engine_id: '00000000-0000-0000-0000-000000000001', version: 't', missed_after: never })
  const url = 'http://127.0.0.1:5555/hook'
  const { id } = await post('/v1/cues', { name: 'n', schedule: { every: '1m', max_runs: 1 }, callback: { url } })
  clock.set(first)
  t.equal((await turn({ fn, clock } as Stage)).length, 1)
  exactly(t, await get(`/v1/cues/${id}`), { status: 'completed', completed_reason: 'max_runs', next_run: null, version: 2, fired_count: 1 })
  exactly(t, await call('POST', `/v1/cues/${id}/fire`), error('invalid_state', 409))
  exactly(t, await patch(`/v1/cues/${id}`, { name: 'm' }), { name: 'm', status: 'completed', completed_reason: 'max_runs', version: 3 })
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { schedule: { cron: '0 9 * * *' } }), {
    status: 409,
    body: { error: { code: 'invalid_state', message: `Cue ${id} has used up its runs: schedule.max_runs must be more than 1.` } }
  })
  exactly(t, await patch(`/v1/cues/${id}`, { schedule: { max_runs: 2 } }), {
    status: 'active',
    completed_reason: null,
    next_run: at(1).toISOString(),
    version: 4
  })
})

t.test('a completed cue makes room for another, and becomes active again only if there is room', async t => {
  const { post, call, fn, clock } = await build(t, '2030-01-15T08:59:30Z', { env: { PLANS: '{"free":{"cues":1}}' } })
  await fn.beatEngine({ engine_id: '00000000-0000-0000-0000-000000000001', version: 't', missed_after: never })
  const body = { name: 'n', schedule: { every: '1m', max_runs: 1 }, worker: true }
  const { id } = await post('/v1/cues', body)
  exactly(t, await call('POST', '/v1/cues', body), error('cue_limit_exceeded', 403))
  clock.set(first)
  await turn({ fn, clock } as Stage)
  exactly(t, await call('POST', '/v1/cues', body), { status: 201 })
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { schedule: { max_runs: 2 } }), error('cue_limit_exceeded', 403))
})

t.test('a one-time cue completes because it runs once', async t => {
  const s = await stage(t)
  const attempt = await s.begun(once)
  await s.settle([attempt])
  exactly(t, await state(s, attempt.cue_id), completed('once'))
  const failed = await s.begun(once)
  await s.settle([failed], { ...refused, gone: true })
  exactly(t, await state(s, failed.cue_id), { status: 'failed', completed_reason: null })
})

t.test('engines complete cues and run none of them too often', async t => {
  const { config, post, get, pool } = await build(t)
  const hooks = await receiver(t)
  for (const _ of [1, 2]) await startEngine(t, config)
  const body = { name: 'n', schedule: { cron: '* * * * * *', max_runs: 3 }, callback: { url: hooks.url } }
  const cues = await Promise.all(
    Array.from({ length: 10 }, (_, n) => post('/v1/cues', n % 2 ? body : { ...body, callback: null, worker: true }))
  )
  for (const { id } of cues) {
    await eventually(async () => (await get(`/v1/cues/${id}`)).status === 'completed' || undefined)
    exactly(t, await get(`/v1/cues/${id}`), { status: 'completed', completed_reason: 'max_runs', fired_count: 3, execution_total: 3 })
  }
  const { rows } = await pool.query('select distinct cue_id, scheduled_for from cue.executions')
  t.equal(rows.length, 30)
})
