import type { Static } from 'typebox'
import { describe, previewNotes } from './describe.ts'
import { firstRun, readSchedule } from './parse-schedule.ts'
import type { Preview, PreviewRequest } from './schemas.ts'

/**
 * What a schedule means: in words, and its next runs strictly after `from`, or after now. Refuses what a cue would be refused for.
 *
 * @throws ApiError invalid_schedule, invalid_timezone
 */
export const preview = ({ schedule: given, from, count }: Static<typeof PreviewRequest>, now: Date): Static<typeof Preview> => {
  const schedule = readSchedule(given)
  const after = from == null ? now : new Date(from)
  firstRun(schedule, after)
  return { schedule, description: describe(schedule), next: previewNotes(schedule, after, count) }
}
