// The rule for clock changes, applied literally to every real minute (or second) known to Intl, for the property tests.
// It shares nothing with src/schedule: expressions are generated together with their meaning, and local time always comes from Intl.
import fc from 'fast-check'

/** An expression and what it means; `values` per field, seconds first, Sunday is 0. */
export type Drawn = { text: string; values: Set<number>[]; wildcard: boolean; eitherDay: boolean }

type DrawnField = { text: string; values: number[] }

const spread = (low: number, high: number, step: number) => {
  const values = []
  for (let value = low; value <= high; value += step) values.push(value)
  return values
}

// `likely` limits most single values and ranges to those; steps and stars cover the field.
const field = (min: number, max: number, likely: [number, number], stars: number, names: string[] = []) => {
  const [low, high] = likely
  const value = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: low, max: high }) }, { weight: 1, arbitrary: fc.integer({ min, max }) })
  const spell = (n: number) => fc.constantFrom(String(n), String(n).padStart(2, '0'), names[n - (min === 0 ? 0 : min)] ?? String(n))
  const one = value.chain(n => spell(n).map((text): DrawnField => ({ text, values: [n] })))
  const range = fc.tuple(value, value).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)
  const ranged = range.map(([a, b]): DrawnField => ({ text: `${a}-${b}`, values: spread(a, b, 1) }))
  const steppedRange = range.chain(([a, b]) =>
    fc
      .integer({ min: 1, max: Math.min(b - a + 1, max) })
      .map((step): DrawnField => ({ text: `${a}-${b}/${step}`, values: spread(a, b, step) }))
  )
  const steppedOpen = value.chain(a =>
    fc
      .integer({ min: 1, max: max === 7 ? Math.max(1, 7 - a) : max - a + 1 })
      .map((step): DrawnField => ({ text: `${a}/${step}`, values: spread(a, max, step) }))
  )
  const star = fc.constantFrom('*', '?').map((text): DrawnField => ({ text, values: spread(min, max, 1) }))
  const steppedStar = fc
    .integer({ min: 1, max: Math.min(12, max === 7 ? 7 : max - min + 1) })
    .map((step): DrawnField => ({ text: `*/${step}`, values: spread(min, max === 7 ? 6 : max, step) }))
  const item = fc.oneof(
    { weight: 6, arbitrary: one },
    { weight: 2, arbitrary: ranged },
    { weight: 1, arbitrary: steppedRange },
    { weight: 1, arbitrary: steppedOpen }
  )
  const list = fc
    .array(fc.oneof({ weight: 8, arbitrary: item }, { weight: 1, arbitrary: steppedStar }), { minLength: 2, maxLength: 3 })
    .map((items): DrawnField => ({ text: items.map(({ text }) => text).join(','), values: items.flatMap(({ values }) => values) }))
  return fc.oneof(
    { weight: stars, arbitrary: star },
    { weight: 2, arbitrary: steppedStar },
    { weight: 4, arbitrary: item },
    { weight: 2, arbitrary: list }
  )
}

const weekdays = ['sun', 'MON', 'tue', 'Wed', 'thu', 'fri', 'SAT']
const months = ['jan', 'FEB', 'mar', 'Apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/**
 * Expressions. Near a clock change, most use the hours in which clocks change and every day, because otherwise few would meet it;
 * `anywhere` spreads them over the year instead.
 */
export const expressions = (options: { seconds?: boolean; anywhere?: boolean } = {}): fc.Arbitrary<Drawn> => {
  const days = options.anywhere ? 2 : 12
  const drawn = fc.tuple(
    options.seconds ? field(0, 59, [0, 59], 3) : fc.constant<DrawnField>({ text: '', values: [0] }),
    field(0, 59, [0, 59], 2),
    field(0, 23, options.anywhere ? [0, 23] : [0, 4], 2),
    field(1, 31, [1, 31], days),
    field(1, 12, [1, 12], days, months),
    field(0, 7, [0, 7], days, weekdays)
  )
  return drawn
    .map(parts => {
      const starred = parts.map(({ text }) => /^[*?]/.test(text))
      return {
        text: parts
          .map(({ text }) => text)
          .join(' ')
          .trim(),
        values: parts.map(({ values }, i) => new Set(i === 5 ? values.map(value => value % 7) : values)),
        wildcard: starred[1]! || starred[2]!,
        eitherDay: !starred[3] && !starred[5]
      }
    })
    .filter(({ text }) => text.length <= 100)
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** Local time at an instant according to Intl; both in seconds since 1970, local time as if it were UTC. */
const localTime = (timeZone: string, second: number): number => {
  let format = formats.get(timeZone)
  if (!format) {
    const two = '2-digit'
    format = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: two,
      day: two,
      hour: two,
      minute: two,
      second: two
    })
    formats.set(timeZone, format)
  }
  const parts = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+):(\d+)$/
    .exec(format.format(second * 1000))!
    .slice(1)
    .map(Number) as [number, number, number, number, number, number]
  return Date.UTC(parts[2], parts[1] - 1, parts[0], parts[3], parts[4], parts[5]) / 1000
}

/** The instants, to the minute, at which a zone changes its offset between the starts of two years. */
export const clockChanges = (timeZone: string, fromYear: number, toYear: number): number[] => {
  const offset = (second: number) => localTime(timeZone, second) - second
  const changes: number[] = []
  const end = Date.UTC(toYear, 0, 1) / 1000
  for (let day = Date.UTC(fromYear, 0, 1) / 1000; day < end; day += 86_400) {
    if (offset(day) === offset(day + 86_400)) continue
    let minute = day
    while (offset(minute) === offset(minute + 3600)) minute += 3600
    while (offset(minute) === offset(day)) minute += 60
    changes.push(minute)
  }
  return changes
}

/** Every instant in [from, to], `step` seconds apart, with its local time. */
export type Walk = { step: number; instants: { second: number; local: number }[] }

export const walk = (timeZone: string, from: number, to: number, step: number): Walk => {
  const instants = []
  for (let second = Math.floor(from / step) * step; second <= to; second += step)
    instants.push({ second, local: localTime(timeZone, second) })
  return { step, instants }
}

/** Whether a local time is a slot, judged by the fields alone. */
export const matches = ({ values, eitherDay }: Drawn, local: number): boolean => {
  const date = new Date(local * 1000)
  const ofMonth = values[3]!.has(date.getUTCDate())
  const ofWeek = values[5]!.has(date.getUTCDay())
  return (
    values[0]!.has(date.getUTCSeconds()) &&
    values[1]!.has(date.getUTCMinutes()) &&
    values[2]!.has(date.getUTCHours()) &&
    values[4]!.has(date.getUTCMonth() + 1) &&
    (eitherDay ? ofMonth || ofWeek : ofMonth && ofWeek)
  )
}

/** The runs of an expression along a walk. Local times before the walk are unknown to it, so begin a day early. */
export const runsAlong = ({ step, instants }: Walk, drawn: Drawn): number[] => {
  const runs: number[] = []
  const shown = new Set<number>()
  let previous: number | undefined
  for (const { second, local } of instants) {
    const matching = matches(drawn, local)
    if (drawn.wildcard) {
      if (matching) runs.push(second)
      continue
    }
    let due = matching && !shown.has(local)
    shown.add(local)
    const skipped = previous === undefined ? 0 : local - previous - step
    if (skipped > 0 && skipped < 3 * 3600) {
      for (let missing = previous! + step; missing < local; missing += step) due ||= matches(drawn, missing)
    }
    if (due) runs.push(second)
    previous = local
  }
  return runs
}
