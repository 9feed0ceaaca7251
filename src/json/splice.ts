/** Like `JSON.stringify`, but inserts the text of `Json` values without parsing it. */
import { Json } from './canonical-json.ts'

export const splice = (value: unknown): string => {
  if (value instanceof Json) return value.text
  if (Array.isArray(value)) return `[${value.map(splice)}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${splice(member)}`)}}`
}
