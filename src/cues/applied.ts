/** What applying a declared cue has changed, by field. */
import { constants } from '../catalog.ts'
import { Json } from '../json/canonical-json.ts'
import type { Applied } from './declared-schemas.ts'

/** From `cue.cue_definition`. */
export type Definition = { payload: string | null; large_payload: object | null; [field: string]: unknown }

const headers = 'callback.headers.'
const masked = JSON.stringify(constants.mask)

/** The fields that differ, with their values as JSON; those of headers are masked. */
export const changesBetween = (before: Definition, after: Definition): Applied['updated'][number]['changes'] => {
  const [old, current] = [fieldsOf(before), fieldsOf(after)]
  const names = new Set([...old.keys(), ...current.keys()])
  const value = (fields: Map<string, string>, name: string) => {
    const text = fields.get(name) ?? 'null'
    return new Json(name.startsWith(headers) && text !== 'null' ? masked : text)
  }
  const changed = [...names].filter(name => (old.get(name) ?? 'null') !== (current.get(name) ?? 'null'))
  return Object.fromEntries(changed.map(name => [name, { from: value(old, name), to: value(current, name) }]))
}

/** JSON by path: `schedule.cron`. */
const fieldsOf = ({ payload, large_payload, ...rest }: Definition): Map<string, string> => {
  const fields = new Map<string, string>()
  const add = (path: string, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) fields.set(path, JSON.stringify(value))
    else for (const [name, member] of Object.entries(value)) add(`${path}.${name}`, member)
  }
  for (const [name, value] of Object.entries(rest)) add(name, value)
  return fields.set('payload', payload ?? JSON.stringify(large_payload))
}
