/** Options for schedules, and schedules as text. */
import type { Cue } from '../client/index.ts'
import { type Context, integer } from './command.ts'

/** Options for members of a schedule besides what says when it runs. */
export const scheduleOptions = {
  timezone: { type: 'string', value: 'ZONE', help: 'IANA time zone such as Europe/London (default: UTC)' },
  every: { type: 'string', value: 'LENGTH', help: 'run at regular intervals, such as 45m, 36h or 2d' },
  anchor: { type: 'string', value: 'TIME', help: 'with --every: a time from which slots are counted' },
  'starts-at': { type: 'string', value: 'TIME', help: 'no slot before this time' },
  'ends-at': { type: 'string', value: 'TIME', help: 'no slot after this time' },
  'max-runs': { type: 'string', value: 'N', help: 'complete the cue after this number of scheduled runs' }
} as const

export const scheduleNames = Object.fromEntries(
  Object.keys(scheduleOptions).map(name => [`schedule.${name.replace('-', '_')}`, `--${name}`])
)

/** The members of a schedule that options set. */
export const membersOf = ({ options }: Pick<Context<typeof scheduleOptions>, 'options'>) => {
  const { timezone, every, anchor, 'starts-at': starts_at, 'ends-at': ends_at } = options
  return { timezone, every, anchor, starts_at, ends_at, max_runs: integer(options['max-runs'], 'max-runs', 1, 2 ** 31 - 1) }
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
  const { anchor = null, starts_at = null, ends_at = null, max_runs = null } = schedule.type === 'once' ? {} : schedule
  return { anchor, 'starts at': starts_at, 'ends at': ends_at, 'max runs': max_runs }
}
