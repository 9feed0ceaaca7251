/** Work on JSON whose size a client chooses. Pure functions of texts, so that any thread can run them. */
import { createHash } from 'node:crypto'
import { canonicalJson, mergeJson, split, splitList } from './canonical-json.ts'

export const work = {
  split,
  splitList,
  canonicalJson,
  mergeJson,
  /** A text as a JSON string. */
  literal: (text: string): string => JSON.stringify(text),
  /** SHA-256 of the JSON list `others` with the string `first`, or null, in front. */
  hashOf: (first: string | null, others: string): string =>
    createHash('sha256')
      .update(`[${JSON.stringify(first)},${others.slice(1)}`)
      .digest('hex')
}
