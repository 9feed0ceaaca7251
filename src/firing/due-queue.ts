/**
 * The one order of what is to be fired or begun: due cues, and waiting attempts. Cues that are ahead stand in the order of their instants. What is
 * due is served in turns by account, and within an account by the instant due.
 */
import type { LookWaitingRow } from '../database/functions.ts'
import type { DueCue } from './due-cue.ts'
import { createTurnQueue, insertByDue } from './turn-queue.ts'

/** An attempt that waits in the database, and is due. */
export type WaitingAttempt = Omit<LookWaitingRow, 'due_at' | 'is_due'> & { due: number }
type Item = DueCue | WaitingAttempt

/** Consecutive items of an account. More than one, because a batch that spans fewer accounts updates fewer usage counters. */
const turnLength = 10
/** Maximum due cues held for accounts without room. If there are more, they are dropped, and read again when their accounts have room. */
const maxHeld = 65_536

/**
 * Kinds of due cues, which are taken apart, because statements of one kind must not wait for those of another. `send`: those that need a free
 * delivery slot, with waiting attempts. `workers`: those of workers. `missed`: those due during an outage, and those over their limit. `tracked`:
 * those whose executions wait for each other.
 */
export const kinds = ['send', 'workers', 'missed', 'tracked'] as const
export type Kind = (typeof kinds)[number]

export type DueQueue = ReturnType<typeof createDueQueue>

export const createDueQueue = () => {
  let cues: DueCue[] = []
  let head = 0
  const turns = { send: turnsOf<Item>(), workers: turnsOf<DueCue>(), missed: turnsOf<DueCue>(), tracked: turnsOf<DueCue>() }

  /** Moves the cues that are due `now` into the turns of their kinds. */
  const advance = (now: number) => {
    for (; head < cues.length && cues[head]!.due <= now; head++) turns[kindOf(cues[head]!)].add(cues[head]!.account_id, cues[head]!)
  }

  return {
    /** Number of items of a kind that are due `now` and may be taken. */
    count: (kind: Kind, now: number): number => {
      advance(now)
      return turns[kind].untried
    },
    /** When the first cue that isn't due yet will be, in epoch milliseconds. */
    get next() {
      return cues[head]?.due ?? Number.POSITIVE_INFINITY
    },
    /** Number of due items that wait for a delivery slot. */
    get held() {
      return turns.send.size
    },
    /** Whether a due cue of the account waits for a delivery slot. */
    holdsCue: (account: string): boolean => turns.send.has(account, isCue),

    /** Replaces the cues by a new list, except the due ones of accounts that were skipped when it was read. */
    fill: (list: DueCue[], skipped: ReadonlySet<string> = new Set()): void => {
      cues = inRotatedOrder(list, cue => cue.due)
      head = 0
      for (const kind of kinds) {
        const isHeld = turns[kind].size > maxHeld ? () => false : (cue: DueCue) => skipped.has(cue.account_id)
        turns[kind].keepOnly((item: Item) => !isCue(item) || isHeld(item))
      }
    },
    insert: (cue: DueCue): void => insertByDue(cues, cue, dueOf, head),
    addWaiting: (attempt: WaitingAttempt): void => turns.send.add(attempt.account_id, attempt),

    /** Up to `limit` items of a kind that are due `now`; an account for which `admit` returns false keeps its items. */
    take: (kind: Kind, now: number, limit: number, admit?: (account: string) => boolean): Item[] => {
      advance(now)
      return turns[kind].take(limit, admit)
    }
  }
}

const dueOf = (item: Item) => item.due
const turnsOf = <T extends Item>() => createTurnQueue<T>(turnLength, dueOf)

export const isCue = (item: Item): item is DueCue => 'cue_id' in item

const kindOf = (cue: DueCue): Kind => {
  const { outage_until, over_limit, tracked, transport } = cue.schedule
  if (outage_until || over_limit || cue.slot.isExcluded) return 'missed'
  if (tracked) return 'tracked'
  return transport === 'webhook' ? 'send' : 'workers'
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
