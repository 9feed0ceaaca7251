/** Omits large free JSON from responses to agents. */
import { Json } from '../json/canonical-json.ts'

/** Characters of free JSON kept in one response. */
const KEPT = 64 * 1024

/** Replaces free JSON beyond 64 KB in total by null, keeping the first; members such as `payload_omitted` name what was omitted. */
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
