/** Validates the members of a schedule that few schedules have. */
import { type ApiError, invalid } from '../errors.ts'
import { isLength, lengthOf } from './offset.ts'
import { type Fail, readExclude } from './parse-exclusions.ts'
import { longestWindow } from './plan.ts'
import type { Rules } from './schedule.ts'
import type { GivenSchedule } from './schemas.ts'
import { lastInstant } from './timetable.ts'

const shortest = '10s'
const longest = '366d'

/** A 422 for a member of a schedule. */
export const wrong = (path: (string | number)[], rule: string): ApiError =>
  invalid([{ type: 'value_error', loc: ['body', 'schedule', ...path], msg: `Value error, ${rule}`, input: null }])

/**
 * The rules of a recurring schedule. Those that are not given stay as stored; null removes one.
 * @param sameKind the stored schedule, if the given one still runs by its `crons` or `every`
 * @param stored the stored schedule, whose bounds stay
 * @throws ApiError validation_error
 */
export const readRules = (request: GivenSchedule, sameKind?: Rules, stored?: Rules): Rules => {
  const { max_runs = stored?.max_runs } = request
  const crons = request.crons ?? sameKind?.crons
  const every = request.every == null ? sameKind?.every : readLength(request.every)
  const anchor = readInstant('anchor', request.anchor, stored?.anchor)
  const starts_at = readInstant('starts_at', request.starts_at, stored?.starts_at)
  const ends_at = readInstant('ends_at', request.ends_at, stored?.ends_at)
  const exclude = request.exclude == null ? request.exclude : readExclude(request.exclude, failIn('exclude'))
  const window = request.window == null ? request.window : readWindow(request.window)
  if (request.anchor != null && every === undefined) throw wrong(['anchor'], 'goes with every')
  if (starts_at !== undefined && ends_at !== undefined && ends_at < starts_at) throw wrong(['ends_at'], 'must not be before starts_at')
  return {
    ...(crons !== undefined && { crons }),
    ...(every !== undefined && { every }),
    ...(every !== undefined && anchor !== undefined && { anchor }),
    ...(starts_at !== undefined && { starts_at }),
    ...(ends_at !== undefined && { ends_at }),
    ...(max_runs != null && { max_runs }),
    ...named('exclude', exclude, stored),
    ...named('exclude_calendars', request.exclude_calendars, stored),
    ...named('window', window, stored)
  }
}

/** A member that is given, or stored. Null and empty lists remove it. */
const named = <N extends keyof Rules>(name: N, member: Rules[N] | null, stored: Rules | undefined): Pick<Rules, N> | undefined => {
  const value = member === undefined ? stored?.[name] : member
  return value == null || (Array.isArray(value) && value.length === 0) ? undefined : ({ [name]: value } as Pick<Rules, N>)
}

const failIn =
  (member: string): Fail =>
  (path, rule) => {
    throw wrong([member, ...path], rule)
  }

const readWindow = (text: string): string => {
  const isPart = /^\d{1,3}%$/.test(text)
  const size = isPart ? Number(text.slice(0, -1)) / 100 : isLength(text) ? lengthOf(text) / longestWindow : 0
  if (size > 0 && size <= 1) return text
  throw wrong(['window'], 'must be a length such as 90s, 30m or 2h, at most 24h, or a part such as 25%, at most 100%')
}

const readLength = (text: string) => {
  const rule = `must be a whole number and a unit, such as 45m, 36h or 2d, from ${shortest} to ${longest}`
  if (!isLength(text)) throw wrong(['every'], rule)
  const length = lengthOf(text)
  if (length < lengthOf(shortest) || length > lengthOf(longest)) throw wrong(['every'], rule)
  return text
}

/** As ISO 8601 in UTC; the stored one if none is given. */
const readInstant = (name: keyof Rules, text: string | null | undefined, stored: string | undefined) => {
  if (text === undefined) return stored
  if (text === null) return undefined
  const instant = Date.parse(text)
  if (instant > lastInstant) throw wrong([name], 'must not be after the year 9999')
  return new Date(instant).toISOString()
}
