/** Excluded slots that have passed: records each stretch of them once, as slots that did not run. */
import type { Functions, PassedExclusionsRow } from '../database/functions.ts'
import type { Calendar } from '../schedule/exclusions.ts'
import { excludedFrom, type Plan, planOf } from '../schedule/plan.ts'
import { slotsCounted } from '../schedule/runs.ts'
import { scheduleOf } from '../schedule/schedule.ts'
import type { Steps } from './computing.ts'
import { createSweep, type SweepOptions, untilMoved } from './sweep.ts'

type Options = SweepOptions & { fn: Pick<Functions, 'passedExclusions' | 'recordExclusions'>; now: () => number }

/** Stretches of a cue that one call records. */
const stretchesAtOnce = 20

/** `follows` is the slot before the first one. */
type StretchOfSlots = { first: Date; last: Date; count: number; follows: Date | null }
type Passed = Pick<PassedExclusionsRow, 'cue_id' | 'version'> & { expected: Date; next: Date | null; stretches: StretchOfSlots[] }

/** @returns a function that records excluded slots, and resolves to the number of cues */
export const createExclusionSweep = (options: Options) =>
  untilMoved(
    createSweep<PassedExclusionsRow, Passed>(options, {
      task: 'record excluded slots',
      read: options.fn.passedExclusions,
      compute: (row, calendars) => passed(row, calendars, new Date(options.now())),
      write: cues => options.fn.recordExclusions({ cues: JSON.stringify(cues.map(({ move }) => move)) })
    })
  )

/** What `record_exclusions` takes: the excluded slots up to now, and from when on to look for the next ones. */
export function* passed(row: PassedExclusionsRow, calendars: readonly Calendar[], now: Date): Steps<Passed> {
  const plan = planOf(scheduleOf(row), row.cue_id, calendars)
  const stretches: StretchOfSlots[] = []
  let next = excludedFrom(plan, row.excluded_at)
  while (next && next <= now && stretches.length < stretchesAtOnce) {
    yield
    // After many stretches without a slot, this is only where the search goes on.
    const stretch = plan.excludedAt(+next) && (yield* stretchFrom(plan, next, now))
    if (stretch) stretches.push(stretch)
    next = excludedFrom(plan, new Date(+(stretch?.last ?? next) + 1))
  }
  return { cue_id: row.cue_id, version: row.version, expected: row.excluded_at, next, stretches }
}

/** The slots from one on that are excluded without a break, up to now. Beyond 10,000, those of one exclusion are not counted one by one. */
function* stretchFrom({ all, excludedAt }: Plan, first: Date, now: Date): Steps<StretchOfSlots> {
  let last = +first
  let count = 1
  for (let slot = all!.next(last); slot <= +now && excludedAt(slot) && count < slotsCounted; slot = all!.next(slot)) {
    last = slot
    count++
    yield
  }
  if (count === slotsCounted) last = Math.max(last, all!.previous(Math.min(excludedAt(last)!.to, +now + 1)))
  const follows = all!.previous(+first)
  return { first, last: new Date(last), count, follows: Number.isFinite(follows) ? new Date(follows) : null }
}
