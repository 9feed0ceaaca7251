import { CronExpressionParser } from 'cron-parser'
import { memoize } from '../cache/memoize.ts'
import type { Calendar } from './slots.ts'
import { makeCalendar, nextSlot } from './slots.ts'

/** An accepted cron expression. Its members are for this folder only. */
export type Cron = Readonly<{
  /** As written, without surrounding space. */
  expression: string
  /** Six fields, seconds first, without macros, '?' and leading zeros. */
  fields: readonly string[]
  /**
   * Whether the minute or hour field starts with '*': then it runs at every real instant that matches. Otherwise it is *fixed*: each local
   * slot runs once.
   */
  wildcard: boolean
  calendar: Calendar
}>

/** A rejected expression. The message is for its author and names the field; `field` is set if a single field is to blame. */
export class CronError extends Error {
  override name = 'CronError'
  readonly field: string | undefined

  constructor(message: string, field?: string) {
    super(message)
    this.field = field
  }
}

const fields = [
  { key: 'second', name: 'second', takes: 'numbers from 0 to 59', max: 59 },
  { key: 'minute', name: 'minute', takes: 'numbers from 0 to 59', max: 59 },
  { key: 'hour', name: 'hour', takes: 'numbers from 0 to 23', max: 23 },
  { key: 'dayOfMonth', name: 'day-of-month', takes: 'numbers from 1 to 31', max: 31 },
  { key: 'month', name: 'month', takes: 'numbers from 1 to 12 or JAN to DEC', max: 12 },
  { key: 'dayOfWeek', name: 'day-of-week', takes: 'numbers from 0 to 7 (both are Sunday) or SUN to SAT', max: 7 }
] as const
type Field = (typeof fields)[number]

const macros = new Map([
  ['@hourly', '0 * * * *'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@weekly', '0 0 * * 0'],
  ['@monthly', '0 0 1 * *'],
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *']
])

const maxLength = 100
const cronsKept = 5000
const rangesKept = 6000

const refuse = (field: Field, item: string, reason: string): never => {
  throw new CronError(`invalid ${field.name} field "${item}": ${reason}`, field.name)
}

/** The values of a range such as 'minute 1-5', by field. All that exist are kept, since cron-parser takes 50 µs for each. */
const expand = memoize(rangesKept, (range: string) => {
  const [key, item] = range.split(' ') as [Field['key'], string]
  const alone = fields.map(field => (field.key === key ? item : '1')).join(' ')
  const values = CronExpressionParser.parse(alone).fields[key].values as number[]
  // A range to 7 also has 0, which is not its first day.
  return key === 'dayOfWeek' && !/^(\*|0|sun|7$)/.test(item) ? values.filter(value => value > 0) : values
})

// cron-parser also accepts what the dialect rejects (L, #, H, "1jan"), so the form is checked first.
const itemShape = /^(\*|(?:\d+|[a-z]{3})(?:-(?:\d+|[a-z]{3}))?)(?:\/(\d+))?$/i

const parseItem = (field: Field, item: string): number[] => {
  const shape =
    itemShape.exec(item) ??
    refuse(field, item, `use *, ${field.takes}, ranges, steps such as */5, or lists of these; L, W, #, H and R are not supported`)
  const [, range, step] = shape
  if (step !== undefined && Number(step) === 0) refuse(field, item, 'a step must be at least 1')
  try {
    const isWhole = step === undefined || range === '*' || range!.includes('-')
    const values = expand(`${field.key} ${(isWhole ? range! : `${range}-${field.max}`).toLowerCase()}`)
    const days = field.key === 'dayOfWeek' ? 7 : Infinity
    const nth = Number(step ?? 1)
    if (nth <= Math.min(values.length, days)) return values.filter((_, n) => n % nth === 0).map(value => value % days)
  } catch {
    refuse(field, item, `use ${field.takes}; a range must go from the smaller to the larger`)
  }
  return refuse(field, item, 'the step must not be larger than the range')
}

// Parsed item by item, because cron-parser rejects lists with overlapping items ("0,7", "*/15,*/20"), which are unusual but valid.
const parseField = (field: Field, text: string) => new Set(text.split(',').flatMap(item => parseItem(field, item)))

const split = (expression: string) => {
  if (expression.length > maxLength) throw new CronError(`the cron expression is longer than ${maxLength} characters`)
  const trimmed = expression.trim()
  if (trimmed === '') throw new CronError('the cron expression is empty')
  const text = trimmed.startsWith('@') ? macros.get(trimmed.toLowerCase()) : trimmed
  if (text === undefined) throw new CronError(`"${trimmed}" is not supported; use one of ${[...macros.keys()].join(' ')}`)
  const parts = text.split(/\s+/)
  if (parts.length !== 5 && parts.length !== 6) {
    throw new CronError(
      `a cron expression has five fields (minute, hour, day-of-month, month, day-of-week), or six with second first, not ${parts.length}`
    )
  }
  if (parts.length === 5) parts.unshift('0')
  return parts.map(part => part.replace(/(?<=^|,)\?(?=$|,|\/)/g, '*').replace(/\b0+(?=\d)/g, ''))
}

const parse = (expression: string): Cron => {
  const parts = split(expression)
  const values = Object.fromEntries(fields.map((field, i) => [field.key, parseField(field, parts[i]!)])) as Record<
    Field['key'],
    Set<number>
  >
  const starred = (i: number) => parts[i]!.startsWith('*')
  const calendar = makeCalendar(values, !starred(3) && !starred(5))
  if (nextSlot(calendar, 0) === Infinity) {
    throw new CronError(
      `it would never run: the day-of-month field "${parts[3]}" has no day in the months of "${parts[4]}"`,
      'day-of-month'
    )
  }
  return { expression: expression.trim(), fields: parts, wildcard: starred(1) || starred(2), calendar }
}

/** Returns the values of one of the six fields, ascending; Sunday is 0. */
export const fieldValues = (cron: Cron, i: number): number[] => [...parseField(fields[i]!, cron.fields[i]!)].sort((a, b) => a - b)

/**
 * Parses a cron expression: five fields, or six with seconds first; `*`, `?`, lists, ranges, steps, names, 7 for Sunday, and the macros
 * from @hourly to @annually. Results are cached.
 * @throws CronError for anything else, and for a schedule that never runs
 */
export const parseCron: (expression: string) => Cron = memoize(cronsKept, parse)
