/** The dialect of Go's cron library, which Kubernetes and QStash use: CRON_TZ= before the fields, and @every. */
import type { GivenSchedule } from '../schedule/schemas.ts'
import { cronSchedule, judged, lengthText, type Options, refuse } from './entries.ts'

export const goSchedule = (text: string, timezone: string | undefined, options: Options): GivenSchedule => {
  const [, prefix, expression = ''] = /^(?:(?:CRON_)?TZ=(\S*)\s+)?(.*)$/s.exec(text.trim())!
  const zone = prefix ?? timezone
  const [, length] = /^@every\s+(.*)$/.exec(expression) ?? []
  if (length !== undefined) return judged({ every: lengthText(secondsOf(length)), timezone: zone }, options.now)
  return cronSchedule(restricted(expression.trim().split(/\s+/)).join(' '), zone, options)
}

/**
 * There, a step such as * with /2 restricts a day field, so that matching either day field is enough; here, a field that begins with * is open,
 * and both must match. A list with a plain * is open there.
 */
const restricted = (fields: string[]): string[] => {
  const open = (field: string | undefined) => field?.split(',').some(item => /^[*?](\/0*1)?$/.test(item))
  if (fields.length !== 5) return fields
  const days = { 2: '1-31', 4: '0-6' } as Record<number, string>
  const isEither = !open(fields[2]) && !open(fields[4])
  return fields.map((field, i) => {
    if (!days[i]) return field
    if (open(field)) return '*'
    return isEither ? field.replace(/(?<=^|,)[*?](?=\/)/g, days[i]) : field
  })
}

const units = { h: 3600, m: 60, s: 1, ms: 0.001, us: 1e-6, µs: 1e-6, ns: 1e-9 } as Record<string, number>

/** Such as 1h30m. Go's library rounds down to whole seconds. */
const secondsOf = (length: string): number => {
  if (!/^(\d+(\.\d+)?(h|m|s|ms|us|µs|ns))+$/.test(length)) return refuse(`@every ${length} is not a length such as 1h30m`)
  const parts = [...length.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/g)]
  return Math.floor(parts.reduce((sum, [, number, unit]) => sum + Number(number) * units[unit!]!, 0))
}
