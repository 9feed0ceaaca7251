import t from 'tap'
import { describe, previewNotes } from '../../src/schedule/describe.ts'
import { pluck } from '../support/exactly.ts'

const worded: [expression: string, words: string][] = [
  ['0 9 * * 1-5', 'Weekdays at 09:00'],
  ['0 10 * * TUE', 'Tuesdays at 10:00'],
  ['30 8 * * 6,0', 'Weekends at 08:30'],
  ['0 9,17 * * 1,3,5', 'Mondays, Wednesdays and Fridays at 09:00 and 17:00'],
  ['0 9 * * 1-6', 'At 09:00, Monday through Saturday'],
  ['@monthly', '1st of each month at 00:00'],
  ['0 9 2,3,11,22 * *', '2nd, 3rd, 11th and 22nd of each month at 09:00'],
  ['0 6 1 1,7 *', '1st of January and July at 06:00'],
  ['0 6 * 7 1', 'At 06:00, only on Monday, only in July'],
  ['0 */12 * * *', 'Every day at 00:00 and 12:00'],
  ['0 */4 * * *', 'On the hour, every 4 hours'],
  ['*/5 * * * *', 'Every 5 minutes'],
  ['*/45 * * * *', 'At 0 and 45 minutes past the hour'],
  ['30 0 9 * * *', 'Every day at 09:00:30'],
  ['@hourly', 'Every hour'],
  ['? ? ? ? ?', 'Every minute'],
  ['0 0 13 * 5', 'At 00:00, on day 13 of the month, or on Friday'],
  ['0 0 13 * 1-2', 'At 00:00, on day 13 of the month, or on Monday and Tuesday'],
  ['0 0 1-7 * */7', 'At 00:00, between day 1 and 7 of the month, only on Sunday'],
  ['0 0 1-31 * 1', 'Every day at 00:00'],
  ['0 0 5,* * 7', 'Every day at 00:00'],
  ['0 0 1-3,10-14/2 * *', 'At 00:00, on day 1, 2, 3, 10, 12, and 14 of the month'],
  ['00 09 * * 07', 'Sundays at 09:00']
]

t.test('describes a schedule with its time zone', async t => {
  for (const [cron, words] of worded) {
    t.equal(describe({ type: 'recurring', cron, timezone: 'Europe/London' }), `${words}, Europe/London`, cron)
  }
  const at = '2026-11-20T09:00:00Z'
  t.equal(describe({ type: 'once', at, timezone: 'UTC' }), 'Once, at 2026-11-20T09:00:00+00:00, UTC')
  t.equal(describe({ type: 'once', at: new Date(at), timezone: 'Asia/Kolkata' }), 'Once, at 2026-11-20T14:30:00+05:30, Asia/Kolkata')
})

const noted: [cron: string, timezone: string, from: string, notes: (string | null)[]][] = [
  [
    '0 9 * * *',
    'America/New_York',
    '2026-03-06T15:00:00Z',
    [null, 'The clocks have gone forward by 1 h since the run before, to UTC-04:00.', null]
  ],
  ['0 9 * * *', 'America/New_York', '2026-11-01T00:00:00Z', ['The clocks have gone back by 1 h since the run before, to UTC-05:00.', null]],
  [
    '30 2 * * *',
    'America/New_York',
    '2026-03-07T12:00:00Z',
    ['02:30 does not exist, as the clocks go from 02:00 to 03:00: it runs at 03:00.', null]
  ],
  [
    '0,30 2,3 * * *',
    'America/New_York',
    '2026-03-08T05:00:00Z',
    ['02:00 and 02:30 do not exist, as the clocks go from 02:00 to 03:00: one run at 03:00 stands for them and its own.', null]
  ],
  [
    '0,10,20,30,40 2 * * *',
    'Europe/Berlin',
    '2026-03-28T12:00:00Z',
    ['02:00, 02:10, 02:20 and 2 more do not exist, as the clocks go from 02:00 to 03:00: one run at 03:00 stands for them.', null]
  ],
  [
    '0 0 * * *',
    'America/Santiago',
    '2026-09-05T12:00:00Z',
    ['00:00 does not exist, as the clocks go from 00:00 to 01:00: it runs at 01:00.', null]
  ],
  [
    '0 0,12 * * *',
    'Pacific/Apia',
    '2011-12-30T09:00:00Z',
    ['2011-12-30 00:00 and 2011-12-30 12:00 do not exist, as the clocks go from 2011-12-30 00:00 to 00:00: no run stands for them.', null]
  ],
  [
    '0 12 * * *',
    'Pacific/Apia',
    '2011-12-29T23:00:00Z',
    ['The clocks have gone forward by 24 h since the run before, to UTC+14:00.', null]
  ],
  [
    '15 2 * * *',
    'Australia/Lord_Howe',
    '2026-04-04T15:20:00Z',
    ['The clocks have gone back by 30 min since the run before, to UTC+10:30.']
  ],
  [
    '30 1 * * *',
    'America/New_York',
    '2026-11-01T00:00:00Z',
    [
      '01:30 comes twice, as the clocks go back: it runs the first time only.',
      'The clocks have gone back by 1 h since the run before, to UTC-05:00.'
    ]
  ],
  [
    '0 * * * *',
    'America/New_York',
    '2026-11-01T04:30:00Z',
    ['01:00 comes twice, as the clocks go back: this is the first.', '01:00 comes twice, as the clocks go back: this is the second.', null]
  ]
]

t.test('a preview notes clock changes', async t => {
  for (const [cron, timezone, from, notes] of noted) {
    const rows = [...previewNotes({ type: 'recurring', cron, timezone }, new Date(from), notes.length)]
    t.strictSame(pluck(rows, 'note'), notes, `${cron} ${timezone}`)
  }
})

t.test('a preview row is an instant in UTC and on the local clock', async t => {
  t.strictSame(
    [...previewNotes({ type: 'recurring', cron: '0 9 * * *', timezone: 'America/St_Johns' }, new Date('2026-01-01T00:00:00Z'), 1)],
    [{ at: '2026-01-01T12:30:00.000Z', local: '2026-01-01T09:00:00-03:30', note: null }]
  )
})

t.test('a one-time schedule previews its instant while it is in the future', async t => {
  const once = { type: 'once', at: '2026-11-20T09:00:00.250Z', timezone: 'Europe/Paris' } as const
  t.strictSame(
    [...previewNotes(once, new Date('2026-11-20T09:00:00.249Z'), 5)],
    [{ at: '2026-11-20T09:00:00.250Z', local: '2026-11-20T10:00:00.250+01:00', note: null }]
  )
  t.strictSame([...previewNotes(once, new Date('2026-11-20T09:00:00.250Z'), 5)], [])
})
