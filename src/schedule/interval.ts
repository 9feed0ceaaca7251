/** The minimum interval between a schedule's slots. */
import { type Cron, fieldValues } from './cron.ts'
import { nextSlot } from './slots.ts'

const day = 86_400
/** Seconds between consecutive values of the fields for seconds, minutes and hours. */
const units = [1, 60, 3600]
/** Any 28 years contain every sequence of two years by their lengths and weekdays. Rarer slots repeat after 400 years. */
const years = (count: number) => count * 366 * day

/**
 * Whether any two slots are less than `seconds` apart on the local clock. Exact: within a day from the fields, from day to day from the
 * calendar. Clock changes are ignored, so that no schedule is rejected because of one night per year.
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
  // From the last slot of a day to the first slot of the next day that has one.
  const start = nextSlot(cron.calendar, 0)
  const end = start + years(seconds < 365 * day ? 29 : 401)
  for (let first = start; first < end; ) {
    const next = nextSlot(cron.calendar, (Math.floor(first / day) + 1) * day)
    if (next - first - span < seconds) return true
    first = next
  }
  return false
}
