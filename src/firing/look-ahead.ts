/**
 * Reads the index of due cues a little ahead, computes the slots after them, and hands cues out at their instant: neither reading nor cron
 * arithmetic delays a delivery. Its state may be outdated, since a cue is fired only if the database still agrees.
 */
import type { Functions } from '../database/functions.ts'
import { type Calendars, createCalendars } from './calendars.ts'
import { type Computing, createComputing } from './computing.ts'
import { cuesOf, type DueCue, followingCue, prepare, type ReadCue } from './due-cue.ts'
import { createDueQueue, type DueQueue, isCue, type Kind, type WaitingAttempt } from './due-queue.ts'
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

const horizonMs = 2000
/** Between looks while cues are near. */
const regularMs = horizonMs / 2
/** If that would find more cues than this, looks are more frequent: reading many at once delays those that are due. */
const manyPerLook = 100
const oftenMs = 100
/** Frequent looks take a third of the time at most: they may pass very many cues of accounts without room. */
const oftenTimes = 3
const pageSize = 16_384
/** With more cues near than this, five come due within ten milliseconds, if evenly spread. */
const dense = horizonMs / 2
/** Minimum time between two looks. */
const restMs = 20
/** After a look that was made because an account has room again, the database rests for this multiple of the time that the look took. */
const restTimes = 4
/** With more due cues than this, looking waits: it is expensive, and these come first. */
const crowd = 1000
const retryMs = 500
/** A cue that could not be taken in time is tried again after this. */
const againMs = 5
const inTimeMs = 50
const passedOverMs = 60_000

/** What a look reads: after which instant, until when; and the cues taken or put back meanwhile, which it may see as they were before. */
type Reading = { after: number; until: number; taken: Set<DueCue>; putBack: DueCue[] }

const atOf = ({ slot }: DueCue) => slot.next_run.getTime()

export const createAhead = ({
  fn,
  calendars = createCalendars(fn),
  computing = createComputing(),
  now,
  pollIntervalMs,
  queue = createDueQueue(),
  onPrepared = () => {},
  onError = () => {}
}: Options) => {
  // Everything is known that is due until then, unless something has changed since.
  let lookedUntil = 0
  // From when on a look reads everything again.
  let readAllAt = 0
  let nextLookAt = 0
  // While no cue is near: when to look in any case. Readings of the first due cue put this off.
  let pollAt = Number.POSITIVE_INFINITY
  let lookedAt = 0
  let lookTook = 0
  let looking: Promise<void> | undefined
  // During a look.
  let current: Reading | undefined
  // Cues that are being taken.
  const out = new Set<DueCue>()
  // Cues that the latest look saw before the horizon.
  let nearCount = 0
  // Accounts that the latest look skipped.
  let skipped: ReadonlySet<string> = new Set()
  // Cues that can't be fired → when to try them again.
  const passedOver = new Map<string, number>()

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

  const leaveOut = ({ cue_id }: ReadCue, error: unknown) => {
    passedOver.set(cue_id, now() + passedOverMs)
    onError(error, `prepare cue ${cue_id}`)
  }

  const preparing = createPreparing({
    computing,
    onPrepared: cue => {
      queue.insert(cue)
      onPrepared()
    },
    onError: leaveOut
  })

  const isCrowded = () => queue.count('send', now()) >= crowd

  const look = async (skip: string[]) => {
    lookedAt = now()
    const until = lookedAt + horizonMs
    const after = lookedAt >= readAllAt ? 0 : Math.max(lookedUntil, lookedAt)
    const reading: Reading = { after, until, taken: new Set(out), putBack: [] }
    current = reading
    if (after === 0) readAllAt = Number.POSITIVE_INFINITY
    nextLookAt = Number.POSITIVE_INFINITY
    pollAt = Number.POSITIVE_INFINITY
    const askedAt = performance.now()
    const rows = await fn.lookAheadBySchedule({
      until: new Date(until),
      limit: pageSize,
      skip_accounts: skip,
      ...(after > 0 && { after: new Date(after), overdue: new Date(lookedAt) })
    })
    lookTook = performance.now() - askedAt
    skipped = new Set(skip)
    for (const [cue_id, end] of passedOver) if (end <= lookedAt) passedOver.delete(cue_id)

    const cues = cuesOf(rows)
    const isPage = cues.length >= pageSize
    const isKept = (at: number) => after > 0 && !isPage && at > lookedAt
    const isKeptCue = (cue: DueCue) => isKept(atOf(cue))
    const due = cues.filter(cue => cue.at <= until && !passedOver.has(cue.cue_id))
    const slow = due.filter(({ schedule }) => takesLong(schedule))
    await calendars.load(slow.map(({ schedule }) => schedule))
    const taken = new Map(Array.from(reading.taken, cue => [cue.cue_id, atOf(cue)]))
    const near = due.filter(cue => taken.get(cue.cue_id) !== cue.at)
    const read = new Map(preparing.cues.size + reading.putBack.length > 0 ? near.map(cue => [cue.cue_id, cue]) : [])
    for (const [cue_id, { version, at }] of preparing.cues) {
      const again = read.get(cue_id)
      if (again ? again.version !== version || again.at !== at : !isKept(at)) preparing.cues.delete(cue_id)
    }
    nearCount = due.length + preparing.cues.size + queue.countAhead(isKeptCue)
    const quick = slow.length > 0 ? near.filter(({ schedule }) => !takesLong(schedule)) : near
    queue.fill(prepareAll(quick), skipped, isKeptCue)
    for (const cue of slow) {
      if (taken.get(cue.cue_id) === cue.at || preparing.cues.has(cue.cue_id)) continue
      const excludes = calendars.of(cue.schedule)
      if (excludes) preparing.start(cue, excludes)
      else expect(0) // a calendar has changed since
    }
    // Those being taken may be due again soon, and this look may not have seen it.
    plan(cues, Math.max(after, lookedAt), { isFull: isPage, isQuiet: nearCount === 0 && reading.taken.size === 0 })
    current = undefined
    for (const cue of reading.putBack) if (read.get(cue.cue_id)?.at !== cue.slot.next!.due.getTime()) putBack(cue)
  }

  /** Plans the look after one that has read these cues, of which those until `known` aren't new; `isFull` if there are more, `isQuiet` if none is near. */
  const plan = (cues: ReadCue[], known: number, { isFull, isQuiet }: { isFull: boolean; isQuiet: boolean }) => {
    const until = lookedAt + horizonMs
    lookedUntil = isFull ? lookedAt : until
    if (isFull) readAllAt = 0
    const beyond = cues.find(cue => cue.at > until)?.at ?? Number.POSITIVE_INFINITY
    const found = cues.reduce((count, { at }) => count + Number(at > known && at <= until), 0)
    const perMs = found / Math.max(until - known, 1)
    const often = Math.max(manyPerLook / perMs, oftenMs, lookTook * oftenTimes)
    const rest = isQuiet ? beyond - horizonMs - lookedAt : Math.min(often, regularMs)
    if (isQuiet) pollAt = lookedAt + pollIntervalMs
    nextLookAt = Math.min(nextLookAt, lookedAt + (isFull ? restMs : Math.max(rest, restMs)))
  }

  /**
   * Adds the next slot of a fired cue if it is before the horizon, which saves a look. How many runs it has left is only known to the database:
   * another engine may have refused its slot.
   */
  const putBack = (cue: DueCue) => {
    const { next } = cue.slot
    if (!next || passedOver.has(cue.cue_id)) return
    const at = next.due.getTime()
    if (current && at <= current.until && (at > current.after || at <= lookedAt)) return void current.putBack.push(cue)
    if (at > lookedUntil) return
    if (cue.schedule.runs_left !== null) return expect(at)
    const following = followingCue(cue, next)
    if (takesLong(following.schedule)) preparing.start(following, cue.slot.excludes)
    else for (const due of prepareAll([following])) queue.insert(due)
  }

  /** A cue that the latest look didn't see is due at `at`, in epoch milliseconds. Beyond the horizon, a regular look finds it in time. */
  const expect = (at: number) => {
    if (at <= (current?.until ?? lookedUntil)) readAllAt = 0
    nextLookAt = Math.min(nextLookAt, at <= lookedUntil ? lookedAt + restMs : at - regularMs)
  }

  return {
    expect,

    /** A reading found that the first of all cues is due at `at`, in epoch milliseconds. If it isn't due yet, this takes the place of a look. */
    firstIs: (at: number): void => {
      if (pollAt === Number.POSITIVE_INFINITY || at <= now()) return
      expect(at)
      pollAt = now() + pollIntervalMs
      nextLookAt = Math.min(nextLookAt, at - horizonMs)
    },

    /** Whether it is time to look again. */
    isLookDue: () => !looking && !isCrowded() && now() >= Math.min(nextLookAt, pollAt),

    /**
     * Looks, except for cues of accounts that have no room. A call during a look returns that one. Rejects if the database doesn't answer;
     * then a look is due again after half a second.
     */
    look: (skipAccounts: string[] = []): Promise<void> => {
      looking ??= look(skipAccounts)
        .catch(error => {
          current = undefined
          readAllAt = 0
          nextLookAt = now() + retryMs
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
      return Math.min(queue.next, looking || isCrowded() ? Number.POSITIVE_INFINITY : Math.min(nextLookAt, pollAt))
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
        current?.taken.add(item)
      }
      return { cues, waiting }
    },

    /** These cues were taken, or could not be. */
    doneWith: (cues: DueCue[]) => {
      for (const cue of cues) out.delete(cue)
    },

    /** Whether several cues come due within ten milliseconds. */
    get isDense() {
      return nearCount > dense
    },

    /** An account has room again: looks for the cues that the latest look skipped, unless some of them are still here. */
    expectFrom: (account: string) => {
      if (!skipped.has(account) || queue.holdsCue(account)) return
      readAllAt = 0
      nextLookAt = Math.min(nextLookAt, lookedAt + restMs + lookTook * restTimes)
    },

    putBack,

    /**
     * A cue could not be taken: this engine's clock was ahead of the database's, another engine took it, or it has changed. It is tried once
     * more and then left to the next look, which reads overdue cues. If another engine took it, its next slot is known here too.
     */
    tryAgain: (cue: DueCue) => {
      // It is not taken: the look that is under way must not leave it out.
      current?.taken.delete(cue)
      const isEarly = !cue.isAgain && !passedOver.has(cue.cue_id) && now() - atOf(cue) < inTimeMs
      if (isEarly) queue.insert({ ...cue, due: now() + againMs, isAgain: true })
      else putBack(cue)
    },

    /** Ids of the cues that are ignored. */
    passedOver: (): string[] => [...passedOver.keys()],

    /** Ignores a cue that cannot be fired for a minute. */
    passOver: (cue: DueCue) => {
      passedOver.set(cue.cue_id, now() + passedOverMs)
    },

    /** The database is back: what could not be fired may be fired now. */
    forgive: () => {
      if (passedOver.size === 0) return
      passedOver.clear()
      readAllAt = 0
      nextLookAt = 0
    },

    /** Forgets all cues and looks again: after an outage, other slots may fire. */
    reset: () => {
      queue.fill([])
      preparing.cues.clear()
      skipped = new Set()
      lookedUntil = 0
      readAllAt = 0
      nextLookAt = 0
    }
  }
}
