/** Options for schedules, and schedules as text. */
import type { Cue } from '../client/index.ts'
import { type Context, fromApi } from './command.ts'
import { UsageError } from './exit-codes.ts'

const group = 'Schedule'

/** Options for members of a schedule besides what says when it runs. */
export const scheduleOptions = fromApi('createCue', {
  every: { member: 'schedule.every', group, value: 'LENGTH' },
  anchor: { member: 'schedule.anchor', group },
  timezone: { member: 'schedule.timezone', group, value: 'ZONE' },
  'starts-at': { member: 'schedule.starts_at', group },
  'ends-at': { member: 'schedule.ends_at', group },
  'max-runs': { member: 'schedule.max_runs', group },
  window: {
    member: 'schedule.window',
    group,
    value: 'LENGTH',
    help: 'spread slots over a window such as 30m, or 25% of the time to the next slot'
  },
  exclude: {
    member: 'schedule.exclude',
    group,
    value: 'DATE|FROM/TO|JSON',
    help: 'slots that do not run',
    read: (texts: string[]) => exclusionsOf(texts)
  },
  'exclude-calendar': { member: 'schedule.exclude_calendars', group, value: 'NAME', help: 'leave out what this calendar excludes' }
})

/** Dates together, then the others. */
const exclusionsOf = (texts: readonly string[]): object[] => {
  const isDate = (text: string) => /^(\d{4}-)?\d\d-\d\d$/.test(text)
  const dates = texts.filter(isDate)
  const more = texts.filter(text => !isDate(text)).map(text => (text.startsWith('{') ? objectOf(text) : rangeOf(text, '--exclude')))
  return [...(dates.length > 0 ? [{ dates }] : []), ...more]
}

const objectOf = (text: string): object => {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`--exclude is not valid JSON: ${text}`)
  }
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

/** When it runs, on one line. */
export const scheduleText = ({ schedule }: Pick<Cue, 'schedule'>): string => {
  const when = schedule.type === 'once' ? schedule.at : (schedule.cron ?? schedule.crons?.join('; ') ?? `every ${schedule.every}`)
  return schedule.timezone === 'UTC' ? String(when) : `${when} ${schedule.timezone}`
}

/** The other members that are set, by their names in text. */
const boundsText = ({ schedule }: Pick<Cue, 'schedule'>): Record<string, unknown> => {
  const { anchor, starts_at, ends_at, max_runs, window, exclude, exclude_calendars } = schedule.type === 'once' ? {} : schedule
  return {
    anchor,
    'starts at': starts_at,
    'ends at': ends_at,
    'max runs': max_runs,
    window,
    exclude: exclude?.map(exclusion => JSON.stringify(exclusion)).join(', '),
    'exclude calendars': exclude_calendars?.join(', ')
  }
}

export const showCue = ({ out }: Pick<Context, 'out'>, cue: Cue) =>
  out.show(cue, () => {
    out.fields({
      id: cue.id,
      name: cue.name,
      key: cue.key,
      description: cue.description,
      tags: cue.tags.join(', '),
      status: cue.status,
      'completed reason': cue.completed_reason,
      'paused by': cue.paused_by,
      'paused at': cue.paused_at,
      'paused until': cue.paused_until,
      reason: cue.pause_reason,
      version: cue.version,
      schedule: scheduleText(cue),
      ...boundsText(cue),
      'next run': cue.next_run,
      'next slot': cue.next_slot === cue.next_run ? null : cue.next_slot,
      'last run': cue.last_run,
      runs: cue.run_count,
      transport: cue.transport,
      url: cue.callback.url,
      payload: JSON.stringify(cue.payload),
      'catch up': cue.catch_up,
      overlap: cue.overlap
    })
    if (!cue.warning) return
    out.line('')
    out.line(`Warning: ${cue.warning}`)
  })
