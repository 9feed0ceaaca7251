/** Runs of a timetable, as Dates. Pure. */
import { constants } from '../catalog.ts'
import type { Plan } from './plan.ts'
import { effort } from './slots.ts'
import { stepsPerSearch, type Timetable } from './timetable.ts'

/** Maximum count of `slotsBetween`; 10,000 means that many or more. */
export const slotsCounted = constants.countedTo
/** Then counting stops, and so does collecting: only exclusions that leave out very many slots one by one take more steps. */
const stepsOfAll = 40 * stepsPerSearch

const dateOf = (instant: number) => (Number.isFinite(instant) ? new Date(instant) : undefined)

const millisecondsOf = (date: Date) => {
  const milliseconds = date.getTime()
  if (Number.isNaN(milliseconds)) throw new RangeError('not a valid date')
  return milliseconds
}

/**
 * Returns the first run strictly after an instant; undefined if there is none.
 * @throws RangeError for an invalid date, also in the functions below
 */
export const nextRun = (slots: Timetable, after: Date): Date | undefined => dateOf(slots.next(millisecondsOf(after)))

/** Returns the last run strictly before an instant, mirroring `nextRun`. */
export const previousRun = (slots: Timetable, before: Date): Date | undefined => dateOf(slots.previous(millisecondsOf(before)))

/** Returns the next `count` runs strictly after an instant, earliest first; fewer if the schedule ends. */
export const nextRuns = (slots: Timetable, after: Date, count: number): Date[] => {
  const runs: Date[] = []
  let slot = slots.next(millisecondsOf(after))
  for (; runs.length < count && slot !== Infinity; slot = slots.next(slot)) runs.push(new Date(slot))
  return runs
}

/** Returns the n-th run strictly after an instant; 1 is `nextRun`. Takes time proportional to n. */
export const nthRun = (slots: Timetable, after: Date, n: number): Date | undefined => {
  if (!Number.isInteger(n) || n < 1) throw new RangeError('n must be a whole number of at least 1')
  let slot = millisecondsOf(after)
  for (let i = 0; i < n && slot !== Infinity; i++) slot = slots.next(slot)
  return dateOf(slot)
}

/**
 * `count` is exact up to 10,000, `first` and `last` always; `newest` is in ascending order. If counting takes too long, `count` is 10,000, and if
 * collecting does, `newest` has fewer.
 */
export type Slots = { count: number; first: Date | undefined; last: Date | undefined; newest: Date[] }

/**
 * The runs in (from, to], including the newest `keepNewest`, slot by slot. Computes at most 10,000 slots plus those, however many there are.
 * @param slots those of a plan may include an excluded one, where a search has paused
 */
export function* slotsBetween(
  slots: Timetable & Partial<Pick<Plan, 'excludedAt'>>,
  from: Date,
  to: Date,
  keepNewest: number
): Generator<void, Slots> {
  const until = millisecondsOf(to)
  const search = limited(slots)
  let count = 0
  let first: number | undefined
  for (let slot = search.next(millisecondsOf(from)); slot <= until && count < slotsCounted; slot = search.next(slot)) {
    yield
    if (slots.excludedAt?.(slot)) continue
    first ??= slot
    count = search.isOver() ? slotsCounted : count + 1
  }
  if (first === undefined) return { count: 0, first: undefined, last: undefined, newest: [] }
  const { previous, isOver } = limited(slots)
  const newest: number[] = []
  const kept = Math.max(keepNewest, 1)
  for (let slot = previous(until + 1); slot >= first && newest.length < kept && !(isOver() && newest.length > 0); slot = previous(slot)) {
    yield
    if (!slots.excludedAt?.(slot)) newest.push(slot)
  }
  const last = dateOf(newest[0]!)
  return {
    count,
    first: dateOf(first),
    last,
    newest: newest
      .slice(0, keepNewest)
      .reverse()
      .map(slot => new Date(slot))
  }
}

/** Counts the steps of a search; others may search in between. */
const limited = ({ next, previous }: Timetable) => {
  let remaining = stepsOfAll
  const counted = (search: (instant: number) => number) => (instant: number) => {
    const began = effort.steps
    const slot = search(instant)
    remaining -= effort.steps - began
    return slot
  }
  return { next: counted(next), previous: counted(previous), isOver: () => remaining < 0 }
}
