/** The minimum interval between a schedule's slots. */
import { type Cron, fieldValues } from './cron.ts'
import { effort, nextSlot } from './slots.ts'

const day = 86_400
/** Seconds between consecutive values of the fields for seconds, minutes and hours. */
const units = [1, 60, 3600]
/** Any 28 years contain every sequence of two years by their lengths and weekdays. Rarer slots repeat after 400 years. */
const years = (count: number) => count * 366 * day

/**
 * Whether any two slots of expressions are less than `seconds` apart on the local clock. Exact: within a day from the fields, from day to day
 * from the calendar. Clock changes are ignored, so that no schedule is rejected because of one night per year.
 */
export const isTighterThan = (crons: readonly Cron[], seconds: number): boolean => {
  if (seconds <= 1) return false // slots are on whole seconds
  if (crons.some(cron => isTightWithinDay(cron, seconds))) return true
  const days = crons.map(cron => ({ cron, times: crons.length > 1 ? timesOf(cron) : endsOf(cron) }))
  const clashes = days.map((cronDay, i) => days.map((other, n) => n < i && areClose(cronDay.times, other.times, seconds)))
  const [first, last] = [Math.min(...days.map(({ times }) => times[0]!)), Math.max(...days.map(({ times }) => times.at(-1)!))]
  if (day - last + first >= seconds && !clashes.flat().includes(true)) return false
  // From the last slot of a day to the first slot of the next day that has one.
  const dayFrom = (cron: Cron, date: number) => Math.floor(nextSlot(cron.calendar, date * day) / day)
  const next = days.map(({ cron }) => dayFrom(cron, 0))
  const end = Math.min(...next) + years(seconds < 365 * day ? 29 : 401) / day
  for (let latest = -Infinity; ; ) {
    const date = Math.min(...next)
    if (date >= end) return false
    const today = days.flatMap((_, i) => (next[i] === date ? [i] : []))
    if (today.some(i => today.some(other => clashes[i]![other]))) return true
    if (date * day + Math.min(...today.map(i => days[i]!.times[0]!)) - latest < seconds) return true
    latest = date * day + Math.max(...today.map(i => days[i]!.times.at(-1)!))
    for (const i of today) next[i] = dayFrom(days[i]!.cron, date + 1)
  }
}

const isTightWithinDay = (cron: Cron, seconds: number) => {
  let span = 0 // from the first to the last slot of a minute, then of an hour, then of a day
  for (const [i, unit] of units.entries()) {
    const values = fieldValues(cron, i)
    const gaps = values.slice(1).map((value, n) => (value - values[n]!) * unit - span)
    if (gaps.some(gap => gap < seconds)) return true
    span += (values.at(-1)! - values[0]!) * unit
  }
  return false
}

/** The seconds of a day at which an expression has slots, on its days. */
const timesOf = (cron: Cron): number[] => {
  const [seconds, minutes, hours] = units.map((unit, i) => fieldValues(cron, i).map(value => value * unit)) as [
    number[],
    number[],
    number[]
  ]
  return hours.flatMap(hour => minutes.flatMap(minute => seconds.map(second => hour + minute + second)))
}

const endsOf = (cron: Cron): number[] => {
  const values = units.map((unit, i) => fieldValues(cron, i).map(value => value * unit))
  return [0, -1].map(end => values.reduce((sum, list) => sum + list.at(end)!, 0))
}

/** Whether two ascending lists have different times less than `seconds` apart. */
const areClose = (some: number[], rest: number[], seconds: number) => {
  effort.steps += Math.ceil((some.length + rest.length) / 8)
  let i = 0
  return some.some(time => {
    while (i < rest.length && rest[i]! <= time - seconds) i++
    for (let n = i; n < rest.length && rest[n]! < time + seconds; n++) if (rest[n] !== time) return true
    return false
  })
}
