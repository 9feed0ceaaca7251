/** What importers share: the entries of a file become cues; those that can't are reported with their line. */
import type { DeclaredCue } from '../client/index.ts'
import { ApiError } from '../errors.ts'
import { isObject } from '../json/canonical-json.ts'
import { firstInstantAt } from '../schedule/next-run.ts'
import { firstRun, readSchedule } from '../schedule/parse-schedule.ts'
import type { GivenSchedule } from '../schedule/schemas.ts'
import { zoneOf } from '../schedule/zones.ts'
import type { Part } from './parts.ts'

export type Options = {
  /** As the user named it. */
  file: string
  /** The zone of schedules that name none. */
  timezone: string | undefined
  now: Date
  /** Whether the lines of a crontab have a user. Otherwise, they show it. */
  system: boolean
}

/** A cue without what depends on the other files of an import. */
export type Entry = {
  line: number
  /** The end of its key, and the task of a worker cue. */
  name: string
  cue: Omit<DeclaredCue, 'key' | 'name'> & { name?: string }
  /** Members in which `${NAME}` is a variable. Elsewhere it is text. */
  template?: Partial<DeclaredCue>
  comment?: string
  /** As in the configuration of `pgcue worker`. */
  handler?: object
}
export type Problem = { line: number; reason: string }
export type Import = { entries: Entry[]; problems: Problem[] }
export type Importer = (text: string, options: Options) => Import

/** Why an entry is left out. */
class Refusal extends Error {}
export const refuse = (reason: string): never => {
  throw new Refusal(reason)
}

export type Fields = Record<string, unknown>

/** Translates each part, which must be an object. */
export const translate = <P extends Part>(parts: P[], entryOf: (fields: Fields, part: P) => Omit<Entry, 'line'>): Import => {
  const entries: Entry[] = []
  const problems: Problem[] = []
  for (const part of parts) {
    const { line, value } = part
    try {
      entries.push({ line, ...entryOf(isObject(value) ? value : refuse('is not an object'), part) })
    } catch (error) {
      problems.push({ line, reason: reasonOf(error) })
    }
  }
  return { entries, problems }
}

const reasonOf = (error: unknown): string => {
  if (error instanceof Refusal) return error.message
  if (error instanceof ApiError) return error.message.replace(/^schedule(\.cron:|\.|:) ?/, '').replace(/^(\w+): Value error,/, '$1')
  throw error
}

/** A member that is text; undefined if it is absent or null. */
export const optionalText = (fields: Fields, name: string): string | undefined => {
  const value = fields[name] ?? undefined
  return value === undefined || typeof value === 'string' ? value : refuse(`${name} is not a string`)
}
export const textOf = (fields: Fields, name: string): string => optionalText(fields, name) || refuse(`${name} is missing`)
export const objectOf = (fields: Fields, name: string): Fields => {
  const value = fields[name] ?? {}
  return isObject(value) ? value : refuse(`${name} is not an object`)
}

/** A schedule, with the zone as the service spells it. @throws if the service would refuse it */
export const judged = (schedule: GivenSchedule, now: Date): GivenSchedule => {
  const read = readSchedule(schedule, now)
  firstRun(read, now)
  const { timezone: _, ...members } = schedule
  return read.timezone === 'UTC' ? members : { ...members, timezone: read.timezone }
}

/** The schedule of a cron expression of five fields, or of a macro such as @daily. */
export const cronSchedule = (text: string, timezone: string | undefined, { now }: Options): GivenSchedule => {
  const cron = text.trim().replace(/\s+/g, ' ')
  const count = cron.split(' ').length
  if (!cron.startsWith('@') && count !== 5)
    refuse(`a schedule has five fields (minute, hour, day-of-month, month, day-of-week), not ${count}`)
  return judged({ cron, timezone }, now)
}

/** The instant of a local time. */
export const instantOf = (local: string, timezone = 'UTC'): string => {
  const { timezone: zone } = readSchedule({ cron: '@daily', timezone }, new Date(0))
  return new Date(firstInstantAt(zoneOf(zone), Date.parse(`${local}Z`))).toISOString()
}

/** A length in seconds, with the largest unit that keeps it whole. */
export const lengthText = (seconds: number): string => {
  const [unit, size] = Object.entries({ d: 86_400, h: 3600, m: 60 }).find(([, size]) => seconds % size === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}
