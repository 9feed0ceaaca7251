/** Validates a client's schedule and completes it. */
import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../errors.ts'
import { CronError, parseCron } from './cron.ts'
import { isTighterThan } from './interval.ts'
import { readRules, wrong } from './parse-rules.ts'
import { nextRun } from './runs.ts'
import { cronsOf, lengthOf, type Schedule, timetableOf } from './schedule.ts'
import type { GivenSchedule } from './schemas.ts'
import { lastInstant } from './timetable.ts'
import { canonicalTimeZone } from './zones.ts'

/** What says when a schedule runs. It has one of them. */
const kinds = ['cron', 'crons', 'every', 'at'] as const

/**
 * Completes the given members with the stored schedule, if any; `cron`, `crons`, `every` or `at` alone also changes the type.
 * @throws ApiError invalid_schedule, invalid_timezone, validation_error
 */
export const readSchedule = (given: GivenSchedule, stored?: Schedule): Schedule => {
  const [kind, other] = kinds.filter(name => given[name] != null)
  if (kind === 'cron' && other === 'at') throw refused('schedule: give either cron or at, not both')
  if (other !== undefined) throw wrong([other], `does not go with ${kind}: give one of ${kinds.join(', ')}`)
  const type = given.type ?? (kind === undefined ? stored?.type : kind === 'at' ? 'once' : 'recurring')
  const timezone = readTimeZone(given.timezone ?? stored?.timezone ?? 'UTC')
  if (type === undefined) throw refused('schedule: give cron, crons or every for a recurring cue, or at for one that runs once')
  const before = stored?.type === 'recurring' ? stored : undefined
  if (type === 'recurring') {
    if (kind === 'at') throw refused('schedule.cron is required for type recurring')
    const { crons, every, ...rules } = readRules(given, kind === undefined ? before : undefined, before)
    if (every !== undefined) return { type, every, ...rules, timezone }
    if (crons !== undefined) return { type, crons: crons.map((cron, i) => readCron(cron, `crons.${i}`)), ...rules, timezone }
    const cron = given.cron ?? before?.cron
    if (cron === undefined) throw refused('schedule.cron is required for type recurring')
    return { type, cron: readCron(cron), ...rules, timezone }
  }
  if (kind === 'crons' || kind === 'every') throw wrong([kind], 'does not go with type once')
  const of = Object.keys(readRules(given))
  if (of.length > 0) throw wrong([of[0]!], 'is for recurring schedules')
  const instant = given.at ?? (stored?.type === 'once' && kind === undefined ? stored.at : undefined)
  if (instant === undefined) throw refused('schedule.at is required for type once')
  const date = new Date(instant)
  if (date.getTime() > lastInstant) throw refused('schedule.at must not be after the year 9999')
  return { type, at: date, timezone }
}

/**
 * Returns a schedule's first run strictly after an instant.
 * @throws ApiError if there is none: validation_error if bounds leave none, otherwise invalid_schedule
 */
export const firstRun = (schedule: Schedule, after: Date): Date => {
  const next = nextRun(timetableOf(schedule), after)
  if (next) return next
  if (schedule.type === 'once') throw refused(`schedule.at is ${new Date(schedule.at).toISOString()}, which is in the past`)
  const { cron, starts_at, ends_at, timezone } = schedule
  if (ends_at !== undefined)
    throw wrong(['ends_at'], `leaves no slot: none from ${laterOf(after, starts_at).toISOString()} until ${ends_at}`)
  if (starts_at !== undefined) throw wrong(['starts_at'], `leaves no slot: none from ${starts_at}`)
  throw refused(`schedule.${cron === undefined ? 'crons' : 'cron'}: it would never run in ${timezone}`)
}

const laterOf = (after: Date, starts_at: string | undefined) =>
  new Date(Math.max(+after, starts_at === undefined ? 0 : Date.parse(starts_at)))

/**
 * Checks the plan's minimum interval between slots, in seconds.
 * @throws ApiError invalid_schedule
 */
export const checkInterval = (schedule: Schedule, minSeconds: number | null): void => {
  if (minSeconds === null || schedule.type === 'once') return
  const { crons, every } = schedule
  const isTight = every === undefined ? isTighterThan(cronsOf(schedule).map(parseCron), minSeconds) : lengthOf(every) < minSeconds * 1000
  if (!isTight) return
  const name = every !== undefined ? 'every' : crons ? 'crons' : 'cron'
  throw refused(`schedule.${name}: your plan requires at least ${minSeconds} seconds between slots; choose a longer interval, or upgrade`)
}

/** Whether two schedules are the same, apart from how instants are written. */
export const sameSchedule = (a: Schedule, b: Schedule): boolean => isDeepStrictEqual(comparable(a), comparable(b))

const comparable = (schedule: Schedule) => (schedule.type === 'once' ? { ...schedule, at: +new Date(schedule.at) } : { ...schedule })

const refused = (message: string) => new ApiError('invalid_schedule', message)

const readCron = (expression: string, name = 'cron'): string => {
  try {
    return parseCron(expression).expression
  } catch (error) {
    if (error instanceof CronError) throw refused(`schedule.${name}: ${error.message}`)
    throw error
  }
}

const readTimeZone = (name: string): string => {
  const zone = canonicalTimeZone(name)
  if (zone === undefined)
    throw new ApiError('invalid_timezone', 'schedule.timezone is not a valid time zone name; use one such as Europe/London or UTC')
  return zone
}
