import type { Static } from 'typebox'
import { describe, previewNotes } from './describe.ts'
import type { Calendar } from './exclusions.ts'
import { calendarsOf, firstRun, readSchedule } from './parse-schedule.ts'
import type { Preview, PreviewRequest } from './schemas.ts'

/**
 * Describes a schedule in words and returns its next runs strictly after `from` (default: now).
 * @throws ApiError invalid_schedule, invalid_timezone, as for a cue
 */
export const preview = (
  { schedule: given, from, count }: Static<typeof PreviewRequest>,
  now: Date,
  stored?: ReadonlyMap<string, Calendar>
): Static<typeof Preview> => {
  const schedule = readSchedule(given)
  const calendars = calendarsOf(schedule, stored)
  const after = from == null ? now : new Date(from)
  firstRun(schedule, after, undefined, calendars)
  return { schedule, description: describe(schedule), next: previewNotes(schedule, after, count, calendars) }
}
