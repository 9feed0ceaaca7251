/** What the dashboard's form sends. */
import t from 'tap'
import type { CueDetail } from '../../src/client/types.ts'
import { bodyOf, changesOf, draftOf, emptyDraft, scheduleOf } from '../../src/dashboard/app/pages/cue-model.ts'
import { emptyExclusion, placeOf, rowsOf } from '../../src/dashboard/app/pages/exclusion-draft.ts'

const simple = { type: 'recurring', cron: '0 9 * * *', timezone: 'Europe/London' }
const full = {
  type: 'recurring',
  crons: ['0 9 * * MON-FRI', '0 12 * * SAT'],
  starts_at: '2030-01-01T00:00:30.000Z',
  ends_at: '2031-01-01T00:00:00.000Z',
  max_runs: 20,
  exclude: [
    { dates: ['12-25', '2030-12-26'] },
    { from: '2030-05-01T08:00:00.000Z', to: '2030-05-02T00:00' },
    { cron: '0 22 * * *', minutes: 480 }
  ],
  exclude_calendars: ['holidays/uk', 'closing'],
  window: '25%',
  timezone: 'Europe/London'
}
const draftFor = (schedule: object) =>
  draftOf({
    name: 'report',
    description: null,
    key: null,
    tags: [],
    schedule,
    transport: 'worker',
    callback: { url: null, method: 'POST', headers: {} },
    payload: {},
    retry: { max_attempts: 3, backoff_minutes: [1, 2, 4] },
    verification: null,
    catch_up: 'skip_missed',
    on_failure: { email: true, pause_after: null, webhook: null },
    overlap: 'allow'
  } as unknown as CueDetail)

t.test('a schedule without advanced fields has no advanced members', async t => {
  t.same(scheduleOf(emptyDraft('Europe/London')), { cron: '0 9 * * 1-5', timezone: 'Europe/London' })
  t.same(scheduleOf({ ...emptyDraft(''), 'schedule.kind': 'every', 'schedule.every': ' 45m ' }), { every: '45m', timezone: 'UTC' })
  t.equal(scheduleOf({ ...emptyDraft('UTC'), 'schedule.kind': 'every' }), undefined, 'incomplete')
})

t.test('the form holds every member of a schedule', async t => {
  const { type: _, ...members } = full
  t.same(scheduleOf(draftFor(full)), members)
  const every = { every: '36h', anchor: '2030-01-01T00:00:00.000Z', max_runs: 2, timezone: 'UTC' }
  t.same(scheduleOf(draftFor({ type: 'recurring', ...every })), every)
  const once = { at: '2030-01-01T00:00:00.500Z', timezone: 'UTC' }
  t.same(scheduleOf(draftFor({ type: 'once', ...once })), once)
})

t.test('an edited cue gets only the members that have changed', async t => {
  const first = draftFor(full)
  const sent = (changes: typeof first) => bodyOf({ ...first, ...changes }, first)
  t.same(sent({}), {})
  t.same(sent({ name: 'other' }), { name: 'other' })
  t.same(sent({ 'schedule.timezone': 'UTC' }), { schedule: { timezone: 'UTC' } })
  t.same(sent({ 'schedule.max_runs': '21' }), { schedule: { max_runs: 21 } })
  t.same(sent({ 'schedule.more_crons': '0 12 * * SAT\n\n @daily ' }), {
    schedule: { crons: ['0 9 * * MON-FRI', '0 12 * * SAT', '@daily'] }
  })
  t.same(sent({ 'schedule.exclude': JSON.stringify(rowsOf(first['schedule.exclude']).slice(0, 1)) }), {
    schedule: { exclude: [{ dates: ['12-25', '2030-12-26'] }] }
  })
  t.same(sent({ 'schedule.kind': 'every', 'schedule.every': '2d' }), { schedule: { every: '2d' } })
  t.same(
    sent({ 'schedule.kind': 'at', 'schedule.at': first['schedule.starts_at']!, 'schedule.max_runs': '5' }),
    { schedule: { at: full.starts_at } },
    'nothing that is for recurring ones'
  )
})

t.test('emptied fields remove their members from an edited cue', async t => {
  const first = draftFor(full)
  const paths = ['more_crons', 'starts_at', 'ends_at', 'max_runs', 'window', 'exclude', 'exclude_calendars']
  const emptied = Object.fromEntries(
    paths.map(name => [`schedule.${name}`, name === 'exclude' ? '[]' : name === 'exclude_calendars' ? ' , ' : ''])
  )
  t.same(bodyOf({ ...first, ...emptied }, first), {
    schedule: {
      cron: '0 9 * * MON-FRI',
      starts_at: null,
      ends_at: null,
      max_runs: null,
      window: null,
      exclude: null,
      exclude_calendars: null
    }
  })
})

t.test('text that is not a number or a time is sent as it is, so that the service refuses it', async t => {
  const { schedule } = bodyOf({
    ...emptyDraft('UTC'),
    'schedule.max_runs': '0',
    'schedule.starts_at': '99999-01-01T00:00',
    'schedule.window': 'wide'
  })
  t.same(schedule, { cron: '0 9 * * 1-5', timezone: 'UTC', starts_at: '99999-01-01T00:00', max_runs: 0, window: 'wide' })
  t.equal(scheduleOf({ ...emptyDraft('UTC'), 'schedule.max_runs': 'two' })!.max_runs, 'two')
})

t.test('empty exclusions are left out, and errors find the row that they are about', async t => {
  const exclude = [
    emptyExclusion,
    { ...emptyExclusion, dates: ' 12-25,, 01-01 ' },
    { ...emptyExclusion, kind: 'range' as const, dates: 'of another kind' },
    { ...emptyExclusion, kind: 'cron' as const, minutes: '5' }
  ]
  t.same(scheduleOf({ ...draftFor(simple), 'schedule.exclude': JSON.stringify(exclude) })!.exclude, [
    { dates: ['12-25', '01-01'] },
    { minutes: 5 }
  ])
  t.same(
    exclude.map((_, n) => placeOf(exclude, n)),
    [undefined, 0, undefined, 1]
  )
})

t.test('changes are listed in words', async t => {
  const first = draftFor(simple)
  const exclude = [emptyExclusion, { ...emptyExclusion, kind: 'cron' as const, cron: '0 22 * * *', minutes: '480' }]
  t.same(changesOf(first, { ...first, 'schedule.exclude': JSON.stringify([emptyExclusion]) }), [])
  t.same(
    changesOf(first, { ...first, 'schedule.exclude': JSON.stringify(exclude), 'schedule.more_crons': '@daily', 'on_failure.email': '' }),
    [
      ['More expressions', '–', '@daily'],
      ['Exclusions', '–', '0 22 * * * for 480 minutes'],
      ['Email me when an execution fails', 'yes', 'no']
    ]
  )
})

t.test('other members are sent as they are typed, and their defaults once they are emptied', async t => {
  const draft = {
    ...emptyDraft('UTC'),
    name: ' report ',
    tags: 'a, b',
    'callback.headers': 'X-Team: a: b\nX-Two:2',
    'retry.max_attempts': ''
  }
  const {
    schedule: _,
    callback,
    retry,
    ...body
  } = bodyOf({ ...draft, 'callback.url': 'https://example.com', 'delivery.timeout_seconds': '60' })
  t.same(callback, { url: 'https://example.com', method: 'POST', headers: { 'X-Team': 'a: b', 'X-Two': '2' } })
  t.same(retry, { max_attempts: 3, backoff_minutes: [1, 2, 4] })
  t.same(body, {
    name: 'report',
    tags: ['a', 'b'],
    transport: 'webhook',
    delivery: { timeout_seconds: 60 },
    catch_up: 'run_once_if_missed',
    overlap: 'allow',
    on_failure: { email: true }
  })
  const first = draftFor(simple)
  const changed = {
    ...first,
    key: '',
    description: 'new',
    tags: '',
    'verification.mode': 'manual',
    'on_failure.email': '',
    'retry.backoff_minutes': ''
  }
  t.same(bodyOf(changed, { ...first, key: 'a/key', tags: 'a' }), {
    description: 'new',
    key: null,
    tags: null,
    retry: { backoff_minutes: [1, 2, 4] },
    verification: { mode: 'manual' },
    on_failure: { email: false }
  })
  t.same(bodyOf({ ...changed, 'verification.mode': '' }, changed), { verification: null })
})

t.test('a cue follows others, with or without a schedule', async t => {
  const empty = emptyDraft('UTC')
  const follower = { ...empty, 'schedule.kind': 'none', 'after.cues': 'extract, load', 'after.wait': '5m' }
  t.equal(scheduleOf(follower), undefined)
  const { schedule, after } = bodyOf(follower)
  t.same([schedule, after], [undefined, { cues: ['extract', 'load'], when: 'success', mode: 'all', within: '24h' }])
  t.same(bodyOf({ ...empty, 'after.cues': ' , ' }).after, undefined)
  t.same(bodyOf({ ...follower, 'schedule.kind': 'cron', 'after.when': 'verified' }).after, {
    cues: ['extract', 'load'],
    when: 'verified',
    mode: 'all',
    within: '24h',
    wait: '5m'
  })

  const stored = { ...draftFor(simple), 'after.cues': 'extract', 'after.within': '2h', 'after.wait': '5m' }
  const sent = (changes: Record<string, string>) => bodyOf({ ...stored, ...changes }, stored)
  t.same(sent({ 'after.within': '3h', 'after.wait': '' }), { after: { within: '3h', wait: null } })
  t.same(sent({ 'after.cues': '' }), { after: null })
  t.same(sent({ 'schedule.kind': 'none' }), { schedule: null, after: { wait: null } })
  t.same(sent({ 'schedule.kind': 'none', 'after.cues': 'load' }), { schedule: null, after: { cues: ['load'], wait: null } })
  const unscheduled = draftFor(null as never)
  t.equal(unscheduled['schedule.kind'], 'none')
  t.same(bodyOf({ ...unscheduled, 'schedule.kind': 'every', 'schedule.every': '2d' }, unscheduled), { schedule: { every: '2d' } })
})
