/** Common cron expressions as people say them: 'Weekdays at 07:30', '1st of each month at 00:00'. */
import { type Cron, fieldValues } from './cron.ts'

/** From the second to the day of the week. */
export const fieldSizes = [60, 60, 24, 31, 12, 7]
const weekdayNames = ['Sundays', 'Mondays', 'Tuesdays', 'Wednesdays', 'Thursdays', 'Fridays', 'Saturdays']
const monthNames = 'January February March April May June July August September October November December'.split(' ')
/** Longer lists are better read as ranges and steps. */
const longestList = 4

const listed = (words: string[]): string => (words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`)

const ordinal = (n: number): string => {
  const ending = n % 100 > 10 && n % 100 < 14 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th')
  return `${n}${ending}`
}

const weekdaysText = (days: number[]): string | undefined => {
  if (days.join() === '1,2,3,4,5') return 'Weekdays'
  if (days.join() === '0,6') return 'Weekends'
  return days.length <= longestList ? listed(days.map(day => weekdayNames[day]!)) : undefined
}

const datesText = (dates: number[], months: number[] | undefined): string | undefined => {
  if (dates.length > longestList || (months?.length ?? 0) > longestList) return undefined
  return `${listed(dates.map(ordinal))} of ${months ? listed(months.map(month => monthNames[month - 1]!)) : 'each month'}`
}

/** Undefined for an expression that is not among them. */
export const commonWords = (cron: Cron): string | undefined => {
  const values = cron.fields.map((_, i) => fieldValues(cron, i))
  const [seconds, minutes, hours] = values as [number[], number[], number[]]
  if (seconds.length > 1 || minutes.length > 1 || hours.length > longestList) return undefined
  const [dates, months, weekdays] = values.map((list, i) => (list.length === fieldSizes[i] ? undefined : list)).slice(3)
  const isAnyDay = cron.calendar.eitherDay ? !dates || !weekdays : !dates && !weekdays
  if (isAnyDay ? months : dates && weekdays) return undefined
  const days = isAnyDay ? 'Every day' : weekdays ? !months && weekdaysText(weekdays) : datesText(dates!, months)
  const second = seconds[0] === 0 ? [] : seconds
  const times = hours.map(hour => [hour, minutes[0]!, ...second].map(n => String(n).padStart(2, '0')).join(':'))
  return days ? `${days} at ${listed(times)}` : undefined
}
