// What is done with JSON whose size a client chooses. Pure, and of texts only, so that any thread can do it.
import { createHash } from 'node:crypto'
import { canonicalJson, mergeJson, split } from './canonical-json.ts'

export const work = {
  split,
  canonicalJson,
  mergeJson,
  /** A text as a JSON string. */
  literal: (text: string): string => JSON.stringify(text),
  /** SHA-256 of a list of JSON values as JSON, of which the first is given as it is. */
  hashOf: (first: string | null, others: string): string =>
    createHash('sha256')
      .update(`[${JSON.stringify(first)},${others.slice(1)}`)
      .digest('hex')
}
