/** Validates a client's schedule and completes it. */
import { ApiError } from '../errors.ts'
import { CronError, parseCron } from './cron.ts'
import { isTighterThan } from './interval.ts'
import { nextRun } from './runs.ts'
import { cronsOf, type Schedule, timetableOf } from './schedule.ts'
import type { GivenSchedule } from './schemas.ts'
import { lastInstant } from './timetable.ts'
import { canonicalTimeZone } from './zones.ts'

/**
 * Completes the given members with the stored schedule, if any; `cron` or `at` alone also changes the type.
 * @throws ApiError invalid_schedule, invalid_timezone
 */
export const readSchedule = (given: GivenSchedule, stored?: Schedule): Schedule => {
  const cron = given.cron ?? undefined
  const at = given.at ?? undefined
  if (cron !== undefined && at !== undefined) throw refused('schedule: give either cron or at, not both')
  const type = given.type ?? (cron !== undefined ? 'recurring' : at !== undefined ? 'once' : stored?.type)
  const timezone = readTimeZone(given.timezone ?? stored?.timezone ?? 'UTC')
  if (type === undefined) throw refused('schedule: give cron for a recurring cue, or at for one that runs once')
  if (type === 'recurring') {
    const expression = cron ?? (stored?.type === 'recurring' && at === undefined ? stored.cron : undefined)
    if (expression === undefined) throw refused('schedule.cron is required for type recurring')
    return { type, cron: readCron(expression), timezone }
  }
  const instant = at ?? (stored?.type === 'once' && cron === undefined ? stored.at : undefined)
  if (instant === undefined) throw refused('schedule.at is required for type once')
  const date = new Date(instant)
  if (date.getTime() > lastInstant) throw refused('schedule.at must not be after the year 9999')
  return { type, at: date, timezone }
}

/**
 * Returns a schedule's first run strictly after an instant.
 * @throws ApiError invalid_schedule if there is none
 */
export const firstRun = (schedule: Schedule, after: Date): Date => {
  if (schedule.type === 'once') {
    const at = new Date(schedule.at)
    if (at <= after) throw refused(`schedule.at is ${at.toISOString()}, which is in the past`)
    return at
  }
  const next = nextRun(timetableOf(schedule), after)
  if (!next) throw refused(`schedule.cron: it would never run in ${schedule.timezone}`)
  return next
}

/**
 * Checks the plan's minimum interval between slots, in seconds.
 * @throws ApiError invalid_schedule
 */
export const checkInterval = (schedule: Schedule, minSeconds: number | null): void => {
  if (minSeconds === null || schedule.type === 'once' || !isTighterThan(cronsOf(schedule).map(parseCron), minSeconds)) return
  throw refused(`schedule.cron: your plan requires at least ${minSeconds} seconds between slots; choose a longer interval, or upgrade`)
}

export const sameSchedule = (a: Schedule, b: Schedule): boolean => {
  if (a.timezone !== b.timezone) return false
  return a.type === 'once' ? b.type === 'once' && +new Date(a.at) === +new Date(b.at) : b.type === 'recurring' && a.cron === b.cron
}

const refused = (message: string) => new ApiError('invalid_schedule', message)

const readCron = (expression: string): string => {
  try {
    return parseCron(expression).expression
  } catch (error) {
    if (error instanceof CronError) throw refused(`schedule.cron: ${error.message}`)
    throw error
  }
}

const readTimeZone = (name: string): string => {
  const zone = canonicalTimeZone(name)
  if (zone === undefined)
    throw new ApiError('invalid_timezone', 'schedule.timezone is not a valid time zone name; use one such as Europe/London or UTC')
  return zone
}
