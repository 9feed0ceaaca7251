/** Schedules of Amazon EventBridge, as `aws scheduler get-schedule` and `aws events describe-rule` print them, become worker cues. */
import { parseExactly } from '../json/canonical-json.ts'
import type { GivenSchedule } from '../schedule/schemas.ts'
import {
  type Fields,
  type Importer,
  instantOf,
  judged,
  lengthText,
  type Options,
  objectOf,
  optionalText,
  refuse,
  textOf,
  translate
} from './entries.ts'
import { cronOf } from './eventbridge-cron.ts'
import { readParts } from './parts.ts'

export const eventbridge: Importer = (text, options) =>
  translate(readParts(text), entry => {
    const [name, target] = [textOf(entry, 'Name'), objectOf(entry, 'Target')]
    const group = optionalText(entry, 'GroupName')
    const arn = optionalText(target, 'Arn')
    const input = inputOf(optionalText(target, 'Input'))
    const description = optionalText(entry, 'Description')
    return {
      name: group === undefined || group === 'default' ? name : `${group}/${name}`,
      ...(arn !== undefined && { comment: `Target: ${arn}` }),
      cue: {
        name,
        ...(description && { description }),
        schedule: scheduleOf(entry, options),
        worker: true,
        ...(input !== undefined && { payload: { input } }),
        ...(entry.State === 'DISABLED' && { paused: true })
      }
    }
  })

const inputOf = (text: string | undefined): unknown => {
  if (text === undefined) return undefined
  try {
    return parseExactly(text)
  } catch {
    return text
  }
}

const scheduleOf = (entry: Fields, options: Options): GivenSchedule => {
  const expression = textOf(entry, 'ScheduleExpression').trim()
  const timezone = optionalText(entry, 'ScheduleExpressionTimezone') ?? options.timezone
  const [, kind, content = ''] = /^(at|rate|cron)\((.*)\)$/.exec(expression) ?? refuse(`${expression} is not at(…), rate(…) or cron(…)`)
  if (kind === 'at') {
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(content)) refuse(`${expression} is not at(yyyy-mm-ddThh:mm:ss)`)
    return judged({ at: instantOf(content, timezone) }, options.now)
  }
  const window = objectOf(entry, 'FlexibleTimeWindow')
  const [start, end] = [instantIn(entry, 'StartDate'), instantIn(entry, 'EndDate')]
  const spread = window.Mode === 'FLEXIBLE' && { window: `${window.MaximumWindowInMinutes}m` }
  if (kind === 'rate') {
    // Its first run is at the start date, or at the creation.
    const anchor = start ?? instantIn(entry, 'CreationDate')
    return judged({ every: everyOf(content), ...boundsOf({ anchor, starts_at: start, ends_at: end }, options), ...spread }, options.now)
  }
  const { cron, first, last } = cronOf(content)
  const starts_at = latest(start, first === undefined ? first : instantOf(`${first}-01-01T00:00:00`, timezone))
  const ends_at = earliest(
    end,
    last === undefined ? last : new Date(Date.parse(instantOf(`${last + 1}-01-01T00:00:00`, timezone)) - 1000).toISOString()
  )
  return judged({ cron, timezone, ...boundsOf({ starts_at, ends_at }, options), ...spread }, options.now)
}

const boundsOf = (instants: Pick<GivenSchedule, 'anchor' | 'starts_at' | 'ends_at'>, { now }: Options) => {
  if (instants.ends_at && new Date(instants.ends_at) <= now) refuse(`ended at ${instants.ends_at}`)
  return Object.fromEntries(Object.entries(instants).filter(([, instant]) => instant !== undefined))
}

type Instant = string | undefined
const latest = (a: Instant, b: Instant) => (a && b ? (Date.parse(a) > Date.parse(b) ? a : b) : (a ?? b))
const earliest = (a: Instant, b: Instant) => (a && b ? (Date.parse(a) < Date.parse(b) ? a : b) : (a ?? b))

/** ISO 8601, or seconds since 1970, as version 1 of the command line prints it. */
const instantIn = (entry: Fields, name: string): Instant => {
  const value = entry[name] ?? undefined
  if (value === undefined) return undefined
  const date = typeof value === 'number' ? new Date(value * 1000) : new Date(String(value))
  return Number.isNaN(+date) ? refuse(`${name} ${value} is not a time`) : date.toISOString()
}

const everyOf = (content: string): string => {
  const [, count, unit] =
    /^(\d+)\s+(minute|hour|day)s?$/.exec(content) ?? refuse(`rate(${content}) is not a number of minutes, hours or days`)
  return lengthText(Number(count) * { minute: 60, hour: 3600, day: 86_400 }[unit as 'minute' | 'hour' | 'day'])
}
