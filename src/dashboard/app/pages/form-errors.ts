/** Errors of the API by the field that they are about. */
import type { Failure } from '../api.ts'

/** By path, such as `schedule.cron`. */
export type Errors = Readonly<Record<string, string>>

/** Refusals of schedules name their field in the message only. */
export const errorsOf = (failure: Failure | undefined): Errors => {
  if (!failure || failure.status === 0 || failure.status >= 500) return {}
  const [, path, rule] = /^(schedule\.[\w.]+)(?::? )(.+)$/s.exec(failure.message) ?? []
  return path && Object.keys(failure.fields).length === 0 ? { [path]: rule! } : failure.fields
}

/** The first error at one of the paths or within it. */
export const errorOf = (errors: Errors, ...paths: string[]): string | undefined => {
  const found = Object.entries(errors).find(([at]) => paths.some(path => at === path || at.startsWith(`${path}.`)))
  return found?.[1].replace(/^Value error, /, '')
}
