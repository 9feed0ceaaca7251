/** From requests to columns of cue.cues. Pure: the stored cue and the time are arguments. */
import { randomBytes } from 'node:crypto'
import { ApiError, type Detail, fault, invalid } from '../errors.ts'
import { calendarsOf, checkInterval, firstRun, readSchedule, sameSchedule } from '../schedule/parse-schedule.ts'
import { rulesOf, type Schedule } from '../schedule/schedule.ts'
import type { GivenSchedule } from '../schedule/schemas.ts'
import type { StoredCalendars } from '../schedule/stored-calendars.ts'
import { lastInstant } from '../schedule/timetable.ts'
import { afterOf, checkWait } from './after.ts'
import { approvalOf } from './approval.ts'
import { defaults, implied } from './columns.ts'
import { headerFaults } from './headers.ts'
import { type Change, type Columns, hasWindow, nextOf, reschedule, revisions } from './next-runs.ts'
import { payloadColumns } from './payload.ts'
import {
  type CreateCue,
  type Group,
  groupNames,
  membersOf,
  type PauseCue,
  type Plain,
  plainNames,
  shortNames,
  type UpdateCue
} from './schemas.ts'
import type { StoredCue } from './stored.ts'
import { checkTemplate } from './templates.ts'

const noCalendars: StoredCalendars = new Map()

/**
 * The columns of a new cue that the request sets, and its first run. The others take the table's defaults.
 *
 * @param minInterval seconds that the plan requires between slots
 * @throws ApiError
 */
export const newCue = (request: CreateCue, now: Date, minInterval: number | null = null, calendars = noCalendars): Change => {
  const transport = transportOf(request)
  const schedule = scheduleIn(request, now)
  if (!schedule) return { columns: { transport, ...definition(request, null, transport) }, next_run: null, next_slot: null }
  checkInterval(schedule, minInterval)
  const used = calendarsOf(schedule, calendars)
  // A window depends on the id.
  const id = hasWindow(schedule) ? newCueId() : undefined
  return {
    columns: { ...(id && { given_id: id }), transport, ...definition(request, schedule, transport), ...revisions(used) },
    ...nextOf(schedule, firstRun(schedule, now, id, used))
  }
}

/** As `cue.new_cue_id`. */
const newCueId = () => `cue_${randomBytes(24).toString('base64').replace(/[+/]/g, '').slice(0, 12)}`

/** What a new definition depends on. */
export type Replaced = Pick<StoredCue, 'id' | 'transport' | 'schedule' | 'next_run' | 'next_slot' | 'last_slot'> & {
  callback: { headers: object }
}

/**
 * A new definition of a stored cue: columns that the request doesn't set return to their defaults. The next run stays if the schedule does.
 *
 * @throws ApiError
 */
export const replacementOf = (
  request: CreateCue,
  stored: Replaced,
  now: Date,
  minInterval: number | null = null,
  calendars = noCalendars
): Change => {
  const transport = transportOf(request)
  if (transport !== stored.transport)
    throw invalid([fault(['transport'], `cannot change from ${stored.transport} to ${transport}; delete the cue first`)])
  const schedule = scheduleIn(request, now)
  const { calendars: used, ...next } = reschedule(schedule, stored, now, minInterval, calendars)
  return {
    columns: { ...definition(request, schedule, transport, Object.keys(stored.callback.headers)), ...used, replaces: true },
    ...next
  }
}

/** The columns that a request for a whole cue sets. */
const definition = (
  request: CreateCue,
  schedule: Schedule | null,
  transport: StoredCue['transport'],
  headerNames: string[] = []
): Columns => {
  const { callback_url } = request
  if (callback_url != null && request.callback?.url != null)
    throw invalid([fault(['callback_url'], 'give callback_url or callback.url, not both')])
  const callback = callback_url == null ? request.callback : { ...request.callback, url: callback_url }
  const columns = {
    name: request.name,
    ...scheduleColumns(schedule),
    ...(request.payload && payloadColumns(request.payload)),
    ...settingColumns({ ...request, callback }, transport, schedule, undefined, headerNames)
  }
  checkTemplate(columns)
  return columns
}

/**
 * The changes of a cue by a request: objects are merged with the stored ones; lists, headers and the payload are replaced; null restores
 * the default. No columns means no change. An unchanged schedule may have closer slots than `minInterval`, from an earlier plan.
 *
 * @throws ApiError
 */
export const changesOf = (
  request: UpdateCue,
  stored: StoredCue,
  now: Date,
  minInterval: number | null = null,
  calendars = noCalendars
): Change => {
  const columns: Columns = {}
  if (request.status !== undefined) columns.status = request.status
  if (request.name !== undefined) columns.name = request.name
  if (request.payload) Object.assign(columns, payloadColumns(request.payload))
  const schedule = request.schedule
    ? readSchedule(request.schedule, now, stored.schedule ?? undefined)
    : request.schedule === null
      ? null
      : stored.schedule
  if (!schedule && !(request.after === undefined ? stored.after : request.after))
    throw invalid([fault(['schedule'], 'is required for a cue without after: it would never run')])
  Object.assign(columns, settingColumns(request, stored.transport, schedule, stored))
  checkTemplate(columns, stored)
  if (!sameSchedule(schedule, stored.schedule)) Object.assign(columns, scheduleColumns(schedule))
  const resumed = request.status === 'active' && stored.status === 'paused'
  const { calendars: used, ...next } = reschedule(schedule, stored, now, minInterval, calendars, resumed)
  if (Object.keys(columns).length > 0) Object.assign(columns, used)
  return { columns, ...next }
}

/** @throws ApiError if the pause would end too early, or too late for the cue to run */
export const pauseOf = ({ reason, until }: PauseCue, { schedule }: StoredCue, now: Date): Change => {
  const end = until == null ? null : new Date(until)
  if (end && end <= now) throw invalid([fault(['until'], 'must be in the future')])
  if (end && +end > lastInstant) throw invalid([fault(['until'], 'must not be after the year 9999')])
  if (end && schedule?.type === 'once' && end > new Date(schedule.at))
    throw invalid([fault(['until'], 'must not be after schedule.at: the cue would never run')])
  if (end && schedule?.type === 'recurring' && schedule.ends_at !== undefined && end > new Date(schedule.ends_at))
    throw invalid([fault(['until'], 'must not be after schedule.ends_at: the cue would never run')])
  return { columns: { status: 'paused', pause_reason: reason ?? null, paused_until: end }, next_run: null, next_slot: null }
}

/** Whether a request sets an object: an empty one sets nothing. */
const says = <T extends object>(group: T | null | undefined): group is T | null =>
  group === null || (group !== undefined && Object.keys(group).length > 0)

const missing = (...loc: string[]): Detail => ({ type: 'missing', loc: ['body', ...loc], msg: 'Field required', input: null })

const transportOf = ({ transport, worker }: CreateCue) => {
  if (worker != null && transport != null && worker !== (transport === 'worker')) {
    throw invalid([fault(['worker'], `contradicts transport ${transport}; leave one of them out`)])
  }
  return transport ?? (worker ? 'worker' : 'webhook')
}

/** The schedule of a request; null: it has none, but `after`. */
const scheduleIn = (request: CreateCue, now: Date): Schedule | null =>
  request.after != null && request.schedule == null && shortNames.every(name => request[name] == null)
    ? null
    : readSchedule(scheduleOf(request), now)

/** The schedule, some members of which may also be given beside it. */
const scheduleOf = (request: CreateCue) => {
  const names = shortNames.filter(name => request[name] != null)
  if (request.schedule == null) {
    if (names.every(name => name === 'timezone')) throw invalid([missing('schedule')])
    return Object.fromEntries(names.map(name => [name, request[name]])) as GivenSchedule
  }
  if (names.length > 0)
    throw new ApiError('invalid_schedule', `Give ${shortNames.join(', ')} either inside schedule or beside it, not both.`)
  return request.schedule
}

const scheduleColumns = (schedule: Schedule | null) => ({
  schedule_type: schedule?.type ?? null,
  cron: schedule?.type === 'recurring' ? (schedule.cron ?? null) : null,
  at: schedule?.type === 'once' ? schedule.at : null,
  timezone: schedule?.timezone ?? defaults.timezone,
  schedule_rules: schedule && rulesOf(schedule)
})

type Settings = Pick<CreateCue, Group | Plain | 'catch_up' | 'after' | 'approval'>

/** The columns set by a request, merged with the stored cue, if any. Headers in `headerNames` may be given as masks. */
const settingColumns = (
  request: Settings,
  transport: StoredCue['transport'],
  schedule: Schedule | null,
  stored?: StoredCue,
  headerNames: string[] = Object.keys(stored?.callback.headers ?? {})
): Columns => {
  const columns: Columns = {}
  for (const name of plainNames) if (request[name] !== undefined) columns[name] = request[name] ?? defaultOf(name)
  if (request.after !== undefined) columns.after = afterOf(request.after, schedule !== null, stored?.after)
  else checkWait(stored?.after?.wait, schedule !== null)
  if (request.catch_up !== undefined) columns.catch_up = catchUp(request.catch_up)
  if (request.approval !== undefined) columns.approval = approvalOf(request.approval, stored?.approval)
  for (const name of groupNames) {
    const object = request[name]
    if (stored ? says(object) : object != null) Object.assign(columns, groupColumns(name, object ?? null, stored?.[name]))
  }
  if (request.delivery && 'await_outcome' in columns) columns.await_outcome = awaitsOutcome(request.delivery, stored)
  if (!stored || 'callback_url' in columns) checkCallback(request.callback, columns, transport, headerNames, stored)
  return columns
}

/** The columns of an object: given, otherwise stored, otherwise default values. Null restores the defaults. */
const groupColumns = (name: Group, members: Columns | null, stored?: Columns | null): Columns => {
  const columns: Columns = {}
  for (const [member, column] of membersOf[name]) {
    const said = saidIn(members, member, column)
    const value = said === undefined ? saidIn(stored, member, column) : said
    columns[column] = (members && (value ?? (implied as Columns)[column])) ?? defaultOf(column)
  }
  return columns
}

/** The value of a member, which may also be given by its column's name. */
const saidIn = (object: Columns | null | undefined, member: string, column: string): unknown =>
  object?.[member] === undefined ? object?.[column] : object[member]

const defaultOf = (column: string) => (defaults as Columns)[column] ?? null

const catchUp = (policy: CreateCue['catch_up']) => (policy === 'replay_all' ? 'replay_all_missed' : (policy ?? defaults.catch_up))

const awaitsOutcome = (delivery: NonNullable<CreateCue['delivery']>, stored?: StoredCue) =>
  delivery.await_outcome ?? stored?.await_outcome_set ?? (delivery.outcome_deadline_seconds === undefined ? null : true)

/** Validates callback and headers. Headers omitted from a change stay as stored; only their masked values are known here. */
const checkCallback = (
  callback: CreateCue['callback'],
  columns: Columns,
  transport: StoredCue['transport'],
  headerNames: string[],
  stored?: StoredCue
) => {
  if (columns.callback_url == null && transport === 'webhook') throw invalid([missing('callback', 'url')])
  if (callback && stored && callback.headers === undefined) delete columns.callback_headers
  const faults = headerFaults((columns.callback_headers ?? {}) as Record<string, string>, headerNames)
  if (faults.length) throw invalid(faults)
}
