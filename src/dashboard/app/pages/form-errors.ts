/** Errors of the API by the field that they are about. */
import type { Failure } from '../api.ts'

/** By path, such as `schedule.cron`. */
export type Errors = Readonly<Record<string, string>>

/** Short forms, and the members that fields are about. */
const shorts: Record<string, string> = {
  callback_url: 'callback.url',
  callback: 'callback.url',
  cron: 'schedule.cron',
  schedule: 'schedule.kind',
  after: 'after.cues',
  'schedule.crons.0': 'schedule.cron'
}
const long = (path: string) => shorts[path] ?? (/^(at|timezone)$/.test(path) ? `schedule.${path}` : path)

/** Refusals of schedules and callbacks name their field in the message only. */
export const errorsOf = (failure: Failure | undefined): Errors => {
  if (!failure || failure.status === 0 || failure.status >= 500) return {}
  const [, path, rule] = /^((?:schedule|callback)\.[\w.]+)(?::? )(.+)$/s.exec(failure.message) ?? []
  const errors = path && Object.keys(failure.fields).length === 0 ? { [path]: rule! } : failure.fields
  return Object.fromEntries(Object.entries(errors).map(([at, text]) => [long(at), text.replace(/^Value error, /, '')]))
}

/** The first error at a path or within it. */
export const errorOf = (errors: Errors, path: string): string | undefined =>
  Object.entries(errors).find(([at]) => at === path || at.startsWith(`${path}.`))?.[1]
