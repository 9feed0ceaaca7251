/**
 * Reads the index of due cues a little ahead, computes the slots after them, and hands cues out at their instant: neither reading nor cron
 * arithmetic delays a delivery. Its state may be outdated, since a cue is fired only if the database still agrees.
 */
import type { Functions } from '../database/functions.ts'
import { type Calendars, createCalendars } from './calendars.ts'
import { type Computing, createComputing } from './computing.ts'
import { cuesOf, type DueCue, prepare, type ReadCue } from './due-cue.ts'
import { createDueQueue, type DueQueue, isCue, type Kind, type WaitingAttempt } from './due-queue.ts'
import { createLeftOut, type LeftOut } from './left-out.ts'
import { createPreparing, takesLong } from './preparing.ts'

export type Ahead = ReturnType<typeof createAhead>

type Options = {
  fn: Pick<Functions, 'lookAheadBySchedule' | 'calendarsByRevision'>
  calendars?: Calendars
  computing?: Computing
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  /** Maximum time between two looks. */
  pollIntervalMs: number
  queue?: DueQueue
  /** A cue was prepared after the look that read it. */
  onPrepared?: () => void
  onError?: (error: unknown, task: string) => void
}

const horizonMs = 1500
/** A cue is looked for this long before it is due. While cues are near, looks are less than a second apart, so a fired cue is seen before it is due again. */
const leadMs = 600
/** Minimum time between two looks, plus this multiple of the time that the former took: it may have passed very many cues of accounts without room. */
const restMs = 20
const restTimes = 2
const pageSize = 16_384
/** With more due cues than this, looking waits: it is expensive, and these come first. */
const crowd = 1000
const retryMs = 500
/** A cue that could not be taken in time is tried again after this. */
const againMs = 5
const inTimeMs = 50
const leftOutMs = 60_000

const atOf = ({ slot }: DueCue) => slot.next_run.getTime()

/** Decides when to look. All instants are in epoch milliseconds. */
const createLookTimes = ({ now, pollIntervalMs }: Pick<Options, 'now' | 'pollIntervalMs'>) => {
  let lookedAt = 0
  let rest = restMs
  let nextAt = 0
  // While no cue is near: when to look in any case. Readings of the first due cue put this off.
  let pollAt = Number.POSITIVE_INFINITY

  const expect = (at: number) => {
    nextAt = Math.min(nextAt, Math.max(at - leadMs, lookedAt + rest))
  }

  return {
    expect,
    get next() {
      return Math.min(nextAt, pollAt)
    },
    firstIs: (at: number) => {
      if (pollAt === Number.POSITIVE_INFINITY || at <= now()) return
      expect(at)
      pollAt = now() + pollIntervalMs
    },
    /** A look begins. Returns the end of what it reads. */
    begin: (): number => {
      lookedAt = now()
      nextAt = Number.POSITIVE_INFINITY
      pollAt = Number.POSITIVE_INFINITY
      return lookedAt + horizonMs
    },
    /** It has ended: `isFull` if there are more cues, `isQuiet` if none is near, and `beyond` when the first is due that isn't. */
    end: (tookMs: number, { isFull, isQuiet, beyond }: { isFull: boolean; isQuiet: boolean; beyond: number }) => {
      rest = restMs + restTimes * tookMs
      if (isQuiet) pollAt = lookedAt + pollIntervalMs
      expect(isFull ? 0 : isQuiet ? beyond : lookedAt + horizonMs)
    },
    fail: () => {
      nextAt = now() + retryMs
    }
  }
}

type LookOptions = Required<Omit<Options, 'now' | 'pollIntervalMs'>> & { times: ReturnType<typeof createLookTimes>; leftOut: LeftOut }

/**
 * @returns a function that looks: replaces the cues in the queue by those that are near now, except those of accounts to skip, and those of `taken`,
 * cues that are being taken while it looks, which it may see as they were before
 */
const createLook = ({ fn, calendars, computing, queue, onPrepared, onError, times, leftOut }: LookOptions) => {
  const leaveOut = ({ cue_id }: ReadCue, error: unknown) => {
    leftOut.add(cue_id, leftOutMs)
    onError(error, `prepare cue ${cue_id}`)
  }

  /** Prepares cues for which that takes microseconds. */
  const prepareAll = (cues: ReadCue[]): DueCue[] => {
    try {
      return prepare(cues)
    } catch (error) {
      if (cues.length > 1) return cues.flatMap(cue => prepareAll([cue]))
      leaveOut(cues[0]!, error)
      return []
    }
  }

  const preparing = createPreparing({
    computing,
    onPrepared: cue => {
      queue.insert(cue)
      onPrepared()
    },
    onError: leaveOut
  })

  const look = async (skipped: ReadonlySet<string>, taken: ReadonlySet<DueCue>): Promise<void> => {
    const until = times.begin()
    const askedAt = performance.now()
    const rows = await fn.lookAheadBySchedule({ until: new Date(until), limit: pageSize, skip_accounts: [...skipped] })
    const tookMs = performance.now() - askedAt
    const ignored = new Set(leftOut.ids())
    const cues = cuesOf(rows)
    const near = cues.filter(cue => cue.at <= until && !ignored.has(cue.cue_id))
    const { slow = [], quick = [] } = Object.groupBy(near, ({ schedule }) => (takesLong(schedule) ? 'slow' : 'quick'))
    await calendars.load(slow.map(({ schedule }) => schedule))
    const current = slow.filter(({ schedule }) => calendars.of(schedule))
    if (current.length < slow.length) times.expect(0) // a calendar has changed since
    const takenAt = new Map(Array.from(taken, cue => [cue.cue_id, atOf(cue)]))
    const isFree = (cue: ReadCue) => takenAt.get(cue.cue_id) !== cue.at
    const prepared = preparing.fill(current.filter(isFree), ({ schedule }) => calendars.of(schedule)!)
    queue.fill([...prepareAll(quick.filter(isFree)), ...prepared], skipped)
    times.end(tookMs, {
      isFull: cues.length >= pageSize,
      isQuiet: near.length === 0 && taken.size === 0,
      beyond: cues.find(cue => cue.at > until)?.at ?? Number.POSITIVE_INFINITY
    })
  }

  return {
    look,
    /** Forgets all cues. */
    reset: (): void => {
      queue.fill([])
      preparing.fill([], () => [])
    }
  }
}

export const createAhead = (options: Options) => {
  const { fn, calendars = createCalendars(fn), computing = createComputing(), now, queue = createDueQueue() } = options
  const { onPrepared = () => {}, onError = () => {} } = options
  const times = createLookTimes(options)
  const leftOut = createLeftOut(now)
  const { look, reset } = createLook({ fn, calendars, computing, queue, onPrepared, onError, times, leftOut })
  let looking: Promise<void> | undefined
  // Cues that are being taken; and those that were at any time during the look that is under way.
  const out = new Set<DueCue>()
  let taken = new Set<DueCue>()
  // Accounts that the latest look skipped.
  let skipped: ReadonlySet<string> = new Set()

  const isCrowded = () => queue.count('send', now()) >= crowd

  return {
    /** A cue that the latest look didn't see is due at `at`, in epoch milliseconds. */
    expect: times.expect,
    /** A reading found that the first of all cues is due at `at`, in epoch milliseconds. If it isn't due yet, this takes the place of a look. */
    firstIs: times.firstIs,

    /** Whether it is time to look again. */
    isLookDue: () => !looking && !isCrowded() && now() >= times.next,

    /**
     * Looks, except for cues of accounts that have no room. A call during a look returns that one. Rejects if the database doesn't answer;
     * then a look is due again after half a second.
     */
    look: (skipAccounts: string[] = []): Promise<void> => {
      if (looking) return looking
      taken = new Set(out)
      skipped = new Set(skipAccounts)
      looking = look(skipped, taken)
        .catch(error => {
          times.fail()
          throw error
        })
        .finally(() => {
          looking = undefined
        })
      return looking
    },

    /** When the next cue or look is due, in epoch milliseconds; 0 for at once. */
    get wakeAt() {
      if (queue.count('send', now()) > 0) return 0
      return Math.min(queue.next, looking || isCrowded() ? Number.POSITIVE_INFINITY : times.next)
    },
    /** When the first cue comes due that isn't yet, in epoch milliseconds. */
    get nextDue() {
      return queue.next
    },

    /** Whether a cue of a kind is due. */
    hasDue: (kind: Kind): boolean => queue.count(kind, now()) > 0,

    /**
     * Takes up to `limit` due cues of a kind, in turns by account. `admit` is called before each; if it returns false, the account's cues stay
     * here until it has room. Until `doneWith` is called with them, looks leave them out.
     */
    takeDue: (kind: Kind, limit: number, admit?: (account: string) => boolean) => {
      const cues: DueCue[] = []
      const waiting: WaitingAttempt[] = []
      for (const item of queue.take(kind, now(), limit, admit)) {
        if (!isCue(item)) {
          waiting.push(item)
          continue
        }
        cues.push(item)
        out.add(item)
        taken.add(item)
      }
      return { cues, waiting }
    },

    /** These cues were taken, or could not be. */
    doneWith: (cues: DueCue[]) => {
      for (const cue of cues) out.delete(cue)
    },

    /** A cue was fired, and may be due again soon. */
    fired: ({ slot }: DueCue) => {
      if (slot.next) times.expect(slot.next.due.getTime())
    },

    /**
     * A cue could not be taken: this engine's clock was ahead of the database's, another engine took it, or it has changed. It is tried once
     * more and then left to the next look.
     */
    tryAgain: (cue: DueCue) => {
      // It is not taken: the look that is under way must not leave it out.
      taken.delete(cue)
      const isEarly = !cue.isAgain && !leftOut.has(cue.cue_id) && now() - atOf(cue) < inTimeMs
      if (isEarly) queue.insert({ ...cue, due: now() + againMs, isAgain: true })
    },

    /** An account has room again: looks for the cues that the latest look skipped, unless some of them are still here. */
    expectFrom: (account: string) => {
      if (skipped.has(account) && !queue.holdsCue(account)) times.expect(0)
    },

    /** Ids of the cues that are ignored. */
    passedOver: leftOut.ids,

    /** Ignores a cue that cannot be fired for a minute. */
    passOver: ({ cue_id }: DueCue): void => leftOut.add(cue_id, leftOutMs),

    /** The database is back: what could not be fired may be fired now. */
    forgive: () => {
      if (leftOut.ids().length > 0) times.expect(0)
      leftOut.clear()
    },

    /** Forgets all cues and looks again: after an outage, other slots may fire. */
    reset: () => {
      reset()
      skipped = new Set()
      times.expect(0)
    }
  }
}
