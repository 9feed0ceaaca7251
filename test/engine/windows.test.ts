// schedule.window: slots fire at a fixed fraction of it, and keep their nominal time.
import t from 'tap'
import { createPauseSweep } from '../../src/firing/ended-pauses.ts'
import { catchUp } from '../../src/firing/preparing.ts'
import { fractionOf } from '../../src/schedule/plan.ts'
import { exactly } from '../support/exactly.ts'
import { finish } from '../support/finish.ts'
import { fire, look } from '../support/firing-stage.ts'
import { serviceAt } from '../support/service.ts'
import { error } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const service = serviceAt(start)
const minute = 60_000
const nine = Date.parse('2030-01-07T09:00:00Z')
const daily = { cron: '0 9 * * *', window: '30m' }
const iso = (at: number) => new Date(at).toISOString()
const delay = (id: string, window = 30 * minute) => Math.floor(fractionOf(id) * window)

/** Takes what is due as an engine does. */
const engineOf = ({ fn, clock }: Awaited<ReturnType<typeof service>>) => ({
  take: async (at: number) => {
    clock.set(iso(at))
    await fn.beatEngine({ engine_id: '00000000-0000-4000-8000-000000000001', version: '1.0.0', missed_after: '100 years' })
    return (await fire(await look({ fn, clock }), fn)).map(slot => slot.toISOString())
  }
})

t.test('a slot fires at its fraction of the window and keeps its nominal time', async t => {
  const s = await service()
  const id = await s.cue({ cron: undefined, schedule: daily, callback: { url: 'http://127.0.0.1:5555/' } })
  const due = nine + delay(id)
  const shown = await s.get(`/v1/cues/${id}`)
  exactly(t, shown, { next_run: iso(due), next_slot: iso(nine), schedule: { ...daily, type: 'recurring', timezone: 'UTC' } })
  const { take } = engineOf(s)
  t.strictSame(await take(due - 1), [])
  t.strictSame(await take(due), [iso(nine)])
  const [execution] = (await s.get(`/v1/executions?cue_id=${id}`)).executions
  exactly(t, execution, { scheduled_for: iso(nine), due_at: iso(due) })
  exactly(t, await s.get(`/v1/executions/${execution.id}`), { scheduled_for: iso(nine), due_at: iso(due) })
  const after = await s.get(`/v1/cues/${id}`)
  exactly(t, after, { next_run: iso(due + 1440 * minute), next_slot: iso(nine + 1440 * minute), version: 1 })
  exactly(t, after.executions, [{ due_at: iso(due) }])
  exactly(t, await s.row('select last_slot from cue.cue_runs'), { last_slot: Date })
  t.equal((await s.row('select last_slot from cue.cue_runs')).last_slot.getTime(), nine)
})

t.test('a cue without a window, a fire and a replay are due at their scheduled time', async t => {
  const s = await service()
  const id = await s.cue({ cron: '0 9 * * *' })
  exactly(t, await s.get(`/v1/cues/${id}`), { next_run: iso(nine), next_slot: iso(nine) })
  await engineOf(s).take(nine)
  s.clock.advance('1 second')
  await s.fire(id, { send_at: '2030-01-07T10:00:00Z' })
  const { executions } = await s.get(`/v1/executions?cue_id=${id}`)
  exactly(t, executions, [
    { scheduled_for: '2030-01-07T10:00:00.000Z', due_at: '2030-01-07T10:00:00.000Z' },
    { scheduled_for: iso(nine), due_at: iso(nine) }
  ])
  t.equal((await s.row('select count(due_at)::int as set from cue.executions')).set, 0)
  await s.patch(`/v1/cues/${id}`, { status: 'paused' })
  exactly(t, await s.get(`/v1/cues/${id}`), { next_run: null, next_slot: null })
})

t.test('changes of the window move a slot that has not fired, and lose none', async t => {
  const s = await service()
  const id = await s.cue({ cron: undefined, schedule: daily, callback: { url: 'http://127.0.0.1:5555/' } })
  const wider = await s.patch(`/v1/cues/${id}`, { schedule: { window: '2h' } })
  exactly(t, wider, { next_run: iso(nine + delay(id, 120 * minute)), next_slot: iso(nine), version: 2 })
  // Between its nominal time and its turn.
  s.clock.set(iso(nine + Math.floor(delay(id, 120 * minute) / 2)))
  const waiting = await s.patch(`/v1/cues/${id}`, { schedule: { window: '119m' } })
  exactly(t, waiting, { next_slot: iso(nine), next_run: iso(nine + delay(id, 119 * minute)) })
  const now = +s.clock.now()
  exactly(t, await s.patch(`/v1/cues/${id}`, { schedule: { window: null } }), { next_slot: iso(nine), next_run: iso(now) })
  t.strictSame(await engineOf(s).take(now), [iso(nine)])
  exactly(t, (await s.get(`/v1/executions?cue_id=${id}`)).executions, [{ scheduled_for: iso(nine), due_at: iso(now) }])
  exactly(t, await s.get(`/v1/cues/${id}`), { next_slot: iso(nine + 1440 * minute), next_run: iso(nine + 1440 * minute) })
})

t.test('a cue resumes with the first slot that fires from then on', async t => {
  const s = await service()
  const id = await s.cue({ cron: undefined, schedule: daily })
  const due = nine + delay(id)
  await s.patch(`/v1/cues/${id}`, { status: 'paused' })
  s.clock.set(iso(due - 1))
  exactly(t, await s.post(`/v1/cues/${id}/resume`, {}), { next_slot: iso(nine), next_run: iso(due) })
  await s.post(`/v1/cues/${id}/pause`, { until: iso(due) })
  s.clock.set(iso(due))
  t.equal(await createPauseSweep({ fn: s.fn })(), 1)
  exactly(t, await s.get(`/v1/cues/${id}`), { next_slot: iso(nine), next_run: iso(due), status: 'active' })
  await s.patch(`/v1/cues/${id}`, { status: 'paused' })
  s.clock.set(iso(due + 1))
  exactly(t, await s.post(`/v1/cues/${id}/resume`, {}), { next_slot: iso(nine + 1440 * minute) })
})

t.test('an outage covers slots by when they were meant to fire', async t => {
  const id = 'cue_abcdefghijkl'
  const hour = 60 * minute
  const d = Math.floor(fractionOf(id) * hour)
  const cue = { cue_id: id, version: 1, slot: { next_run: new Date(nine + d), excludes: [] } }
  const schedule = {
    next_slot: new Date(nine),
    schedule_type: 'recurring' as const,
    cron: '0 * * * *',
    timezone: 'UTC',
    schedule_rules: { window: '100%' },
    runs_left: null,
    catch_up: 'replay_all_missed' as const,
    over_limit: false
  }
  const outage_until = new Date(nine + 2 * hour + d - 1)
  const later = new Date(+outage_until + 1)
  exactly(t, finish(catchUp({ ...cue, schedule: { ...schedule, outage_until } })), {
    slots: [new Date(nine), new Date(nine + hour)],
    due: [new Date(nine + d), new Date(nine + hour + d)],
    next_run: new Date(nine + 2 * hour + d),
    next_slot: new Date(nine + 2 * hour),
    dropped: null
  })
  exactly(t, finish(catchUp({ ...cue, schedule: { ...schedule, outage_until: later, catch_up: 'run_once_if_missed' } })), {
    slots: [new Date(nine + 2 * hour)],
    next_slot: new Date(nine + 3 * hour),
    dropped: { first: new Date(nine), last: new Date(nine + hour), count: 2, reason: 'service_away' }
  })
})

t.test('refuses what is not a window', async t => {
  const s = await service()
  for (const window of ['', '0m', '25h', '2d', '101%', '0%', '1.5h', '-5m', '30', '%', '1e3m', '5 m']) {
    const answer = await s.call('POST', '/v1/cues', { name: 'n', worker: true, schedule: { cron: '@daily', window } })
    exactly(t, answer, {
      status: 422,
      body: { detail: [{ loc: ['body', 'schedule', 'window'], msg: /90s, 30m or 2h, at most 24h, or a part such as 25%, at most 100%/ }] }
    })
  }
  exactly(
    t,
    await s.call('POST', '/v1/cues', { name: 'n', worker: true, schedule: { at: '2031-01-01T00:00:00Z', window: '5m' } }),
    error('validation_error', 422)
  )
  exactly(t, await s.call('PATCH', `/v1/cues/${await s.cue()}`, { schedule: { window: 30 } }), error('validation_error', 422))
})

t.test('10,000 cues of one slot spread evenly over the window', async t => {
  const s = await service()
  const { rows } = await s.pool.query('select cue.new_cue_id() as id from generate_series(1, 10000)')
  const bins = new Array(30).fill(0)
  for (const { id } of rows) bins[Math.floor(delay(id) / minute)]++
  const expected = rows.length / bins.length
  const chiSquare = bins.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  // 29 degrees of freedom: exceeded by chance once in a million.
  t.ok(chiSquare < 78, `chi-square ${chiSquare}`)
})
