// schedule.exclude: which slots don't run, and how they are accounted for.
import t from 'tap'
import { createExclusionSweep } from '../../src/firing/excluded-slots.ts'
import { exactly, pluck } from '../support/exactly.ts'
import { fire, look } from '../support/firing-stage.ts'
import { serviceAt } from '../support/service.ts'

const start = '2030-01-20T12:00:00Z'
const service = serviceAt(start)
type Service = Awaited<ReturnType<typeof service>>
const preview = '/v1/schedules/preview'

/** Takes what is due, and records what is excluded, as an engine does. */
const engineOf = ({ fn, clock }: Service) => ({
  at: async (at: string) => {
    clock.set(at)
    await fn.beatEngine({ engine_id: '00000000-0000-4000-8000-000000000001', version: '1.0.0', missed_after: '100 years' })
    const taken = await fire(await look({ fn, clock }), fn)
    const sweep = createExclusionSweep({ fn, now: () => +clock.now() })
    while ((await sweep()) > 0);
    return taken.map(slot => slot.toISOString())
  }
})

t.test('previews list slots without the excluded ones, and describe the exclusions', async t => {
  const { call, post } = await service()
  const next = async (schedule: object, count = 3) => (await post(preview, { schedule, count })).next.map(({ at }: { at: string }) => at)
  t.strictSame(await next({ cron: '0 9 * * *', exclude: [{ dates: ['01-25', '2030-01-21', '2030-01-26'] }] }, 4), [
    '2030-01-22T09:00:00.000Z',
    '2030-01-23T09:00:00.000Z',
    '2030-01-24T09:00:00.000Z',
    '2030-01-27T09:00:00.000Z'
  ])
  // Local times are those of the schedule, whose 9:00 is 14:00 in UTC.
  const newYork = { cron: '0 9 * * *', timezone: 'America/New_York' }
  t.strictSame(await next({ ...newYork, exclude: [{ from: '2030-01-21T09:00', to: '2030-01-22T09:00:00' }] }, 2), [
    '2030-01-20T14:00:00.000Z',
    '2030-01-22T14:00:00.000Z'
  ])
  t.strictSame(await next({ ...newYork, exclude: [{ from: '2030-01-20T14:00:00Z', to: '2030-01-21T14:00:00.001Z' }] }, 1), [
    '2030-01-22T14:00:00.000Z'
  ])
  t.strictSame(await next({ every: '6h', exclude: [{ cron: '0 17 * * *', minutes: 15 * 60 }] }, 2), [
    '2030-01-21T12:00:00.000Z',
    '2030-01-22T12:00:00.000Z'
  ])
  exactly(t, await call('POST', preview, { schedule: { cron: '0 9 * * *', exclude: [{ dates: ['01-25'] }], window: '30m' }, count: 1 }), {
    status: 200,
    body: { description: 'Every day at 09:00, spread over 30 minutes, except 1 exclusion, UTC' }
  })
})

t.test('a cue passes excluded slots over, and its detail lists each stretch of them once', async t => {
  const s = await service()
  const schedule = { cron: '0 9 * * *', exclude: [{ dates: ['2030-01-22', '01-24'] }, { dates: ['01-25', '01-26'] }] }
  const id = await s.cue({ cron: undefined, schedule, callback: { url: 'http://127.0.0.1:5555/' } })
  exactly(t, (await s.get(`/v1/cues/${id}`)).schedule, { ...schedule, type: 'recurring' })
  const { at } = engineOf(s)
  t.strictSame(await at('2030-01-21T09:00:00Z'), ['2030-01-21T09:00:00.000Z'])
  exactly(t, await s.get(`/v1/cues/${id}`), { next_run: '2030-01-23T09:00:00.000Z', next_slot: '2030-01-23T09:00:00.000Z', missed: [] })
  t.strictSame(await at('2030-01-22T09:00:00Z'), [])
  const first = { policy: 'run_once_if_missed', reason: 'excluded', recorded_at: String }
  const second = { ...first, first: '2030-01-22T09:00:00.000Z', last: '2030-01-22T09:00:00.000Z', count: 1 }
  exactly(t, (await s.get(`/v1/cues/${id}`)).missed, [second])
  t.strictSame(await at('2030-01-23T09:00:00Z'), ['2030-01-23T09:00:00.000Z'])
  for (const [day, count] of [
    ['24', 1],
    ['25', 2],
    ['26', 3]
  ] as const) {
    t.strictSame(await at(`2030-01-${day}T09:00:00Z`), [])
    const stretch = { ...first, first: '2030-01-24T09:00:00.000Z', last: `2030-01-${day}T09:00:00.000Z`, count }
    exactly(t, (await s.get(`/v1/cues/${id}`)).missed, [stretch, second])
  }
  t.strictSame(await at('2030-01-27T09:00:00Z'), ['2030-01-27T09:00:00.000Z'])
})

t.test('while a row of missed slots is locked, the next slot is recorded in another row', async t => {
  const s = await service()
  const schedule = { cron: '0 9 * * *', exclude: [{ dates: ['2030-01-22', '01-23'] }] }
  const id = await s.cue({ cron: undefined, schedule, callback: { url: 'http://127.0.0.1:5555/' } })
  const { at } = engineOf(s)
  await at('2030-01-22T09:00:00Z')
  const holder = await s.pool.connect()
  await holder.query('begin; select from cue.missed_slots for update')
  await at('2030-01-23T09:00:00Z')
  await holder.query('rollback')
  holder.release()
  const rows = ['2030-01-23T09:00:00.000Z', '2030-01-22T09:00:00.000Z'].map(slot => ({ first: slot, last: slot, count: 1 }))
  exactly(t, (await s.get(`/v1/cues/${id}`)).missed, rows)
})

t.test('only slots of an active cue are recorded, from its latest change of schedule on', async t => {
  const s = await service()
  const id = await s.cue({ cron: undefined, schedule: { cron: '0 * * * *', exclude: [{ dates: ['2030-01-21'] }] } })
  const { at } = engineOf(s)
  const missed = async () => pluck((await s.get(`/v1/cues/${id}`)).missed, 'first', 'count')
  await at('2030-01-21T02:30:00Z')
  t.strictSame(await missed(), [['2030-01-21T00:00:00.000Z', 3]])
  await s.patch(`/v1/cues/${id}`, { status: 'paused' })
  await at('2030-01-21T04:30:00Z')
  await s.patch(`/v1/cues/${id}`, { status: 'active' })
  await at('2030-01-21T06:30:00Z')
  t.strictSame(await missed(), [
    ['2030-01-21T05:00:00.000Z', 2],
    ['2030-01-21T00:00:00.000Z', 3]
  ])
  await s.patch(`/v1/cues/${id}`, { schedule: { exclude: null } })
  t.equal((await s.row('select excluded_at from cue.cue_runs')).excluded_at, null)
  exactly(t, await s.get(`/v1/cues/${id}`), { next_run: '2030-01-21T07:00:00.000Z' })
})

t.test('a slot that is excluded after all does not fire', async t => {
  const s = await service()
  const id = await s.cue({ cron: '0 * * * *' })
  await s.pool.query(`update cue.cues set schedule_rules = '{"exclude": [{"dates": ["2030-01-20"]}]}' where id = $1`, [id])
  t.strictSame(await engineOf(s).at('2030-01-20T13:00:00Z'), [])
  exactly(t, await s.get(`/v1/cues/${id}`), { next_run: '2030-01-21T00:00:00.000Z', execution_total: 0, status: 'active' })
})

t.test('windows and exclusions work together: the nominal time counts', async t => {
  const s = await service()
  const schedule = { cron: '0 0 * * *', window: '24h', exclude: [{ from: '2030-01-21T00:00:01', to: '2030-01-22T00:00:00' }] }
  const id = await s.cue({ cron: undefined, schedule })
  exactly(t, await s.get(`/v1/cues/${id}`), { next_slot: '2030-01-21T00:00:00.000Z' })
})

/** Exclusions with the field at fault and what is wrong with it. */
const refused: [exclude: unknown, path: (string | number)[], rule: string][] = [
  [[{}], [0], 'must have either dates, from and to, or cron and minutes'],
  [[{ dates: ['01-25'], cron: '@daily', minutes: 5 }], [0], 'must have either dates, from and to, or cron and minutes'],
  [[{ from: '2030-01-01T00:00' }], [0, 'to'], 'goes with from'],
  [[{ dates: ['01-25'] }, { to: '2030-01-01T00:00' }], [1, 'from'], 'goes with to'],
  [[{ cron: '@daily' }], [0, 'minutes'], 'goes with cron'],
  [[{ minutes: 5 }], [0, 'cron'], 'goes with minutes'],
  [[{ dates: ['2030-01-25', '2031-02-29'] }], [0, 'dates', 1], '2031-02-29 does not exist in the calendar'],
  [[{ dates: ['02-30'] }], [0, 'dates', 0], '02-30 does not exist in the calendar'],
  [[{ from: '2030-01-02T00:00', to: '2030-01-02T00:00' }], [0, 'to'], 'must be after from'],
  [
    [{ from: '2030-02-30T00:00', to: '2030-03-02T00:00' }],
    [0, 'from'],
    'must be an instant such as 2026-12-24T18:00:00Z, or a local time without an offset'
  ],
  [[{ cron: '0 0 31 2 *', minutes: 5 }], [0, 'cron'], 'it would never run: the day-of-month field "31" has no day in the months of "2"'],
  [
    Array.from({ length: 2 }, () => ({ dates: Array(251).fill('01-25') })).map(({ dates }, n) => ({
      dates: dates.map((_, d) => `${2000 + n}-${String(1 + (d % 12)).padStart(2, '0')}-${String(1 + Math.floor(d / 12)).padStart(2, '0')}`)
    })),
    [],
    'must have at most 500 dates in total; use a calendar for more'
  ],
  [
    Array.from({ length: 50 }, (_, n) => ({ cron: n % 2 ? '0-58 * * * *' : '5 3 29 2 */7', minutes: 1 })),
    [],
    'must have at most 10 entries with cron and minutes'
  ],
  [[{ cron: '* * * * * *', minutes: 1 }], [], 'leaves no slot: all are excluded'],
  [[{ cron: '0 0 * * *', minutes: 1440 }], [], 'leaves no slot: all are excluded'],
  [[{ from: '0001-01-01T00:00', to: '9999-12-31T23:59:59' }], [], 'leaves no slot: all are excluded']
]
t.test('refuses exclusions that are not one, and those that leave no slot, with the field and the rule', async t => {
  const { call, cue } = await service()
  const id = await cue()
  for (const [exclude, path, rule] of refused) {
    const schedule = { cron: '0 9 * * *', exclude }
    for (const [method, url, body] of [
      ['POST', '/v1/cues', { name: 'n', worker: true, schedule }],
      ['PATCH', `/v1/cues/${id}`, { schedule }],
      ['POST', preview, { schedule }]
    ] as const) {
      const answer = await call(method, url, body)
      const detail = [{ type: 'value_error', loc: ['body', 'schedule', 'exclude', ...path], msg: `Value error, ${rule}`, input: null }]
      t.strictSame([answer.status, answer.body.detail], [422, detail], `${method} ${JSON.stringify(exclude).slice(0, 100)}`)
    }
  }
})

t.test('refuses members of the wrong type', async t => {
  const { call } = await service()
  for (const [exclude, path] of [
    ['x', []],
    [[5], [0]],
    [[{ dates: [] }], [0, 'dates']],
    [[{ dates: ['2030-13-01'] }], [0, 'dates', 0]],
    [[{ dates: ['12/25'] }], [0, 'dates', 0]],
    [[{ from: '2030-01-01', to: '2030-01-02' }], [0, 'from']],
    [[{ cron: '@daily', minutes: 0 }], [0, 'minutes']],
    [[{ cron: '@daily', minutes: 527_041 }], [0, 'minutes']],
    [[{ cron: '@daily', hours: 1 }], [0, 'hours']],
    [Array(51).fill({ dates: ['01-25'] }), []]
  ] as [unknown, (string | number)[]][]) {
    const answer = await call('POST', preview, { schedule: { cron: '@daily', exclude } })
    t.strictSame(
      [answer.status, answer.body.detail?.[0]?.loc],
      [422, ['body', 'schedule', 'exclude', ...path]],
      JSON.stringify(exclude).slice(0, 100)
    )
  }
  const once = await call('POST', preview, { schedule: { at: '2031-01-01T00:00:00Z', exclude: [{ dates: ['01-25'] }] } })
  exactly(t, once, {
    status: 422,
    body: { detail: [{ loc: ['body', 'schedule', 'exclude'], msg: 'Value error, is for recurring schedules' }] }
  })
})

t.test('refuses exclusions that are too expensive to search on every route, with the exclusion', async t => {
  const { call, cue, pool } = await service()
  // Of a year, a minute of an hour remains on Sundays that are the last of a month.
  const exclude = [{ dates: ['12-25'] }, ...['0-58 * * * *', '59 * * * 1-6', '59 * 1-30 * 0'].map(cron => ({ cron, minutes: 1 }))]
  const schedule = { cron: '* * * * *', exclude }
  const body = { name: 'n', worker: true, schedule }
  const [id, paused] = [await cue(), await cue()]
  await call('POST', `/v1/cues/${paused}/pause`)
  const [past, former] = [await cue({ cron: '* * * * *' }), await cue({ cron: '* * * * *' })]
  await pool.query('update cue.cues set cron = $2, schedule_rules = $3 where id = any ($1)', [
    [past, paused],
    schedule.cron,
    JSON.stringify({ exclude })
  ])
  const rule =
    'Value error, {"cron":"0-58 * * * *","minutes":1} is too expensive to search: it leaves out too many slots one by one. ' +
    'Exclude longer stretches, with more minutes, dates, or from and to'
  const period = { from: '2025-01-06T00:00:00Z', to: '2030-01-20T00:00:00Z' }
  for (const [method, path, given, at = 'schedule'] of [
    ['POST', preview, { schedule }],
    ['POST', '/v1/cues', body],
    ['PATCH', `/v1/cues/${id}`, { schedule }],
    ['PUT', '/v1/cues/by-key/k', body],
    ['POST', '/v1/cues/apply', { set: 's', cues: [{ ...body, key: 'k' }], dry_run: true }, 'cues.k.schedule'],
    ['POST', '/v1/operations', { type: 'backfill', cue_id: past, ...period, dry_run: true }],
    ['POST', `/v1/cues/${paused}/resume`, {}]
  ] as const) {
    const answer = await call(method, path, given)
    const detail = [{ type: 'value_error', loc: ['body', ...at.split('.'), 'exclude', 1], msg: rule, input: null }]
    t.strictSame([answer.status, answer.body.detail], [422, detail], path)
  }
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'preview_schedule', arguments: { schedule } } }
  const { body: reply } = await call('POST', '/mcp', message, { accept: 'application/json, text/event-stream' })
  exactly(t, reply.result, { isError: true, content: [{ text: `validation_error: schedule.exclude.1: ${rule}` }] })
  await call('PUT', '/v1/calendars/c', {})
  await pool.query('update cue.cues set schedule_rules = $2 where id = $1', [former, JSON.stringify({ exclude, exclude_calendars: ['c'] })])
  exactly(t, await call('PUT', '/v1/calendars/c', { dates: ['12-26'] }), {
    status: 422,
    body: {
      detail: [
        {
          loc: ['body'],
          msg: `Value error, does not work with cue ${former}: schedule.exclude.1: ${rule}; pause or delete that cue first, or change its schedule`
        }
      ]
    }
  })
})

t.test('previews and backfills of a slot per hour among excluded minutes are within the limit', async t => {
  const { call, cue, post } = await service()
  const rare = Array.from({ length: 9 }, (_, n) => ({ cron: `${n} 3 29 2 */7`, minutes: 1 }))
  const schedule = { cron: '* * * * *', exclude: [{ cron: '0-58 * * * *', minutes: 1 }, ...rare] }
  const { next, excluded } = await post(preview, { schedule, count: 50 })
  t.strictSame([next.length, next[49].at, excluded.length], [50, '2030-01-22T13:59:00.000Z', 50])
  const cue_id = await cue({ cron: undefined, schedule })
  const backfill = { type: 'backfill', cue_id, from: '2029-12-10T00:00:00Z', to: '2030-01-20T00:00:00Z', dry_run: true }
  exactly(t, await call('POST', '/v1/operations', backfill), { status: 200, body: { total: 984 } })
})
