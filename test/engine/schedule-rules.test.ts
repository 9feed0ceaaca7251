// Schedules beyond one cron: regular intervals, several crons, bounds and a number of runs.
import t from 'tap'
import { exactly } from '../support/exactly.ts'
import { build, error } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const url = 'http://127.0.0.1:5555/hook'
const cue = (schedule: object) => ({ name: 'n', schedule, callback: { url } })
const preview = '/v1/schedules/preview'

/** Schedules as sent, as returned, and their first run. */
const accepted: [given: object, returned: object, next_run: string][] = [
  [
    { every: '45m' },
    { type: 'recurring', every: '45m', timezone: 'UTC' },
    '2030-01-07T09:00:00.000Z' // 700,824 × 45 minutes after the epoch
  ],
  [
    { every: '36h', anchor: '2030-01-10T06:00:00+01:00', timezone: 'europe/berlin' },
    { type: 'recurring', every: '36h', anchor: '2030-01-10T05:00:00.000Z', timezone: 'Europe/Berlin' },
    '2030-01-08T17:00:00.000Z'
  ],
  [
    { type: 'recurring', every: '366d', anchor: '2030-01-07T08:30:00Z' },
    { type: 'recurring', every: '366d', anchor: '2030-01-07T08:30:00.000Z', timezone: 'UTC' },
    '2031-01-08T08:30:00.000Z'
  ],
  [
    { every: '10s', anchor: '2030-01-07T08:30:00.25Z' },
    { type: 'recurring', every: '10s', anchor: '2030-01-07T08:30:00.250Z', timezone: 'UTC' },
    '2030-01-07T08:30:00.250Z'
  ],
  [
    { crons: ['0 9 * * *', ' 45 8 * * MON '], cron: null },
    { type: 'recurring', crons: ['0 9 * * *', '45 8 * * MON'], timezone: 'UTC' },
    '2030-01-07T08:45:00.000Z'
  ],
  [
    { in: '90s', timezone: 'europe/berlin' },
    { type: 'once', at: '2030-01-07T08:31:30.000Z', timezone: 'Europe/Berlin' },
    '2030-01-07T08:31:30.000Z'
  ],
  [
    { cron: '0 9 * * *', starts_at: '2030-02-01T09:00:00Z', ends_at: '2030-02-01T10:00:00+01:00', max_runs: 1 },
    {
      type: 'recurring',
      cron: '0 9 * * *',
      starts_at: '2030-02-01T09:00:00.000Z',
      ends_at: '2030-02-01T09:00:00.000Z',
      max_runs: 1,
      timezone: 'UTC'
    },
    '2030-02-01T09:00:00.000Z'
  ],
  [
    { cron: '0 9 * * *', starts_at: '2020-01-01T00:00:00Z', anchor: null, max_runs: null },
    { type: 'recurring', cron: '0 9 * * *', starts_at: '2020-01-01T00:00:00.000Z', timezone: 'UTC' },
    '2030-01-07T09:00:00.000Z'
  ]
]
for (const [given, schedule, next_run] of accepted) {
  t.test(`accepts ${JSON.stringify(given)}`, async t => {
    const { call, get, post } = await build(t, start)
    const { status, body } = await call('POST', '/v1/cues', cue(given))
    t.equal(status, 201)
    t.strictSame(body.schedule, schedule)
    t.strictSame([body.next_run, body.completed_reason], [next_run, null])
    t.strictSame((await get(`/v1/cues/${body.id}`)).schedule, schedule)
    const shown = await post(preview, { schedule: given, count: 1 })
    t.strictSame([shown.schedule, shown.next.map(({ at }: { at: string }) => at)], [schedule, [next_run]])
    exactly(t, await call('PATCH', `/v1/cues/${body.id}`, { schedule: given }), { status: 200, body: { version: 1, next_run } })
  })
}

const offsetRule = 'must be a whole number and a unit, such as 90s, 10m or 2h, from 1s to 366d'
const lengths = 'must be a whole number and a unit, such as 45m, 36h or 2d, from 10s to 366d'
/** Schedules with the field at fault and what is wrong with it. */
const refused: [schedule: object, field: string, rule: string][] = [
  [{ cron: '@daily', every: '1h' }, 'every', 'does not go with cron: give one of cron, crons, every, at, in'],
  [{ cron: '@daily', crons: ['@daily'] }, 'crons', 'does not go with cron: give one of cron, crons, every, at, in'],
  [{ every: '1h', at: '2031-01-01T00:00:00Z' }, 'at', 'does not go with every: give one of cron, crons, every, at, in'],
  [
    { crons: ['@daily'], every: '1h', at: '2031-01-01T00:00:00Z' },
    'every',
    'does not go with crons: give one of cron, crons, every, at, in'
  ],
  [{ type: 'once', every: '1h' }, 'every', 'does not go with type once'],
  [{ type: 'once', crons: ['@daily'] }, 'crons', 'does not go with type once'],
  [{ at: '2031-01-01T00:00:00Z', max_runs: 1 }, 'max_runs', 'is for recurring schedules'],
  [{ at: '2031-01-01T00:00:00Z', ends_at: '2031-01-01T00:00:00Z' }, 'ends_at', 'is for recurring schedules'],
  [{ at: '2031-01-01T00:00:00Z', anchor: '2031-01-01T00:00:00Z' }, 'anchor', 'goes with every'],
  [{ cron: '@daily', anchor: '2031-01-01T00:00:00Z' }, 'anchor', 'goes with every'],
  ...['', '45', 'm', '1.5h', '-1h', '1h30m', '1w', ' 1h', '1H', '9s', '0d', '367d', '8785h', '999999999s', '১h'].map(
    (every): [object, string, string] => [{ every }, 'every', lengths]
  ),
  ...['', '10', '+10m', '0s', '367d', '99999999d', '1w'].map((offset): [object, string, string] => [{ in: offset }, 'in', offsetRule]),
  [{ in: '10m', at: '2031-01-01T00:00:00Z' }, 'in', 'does not go with at: give one of cron, crons, every, at, in'],
  [{ every: '1h', anchor: '9999-12-31T23:59:59-00:01' }, 'anchor', 'must not be after the year 9999'],
  [{ every: '1h', ends_at: '9999-12-31T23:59:59-00:01' }, 'ends_at', 'must not be after the year 9999'],
  [{ every: '1h', starts_at: '2031-01-01T00:00:00Z', ends_at: '2030-12-31T23:59:59Z' }, 'ends_at', 'must not be before starts_at'],
  [
    { cron: '0 9 * * *', ends_at: '2030-01-07T08:59:59Z' },
    'ends_at',
    'leaves no slot: none from 2030-01-07T08:30:00.000Z until 2030-01-07T08:59:59.000Z'
  ],
  [
    { cron: '0 9 * * *', starts_at: '2030-02-01T09:00:01Z', ends_at: '2030-02-02T08:00:00Z' },
    'ends_at',
    'leaves no slot: none from 2030-02-01T09:00:01.000Z until 2030-02-02T08:00:00.000Z'
  ],
  [
    { every: '1h', ends_at: '2029-01-01T00:00:00Z' },
    'ends_at',
    'leaves no slot: none from 2030-01-07T08:30:00.000Z until 2029-01-01T00:00:00.000Z'
  ],
  [{ every: '366d', starts_at: '9999-12-31T23:59:59Z' }, 'starts_at', 'leaves no slot: none from 9999-12-31T23:59:59.000Z']
]
t.test('refuses schedules that are not one, with the field and the rule', async t => {
  const { call } = await build(t, start)
  for (const [schedule, field, rule] of refused) {
    for (const [path, body] of [
      ['/v1/cues', cue(schedule)],
      [preview, { schedule }]
    ] as const) {
      const answer = await call('POST', path, body)
      t.strictSame(
        [answer.status, answer.body.error.code, answer.body.detail],
        [422, 'validation_error', [{ type: 'value_error', loc: ['body', 'schedule', field], msg: `Value error, ${rule}`, input: null }]],
        `${path} ${JSON.stringify(schedule)}`
      )
    }
  }
})

t.test('refuses members of the wrong type', async t => {
  const { call } = await build(t, start)
  const wrong: [schedule: object, loc: (string | number)[], type: string][] = [
    [{ crons: [] }, ['crons'], 'too_short'],
    [{ crons: Array(11).fill('@daily') }, ['crons'], 'too_long'],
    [{ crons: '@daily' }, ['crons'], 'list_type'],
    [{ crons: ['@daily', 5] }, ['crons', 1], 'string_type'],
    [{ every: 5 }, ['every'], 'string_type'],
    [{ every: '1'.repeat(21) }, ['every'], 'string_too_long'],
    [{ every: '1h', anchor: '2030-01-01' }, ['anchor'], 'datetime_from_date_parsing'],
    [{ every: '1h', starts_at: 5 }, ['starts_at'], 'string_type'],
    [{ every: '1h', max_runs: 0 }, ['max_runs'], 'greater_than_equal'],
    [{ every: '1h', max_runs: 2 ** 31 }, ['max_runs'], 'less_than_equal'],
    [{ every: '1h', max_runs: 1.5 }, ['max_runs'], 'int_from_float'],
    [{ every: '1h', max_runs: '3' }, ['max_runs'], 'int_type']
  ]
  for (const [schedule, loc, type] of wrong) {
    const { status, body } = await call('POST', '/v1/cues', cue(schedule))
    exactly(
      t,
      { status, detail: body.detail },
      { status: 422, detail: [{ loc: ['body', 'schedule', ...loc], type }] },
      JSON.stringify(schedule)
    )
  }
  exactly(t, await call('POST', '/v1/cues', cue({ crons: ['@daily', '61 * * * *'] })), {
    status: 400,
    body: { error: { code: 'invalid_schedule', message: /^schedule\.crons\.1: invalid minute field/ } }
  })
})

t.test('a change of part of a schedule keeps the rest, and null removes it', async t => {
  const { post, patch } = await build(t, start)
  const bounds = { starts_at: '2030-01-08T00:00:00.000Z', ends_at: '2030-12-31T00:00:00.000Z', max_runs: 9 }
  const { id } = await post('/v1/cues', cue({ cron: '0 9 * * *', timezone: 'Europe/Berlin', ...bounds }))
  const changes: [change: object, schedule: object, next_run: string][] = [
    [{ every: '6h' }, { every: '6h', ...bounds }, '2030-01-08T00:00:00.000Z'],
    [{ anchor: '2030-01-01T01:00:00Z' }, { every: '6h', anchor: '2030-01-01T01:00:00.000Z', ...bounds }, '2030-01-08T01:00:00.000Z'],
    [{ every: '12h' }, { every: '12h', anchor: '2030-01-01T01:00:00.000Z', ...bounds }, '2030-01-08T01:00:00.000Z'],
    [{ anchor: null, starts_at: null }, { every: '12h', ...bounds, starts_at: undefined }, '2030-01-07T12:00:00.000Z'],
    [
      { crons: ['0 8 * * *', '0 9 * * *'] },
      { crons: ['0 8 * * *', '0 9 * * *'], ends_at: bounds.ends_at, max_runs: 9 },
      '2030-01-08T07:00:00.000Z'
    ],
    [{ max_runs: 5, ends_at: null }, { crons: ['0 8 * * *', '0 9 * * *'], max_runs: 5 }, '2030-01-08T07:00:00.000Z'],
    [{ cron: '30 9 * * *' }, { cron: '30 9 * * *', max_runs: 5 }, '2030-01-08T08:30:00.000Z'],
    [{ max_runs: null }, { cron: '30 9 * * *' }, '2030-01-08T08:30:00.000Z'],
    [{ every: '1d', max_runs: 2 }, { every: '1d', max_runs: 2 }, '2030-01-08T00:00:00.000Z'],
    [{ at: '2030-02-01T00:00:00Z' }, { type: 'once', at: '2030-02-01T00:00:00.000Z' }, '2030-02-01T00:00:00.000Z'],
    [{ crons: ['@daily'] }, { crons: ['@daily'] }, '2030-01-07T23:00:00.000Z']
  ]
  for (const [change, schedule, next_run] of changes) {
    const changed = await patch(`/v1/cues/${id}`, { schedule: change })
    const expected = JSON.parse(JSON.stringify({ type: 'recurring', ...schedule, timezone: 'Europe/Berlin' }))
    t.strictSame([changed.schedule, changed.next_run], [expected, next_run], JSON.stringify(change))
  }
})

t.test('a replaced definition has only the members it is given', async t => {
  const { call } = await build(t, start)
  const path = '/v1/cues/by-key/k'
  await call('PUT', path, cue({ every: '6h', anchor: '2030-01-01T01:00:00Z', max_runs: 9 }))
  exactly(t, await call('PUT', path, cue({ max_runs: 9, anchor: '2030-01-01T02:00:00+01:00', every: '6h' })), {
    status: 200,
    body: { changed: false, version: 1 }
  })
  const { body } = await call('PUT', path, cue({ every: '6h' }))
  t.strictSame(
    [body.changed, body.schedule, body.next_run],
    [true, { type: 'recurring', every: '6h', timezone: 'UTC' }, '2030-01-07T12:00:00.000Z']
  )
  const declared = { ...cue({ crons: ['0 9 * * *'], max_runs: 3 }), key: 'k' }
  const apply = async (cues: object[]) => (await call('POST', '/v1/cues/apply', { set: 's', cues })).body
  exactly(t, await apply([declared]), {
    updated: [
      {
        key: 'k',
        changes: {
          'schedule.every': { from: '6h', to: null },
          'schedule.crons': { from: null, to: ['0 9 * * *'] },
          'schedule.max_runs': { from: null, to: 3 },
          managed_by: { from: null, to: 's' }
        }
      }
    ]
  })
  exactly(t, await apply([declared]), { updated: [], unchanged: ['k'] })
  exactly(t, await apply([{ ...declared, schedule: { every: 'x' } }]), {
    detail: [{ loc: ['body', 'cues', 'k', 'schedule', 'every'], msg: `Value error, ${lengths}` }]
  })
  const offset = { ...declared, schedule: { in: '10m' }, retry: { max_attempts: 99 } }
  for (const [refusal, place] of [
    [await apply([offset]), ['body', 'cues', 'k']],
    [(await call('PUT', path, offset)).body, ['body']]
  ])
    exactly(t, refusal, {
      detail: [
        { loc: [...place, 'schedule', 'in'], msg: 'Value error, `in` would differ each time; give `at`' },
        { loc: [...place, 'retry', 'max_attempts'] }
      ]
    })
})

t.test("the plan's minimum interval applies to regular intervals and to several crons together", async t => {
  const { call } = await build(t, start, { env: { PLANS: '{"free":{"min_interval_seconds":3600}}' } })
  const status = async (schedule: object) => (await call('POST', '/v1/cues', cue(schedule))).status
  t.equal(await status({ every: '60m' }), 201)
  t.equal(await status({ crons: ['0 9 * * *', '0 10 * * *', '0 9 * * MON'] }), 201)
  for (const [schedule, name] of [
    [{ every: '59m' }, 'every'],
    [{ crons: ['0 9 * * *', '59 9 * * *'] }, 'crons'],
    [{ cron: '*/59 * * * *', max_runs: 1 }, 'cron']
  ] as const) {
    exactly(t, await call('POST', '/v1/cues', cue(schedule)), {
      status: 400,
      body: {
        error: {
          code: 'invalid_schedule',
          message: `schedule.${name}: your plan requires at least 3600 seconds between slots; choose a longer interval, or upgrade`
        }
      }
    })
  }
})

t.test('a preview lists at most max_runs slots, none after ends_at', async t => {
  const { post } = await build(t, start)
  const next = async (schedule: object) => (await post(preview, { schedule })).next.map(({ at }: { at: string }) => at)
  t.strictSame(await next({ every: '1d', max_runs: 2 }), ['2030-01-08T00:00:00.000Z', '2030-01-09T00:00:00.000Z'])
  t.strictSame(await next({ every: '1d', ends_at: '2030-01-08T00:00:00Z' }), ['2030-01-08T00:00:00.000Z'])
  t.equal(
    (await post(preview, { schedule: { every: '1d', ends_at: '2030-01-08T00:00:00Z', max_runs: 3 } })).description,
    'Every day, counted from 1970-01-01T00:00:00+00:00, until 2030-01-08T00:00:00+00:00, at most 3 runs, UTC'
  )
})

t.test('a cue cannot be paused or resumed beyond its end', async t => {
  const { post, call, clock } = await build(t, start)
  const { id } = await post('/v1/cues', cue({ cron: '0 9 * * *', ends_at: '2030-01-09T09:00:00Z' }))
  exactly(t, await call('POST', `/v1/cues/${id}/pause`, { until: '2030-01-09T09:00:01Z' }), {
    status: 422,
    body: { detail: [{ loc: ['body', 'until'], msg: 'Value error, must not be after schedule.ends_at: the cue would never run' }] }
  })
  t.equal((await call('POST', `/v1/cues/${id}/pause`, { until: '2030-01-09T09:00:00Z' })).status, 200)
  clock.set('2030-01-09T09:00:00Z')
  exactly(t, await call('POST', `/v1/cues/${id}/resume`), error('validation_error', 422))
  exactly(t, await call('PATCH', `/v1/cues/${id}`, { status: 'active', schedule: { ends_at: '2030-01-10T09:00:00Z' } }), {
    status: 200,
    body: { status: 'active', next_run: '2030-01-10T09:00:00.000Z' }
  })
})
