/**
 * What is due soon. Reads the due index a little ahead, works out the slots after, and hands out cues at their instant, so that neither
 * reading nor cron arithmetic stands between a cue's instant and its delivery. Holds no state that matters: what it hands out is taken only
 * where the database still agrees.
 */

import type { Functions, LookAheadRow } from '../database/functions.ts'
import { type Cron, parseCron } from '../schedule/cron.ts'
import { nextRun, nthRun } from '../schedule/next-run.ts'
import { createTurnQueue } from './turn-queue.ts'

/**
 * A cue with the instant at which it is to be taken here, in epoch milliseconds, the slot after it, and the window for a success that firing
 * it opens. `isOwn`: it is for this engine to take it first.
 */
export type DueCue = LookAheadRow & { due: number; isOwn: boolean; next: Date | null; successDue: Date | null }

/** How many engines live, and the place of this one among them. */
export type Share = { engines: number; place: number }

export type Ahead = ReturnType<typeof createAhead>

type Options = {
  fn: Pick<Functions, 'lookAhead'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  /** How long to sleep at most while nothing is near. */
  pollIntervalMs: number
  /** Accounts that are not to be taken from now, and whose due cues are not to be read again. */
  skipAccounts: () => string[]
  share?: () => Share
}

const horizonMs = 2000
/** Between looks while something is near. */
const regularMs = horizonMs / 2
const pageSize = 16_384
const restMs = 20
/** After a look that is made for accounts that had no room, the database rests so many times as long as that look took. */
const restTimes = 4
const crowd = 1000
/** So many due cues are held for accounts without room; when there are more, they are read again when their accounts have some. */
const heldAtMost = 4 * pageSize
/** How long the others leave a cue to its engine. Then each tries all that it has seen in so many milliseconds, in one statement. */
const leaveMs = 50
const againMs = 5
const passedOverMs = 60_000
/** Nobody is told whether a worker's cue was taken, so it is asked for when it is surely due by the database's clock too. */
const surelyMs = 2
/** So many cues of an account go before the next account's turn: what is taken together then counts on few accounts' usage. */
const turnLength = 10

export const createAhead = ({ fn, now, pollIntervalMs, skipAccounts, share = () => ({ engines: 1, place: 0 }) }: Options) => {
  // What a webhook slot must be free for, and what needs none: worker cues, missed ones, those over their limit.
  const lanes = { send: createLane(), other: createLane() }
  let lookedUntil = 0
  let nextLookAt = 0
  let lookedAt = 0
  let lookTook = 0
  let looking: Promise<void> | undefined
  // Not read by the latest look.
  let skipped: ReadonlySet<string> = new Set()
  // Cue → until when it is left alone.
  const passedOver = new Map<string, number>()

  const laneOf = (cue: LookAheadRow) => (cue.transport === 'webhook' && !cue.outage_until && !cue.over_limit ? lanes.send : lanes.other)

  // A page is worked off before the next look: looking costs, and what is there comes first.
  const isCrowded = () => lanes.send.size >= crowd

  const look = async () => {
    lookedAt = now()
    const until = lookedAt + horizonMs
    nextLookAt = Number.POSITIVE_INFINITY
    const skip = skipAccounts()
    const askedAt = performance.now()
    const rows = await fn.lookAhead({ until: new Date(until), limit: pageSize, skip_accounts: skip })
    lookTook = performance.now() - askedAt
    skipped = new Set(skip)
    const near: DueCue[] = []
    let beyond = Number.POSITIVE_INFINITY
    for (const [cue_id, end] of passedOver) if (end <= lookedAt) passedOver.delete(cue_id)
    for (const row of rows) {
      if (passedOver.has(row.cue_id)) continue
      if (row.next_run.getTime() <= until) near.push(prepare(row, share()))
      else beyond = Math.min(beyond, row.next_run.getTime())
    }
    const ordered = interleave(near, lookedAt)
    lanes.send.fill(
      ordered.filter(cue => laneOf(cue) === lanes.send),
      skipped
    )
    lanes.other.fill(
      ordered.filter(cue => laneOf(cue) === lanes.other),
      skipped
    )
    const isFull = near.length >= pageSize
    lookedUntil = isFull ? lookedAt : until
    const rest = isFull ? restMs : near.length > 0 ? regularMs : Math.min(beyond - horizonMs - lookedAt, pollIntervalMs)
    nextLookAt = Math.min(nextLookAt, lookedAt + Math.max(rest, restMs))
  }

  return {
    /** Whether it is time to look again. */
    isLookDue: () => !looking && !isCrowded() && now() >= nextLookAt,

    /** Looks, once at a time. Rejects when the database does not answer; then a look is due again after a moment. */
    look: (): Promise<void> => {
      looking ??= look()
        .catch(error => {
          nextLookAt = now() + 500
          throw error
        })
        .finally(() => {
          looking = undefined
        })
      return looking
    },

    /** When something is to be done next: a cue comes due, or a look is. Epoch milliseconds. */
    get wakeAt() {
      return Math.min(lanes.send.first, lanes.other.first, looking || isCrowded() ? Number.POSITIVE_INFINITY : nextLookAt)
    },

    /** When the first cue of a lane comes due. Epoch milliseconds. */
    firstDue: (lane: keyof typeof lanes) => lanes[lane].first,

    /**
     * Cues of a lane whose instant has come, at most so many, in turns by account. `admit` is called for each; what it does not admit stays
     * here until its account has room.
     */
    takeDue: (lane: keyof typeof lanes, limit: number, admit?: (account: string) => boolean): DueCue[] =>
      lanes[lane].take(now(), limit, admit),

    /** Due cues that were not admitted. */
    get held() {
      return lanes.send.held
    },

    /** An account that had no room has some: what the latest look passed over is looked for, unless some of it is still here. */
    expectFrom: (account: string) => {
      if (skipped.has(account) && lanes.send.heldOf(account) === 0)
        nextLookAt = Math.min(nextLookAt, lookedAt + restMs + lookTook * restTimes)
    },

    /** Something comes due at this instant that was not there when we looked. What is beyond that, a regular look may find in time. */
    expect: (at: number) => {
      nextLookAt = Math.min(nextLookAt, at <= lookedUntil ? lookedAt + restMs : at - regularMs)
    },

    /** A cue that was fired comes again within what was looked at: no look is needed. */
    putBack: (cue: DueCue) => {
      if (cue.next && cue.next.getTime() <= lookedUntil && !passedOver.has(cue.cue_id))
        laneOf(cue).insert(prepare({ ...cue, next_run: cue.next, window_slots: null }, share()))
    },

    /**
     * A cue that could not be taken: this clock was ahead of the database's, another engine has it, or it was changed. It is tried once more
     * and then left to the next look, which costs as much as all that is near.
     */
    tryAgain: (cue: DueCue) => {
      const isEarly = cue.isOwn && !passedOver.has(cue.cue_id) && now() - cue.next_run.getTime() < leaveMs
      if (isEarly) laneOf(cue).insert({ ...cue, due: now() + againMs, isOwn: false })
    },

    /** This cue cannot be fired: it is left alone for a minute. */
    passOver: (cue: DueCue) => {
      passedOver.set(cue.cue_id, now() + passedOverMs)
    },

    /** Forgets what was seen: an outage changed what may be fired. */
    reset: () => {
      lanes.send.fill([])
      lanes.other.fill([])
      skipped = new Set()
      lookedUntil = 0
      nextLookAt = 0
    }
  }
}

/** Cues in the order of their instants, and those whose instant has come by account. */
const createLane = () => {
  let cues: DueCue[] = []
  let head = 0
  const due = createTurnQueue<DueCue>(turnLength)
  // Some of those that are due may be taken: the latest call stopped at its limit.
  let hasMore = false
  return {
    get size() {
      return cues.length - head + (hasMore ? due.size : 0)
    },
    get first() {
      return hasMore ? 0 : (cues[head]?.due ?? Number.POSITIVE_INFINITY)
    },
    get held() {
      return due.size
    },
    heldOf: (account: string) => due.countOf(account),
    /** A new list takes the place of what is here, but for what is due of the accounts that were not read. */
    fill: (list: DueCue[], skipped: ReadonlySet<string> = new Set()) => {
      cues = list
      head = 0
      due.keepOnly(due.size > heldAtMost ? new Set() : skipped)
    },
    take: (now: number, limit: number, admit?: (account: string) => boolean) => {
      for (; head < cues.length && cues[head]!.due <= now; head++) due.add(cues[head]!.account_id, cues[head]!)
      const taken = due.take(limit, admit)
      hasMore = due.size > 0 && taken.length === limit
      return taken
    },
    insert: (cue: DueCue) => {
      let at = cues.length
      while (at > head && cues[at - 1]!.due > cue.due) at--
      cues.splice(at, 0, cue)
    }
  }
}

const prepare = (cue: LookAheadRow, share: Share): DueCue => {
  const cron = cue.cron && !cue.outage_until ? parseCron(cue.cron) : undefined
  const isOwn = engineOf(cue.cue_id, share.engines) === share.place
  const instant = cue.next_run.getTime()
  return {
    ...cue,
    due: isOwn ? instant + (cue.transport === 'worker' ? surelyMs : 0) : (Math.floor(instant / leaveMs) + 2) * leaveMs,
    isOwn,
    next: (cron && nextRun(cron, cue.timezone, cue.next_run)) ?? null,
    successDue: (cron && cue.window_slots && windowEnd(cron, cue.timezone, cue.next_run, cue.window_slots)) || null
  }
}

/**
 * The place of the engine that takes a cue at its instant, or a waiting attempt, so that engines do not all ask for each. The others ask a moment later, for many
 * together: that one may be busy, or gone, or count other engines.
 */
export const engineOf = (id: string, engines: number): number => {
  let hash = 0
  for (let n = 0; n < id.length; n++) hash = (Math.imul(hash, 31) + id.charCodeAt(n)) >>> 0
  return hash % engines
}

/** When there should have been a success: the n-th slot after an instant, and 15 seconds. */
export const windowEnd = (cron: Cron, timezone: string, after: Date, slots: number): Date | null => {
  const slot = nthRun(cron, timezone, after, slots)
  return slot ? new Date(slot.getTime() + 15_000) : null
}

/**
 * Orders cues by instant, those of one instant a few of each account in turn, and all that is overdue as one instant: a herd of one account
 * does not stand before another's cue. Each call starts at another account, so that replicas with the same list begin at different places.
 */
const interleave = (cues: DueCue[], now: number): DueCue[] => {
  const instants = new Map<number, Map<string, DueCue[]>>()
  for (const cue of cues) {
    const accounts = ensure(instants, Math.max(cue.due, now), () => new Map())
    ensure(accounts, cue.account_id, () => []).push(cue)
  }
  const ordered: DueCue[] = []
  for (const instant of [...instants.keys()].sort((a, b) => a - b)) {
    let queues = rotate([...instants.get(instant)!.values()])
    if (queues.length === 1) queues[0] = rotate(queues[0]!)
    for (let start = 0; queues.length > 0; start += turnLength) {
      for (const queue of queues) ordered.push(...queue.slice(start, start + turnLength))
      queues = queues.filter(queue => queue.length > start + turnLength)
    }
  }
  return ordered
}

const ensure = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}

const rotate = <T>(list: T[]): T[] => {
  const start = Math.floor(Math.random() * list.length)
  return start ? [...list.slice(start), ...list.slice(0, start)] : list
}
