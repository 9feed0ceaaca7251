import { readFile } from 'node:fs/promises'
import { inspect } from 'node:util'
import t from 'tap'
import { changesOf, newCue } from '../../src/cues/changes.ts'
import { payloadColumns } from '../../src/cues/payload.ts'
import { type CreateCue, groups, plain, type UpdateCue } from '../../src/cues/schemas.ts'
import type { StoredCue } from '../../src/cues/stored.ts'
import { ApiError } from '../../src/errors.ts'
import { type Json, split, unite } from '../../src/json/canonical-json.ts'
import { exactly } from '../support/exactly.ts'

const now = new Date('2030-01-07T08:30:00Z')
const url = 'https://example.com/hook'
const json = (value: unknown) => (unite(split(JSON.stringify({ value }), { names: ['value'] })) as { value: Json }).value

const stored = (over: Partial<StoredCue> = {}): StoredCue => ({
  id: 'cue_000000000000',
  key: null,
  tags: [],
  overlap: 'allow',
  gate: null,
  after: null,
  approval: null,
  template: false,
  managed_by: null,
  name: 'n',
  description: null,
  status: 'active',
  paused_at: null,
  paused_by: null,
  pause_reason: null,
  paused_until: null,
  completed_reason: null,
  transport: 'webhook',
  schedule: { type: 'recurring', cron: '0 9 * * *', timezone: 'UTC' },
  callback: { url, method: 'PUT', headers: { 'X-Token': '********' } },
  payload: json({ a: 1 }),
  retry: { max_attempts: 5, backoff_minutes: [7] },
  on_failure: { email: false, webhook: 'https://example.com/failed', pause: true },
  delivery: null,
  alerts: null,
  catch_up: 'skip_missed',
  verification: null,
  next_run: new Date('2030-01-07T09:00:00Z'),
  next_slot: new Date('2030-01-07T09:00:00Z'),
  last_run: null,
  run_count: 0,
  fired_count: 0,
  warning: null,
  created_at: now,
  updated_at: now,
  version: 1,
  revision: 1,
  last_slot: null,
  await_outcome_set: null,
  ...over
})

const refusal = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof ApiError) return `${error.statusCode} ${error.code}`
    throw error
  }
  return 'accepted'
}

t.test('a new cue has the columns of the members in its request', async t => {
  t.strictSame(newCue({ name: 'n', cron: '0 9 * * *', callback_url: url, on_failure: { pause: true } }, now), {
    columns: {
      name: 'n',
      transport: 'webhook',
      schedule_type: 'recurring',
      cron: '0 9 * * *',
      at: null,
      timezone: 'UTC',
      schedule_rules: null,
      callback_url: url,
      callback_method: 'POST',
      callback_headers: {},
      on_failure_email: true,
      on_failure_webhook: null,
      on_failure_pause: true,
      on_failure_pause_after: null
    },
    next_run: new Date('2030-01-07T09:00:00Z'),
    next_slot: null
  })
})

t.test('every member of an object is a column of its own', async t => {
  const columns = (
    (await readFile(new URL('../../src/db.types.ts', import.meta.url), 'utf8')).match(/export interface Cues \{([^}]*)\}/)?.[1] ?? ''
  )
    .split('\n')
    .map(line => line.trim().split(':')[0])
  const members = Object.values(groups).flatMap(({ prefix, members }) => Object.keys(members).map(member => prefix + member))
  t.same(
    [...members, ...Object.keys(plain)].filter(name => !columns.includes(name)),
    []
  )
})

t.test('null is the same as omitted in a new cue', async t => {
  const bare = newCue({ name: 'n', schedule: { cron: '@daily' }, callback: { url } }, now)
  const nulls = { description: null, transport: null, payload: json(null), retry: null, on_failure: null, delivery: null, alerts: null }
  const schedule = { cron: '@daily', at: null, timezone: null }
  const given = {
    name: 'n',
    schedule,
    callback: { url, headers: null },
    ...nulls,
    catch_up: null,
    verification: null,
    cron: null,
    worker: null
  }
  const { description, catch_up, payload, task, ...others } = newCue(given, now).columns
  t.strictSame(others, bare.columns)
  t.strictSame({ description, catch_up, payload, task }, { description: null, catch_up: 'run_once_if_missed', payload: '{}', task: null })
})

const columnsOf = (given: Partial<CreateCue>) =>
  newCue({ name: 'n', schedule: { cron: '@daily' }, callback: { url }, ...given }, now).columns

t.test('partly set objects get defaults for their other members', async t => {
  exactly(t, columnsOf({ delivery: { timeout_seconds: 5 } }), {
    timeout_seconds: 5,
    outcome_deadline_seconds: 300,
    claim_timeout_seconds: 900,
    await_outcome: null
  })
  exactly(t, columnsOf({ delivery: {} }), { timeout_seconds: 30 })
  exactly(t, columnsOf({ alerts: { missed_window_multiplier: 4 } }), { alert_consecutive_failures: 3, alert_missed_window_multiplier: 4 })
  exactly(t, columnsOf({ retry: { max_attempts: 1 } }), { retry_max_attempts: 1, retry_backoff_minutes: [1, 2, 4] })
  exactly(t, columnsOf({ on_failure: { pause: true } }), {
    on_failure_email: true,
    on_failure_webhook: null,
    on_failure_pause: true,
    on_failure_pause_after: null
  })
  exactly(t, columnsOf({ verification: {} }), { verification_mode: 'none' })
})

t.test('accepts long names and aliases', async t => {
  exactly(t, columnsOf({ retry: { retry_max_attempts: 9, retry_backoff_minutes: [0.5] } }), {
    retry_max_attempts: 9,
    retry_backoff_minutes: [0.5]
  })
  exactly(t, columnsOf({ catch_up: 'replay_all' }), { catch_up: 'replay_all_missed' })
})

t.test('an outcome deadline implies await_outcome unless that is set', async t => {
  const cases: [UpdateCue['delivery'], boolean | null, boolean | null][] = [
    [{ outcome_deadline_seconds: 60 }, null, true],
    [{ outcome_deadline_seconds: 60, await_outcome: false }, null, false],
    [{ outcome_deadline_seconds: 60 }, false, false],
    [{ timeout_seconds: 60 }, null, null],
    [{ timeout_seconds: 60 }, true, true],
    [{ await_outcome: true }, null, true],
    [{ await_outcome: false }, true, false]
  ]
  for (const [delivery, await_outcome_set, expected] of cases) {
    if (await_outcome_set === null) t.equal(columnsOf({ delivery }).await_outcome, expected, JSON.stringify(delivery))
    const { columns } = changesOf({ delivery }, stored({ await_outcome_set }), now)
    t.equal(columns.await_outcome, expected, `${JSON.stringify(delivery)} over ${await_outcome_set}`)
  }
})

t.test('a change names only the columns that the request mentions', async t => {
  const cases: [UpdateCue, object][] = [
    [{}, {}],
    [{ callback: {}, retry: {}, on_failure: {}, delivery: {}, alerts: {}, verification: {}, schedule: {} }, {}],
    [{ schedule: { type: 'recurring', cron: '0 9 * * *', timezone: 'UTC' } }, {}],
    [
      { name: 'm', description: null },
      { name: 'm', description: null }
    ],
    [{ payload: json({ task: 't' }) }, { payload: '{"task": "t"}', task: 't' }],
    [{ payload: json(null) }, { payload: '{}', task: null }],
    [{ callback: { method: 'GET' } }, { callback_url: url, callback_method: 'GET' }],
    [{ callback: { headers: { A: 'b' } } }, { callback_url: url, callback_method: 'PUT', callback_headers: { A: 'b' } }],
    [{ callback: { headers: null } }, { callback_url: url, callback_method: 'PUT', callback_headers: {} }],
    [{ retry: { max_attempts: 2 } }, { retry_max_attempts: 2, retry_backoff_minutes: [7], retry_on_worker_failure: null }],
    [{ retry: null }, { retry_max_attempts: 3, retry_backoff_minutes: [1, 2, 4], retry_on_worker_failure: null }],
    [
      { on_failure: { webhook: null } },
      { on_failure_email: false, on_failure_webhook: null, on_failure_pause: true, on_failure_pause_after: null }
    ],
    [{ on_failure: null }, { on_failure_email: true, on_failure_webhook: null, on_failure_pause: false, on_failure_pause_after: null }],
    [{ catch_up: 'replay_all' }, { catch_up: 'replay_all_missed' }],
    [{ catch_up: null }, { catch_up: 'run_once_if_missed' }],
    [{ verification: { mode: 'manual' } }, { verification_mode: 'manual' }],
    [{ verification: null }, { verification_mode: null }],
    [{ alerts: null }, { alert_consecutive_failures: null, alert_missed_window_multiplier: null, alert_channels: null }]
  ]
  for (const [given, expected] of cases) {
    t.strictSame(changesOf(given, stored(), now), { columns: expected, next_run: stored().next_run, next_slot: null }, inspect(given))
  }
})

const at = (text: string) => new Date(text)

t.test('a new schedule counts from now, but never from before the last slot', async t => {
  const recurring = stored({ last_slot: at('2030-01-07T10:00:00Z') })
  exactly(t, changesOf({ schedule: { cron: '*/15 * * * *' } }, stored(), now), {
    columns: { schedule_type: 'recurring', cron: '*/15 * * * *', at: null, timezone: 'UTC' },
    next_run: at('2030-01-07T08:45:00Z')
  })
  t.strictSame(changesOf({ schedule: { cron: '*/15 * * * *' } }, recurring, now).next_run, at('2030-01-07T10:15:00Z'))
  exactly(t, changesOf({ schedule: { timezone: 'europe/berlin' } }, stored(), now), {
    columns: { cron: '0 9 * * *', timezone: 'Europe/Berlin' },
    next_run: at('2030-01-08T08:00:00Z')
  })
  exactly(t, changesOf({ schedule: { at: '2031-01-01T00:00:00+01:00' } }, stored(), now), {
    columns: { schedule_type: 'once', cron: null, at: at('2030-12-31T23:00:00Z') },
    next_run: at('2030-12-31T23:00:00Z')
  })
  exactly(
    t,
    changesOf({ schedule: { cron: '@hourly' } }, stored({ schedule: { type: 'once', at: '2031-01-01T00:00:00Z', timezone: 'UTC' } }), now),
    {
      columns: { schedule_type: 'recurring', cron: '@hourly', at: null },
      next_run: at('2030-01-07T09:00:00Z')
    }
  )
})

const once = (text: string, over: Partial<StoredCue> = {}) =>
  stored({ schedule: { type: 'once', at: text, timezone: 'UTC' }, next_run: at(text), next_slot: at(text), ...over })

t.test('resumes a past one-time cue only with a new instant', async t => {
  const passed = once('2030-01-07T08:00:00.000Z', { status: 'paused', next_run: null })
  t.equal(
    refusal(() => changesOf({ status: 'active' }, passed, now)),
    '400 invalid_schedule'
  )
  t.equal(
    refusal(() => changesOf({ status: 'active', schedule: { timezone: 'Asia/Tokyo' } }, passed, now)),
    '400 invalid_schedule'
  )
  t.strictSame(changesOf({ status: 'active', schedule: { at: '2030-01-07T09:00:00Z' } }, passed, now).next_run, at('2030-01-07T09:00:00Z'))
})

t.test('neither a new time zone of a one-time cue nor an unchanged schedule moves its run', async t => {
  const due = once('2030-01-07T08:29:59.000Z')
  const ran = once('2030-01-07T08:00:00.000Z', { next_run: null, next_slot: null, last_slot: at('2030-01-07T08:00:00Z') })
  for (const cue of [due, ran]) {
    t.strictSame(changesOf({ schedule: { timezone: 'Asia/Tokyo' } }, cue, now).next_run, cue.next_run)
    t.strictSame(changesOf({ schedule: cue.schedule as never }, cue, now), { columns: {}, next_run: cue.next_run, next_slot: null })
  }
})

t.test('limits a payload to 1 MiB of compact UTF-8, whatever its canonical size', async t => {
  const sized = (bytes: number, character: string) => json({ text: character.repeat((bytes - 11) / Buffer.byteLength(character)) })
  for (const character of ['x', 'é', '中']) {
    const bytes = 1024 * 1024 - ((1024 * 1024 - 11) % Buffer.byteLength(character))
    t.equal(
      refusal(() => payloadColumns(sized(bytes, character))),
      'accepted',
      character
    )
    t.equal(
      refusal(() => payloadColumns(sized(bytes + Buffer.byteLength(character), character))),
      '400 invalid_payload_size',
      character
    )
  }
})

t.test('ignores a task of more than 255 characters', async t => {
  for (const [task, expected] of [
    ['x'.repeat(255), 'x'.repeat(255)],
    ['x'.repeat(256), null],
    ['中'.repeat(255), '中'.repeat(255)]
  ] as const) {
    const payload = json({ task })
    t.strictSame(payloadColumns(payload), { payload: payload.text, task: expected })
  }
})
