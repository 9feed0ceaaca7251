/** Validates a client's schedule and completes it. */
import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../errors.ts'
import { CronError, parseCron } from './cron.ts'
import type { Calendar } from './exclusions.ts'
import { isTighterThan } from './interval.ts'
import { instantAfter, lengthOf, offsetRule } from './offset.ts'
import { readRules, wrong } from './parse-rules.ts'
import { type Plan, planOf, type Run, runOf } from './plan.ts'
import { cronsOf, type Recurring, type Schedule } from './schedule.ts'
import type { GivenSchedule } from './schemas.ts'
import { effort } from './slots.ts'
import { lastInstant, stepsPerSearch } from './timetable.ts'
import { canonicalTimeZone } from './zones.ts'

/** What says when a schedule runs. It has one of them. */
const kinds = ['cron', 'crons', 'every', 'at', 'in'] as const

/**
 * Completes the given members with the stored schedule, if any; what says when it runs also changes the type.
 * @throws ApiError invalid_schedule, invalid_timezone, validation_error
 */
export const readSchedule = (request: GivenSchedule, now: Date, stored?: Schedule): Schedule => {
  const [kind, other] = kinds.filter(name => request[name] != null)
  if (kind === 'cron' && other === 'at') throw refused('schedule: give either cron or at, not both')
  if (other !== undefined) throw wrong([other], `does not go with ${kind}: give one of ${kinds.join(', ')}`)
  const isInstant = kind === 'at' || kind === 'in'
  const type = request.type ?? (kind === undefined ? stored?.type : isInstant ? 'once' : 'recurring')
  const timezone = readTimeZone(request.timezone ?? stored?.timezone ?? 'UTC')
  if (type === undefined) throw refused('schedule: give cron, crons or every for a recurring cue, or at or in for one that runs once')
  const before = stored?.type === 'recurring' ? stored : undefined
  if (type === 'recurring') {
    if (isInstant) throw refused('schedule.cron is required for type recurring')
    const { crons, every, ...rules } = readRules(request, kind === undefined ? before : undefined, before)
    if (every !== undefined) return { type, every, ...rules, timezone }
    if (crons !== undefined) return { type, crons: crons.map((cron, i) => readCron(cron, `crons.${i}`)), ...rules, timezone }
    const cron = request.cron ?? before?.cron
    if (cron === undefined) throw refused('schedule.cron is required for type recurring')
    return { type, cron: readCron(cron), ...rules, timezone }
  }
  if (kind === 'crons' || kind === 'every') throw wrong([kind], 'does not go with type once')
  const of = Object.keys(readRules(request))
  if (of.length > 0) throw wrong([of[0]!], 'is for recurring schedules')
  const instant =
    kind === 'in' ? readOffset(request.in!, now) : (request.at ?? (kind === undefined && stored?.type === 'once' ? stored.at : undefined))
  if (instant === undefined) throw refused('schedule.at is required for type once')
  const date = new Date(instant)
  if (date.getTime() > lastInstant) throw refused('schedule.at must not be after the year 9999')
  return { type, at: date, timezone }
}

const readOffset = (offset: string, now: Date) => {
  const instant = instantAfter(now, offset)
  if (instant === undefined) throw wrong(['in'], offsetRule)
  return instant
}

/**
 * Returns a schedule's first run strictly after an instant.
 * @param cueId determines when it fires within its window
 * @throws ApiError if there is none: validation_error if bounds or exclusions leave none, otherwise invalid_schedule
 */
export const firstRun = (schedule: Schedule, after: Date, cueId?: string, calendars: readonly Calendar[] = []): Run => {
  const plan = planOf(schedule, cueId, calendars)
  const { value: slot } = slotsAfter(schedule, plan, after).next()
  if (slot !== undefined) return runOf(plan, slot)!
  if (plan.all && plan.all.next(+after) < Infinity) throw allExcluded(schedule)
  if (schedule.type === 'once') throw refused(`schedule.at is ${new Date(schedule.at).toISOString()}, which is in the past`)
  const { cron, starts_at, ends_at, timezone } = schedule
  if (ends_at !== undefined)
    throw wrong(['ends_at'], `leaves no slot: none from ${laterOf(after, starts_at).toISOString()} until ${ends_at}`)
  if (starts_at !== undefined) throw wrong(['starts_at'], `leaves no slot: none from ${starts_at}`)
  throw refused(`schedule.${cron === undefined ? 'crons' : 'cron'}: it would never run in ${timezone}`)
}

/** What a request may take: some 20 ms, and more for each slot or cue that it asks for. */
const stepsPerRequest = 10 * stepsPerSearch
const stepsPerSlot = stepsPerSearch / 5
const stepsPerCue = stepsPerSearch

/** A schedule whose slots are all excluded for so long is refused as one without slots. */
const longWithout = 366 * 86_400_000

/**
 * The slots after an instant and before another that are not excluded. Searching for each takes some milliseconds at most.
 * @param count how many are asked for
 * @throws ApiError validation_error if searching takes too many steps; it names the exclusion
 */
export function* slotsAfter(schedule: Schedule, plan: Plan, after: Date, count = 0, until = Infinity): Generator<number, undefined> {
  let remaining = stepsPerRequest + count * stepsPerSlot
  let latest = +after
  for (let slot = latest; ; ) {
    const began = effort.steps
    slot = plan.next(slot)
    if (slot >= until) return
    const isExcluded = plan.excludedAt(slot) !== undefined
    remaining -= effort.steps - began
    if (remaining < 0 && plan.all) {
      const isLong = latest === +after && slot - plan.all.next(latest) > longWithout
      throw isLong ? allExcluded(schedule) : tooExpensive(schedule as Recurring, plan)
    }
    if (isExcluded) continue // a search has paused
    latest = slot
    yield slot
  }
}

const allExcluded = (schedule: Schedule) =>
  wrong([schedule.type === 'recurring' && schedule.exclude ? 'exclude' : 'exclude_calendars'], 'leaves no slot: all are excluded')

const tooExpensive = ({ exclude, exclude_calendars }: Recurring, { excluded }: Plan) => {
  const [member, n] = excluded!.costliest()
  const text = member === 'exclude' ? JSON.stringify(exclude![n]).slice(0, textLength) : `calendar ${exclude_calendars![n]}`
  return wrong(
    [member, n],
    `${text} is too expensive to search: it leaves out too many slots one by one. Exclude longer stretches, with more minutes, dates, or from and to`
  )
}
const textLength = 150

/** Limits what the schedules of a request take together. */
export const createAllowance = (cues: number) => {
  let remaining = stepsPerRequest + cues * stepsPerCue
  return <T>(search: () => T): T => {
    if (remaining < 0) throw wrong([], 'is too expensive to search together with the other cues of this request; exclude longer stretches')
    const began = effort.steps
    try {
      return search()
    } finally {
      remaining -= effort.steps - began
    }
  }
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
export const sameSchedule = (a: Schedule | null, b: Schedule | null): boolean => isDeepStrictEqual(comparable(a), comparable(b))

const comparable = (schedule: Schedule | null) =>
  schedule?.type === 'once' ? { ...schedule, at: +new Date(schedule.at) } : { ...schedule }

/**
 * The calendars that a schedule names.
 * @throws ApiError validation_error if one does not exist
 */
export const calendarsOf = <C extends Calendar>(schedule: Schedule, stored: ReadonlyMap<string, C> = new Map()): C[] => {
  const calendars = namesOf(schedule as { exclude_calendars?: string[] }).map((name, n) => {
    const calendar = stored.get(name)
    if (calendar === undefined) throw wrong(['exclude_calendars', n], `calendar ${name} not found; create it with PUT /v1/calendars/{name}`)
    return calendar
  })
  const excess = excessOf(calendars)
  if (excess) throw wrong(['exclude_calendars'], `must not have ${excess}; name fewer calendars, or shorten them`)
  return calendars
}

const most = { dates: 2000, ranges: 1000 }

/** Says whether the calendars of a cue have too much together. */
export const excessOf = (calendars: readonly Calendar[]): string | undefined => {
  for (const member of ['dates', 'ranges'] as const) {
    const count = calendars.reduce((sum, calendar) => sum + calendar[member].length, 0)
    if (count > most[member]) return `${count} ${member} in total, where at most ${most[member]} are allowed`
  }
}

export const namesOf = (schedule: { exclude_calendars?: string[] | null }): readonly string[] => schedule.exclude_calendars ?? []

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
