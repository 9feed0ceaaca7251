/** Headers that a cue adds to its callbacks. Their values may be credentials and are never shown again. */
import { constants } from '../catalog.ts'
import type { Detail } from '../errors.ts'
import { headerName, headerValue } from '../http/header-text.ts'

/** Shown instead of every stored value. If sent back, `cue.update_cue` keeps the stored value. */
const { mask } = constants

const MAX_HEADERS = 20
const MAX_BYTES = 8192

// JSON types, including narrower ones such as application/cloudevents+json.
const json = /^application\/(?:[!#$&^_.+\w-]+\+)?json[ \t]*(?:;[\t\x20-\x7e]*)?$/i
// Headers of signature, framing and connection: they could make a receiver trust or read something that we did not send.
const reserved =
  /^(?:(?:x-service|webhook|proxy)-.*|content-(?!type$).*|host|connection|keep-alive|te|trailers?|transfer-encoding|upgrade|http2-settings|expect)$/i

/**
 * Validates the headers of a request; returns entries of a 422, never with a value.
 *
 * @param stored names of the headers that the cue has
 */
export const headerFaults = (headers: Record<string, string>, stored: readonly string[] = []): Detail[] => {
  const fault = (name: string | undefined, msg: string): Detail => ({
    type: 'value_error',
    loc: ['body', 'callback', 'headers', ...(name === undefined ? [] : [name.slice(0, 200)])],
    msg: `Value error, ${msg}`,
    input: null
  })
  const entries = Object.entries(headers)
  if (entries.length > MAX_HEADERS) return [fault(undefined, `at most ${MAX_HEADERS} headers are allowed`)]
  const seen = new Set<string>()
  const masked = new Set(stored.map(name => name.toLowerCase()))
  const faults = entries.flatMap(([name, value]) => {
    const folded = name.toLowerCase()
    const twice = seen.has(folded)
    seen.add(folded)
    if (!headerName.test(name)) return [fault(name, 'not a valid header name')]
    if (reserved.test(name)) return [fault(name, 'reserved: the service sets this header')]
    if (twice) return [fault(name, 'duplicate header; names are case-insensitive')]
    if (!headerValue.test(value))
      return [fault(name, 'header values may contain only Latin-1 characters, without line breaks or other control characters')]
    if (folded === 'content-type' && value !== mask && !json.test(value))
      return [fault(name, 'must be application/json or application/…+json: the body is JSON')]
    if (value === mask && !masked.has(folded))
      return [fault(name, 'this is the mask of a stored value, but no value is stored under this name; send the value itself')]
    return []
  })
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (faults.length === 0 && bytes > MAX_BYTES) return [fault(undefined, 'names and values must not exceed 8 KB in total')]
  return faults
}
