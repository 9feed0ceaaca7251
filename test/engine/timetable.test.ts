import t from 'tap'
import { parseCron } from '../../src/schedule/cron.ts'
import { describe, previewNotes } from '../../src/schedule/describe.ts'
import { cronTimetable } from '../../src/schedule/next-run.ts'
import { nextRuns } from '../../src/schedule/runs.ts'
import { type Rules, timetableOf } from '../../src/schedule/schedule.ts'
import { regular, without } from '../../src/schedule/timetable.ts'

const at = (text: string) => Date.parse(text)
const iso = (instants: (number | Date | undefined)[]) =>
  instants.map(instant => instant && new Date(instant).toISOString().replace('.000Z', 'Z'))
const schedule = (rules: Rules & { cron?: string }, timezone = 'UTC') => ({ type: 'recurring', ...rules, timezone }) as const
const after = (rules: Rules & { cron?: string }, from: string, count: number, timezone = 'UTC') =>
  iso(nextRuns(timetableOf(schedule(rules, timezone)), new Date(from), count))

t.test('regular slots end with the year 9999 and begin with the year 1', async t => {
  const yearly = regular(366 * 86_400_000, at('9999-01-01T00:00:00Z'))
  t.equal(yearly.next(at('9999-01-01T00:00:00Z')), Infinity)
  t.strictSame(iso([yearly.next(at('9998-12-31T00:00:00Z'))]), ['9999-01-01T00:00:00Z'])
  t.equal(regular(366 * 86_400_000, at('0001-01-01T00:00:00Z')).previous(at('0001-01-01T00:00:00Z')), -Infinity)
  t.strictSame(iso([yearly.previous(8.64e15)]), ['9999-01-01T00:00:00Z'])
})

t.test('a start in a hundred years is found', async t => {
  t.strictSame(after({ cron: '0 0 29 2 *', starts_at: '2201-01-01T00:00:00Z' }, '2026-01-01T00:00:00Z', 1), ['2204-02-29T00:00:00Z'])
})

t.test('a search for a slot that is not excluded pauses after 5,000 steps, at an excluded slot', async t => {
  let asked = 0
  const slots = without(regular(1000, 0), {
    at: instant => {
      asked++
      return { from: instant, to: instant + 1 }
    }
  })
  t.equal(slots.next(0), 5_001_000)
  t.equal(asked, 5000)
  t.equal(slots.previous(0), -5_001_000)
})

t.test('a schedule without a slot in a century has none', async t => {
  const yearly = cronTimetable(parseCron('0 9 1 1 *'), 'UTC')
  let asked = 0
  const slots = without(yearly, {
    at: instant => {
      asked++
      return { from: instant, to: instant + 1 }
    }
  })
  t.equal(slots.next(at('2026-01-01T00:00:00Z')), Infinity)
  t.equal(slots.previous(at('2026-01-01T00:00:00Z')), -Infinity)
  t.ok(asked < 210)
})

const words: [rules: Rules & { cron?: string }, timezone: string, description: string][] = [
  [{ every: '45m' }, 'UTC', 'Every 45 minutes, counted from 1970-01-01T00:00:00+00:00, UTC'],
  [
    { every: '1d', anchor: '2026-07-01T05:00:00.000Z' },
    'Europe/London',
    'Every day, counted from 2026-07-01T06:00:00+01:00, Europe/London'
  ],
  [{ crons: ['0 9 * * MON-FRI', '0 12 * * SAT'], max_runs: 3 }, 'UTC', 'Weekdays at 09:00; Saturdays at 12:00, at most 3 runs, UTC'],
  [
    { cron: '0 9 * * *', starts_at: '2026-12-01T00:00:00.000Z', ends_at: '2026-12-31T23:59:59.000Z', max_runs: 1 },
    'UTC',
    'Every day at 09:00, from 2026-12-01T00:00:00+00:00, until 2026-12-31T23:59:59+00:00, at most 1 run, UTC'
  ]
]
for (const [rules, timezone, description] of words) {
  t.test(description, async t => t.equal(describe(schedule(rules, timezone)), description))
}

t.test('notes on clock changes name what each expression does', async t => {
  const notes = (rules: Rules & { cron?: string }, from: string, count: number) =>
    [...previewNotes(schedule(rules, 'Europe/Berlin'), new Date(from), count)].map(({ local, note }) => [local, note])
  t.strictSame(notes({ crons: ['30 2 * * *', '0 4 * * *'] }, '2026-03-29T00:00:00Z', 2), [
    ['2026-03-29T03:00:00+02:00', '02:30 does not exist, as the clocks go from 02:00 to 03:00: it runs at 03:00.'],
    ['2026-03-29T04:00:00+02:00', null]
  ])
  t.strictSame(notes({ every: '1h' }, '2026-03-29T00:30:00Z', 2), [
    ['2026-03-29T03:00:00+02:00', 'The clocks have gone forward by 1 h since the run before, to UTC+02:00.'],
    ['2026-03-29T04:00:00+02:00', null]
  ])
  t.strictSame(notes({ every: '1h' }, '2026-10-24T23:30:00Z', 2), [
    ['2026-10-25T02:00:00+02:00', '02:00 comes twice, as the clocks go back: this is the first.'],
    ['2026-10-25T02:00:00+01:00', '02:00 comes twice, as the clocks go back: this is the second.']
  ])
})
