import t from 'tap'
import { exactly, pluck } from '../support/exactly.ts'
import { build } from '../support/setup.ts'

const start = '2030-01-07T08:30:00Z'
const preview = '/v1/schedules/preview'

t.test('describes a schedule and returns its next runs', async t => {
  const { call, get } = await build(t, start)
  const { status, body } = await call('POST', preview, { schedule: { cron: '0 9 * * MON-FRI', timezone: 'europe/berlin' }, count: 2 })
  t.strictSame(
    [status, body],
    [
      200,
      {
        schedule: { type: 'recurring', cron: '0 9 * * MON-FRI', timezone: 'Europe/Berlin' },
        description: 'Weekdays at 09:00, Europe/Berlin',
        next: [
          { at: '2030-01-08T08:00:00.000Z', local: '2030-01-08T09:00:00+01:00', note: null },
          { at: '2030-01-09T08:00:00.000Z', local: '2030-01-09T09:00:00+01:00', note: null }
        ],
        excluded: []
      }
    ]
  )
  t.equal((await get('/v1/cues')).total, 0)
})

t.test('returns five runs after now by default, and at most fifty', async t => {
  const { post } = await build(t, start)
  const runs = async (more: object) => (await post(preview, { schedule: { cron: '* * * * *' }, ...more })).next
  t.equal((await runs({})).length, 5)
  t.equal((await runs({ from: null }))[0].at, '2030-01-07T08:31:00.000Z')
  t.equal((await runs({ count: 50 })).at(-1).at, '2030-01-07T09:20:00.000Z')
  t.equal((await runs({ from: '2020-02-29T00:00:00+01:00' }))[0].at, '2020-02-28T23:01:00.000Z')
})

t.test('returns the excluded slots before the last run, at most as many as runs are asked for', async t => {
  const { post, call } = await build(t, start)
  await call('PUT', '/v1/calendars/holidays', { dates: ['2030-01-10'] })
  const schedule = { cron: '0 9 * * *', timezone: 'Europe/Berlin', exclude: [{ dates: ['01-08'] }], exclude_calendars: ['holidays'] }
  const { next, excluded } = await post(preview, { schedule, count: 2 })
  t.same(pluck(next, 'at'), ['2030-01-09T08:00:00.000Z', '2030-01-11T08:00:00.000Z'])
  t.same(excluded, [
    { at: '2030-01-08T08:00:00.000Z', local: '2030-01-08T09:00:00+01:00' },
    { at: '2030-01-10T08:00:00.000Z', local: '2030-01-10T09:00:00+01:00' }
  ])
  const nights = { cron: '* * * * *', exclude: [{ cron: '32 8 * * *', minutes: 600 }] }
  t.same((await post(preview, { schedule: nights, count: 3 })).excluded, [
    { at: '2030-01-07T08:32:00.000Z', local: '2030-01-07T08:32:00+00:00' },
    { at: '2030-01-07T08:33:00.000Z', local: '2030-01-07T08:33:00+00:00' },
    { at: '2030-01-07T08:34:00.000Z', local: '2030-01-07T08:34:00+00:00' }
  ])
})

t.test('rejects what a cue would be rejected for', async t => {
  const { call } = await build(t, start)
  const cases: [unknown, number, string][] = [
    [{}, 422, 'validation_error'],
    [{ schedule: null }, 422, 'validation_error'],
    [{ schedule: { cron: '@daily', every: 'day' } }, 422, 'validation_error'],
    [{ schedule: { cron: '@daily' }, counts: 3 }, 422, 'validation_error'],
    [{ schedule: { cron: '@daily' }, count: 0 }, 422, 'validation_error'],
    [{ schedule: { cron: '@daily' }, count: 51 }, 422, 'validation_error'],
    [{ schedule: { cron: '@daily' }, count: '5' }, 422, 'validation_error'],
    [{ schedule: { cron: '@daily' }, from: '2030-01-01' }, 422, 'validation_error'],
    [{ schedule: { at: '2031-01-01T00:00:00' } }, 422, 'validation_error'],
    [{ schedule: { cron: '@daily', timezone: 'Nowhere' } }, 422, 'invalid_timezone'],
    [{ schedule: {} }, 400, 'invalid_schedule'],
    [{ schedule: { cron: '61 * * * *' } }, 400, 'invalid_schedule'],
    [{ schedule: { cron: '0 0 30 2 *' } }, 400, 'invalid_schedule'],
    [{ schedule: { cron: '@daily', at: '2031-01-01T00:00:00Z' } }, 400, 'invalid_schedule'],
    [{ schedule: { at: '2030-01-01T00:00:00Z' } }, 400, 'invalid_schedule'],
    [{ schedule: { at: '2031-01-01T00:00:00Z' }, from: '2031-01-01T00:00:00Z' }, 400, 'invalid_schedule'],
    [{ schedule: { cron: '@daily' }, from: '9999-12-31T23:59:59-01:00' }, 400, 'invalid_schedule']
  ]
  for (const [body, status, code] of cases) {
    exactly(t, await call('POST', preview, body), { status, body: { error: { code } } }, JSON.stringify(body))
  }
})
