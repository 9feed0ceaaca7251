/** Writes values that hold free JSON as text: `JSON.stringify`, but what is `Json` goes in as it is, without being parsed. */
import { Json } from './canonical-json.ts'

export const splice = (value: unknown): string => {
  if (value instanceof Json) return value.text
  if (Array.isArray(value)) return `[${value.map(splice)}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${splice(member)}`)}}`
}
