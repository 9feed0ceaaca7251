/** A calendar as the form holds it, and as the API takes it. */
import type { Calendar, PutCalendar } from '../../../client/types.ts'
import { list } from './draft-text.ts'

export type CalendarDraft = { name: string; description: string; dates: string; ranges: readonly { from: string; to: string }[] }

export const emptyCalendar: CalendarDraft = { name: '', description: '', dates: '', ranges: [] }
export const calendarDraftOf = ({ name, description, dates, ranges }: Calendar): CalendarDraft => ({
  name,
  description: description ?? '',
  dates: dates.join(', '),
  ranges
})
export const calendarOf = ({ description, dates, ranges }: CalendarDraft): PutCalendar => ({
  description: description.trim() || null,
  dates: list(dates),
  ranges: ranges.filter(({ from, to }) => from || to)
})

/** Whether a date is among those listed, in its year or in every year. */
export const excludes = (dates: readonly string[], date: string): 'once' | 'yearly' | undefined =>
  dates.includes(date) ? 'once' : dates.includes(date.slice(5)) ? 'yearly' : undefined

/** Adds a date, or removes it however it is listed. */
export const toggled = (text: string, date: string, isYearly: boolean): string => {
  const dates = list(text)
  const isListed = excludes(dates, date) !== undefined
  const remaining = dates.filter(listed => listed !== date && listed !== date.slice(5))
  const next = isListed ? remaining : [...remaining, isYearly ? date.slice(5) : date]
  return next.sort().join(', ')
}
