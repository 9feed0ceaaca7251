/** From requests to columns of cue.cues. Pure: the stored cue and the time are arguments. */
import { ApiError, type Detail, invalid } from '../errors.ts'
import type { Schedule } from '../schedule/describe.ts'
import { checkInterval, firstRun, readSchedule, sameSchedule } from '../schedule/parse-schedule.ts'
import { headerFaults } from './headers.ts'
import { payloadColumns } from './payload.ts'
import type { StoredCue } from './read.ts'
import type { CreateCue, UpdateCue } from './schemas.ts'

/** Columns by name, as `create_cue` and `update_cue` take them. */
export type Columns = Record<string, unknown>

/** `next_run` applies if the schedule is new or restarts. */
export type Change = { columns: Columns; next_run: Date | null }

const defaults = {
  callback: { url: null, method: 'POST', headers: {} },
  retry: { max_attempts: 3, backoff_minutes: [1, 2, 4] },
  on_failure: { email: true, webhook: null, pause: false },
  delivery: { timeout_seconds: 30, outcome_deadline_seconds: 300, claim_timeout_seconds: 900 },
  alerts: { consecutive_failures: 3, missed_window_multiplier: 2 },
  catch_up: 'run_once_if_missed',
  verification: { mode: 'none' }
} as const

/**
 * All columns of a new cue, and its first run.
 *
 * @param minInterval seconds that the plan requires between slots
 * @throws ApiError
 */
export const newCue = (given: CreateCue, now: Date, minInterval: number | null = null): Change => {
  const transport = transportOf(given)
  const schedule = readSchedule(scheduleOf(given))
  checkInterval(schedule, minInterval)
  const { callback_url } = given
  if (callback_url != null && given.callback?.url != null)
    throw invalid([fault(['callback_url'], 'give callback_url or callback.url, not both')])
  const callback = callback_url == null ? given.callback : { ...given.callback, url: callback_url }
  return {
    columns: {
      name: given.name,
      description: given.description ?? null,
      transport,
      ...scheduleColumns(schedule),
      payload: '{}',
      task: null,
      ...(given.payload && payloadColumns(given.payload)),
      ...callbackColumns(callback ?? {}, transport),
      ...retryColumns(given.retry),
      ...onFailureColumns(given.on_failure),
      ...deliveryColumns(given.delivery),
      ...alertColumns(given.alerts),
      ...catchUpColumns(given.catch_up),
      ...verificationColumns(given.verification)
    },
    next_run: firstRun(schedule, now)
  }
}

/**
 * What a request changes of a cue: objects are laid over the stored ones, lists, headers and the payload replace them, and a null
 * sets back. Without columns nothing changes. A schedule that stays as it is may be tighter than `minInterval`: it was made under another plan.
 *
 * @throws ApiError
 */
export const changesOf = (given: UpdateCue, stored: StoredCue, now: Date, minInterval: number | null = null): Change => {
  const columns: Columns = {}
  if (given.status !== undefined) columns.status = given.status
  if (given.name !== undefined) columns.name = given.name
  if (given.description !== undefined) columns.description = given.description
  if (given.payload) Object.assign(columns, payloadColumns(given.payload))
  if (says(given.callback)) Object.assign(columns, callbackColumns(given.callback, stored.transport, stored.callback))
  if (says(given.retry)) Object.assign(columns, retryColumns(given.retry, stored.retry))
  if (says(given.on_failure)) Object.assign(columns, onFailureColumns(given.on_failure, stored.on_failure))
  if (says(given.delivery)) Object.assign(columns, deliveryColumns(given.delivery, stored))
  if (says(given.alerts)) Object.assign(columns, alertColumns(given.alerts, stored.alerts))
  if (given.catch_up !== undefined) Object.assign(columns, catchUpColumns(given.catch_up))
  if (says(given.verification)) Object.assign(columns, verificationColumns(given.verification))
  const next_run = reschedule(given, stored, now, minInterval, columns)
  return { columns, next_run }
}

const reschedule = (given: UpdateCue, stored: StoredCue, now: Date, minInterval: number | null, columns: Columns): Date | null => {
  const schedule = given.schedule ? readSchedule(given.schedule, stored.schedule) : stored.schedule
  const changed = !sameSchedule(schedule, stored.schedule)
  const resumed = given.status === 'active' && stored.status === 'paused'
  if (changed) {
    checkInterval(schedule, minInterval)
    Object.assign(columns, scheduleColumns(schedule))
  }
  if (!changed && !resumed) return stored.next_run
  // Another time zone says nothing about an instant: what is due, or has run already, stays so.
  const sameInstant =
    schedule.type === 'once' && stored.schedule.type === 'once' && +new Date(schedule.at) === +new Date(stored.schedule.at)
  if (sameInstant && !resumed) return stored.next_run
  return firstRun(schedule, new Date(Math.max(+now, +(stored.last_slot ?? 0))))
}

/** Whether a request says anything of an object: an empty one does not. */
const says = <T extends object>(given: T | null | undefined): given is T | null =>
  given === null || (given !== undefined && Object.keys(given).length > 0)

const fault = (loc: string[], msg: string): Detail => ({
  type: 'value_error',
  loc: ['body', ...loc],
  msg: `Value error, ${msg}`,
  input: null
})
const missing = (...loc: string[]): Detail => ({ type: 'missing', loc: ['body', ...loc], msg: 'Field required', input: null })

const transportOf = ({ transport, worker }: CreateCue) => {
  if (worker != null && transport != null && worker !== (transport === 'worker')) {
    throw invalid([fault(['worker'], `contradicts transport ${transport}; leave one of them out`)])
  }
  return transport ?? (worker ? 'worker' : 'webhook')
}

const scheduleOf = ({ schedule, cron, at, timezone }: CreateCue) => {
  if (schedule == null) {
    if (cron == null && at == null) throw invalid([missing('schedule')])
    return { cron, at, timezone }
  }
  if (cron != null || at != null || timezone != null) {
    throw new ApiError('invalid_schedule', 'Give cron, at and timezone either inside schedule or beside it, not both.')
  }
  return schedule
}

const scheduleColumns = (schedule: Schedule) => ({
  schedule_type: schedule.type,
  cron: schedule.type === 'recurring' ? schedule.cron : null,
  at: schedule.type === 'once' ? schedule.at : null,
  timezone: schedule.timezone
})

const callbackColumns = (given: CreateCue['callback'], transport: StoredCue['transport'], stored?: StoredCue['callback']) => {
  const { url, method, headers } = { ...defaults.callback, ...(given && stored), ...given }
  if (url === null && transport === 'webhook') throw invalid([missing('callback', 'url')])
  const columns = { callback_url: url, callback_method: method }
  if (given?.headers === undefined && given && stored) return columns
  const faults = headerFaults(headers ?? {}, Object.keys(stored?.headers ?? {}))
  if (faults.length) throw invalid(faults)
  return { ...columns, callback_headers: headers ?? {} }
}

const retryColumns = (given: CreateCue['retry'], stored: StoredCue['retry'] | typeof defaults.retry = defaults.retry) => {
  const base = given ? stored : defaults.retry
  return {
    retry_max_attempts: given?.max_attempts ?? given?.retry_max_attempts ?? base.max_attempts,
    retry_backoff_minutes: given?.backoff_minutes ?? given?.retry_backoff_minutes ?? base.backoff_minutes
  }
}

const onFailureColumns = (given: CreateCue['on_failure'], stored?: StoredCue['on_failure']) => {
  const { email, webhook, pause } = { ...defaults.on_failure, ...(given && stored), ...given }
  return { on_failure_email: email, on_failure_webhook: webhook, on_failure_pause: pause }
}

const deliveryColumns = (given: CreateCue['delivery'], stored?: Pick<StoredCue, 'delivery' | 'await_outcome_set'>) => {
  if (!given) return { timeout_seconds: null, outcome_deadline_seconds: null, claim_timeout_seconds: null, await_outcome: null }
  const { timeout_seconds, outcome_deadline_seconds, claim_timeout_seconds } = { ...defaults.delivery, ...stored?.delivery, ...given }
  const byDefault = given.outcome_deadline_seconds === undefined ? null : true
  const await_outcome = given.await_outcome ?? stored?.await_outcome_set ?? byDefault
  return { timeout_seconds, outcome_deadline_seconds, claim_timeout_seconds, await_outcome }
}

const alertColumns = (given: CreateCue['alerts'], stored?: StoredCue['alerts']) => {
  if (!given) return { alert_consecutive_failures: null, alert_missed_window_multiplier: null }
  const { consecutive_failures, missed_window_multiplier } = { ...defaults.alerts, ...stored, ...given }
  return { alert_consecutive_failures: consecutive_failures, alert_missed_window_multiplier: missed_window_multiplier }
}

const catchUpColumns = (given: CreateCue['catch_up']) => ({
  catch_up: given === 'replay_all' ? 'replay_all_missed' : (given ?? defaults.catch_up)
})

const verificationColumns = (given: CreateCue['verification']) => ({
  verification_mode: given ? (given.mode ?? defaults.verification.mode) : null
})
