/** Types of events as requests name them: `execution.*` means all that begin so. */
import type { EventType } from '../db.types.ts'
import { invalid } from '../errors.ts'
import { eventTypes } from './schemas.ts'

/** @throws ApiError for a type that does not exist */
export const readTypes = (names: readonly string[], loc: string[], input: unknown): EventType[] => [
  ...new Set(
    names.flatMap(name => {
      const matching = eventTypes.filter(type => type === name || (name.endsWith('.*') && type.startsWith(name.slice(0, -1))))
      if (matching.length > 0) return matching
      const msg = `Unknown type ${JSON.stringify(name)}. Use ${eventTypes.join(', ')}, or a group such as execution.*`
      throw invalid([{ type: 'value_error', loc, msg, input }])
    })
  )
]
