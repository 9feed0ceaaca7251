/** Timetables: the slots of a schedule, and what combines them. Pure. Instants are milliseconds since 1970. */
import { effort } from './slots.ts'

export type Timetable = Readonly<{
  /** The first slot strictly after an instant; Infinity if there is none. */
  next: (after: number) => number
  /** The last slot strictly before an instant; -Infinity if there is none. */
  previous: (before: number) => number
}>

/** Instants from `from` to before `to`. */
export type Stretch = Readonly<{ from: number; to: number }>

/** The last instant with a four-digit year, as calendar and timestamps require. */
export const lastInstant = Date.UTC(10_000, 0) - 1
export const firstInstant = Date.parse('0001-01-01T00:00:00Z')

/** The stretches that some exclusions describe; they may touch or overlap. */
export type Excluded = Readonly<{
  /** The stretch that contains an instant; not always the longest. */
  at: (instant: number) => Stretch | undefined
  /** The first stretch that begins after an instant. */
  after: (instant: number) => Stretch | undefined
}>

/** Steps after which a search among excluded slots pauses: a millisecond or two. The last of them may take as many again. */
export const stepsPerSearch = 5000
/** If a century has only excluded slots, all are. */
const horizon = 100 * 366 * 86_400_000

/** One slot. */
export const single = (at: number): Timetable => ({
  next: after => (at > after ? at : Infinity),
  previous: before => (at < before ? at : -Infinity)
})

/** A slot every `length` milliseconds of real time, in both directions from the anchor. */
export const regular = (length: number, anchor: number): Timetable => ({
  next: after => {
    const slot = anchor + (Math.floor((Math.max(after, firstInstant - 1) - anchor) / length) + 1) * length
    return slot <= lastInstant ? slot : Infinity
  },
  previous: before => {
    const slot = anchor + (Math.ceil((Math.min(before, lastInstant + 1) - anchor) / length) - 1) * length
    return slot >= firstInstant ? slot : -Infinity
  }
})

/** The slots of several timetables; one that occurs in several occurs once. A rare one is not searched for each slot of a frequent one. */
export const union = (all: readonly [Timetable, ...Timetable[]]): Timetable => {
  if (all.length === 1) return all[0]
  const parts = all.map(remembering)
  return {
    next: after => Math.min(...parts.map(({ next }) => next(after))),
    previous: before => Math.max(...parts.map(({ previous }) => previous(before)))
  }
}

/** A timetable that remembers the gap between slots that it found last: a search from within it costs nothing. */
export const remembering = ({ next, previous }: Timetable): Timetable => {
  // No slot is between the two. They are slots themselves, or only where a search began.
  let [low, high] = [Number.NaN, Number.NaN]
  let [isLowSlot, isHighSlot] = [false, false]
  return {
    next: after => {
      if (after >= low && after < high && isHighSlot) return high
      if (!(after >= low && after < high)) [low, isLowSlot] = [after, isHighSlot && after === high]
      isHighSlot = true
      high = next(after)
      return high
    },
    previous: before => {
      if (before > low && before <= high && isLowSlot) return low
      if (!(before > low && before <= high)) [high, isHighSlot] = [before, isLowSlot && before === low]
      isLowSlot = true
      low = previous(before)
      return low
    }
  }
}

/** The slots between two instants, both inclusive. */
export const between = (slots: Timetable, first: number, last: number): Timetable => ({
  next: after => {
    const slot = slots.next(Math.max(after, first - 1))
    return slot <= last ? slot : Infinity
  },
  previous: before => {
    const slot = slots.previous(Math.min(before, last + 1))
    return slot >= first ? slot : -Infinity
  }
})

/**
 * The slots outside excluded stretches. A search that has taken too many steps pauses at a slot that may be excluded: whoever comes to that searches on
 * from there.
 */
export const without = (slots: Timetable, { at }: Pick<Excluded, 'at'>): Timetable => {
  const search = (first: number, step: (stretch: Stretch) => number) => {
    let slot = first
    for (const end = effort.steps + stepsPerSearch; effort.steps < end && Number.isFinite(slot); effort.steps++) {
      const stretch = at(slot)
      if (!stretch) return slot
      slot = step(stretch)
      if (Math.abs(slot - first) > horizon) return Infinity * Math.sign(slot - first)
    }
    return slot
  }
  return {
    next: after => search(slots.next(after), ({ to }) => slots.next(to - 1)),
    previous: before => search(slots.previous(before), ({ from }) => slots.previous(from))
  }
}
