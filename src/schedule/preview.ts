import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Static } from 'typebox'
import { describe, excludedNotes, type PreviewRun, previewNotes } from './describe.ts'
import type { Calendar } from './exclusions.ts'
import { calendarsOf, firstRun, readSchedule } from './parse-schedule.ts'
import type { Preview, PreviewRequest } from './schemas.ts'

/**
 * Describes a schedule in words and returns its next runs strictly after `from` (default: now), and the excluded slots among them. Other requests
 * have their turn between runs.
 * @throws ApiError invalid_schedule, invalid_timezone, as for a cue
 */
export const preview = async (
  { schedule: request, from, count }: Static<typeof PreviewRequest>,
  now: Date,
  stored?: ReadonlyMap<string, Calendar>
): Promise<Static<typeof Preview>> => {
  const schedule = readSchedule(request, now)
  const calendars = calendarsOf(schedule, stored)
  const after = from == null ? now : new Date(from)
  firstRun(schedule, after, undefined, calendars)
  const next: PreviewRun[] = []
  for (const run of previewNotes(schedule, after, count, calendars)) {
    next.push(run)
    await nextTurn()
  }
  const excluded = excludedNotes(schedule, after, next.at(-1)?.at, count, calendars)
  return { schedule, description: describe(schedule), next, excluded }
}
