/** Responses for agents without free JSON that is too large for them. */
import { Json } from '../json/canonical-json.ts'

/** Characters of free JSON that one response keeps. */
const KEPT = 64 * 1024

/** The value with null for free JSON beyond 64 KB, first come, first kept; `payload_omitted` and its like say which was left out. */
export const omitLarge = (value: unknown): unknown => {
  let kept = 0
  const members = ([name, member]: [string, unknown]): [string, unknown][] => {
    if (!(member instanceof Json)) return [[name, within(member)]]
    if (kept + member.text.length > KEPT) {
      return [
        [name, null],
        [`${name}_omitted`, true]
      ]
    }
    kept += member.text.length
    return [[name, member]]
  }
  const within = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(within)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).flatMap(members))
  }
  return within(value)
}
