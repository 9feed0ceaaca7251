/**
 * The cron expressions of Amazon EventBridge: minute, hour, day-of-month, month, day-of-week and year. Days of the week count from 1, Sunday.
 * One of the two day fields is `?`. Ranges may pass the end of the field.
 */
import { refuse } from './entries.ts'

type Field = { name: string; min: number; max: number; names?: string[] }

const months = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ')
const weekdays = 'SUN MON TUE WED THU FRI SAT'.split(' ')
const fields: Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day-of-month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: months },
  { name: 'day-of-week', min: 1, max: 7, names: weekdays }
]
const year: Field = { name: 'year', min: 1970, max: 2199 }

/** The expression in five fields, and the first and last year, if it has them. */
export const cronOf = (expression: string): { cron: string; first?: number; last?: number } => {
  const parts = expression.trim().split(/\s+/)
  if (parts.length !== 6) refuse(`cron(${expression}) has ${parts.length} fields, not six`)
  const [, , date, , weekday] = parts as [string, string, string, string, string, string]
  refuseSpecial(date, weekday)
  if ((date === '?') === (weekday === '?'))
    refuse(`one of day-of-month and day-of-week must be ?, and not both: "${date}" and "${weekday}"`)
  return { cron: fields.map((field, i) => textOf(field, parts[i]!)).join(' '), ...yearsOf(parts[5]!) }
}

const refuseSpecial = (date: string, weekday: string) => {
  if (/L/i.test(date)) refuse(`L (the last day) in the day-of-month field "${date}" is not supported`)
  if (/W/i.test(date)) refuse(`W (the nearest weekday) in the day-of-month field "${date}" is not supported`)
  if (/L/i.test(weekday)) refuse(`L (the last of its kind in the month) in the day-of-week field "${weekday}" is not supported`)
  if (weekday.includes('#')) refuse(`# (the nth of its kind in the month) in the day-of-week field "${weekday}" is not supported`)
}

const textOf = (field: Field, text: string): string =>
  /^[*?]$/.test(text)
    ? '*'
    : text
        .split(',')
        .map(item => itemText(field, item))
        .join(',')

/** An item with the numbers or names that cron expressions have here. */
const itemText = (field: Field, item: string): string => {
  const { from, to, step, isRange } = rangeOf(field, item)
  const isWeekday = field.names === weekdays
  const shown = (value: number) => (isWeekday ? weekdays[value - 1]! : String(value))
  if (!isRange) return isWeekday ? shown(from) : item
  if (from <= to && step === 1) return isWeekday ? `${shown(from)}-${shown(to)}` : item
  if (from <= to && !isWeekday) return item
  return valuesOf(field, item).map(shown).join(',')
}

const rangeOf = (field: Field, item: string) => {
  const { name, min, max } = field
  const wrong = () => refuse(`invalid ${name} field "${item}": use ${min} to ${max}, *, ranges, steps and lists`)
  const [, range = '', last, stepText] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(item) ?? wrong()
  const step = Number(stepText ?? 1)
  const number = (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : (field.names?.indexOf(text.toUpperCase()) ?? -1) + 1 || Number.NaN
    return value >= min && value <= max ? value : wrong()
  }
  const isOpen = range === '*'
  if (step === 0 || (isOpen && last !== undefined)) wrong()
  const from = isOpen ? min : number(range)
  const to = last !== undefined ? number(last) : isOpen || stepText !== undefined ? max : from
  return { from, to, step, isRange: isOpen || last !== undefined || stepText !== undefined }
}

const valuesOf = (field: Field, item: string): number[] => {
  const { from, to, step } = rangeOf(field, item)
  const size = field.max - field.min + 1
  const length = (to - from + size) % size
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, i) => ((from - field.min + i * step) % size) + field.min)
}

const yearsOf = (text: string): { first?: number; last?: number } => {
  if (text === '*') return {}
  const years = [...new Set(text.split(',').flatMap(item => valuesOf(year, item)))].sort((a, b) => a - b)
  const [first, last] = [years[0]!, years.at(-1)!]
  if (last - first !== years.length - 1) refuse(`the years "${text}" are not consecutive, which is not supported`)
  return { first, ...(last < year.max && { last }) }
}
