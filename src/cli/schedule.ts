/** Options for schedules, and schedules as text. */
import type { Cue } from '../client/index.ts'
import { afterText } from '../schedule/after-text.ts'
import { fromApi, type Member } from './command.ts'
import { UsageError } from './exit-codes.ts'
import { parsed } from './io.ts'
import type { Output } from './output.ts'

/** Options for members of a cue, below a heading of help. */
export const ofCue = <const M extends Record<string, Member>>(group: string, members: M) => fromApi('createCue', members, group)

/** Options for members of a schedule besides what says when it runs. */
export const scheduleOptions = ofCue('Schedule', {
  every: { member: 'schedule.every', value: 'LENGTH' },
  anchor: 'schedule.anchor',
  timezone: { member: 'schedule.timezone', value: 'ZONE' },
  'starts-at': 'schedule.starts_at',
  'ends-at': 'schedule.ends_at',
  'max-runs': 'schedule.max_runs',
  window: {
    member: 'schedule.window',
    value: 'LENGTH',
    help: 'spread slots over a window such as 30m, or 25% of the time to the next slot'
  },
  exclude: { member: 'schedule.exclude', value: 'DATE|FROM/TO|JSON', help: 'slots that do not run', read: exclusionsOf },
  'exclude-calendar': { member: 'schedule.exclude_calendars', value: 'NAME', help: 'leave out what this calendar excludes' }
})

/** Dates together, then the others. */
function exclusionsOf(texts: readonly string[]): object[] {
  const isDate = (text: string) => /^(\d{4}-)?\d\d-\d\d$/.test(text)
  const dates = texts.filter(isDate)
  const more = texts
    .filter(text => !isDate(text))
    .map(text => (text.startsWith('{') ? parsed(text, '--exclude') : rangeOf(text, '--exclude')))
  return [...(dates.length > 0 ? [{ dates }] : []), ...(more as object[])]
}

/** FROM/TO, as ISO 8601 has it. */
export const rangeOf = (text: string, option: string): { from: string; to: string } => {
  const [from, to, more] = text.split('/')
  if (!from || !to || more !== undefined)
    throw new UsageError(`${option} must be ${option === '--range' ? '' : 'a date, JSON or '}FROM/TO, not ${text}`)
  return { from, to }
}

/** One expression as `cron`, several as `crons`. */
export const cronsOf = (crons: readonly string[]): { cron?: string; crons?: string[] } =>
  crons.length > 1 ? { crons: [...crons] } : crons.length === 1 ? { cron: crons[0]! } : {}

/** `extract and load is verified, within 24h`. */
const parentsText = (after: NonNullable<Cue['after']>) =>
  `${afterText(after).slice('After '.length)}, within ${after.within}${after.wait ? `; slots wait ${after.wait}` : ''}`

/** When it runs, on one line. */
export const scheduleText = ({ schedule, after }: Pick<Cue, 'schedule' | 'after'>): string => {
  if (!schedule) return afterText(after!)
  const when = schedule.type === 'once' ? schedule.at : (schedule.cron ?? schedule.crons?.join('; ') ?? `every ${schedule.every}`)
  return schedule.timezone === 'UTC' ? String(when) : `${when} ${schedule.timezone}`
}

const approvalText = ({ approval }: Pick<Cue, 'approval'>) => {
  if (!approval) return null
  const { expires, on_expiry, message } = approval
  return [expires === null ? 'any time' : `within ${expires}, otherwise ${on_expiry}`, message].filter(Boolean).join('; ')
}

export const showCue = (cue: Cue, out: Output) => {
  const { id, name, key, description, tags, status, completed_reason, paused_by, paused_at, paused_until, pause_reason: reason } = cue
  const {
    version,
    next_run,
    next_slot,
    last_run,
    run_count: runs,
    transport,
    callback,
    payload,
    template,
    catch_up,
    overlap,
    gate,
    warning
  } = cue
  const { type, at, cron, crons, every, timezone, exclude, exclude_calendars, ...bounds } = (cue.schedule ?? {}) as Record<string, unknown>
  out.fields({
    ...{ id, name, key, description, tags, status, completed_reason, paused_by, paused_at, paused_until, reason, version },
    ...{ schedule: scheduleText(cue), ...bounds, exclude, exclude_calendars, after: cue.after && parentsText(cue.after) },
    ...{ next_run, next_slot: next_slot === next_run ? null : next_slot, last_run, runs },
    ...{
      transport,
      url: callback.url,
      payload: JSON.stringify(payload),
      template: template || null,
      catch_up,
      overlap,
      gate,
      approval: approvalText(cue),
      alert_channels: cue.alerts?.channels
    }
  })
  if (warning) for (const line of ['', `Warning: ${warning}`]) out.line(line)
}
