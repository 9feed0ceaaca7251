/** Calendars on the wire. */
import { type Static, Type } from 'typebox'
import { DateText, GivenRange, Range } from '../schedule/schemas.ts'
import { Listed, Nullable, notDots, orElse, Page, Strict, Timestamp } from '../schemas.ts'

const name = { pattern: `^${notDots}[A-Za-z0-9._:/-]{1,64}$` }

export const CalendarName = Type.String({ ...name, description: 'The name of a calendar: 1 to 64 characters of `A-Za-z0-9._:/-`.' })

/** A malformed name gets the same error as an unknown one, unless the route creates the calendar. */
export const CalendarParams = Type.Object({
  name: orElse('calendar_not_found', 'Calendar not found in this account.', Type.String(name))
})
export const NewCalendarParams = Type.Object({ name: Type.String({ ...name, description: 'Percent-encoded.' }) })

export const PutCalendar = Strict({
  description: Type.Optional(Nullable(Type.String({ maxLength: 2000 }))),
  dates: Type.Optional(
    Type.Array(DateText, { maxItems: 1000, description: 'Excluded dates in the time zone of each cue. `12-25` is excluded every year.' })
  ),
  ranges: Type.Optional(Type.Array(GivenRange, { maxItems: 500, description: 'Excluded stretches of time.' }))
})
export type PutCalendar = Static<typeof PutCalendar>

export const Calendar = Type.Object({
  name: Type.String(),
  description: Nullable(Type.String()),
  dates: Type.Array(Type.String()),
  ranges: Type.Array(Range),
  created_at: Timestamp,
  updated_at: Timestamp
})

export const ListCalendars = Type.Object(Page())
export const Calendars = Type.Object({
  calendars: Type.Array(Calendar),
  ...Listed
})
