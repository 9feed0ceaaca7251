/** A new cue is shown without being read: it has to look like the one that is read later. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { columnsText, createCueBatches } from '../../src/cues/batched.ts'
import { newCue } from '../../src/cues/changes.ts'
import type { CreateCue } from '../../src/cues/schemas.ts'
import { readJson } from '../../src/json/canonical-json.ts'
import { createLargeJson } from '../../src/json/large-json.ts'
import { readCalendars } from '../../src/schedule/stored-calendars.ts'
import { always } from '../support/seed.ts'
import { stage } from '../support/stage.ts'

const text = (maxLength: number, minLength = 0) => fc.string({ unit: 'grapheme', minLength, maxLength })
/** An object with some of these members. */
const some = (members: Record<string, fc.Arbitrary<unknown>>) => fc.record(members, { requiredKeys: [] })

const url = fc.constantFrom('http://127.0.0.1:5555/hook', 'https://example.com/a?b=%20#c')
const instant = fc.constantFrom('2099-01-01T00:00:00Z', '2098-12-31T23:59:59.123456+05:30', '2098-06-01T12:00:00.1-08:00')
const bounds = {
  starts_at: fc.constantFrom('2030-01-01T00:00:00+01:00', '2031-05-05T05:05:05.5Z'),
  ends_at: instant,
  max_runs: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  exclude: fc.constantFrom(
    [],
    [{ dates: ['12-25', '2030-12-26'] }, { from: '2040-01-01T00:00', to: '2040-01-02T00:00' }, { cron: '0 0 * * 0', minutes: 60 }]
  ),
  exclude_calendars: fc.constantFrom([], ['holidays']),
  window: fc.constantFrom('30m', '25%')
}
const timezone = fc.constantFrom('UTC', 'europe/london', 'America/New_York')
const schedule = fc.oneof(
  fc
    .tuple(
      fc.constantFrom({ cron: '0 9 * * *' }, { cron: '@daily' }, { crons: ['0 9 * * *', '30 18 1 * *'] }),
      some({ timezone, ...bounds })
    )
    .map(both => Object.assign({}, ...both)),
  fc
    .tuple(fc.constantFrom({ every: '45m' }, { every: '2d', anchor: '2020-02-02T02:02:02.02+02:00' }), some({ timezone, ...bounds }))
    .map(both => Object.assign({}, ...both)),
  fc.record({ at: instant, timezone }, { requiredKeys: ['at'] })
)

const settings: Record<string, fc.Arbitrary<unknown>> = {
  description: text(40),
  tags: fc.uniqueArray(fc.constantFrom('a', 'b:c', 'd'), { maxLength: 3 }),
  overlap: fc.constantFrom('allow', 'skip', 'queue_one', 'cancel_previous'),
  payload: fc.oneof(
    fc.jsonValue(),
    fc.constantFrom({ task: 'resize', n: 1e21 }, { large: 'x'.repeat(5000) }, -0, { '2': 1, '10': 2, a: { z: 0, b: 0 } })
  ),
  retry: some({
    max_attempts: fc.integer({ min: 1, max: 10 }),
    backoff_minutes: fc.array(fc.constantFrom(0, 0.05, 1, 1440), { minLength: 1, maxLength: 10 }),
    on_worker_failure: fc.boolean()
  }),
  on_failure: some({
    email: fc.boolean(),
    webhook: fc.option(url),
    pause: fc.boolean(),
    pause_after: fc.option(fc.integer({ min: 1, max: 1000 }))
  }),
  delivery: some({
    timeout_seconds: fc.integer({ min: 1, max: 30 }),
    outcome_deadline_seconds: fc.integer({ min: 1, max: 3600 }),
    claim_timeout_seconds: fc.integer({ min: 60, max: 604_800 }),
    await_outcome: fc.boolean()
  }),
  alerts: some({ consecutive_failures: fc.integer({ min: 1, max: 100 }), missed_window_multiplier: fc.integer({ min: 1, max: 10 }) }),
  catch_up: fc.constantFrom('skip_missed', 'run_once_if_missed', 'replay_all_missed', 'replay_all'),
  verification: some({ mode: fc.constantFrom('none', 'require_external_id') })
}
const nullable = Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, fc.option(value)]))
const callback = fc.record(
  {
    url,
    method: fc.constantFrom('POST', 'PUT', 'PATCH'),
    headers: fc.dictionary(fc.constantFrom('X-Key', 'authorization', '__proto__'), fc.constantFrom('secret', 'é'))
  },
  { requiredKeys: ['url'] }
)
const body = fc
  .tuple(
    fc.record({ name: text(60, 1), schedule, key: fc.option(fc.uuid()) }, { requiredKeys: ['name', 'schedule'] }),
    fc.oneof(fc.record({ callback }), fc.record({ callback_url: url }), fc.record({ worker: fc.constant(true) })),
    fc.record(nullable, { requiredKeys: [] })
  )
  .map(parts => Object.assign({}, ...parts))

t.test('a new cue is shown as it is read later, down to what the API leaves out', async t => {
  const { fn, account_id, clock } = await stage(t)
  const { create, find } = createCueBatches(fn)
  const json = createLargeJson()
  await fn.putCalendar({ account_id, name: 'holidays', description: null, dates: ['2030-01-01'], ranges: '[]' })
  const calendars = await readCalendars(fn, account_id, ['holidays'])
  await always(
    fc.asyncProperty(body, async asked => {
      const change = newCue(readJson(JSON.stringify(asked), ['payload']) as CreateCue, clock.now(), null, calendars)
      const { payload, ...created } = await create({ account_id, cue: await columnsText(change.columns, json), ...change })
      const { payload: stored, ...read } = await find(account_id, created.id)
      await fn.deleteCue({ account_id, cue_id: created.id })
      assert.deepEqual({ account_id, ...created }, read)
      assert.deepEqual([payload.text, payload.task], [stored.text, stored.task])
    }),
    300
  )
})
