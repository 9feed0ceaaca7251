// Computes the local times that match a cron expression, independent of time zones. Local times are whole seconds since 1970, counted as if
// UTC.

const day = 86_400

/**
 * What searching has cost so far, in steps of at most a microsecond: months looked at, slots and stretches passed. A search is limited by how far
 * this has come since it began.
 */
export const effort = { steps: 0 }

const modulo = (a: number, b: number) => ((a % b) + b) % b

// For each x from 0: the smallest value >= x, or -1.
type Steps = Int8Array

// The time of day as three such tables. `mirrored` has the same times counted backwards from midnight (23:59:59 is 0), so that searching
// backwards there is searching forwards.
type Clock = Readonly<{ hour: Steps; minute: Steps; second: Steps }>

/** The matching days and times of an expression. */
export type Calendar = Readonly<{
  clock: Clock
  mirrored: Clock
  /** Bits 1 to 12. */
  months: number
  /** Bit 0 is the first of the month. */
  days: number
  /** For a month starting on a Sunday, a Monday and so on: its matching weekdays; bit 0 is the first of the month. */
  weekdays: readonly number[]
  /** Whether matching one of the two day fields is enough; otherwise both must match. */
  eitherDay: boolean
}>

const steps = (size: number, values: Set<number>, mirrored: boolean): Steps => {
  const table = new Int8Array(size + 1).fill(-1)
  for (let x = size - 1; x >= 0; x--) table[x] = values.has(mirrored ? size - 1 - x : x) ? x : table[x + 1]!
  return table
}

/** Builds the tables from the values of the fields; Sunday is 0. */
export const makeCalendar = (
  values: Readonly<Record<'second' | 'minute' | 'hour' | 'dayOfMonth' | 'month' | 'dayOfWeek', Set<number>>>,
  eitherDay: boolean
): Calendar => {
  const clock = (mirrored: boolean): Clock => ({
    hour: steps(24, values.hour, mirrored),
    minute: steps(60, values.minute, mirrored),
    second: steps(60, values.second, mirrored)
  })
  const dates = Array.from({ length: 31 }, (_, i) => i)
  return {
    clock: clock(false),
    mirrored: clock(true),
    months: [...values.month].reduce((bits, month) => bits | (1 << month), 0),
    days: [...values.dayOfMonth].reduce((bits, date) => bits | (1 << (date - 1)), 0),
    weekdays: [0, 1, 2, 3, 4, 5, 6].map(first =>
      dates.reduce((bits, i) => (values.dayOfWeek.has((first + i) % 7) ? bits | (1 << i) : bits), 0)
    ),
    eitherDay
  }
}

// The first matching second of the day at or after the given one, or -1.
const timeFrom = ({ hour, minute, second }: Clock, secondOfDay: number) => {
  const wantedHour = Math.floor(secondOfDay / 3600)
  let h = hour[wantedHour]!
  if (h < 0) return -1
  if (h > wantedHour) return h * 3600 + minute[0]! * 60 + second[0]!
  const rest = secondOfDay - h * 3600
  const minutes = Math.floor(rest / 60)
  let m = minute[minutes]!
  if (m === minutes) {
    const s = second[rest - minutes * 60]!
    if (s >= 0) return h * 3600 + m * 60 + s
    m = minute[minutes + 1]!
  }
  if (m < 0) {
    h = hour[h + 1]!
    if (h < 0) return -1
    m = minute[0]!
  }
  return h * 3600 + m * 60 + second[0]!
}

const timeUntil = (calendar: Calendar, secondOfDay: number) => {
  const mirror = timeFrom(calendar.mirrored, day - 1 - secondOfDay)
  return mirror < 0 ? -1 : day - 1 - mirror
}

// Months are counted from year 0. The arithmetic counts years from March, so that leap days come last; Date takes five times as long, and maps
// the year 99 to 1999.

/** The month of a day, counted from January of year 0; days are counted from 1970. */
export const monthOf = (date: number): number => {
  const sinceMarch0 = date + 719_468
  const era = Math.floor(sinceMarch0 / 146_097)
  const ofEra = sinceMarch0 - era * 146_097
  const year = Math.floor((ofEra - Math.floor(ofEra / 1460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365)
  const ofYear = ofEra - (365 * year + Math.floor(year / 4) - Math.floor(year / 100))
  return (era * 400 + year) * 12 + Math.floor((5 * ofYear + 2) / 153) + 2
}

/** The day on which a month starts. */
export const firstOf = (month: number): number => {
  const year = Math.floor((month - 2) / 12)
  const ofYear = Math.floor((153 * (month - 2 - year * 12) + 2) / 5)
  return 365 * year + Math.floor(year / 4) - Math.floor(year / 100) + Math.floor(year / 400) + ofYear - 719_468
}

const matchingDays = (calendar: Calendar, month: number) => {
  if (!(calendar.months & (1 << (modulo(month, 12) + 1)))) return 0
  effort.steps++
  const first = firstOf(month)
  const ofWeek = calendar.weekdays[modulo(first + 4, 7)]!
  const matching = calendar.eitherDay ? calendar.days | ofWeek : calendar.days & ofWeek
  return matching & (-1 >>> (32 - (firstOf(month + 1) - first)))
}

// 29 February falls on a given weekday at least every 40 years.
const monthsSearched = 41 * 12

// The nearest matching day at or after (or at or before) a day; Infinity or -Infinity if there is none.
const dayFrom = (calendar: Calendar, from: number, direction: 1 | -1) => {
  let month = monthOf(from)
  const position = from - firstOf(month)
  let bits = matchingDays(calendar, month) & (direction > 0 ? -1 << position : -1 >>> (31 - position))
  for (let i = 0; bits === 0 && i < monthsSearched; i++) {
    month += direction
    bits = matchingDays(calendar, month)
  }
  if (bits === 0) return direction * Infinity
  return firstOf(month) + 31 - Math.clz32(direction > 0 ? bits & -bits : bits)
}

/** Returns the first matching local time at or after `local`, in seconds; Infinity if there is none in 40 years. */
export const nextSlot = (calendar: Calendar, local: number): number => {
  const today = Math.floor(local / day)
  let on = dayFrom(calendar, today, 1)
  if (on === today) {
    const time = timeFrom(calendar.clock, local - today * day)
    if (time >= 0) return today * day + time
    on = dayFrom(calendar, today + 1, 1)
  }
  return on * day + timeFrom(calendar.clock, 0)
}

/** Returns the last matching local time at or before `local`, in seconds; -Infinity if there is none in 40 years. */
export const previousSlot = (calendar: Calendar, local: number): number => {
  const today = Math.floor(local / day)
  let on = dayFrom(calendar, today, -1)
  if (on === today) {
    const time = timeUntil(calendar, local - today * day)
    if (time >= 0) return today * day + time
    on = dayFrom(calendar, today - 1, -1)
  }
  return on * day + timeUntil(calendar, day - 1)
}
