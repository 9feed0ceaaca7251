/** What became of a cue's slots, by day in its zone. */
import t, { type Test } from 'tap'
import { exactly, pluck } from '../support/exactly.ts'
import { build, error, invalid } from '../support/setup.ts'

const noon = '2030-04-02T12:00:00.000Z'

const setUp = async (t: Test) => {
  const service = await build(t, noon)
  const { id } = await service.post('/v1/cues', {
    name: 'report',
    schedule: { cron: '0 * * * *', timezone: 'Europe/Berlin' },
    worker: true
  })
  /** Adds executions of these slots, created when they were due. */
  const add = (slots: string[], columns: string, cue_id = id) =>
    service.pool.query(
      `insert into cue.executions (id, account_id, cue_id, transport, triggered_by, payload, created_at, updated_at, scheduled_for, status, ended_at, outcome_success, outcome_state,
                                   outcome_recorded_at, started_at)
       select cue.uuid_v7(at), $1, $2, 'webhook', 'schedule', '{}', at, at, at, ${columns}, at from unnest($3::timestamptz[]) at`,
      [service.account.id, cue_id, slots]
    )
  return { ...service, id: id as string, path: `/v1/cues/${id}/history`, add }
}
const success = "'success', at, null::boolean, 'unknown', null::timestamptz"
const failed = "'failed', at, null::boolean, null, null::timestamptz"

t.test("counts executions by the days of the cue's zone, also where the clocks change", async t => {
  const { get, post, path, add, pool, id, account } = await setUp(t)
  // 31 March has 23 hours in Berlin: from 23:00 UTC on the 30th to 22:00 UTC.
  await add(['2030-03-30T22:59:59.999Z', '2030-03-30T23:00:00Z', '2030-03-31T21:59:00Z'], success)
  await add(['2030-03-31T22:00:00Z'], failed)
  await add(['2030-04-01T08:00:00Z'], "'success', at, false, 'reported_failure', at")
  await add(['2030-04-01T09:00:00Z'], "'missed', at, null::boolean, null, null::timestamptz")
  await post(`/v1/cues/${id}/fire`)
  await pool.query(
    `insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason, recorded_at)
     values ($1, $2, '2030-03-01T00:00Z', '2030-03-01T05:00Z', 6, 'skip_missed', 'service_away', $3),
            ($1, $2, '2030-04-01T20:00Z', '2030-04-02T03:00Z', 8, 'skip_missed', 'excluded', $3)`,
    [id, account.id, noon]
  )
  t.same(await get(`${path}?days=3`), {
    timezone: 'Europe/Berlin',
    from: '2030-03-31',
    until: '2030-04-02',
    complete_from: null,
    days: [
      {
        date: '2030-03-31',
        starts_at: '2030-03-30T23:00:00.000Z',
        ends_at: '2030-03-31T22:00:00.000Z',
        succeeded: 2,
        failed: 0,
        missed: 0,
        running: 0
      },
      {
        date: '2030-04-01',
        starts_at: '2030-03-31T22:00:00.000Z',
        ends_at: '2030-04-01T22:00:00.000Z',
        succeeded: 0,
        failed: 2,
        missed: 1,
        running: 0
      },
      {
        date: '2030-04-02',
        starts_at: '2030-04-01T22:00:00.000Z',
        ends_at: '2030-04-02T22:00:00.000Z',
        succeeded: 0,
        failed: 0,
        missed: 0,
        running: 1
      }
    ],
    gaps: [{ first: '2030-04-01T20:00:00.000Z', last: '2030-04-02T03:00:00.000Z', count: 8, reason: 'excluded' }]
  })
  const march = await get(`${path}?days=31&until=2030-03-31`)
  t.same([march.from, march.until, march.gaps.length], ['2030-03-01', '2030-03-31', 1])
  t.same(pluck(march.days, 'date', 'succeeded'), [
    ['2030-03-30', 1],
    ['2030-03-31', 2]
  ])
  exactly(t, await get(path), { from: '2030-01-01', until: '2030-04-02' }, '92 days by default')
})

t.test('reads 5,000 executions at most, and says from which day on the counts are complete', async t => {
  const { get, path, pool, account, id } = await setUp(t)
  await pool.query(
    `insert into cue.executions (id, account_id, cue_id, transport, triggered_by, payload, created_at, updated_at, scheduled_for, started_at, status, ended_at)
     select cue.uuid_v7(at), $1, $2, 'webhook', 'schedule', '{}', at, at, at, at, 'success', at
       from generate_series(timestamptz '2030-04-02T12:00Z' - interval '5001 minutes', '2030-04-02T11:59Z', '1 minute') at`,
    [account.id, id]
  )
  const { complete_from, days } = await get(path)
  t.equal(complete_from, '2030-03-31', 'the oldest that were read are of the 30th')
  t.same(pluck(days, 'date', 'succeeded'), [
    ['2030-03-30', 5000 - 840 - 1440 - 1380],
    ['2030-03-31', 1380],
    ['2030-04-01', 1440],
    ['2030-04-02', 840]
  ])
})

t.test('refuses other dates and deleted cues', async t => {
  const { call, path, id } = await setUp(t)
  for (const query of ['days=0', 'days=367', 'until=2030-02-30', 'until=1999-12-31', 'until=9999-12-31', 'until=x'])
    exactly(t, await call('GET', `${path}?${query}`), invalid('query', query.split('=')[0]), query)
  await call('DELETE', `/v1/cues/${id}`)
  exactly(t, await call('GET', path), error('cue_not_found', 404))
})
