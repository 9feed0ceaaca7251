/** How close together a schedule's slots come. */
import { type Cron, fieldValues } from './cron.ts'
import { nextSlot } from './slots.ts'

const day = 86_400
/** Seconds from one value of a field to the next: seconds, minutes, hours. */
const units = [1, 60, 3600]
/** Every sequence of two years, by their lengths and weekdays, begins in any 28 years. Whatever is rarer repeats after 400. */
const years = (count: number) => count * 366 * day

/**
 * Whether two slots are less than so many seconds apart on the local clock. Exact: from the fields within a day, and from day to day by the
 * calendar. Clock changes don't count, so that no schedule is refused for what happens on one night of the year.
 */
export const isTighterThan = (cron: Cron, seconds: number): boolean => {
  let span = 0 // from the first to the last slot of a minute, then of an hour, then of a day
  for (const [i, unit] of units.entries()) {
    const values = fieldValues(cron, i)
    const gaps = values.slice(1).map((value, n) => (value - values[n]!) * unit - span)
    if (gaps.some(gap => gap < seconds)) return true
    span += (values.at(-1)! - values[0]!) * unit
  }
  if (day - span >= seconds) return false
  // From the last slot of a day to the first of the next day that has any.
  const start = nextSlot(cron.calendar, 0)
  const end = start + years(seconds < 365 * day ? 29 : 401)
  for (let first = start; first < end; ) {
    const next = nextSlot(cron.calendar, (Math.floor(first / day) + 1) * day)
    if (next - first - span < seconds) return true
    first = next
  }
  return false
}
