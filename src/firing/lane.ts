/** Due cues of one kind: in the order of their instants while those are ahead, then in turns by account. */
import type { DueCue } from './due-cue.ts'
import { createTurnQueue } from './turn-queue.ts'

/** Consecutive cues of an account. More than one, because a batch that spans fewer accounts updates fewer usage counters. */
const turnLength = 10
/** Maximum due cues held for accounts without room. If there are more, they are dropped, and read again when their accounts have room. */
const maxHeld = 65_536

export const createLane = () => {
  let cues: DueCue[] = []
  let head = 0
  const due = createTurnQueue<DueCue>(turnLength)
  // Whether the latest call of `take` stopped at its limit, so that more cues can be taken now.
  let hasMore = false
  return {
    /** Whether at least `count` cues are due that can be taken now. */
    hasDue: (count: number, now: number) => {
      const more = hasMore ? due.size : 0
      return more >= count || (cues[head + count - more - 1]?.due ?? Number.POSITIVE_INFINITY) <= now
    },
    /** When the first cue can be taken, in epoch milliseconds; 0 for at once. */
    get first() {
      return hasMore ? 0 : (cues[head]?.due ?? Number.POSITIVE_INFINITY)
    },
    /** Due cues that were not admitted. */
    get held() {
      return due.size
    },
    heldOf: (account: string) => due.countOf(account),
    /** Number of cues of which a condition holds that were not due at the latest call of `take`. */
    count: (condition: (cue: DueCue) => boolean) => {
      let count = 0
      for (let n = head; n < cues.length; n++) if (condition(cues[n]!)) count++
      return count
    },
    /** Replaces the cues by a new list, except those to keep, and keeps only the due ones of accounts that were skipped when it was read. */
    fill: (list: DueCue[], now: number, skipped: ReadonlySet<string> = new Set(), isKept: (cue: DueCue) => boolean = () => false) => {
      const kept = cues.slice(head).filter(isKept)
      cues = list.length > 0 ? inRotatedOrder([...kept, ...list], cue => Math.max(cue.due, now)) : kept
      head = 0
      const isHeld = due.size > maxHeld ? () => false : (cue: DueCue) => skipped.has(cue.account_id)
      due.keepOnly(cue => isHeld(cue) || isKept(cue))
    },
    /** Up to `limit` cues that are due `now`; an account for which `admit` returns false keeps its cues. */
    take: (now: number, limit: number, admit?: (account: string) => boolean) => {
      for (; head < cues.length && cues[head]!.due <= now; head++) due.add(cues[head]!.account_id, cues[head]!)
      const taken = due.take(limit, admit)
      hasMore = due.size > 0 && taken.length === limit
      return taken
    },
    insert: (cue: DueCue) => {
      let [at, end] = [head, cues.length]
      while (at < end) {
        const middle = (at + end) >> 1
        if (cues[middle]!.due > cue.due) end = middle
        else at = middle + 1
      }
      cues.splice(at, 0, cue)
    }
  }
}

/** By instant. The items of an instant start at a random one, so that engines with the same list don't compete for the same items. */
export const inRotatedOrder = <T>(items: T[], instantOf: (item: T) => number): T[] => {
  items.sort((a, b) => instantOf(a) - instantOf(b))
  const ordered: T[] = []
  for (let from = 0, to = 0; from < items.length; from = to) {
    while (to < items.length && instantOf(items[to]!) === instantOf(items[from]!)) to++
    const start = from + Math.floor(Math.random() * (to - from))
    for (let n = start; n < to; n++) ordered.push(items[n]!)
    for (let n = from; n < start; n++) ordered.push(items[n]!)
  }
  return ordered
}
