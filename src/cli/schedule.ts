/** Options for schedules, and schedules as text. */
import type { Cue } from '../client/index.ts'
import { type Context, integer } from './command.ts'
import { UsageError } from './exit-codes.ts'

/** Options for members of a schedule besides what says when it runs. */
export const scheduleOptions = {
  timezone: { type: 'string', value: 'ZONE', help: 'IANA time zone such as Europe/London (default: UTC)' },
  every: { type: 'string', value: 'LENGTH', help: 'run at regular intervals, such as 45m, 36h or 2d' },
  anchor: { type: 'string', value: 'TIME', help: 'with --every: a time from which slots are counted' },
  'starts-at': { type: 'string', value: 'TIME', help: 'no slot before this time' },
  'ends-at': { type: 'string', value: 'TIME', help: 'no slot after this time' },
  'max-runs': { type: 'string', value: 'N', help: 'complete the cue after this number of scheduled runs' },
  window: { type: 'string', value: 'LENGTH', help: 'spread slots over a window such as 30m, or 25% of the time to the next slot' },
  exclude: { type: 'string', multiple: true, value: 'DATE|FROM/TO|JSON', help: 'slots that do not run; repeat it for several' },
  'exclude-calendar': {
    type: 'string',
    multiple: true,
    value: 'NAME',
    help: 'leave out what this calendar excludes; repeat it for several'
  }
} as const

export const scheduleNames = {
  ...Object.fromEntries(Object.keys(scheduleOptions).map(name => [`schedule.${name.replace('-', '_')}`, `--${name}`])),
  'schedule.exclude_calendars': '--exclude-calendar'
}

/** The members of a schedule that options set. */
export const membersOf = ({ options }: Pick<Context<typeof scheduleOptions>, 'options'>) => {
  const { timezone, every, anchor, 'starts-at': starts_at, 'ends-at': ends_at, window, 'exclude-calendar': exclude_calendars } = options
  const max_runs = integer(options['max-runs'], 'max-runs', 1, 2 ** 31 - 1)
  const exclude = options.exclude && exclusionsOf(options.exclude)
  return { timezone, every, anchor, starts_at, ends_at, max_runs, window, exclude, exclude_calendars }
}

/** Dates together, then the others. */
const exclusionsOf = (given: readonly string[]): object[] => {
  const isDate = (text: string) => /^(\d{4}-)?\d\d-\d\d$/.test(text)
  const dates = given.filter(isDate)
  const others = given.filter(text => !isDate(text)).map(text => (text.startsWith('{') ? objectOf(text) : rangeOf(text, '--exclude')))
  return [...(dates.length > 0 ? [{ dates }] : []), ...others]
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
export const cronsOf = (crons: readonly string[] = []): { cron?: string; crons?: string[] } =>
  crons.length > 1 ? { crons: [...crons] } : crons.length === 1 ? { cron: crons[0]! } : {}

/** When it runs, on one line. */
export const scheduleText = ({ schedule }: Pick<Cue, 'schedule'>): string => {
  const when = schedule.type === 'once' ? schedule.at : (schedule.cron ?? schedule.crons?.join('; ') ?? `every ${schedule.every}`)
  return schedule.timezone === 'UTC' ? String(when) : `${when} ${schedule.timezone}`
}

/** The other members that are set, by their names in text. */
export const boundsText = ({ schedule }: Pick<Cue, 'schedule'>): Record<string, string | number | null> => {
  const { anchor, starts_at, ends_at, max_runs, window, exclude, exclude_calendars } = schedule.type === 'once' ? {} : schedule
  return {
    anchor: anchor ?? null,
    'starts at': starts_at ?? null,
    'ends at': ends_at ?? null,
    'max runs': max_runs ?? null,
    window: window ?? null,
    exclude: exclude?.map(one => JSON.stringify(one)).join(', ') ?? null,
    'exclude calendars': exclude_calendars?.join(', ') ?? null
  }
}
