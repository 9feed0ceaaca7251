/** What lists of cues show on request: their schedules in words, and their latest results. */
import type { Static } from 'typebox'
import type { Functions } from '../database/functions.ts'
import { createYield } from '../database/yield.ts'
import { afterText } from '../schedule/after-text.ts'
import { describe } from '../schedule/describe.ts'
import type { CueSummary } from './list-schemas.ts'
import type { Cue } from './schemas.ts'

type Listed = Static<typeof Cue>

/** Adds a summary to each cue. */
export const withSummaries = async <C extends Listed>({ latestResults }: Pick<Functions, 'latestResults'>, cues: C[]) => {
  const rows = cues.length > 0 ? await latestResults({ cue_ids: cues.map(({ id }) => id) }) : []
  const latest = new Map(rows.map(row => [row.cue_id, row.latest as Static<typeof CueSummary>['latest']]))
  const yieldToRequests = createYield()
  const listed: (C & { summary: Static<typeof CueSummary> })[] = []
  for (const cue of cues) {
    listed.push({
      ...cue,
      summary: { schedule: cue.schedule ? describe(cue.schedule) : afterText(cue.after!), latest: latest.get(cue.id) ?? [] }
    })
    await yieldToRequests()
  }
  return listed
}
