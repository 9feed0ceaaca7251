/**
 * Takes attempts when there is room for them, and has them sent. There are two kinds of room: fast slots, which slow requests give back, and a
 * much larger capacity for open deliveries, shared by all accounts.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { bisect } from '../database/bisect.ts'
import type { BegunAttempt, Functions } from '../database/functions.ts'
import { type DueCue, dueColumns, isLast, movedColumns } from '../firing/due-cue.ts'
import type { DueQueue, WaitingAttempt } from '../firing/due-queue.ts'
import type { Ahead } from '../firing/look-ahead.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { createCapacity } from './capacity.ts'
import { createLimits } from './limits.ts'
import { createSender, type SenderOptions } from './sender.ts'
import { createWaiting } from './waiting-attempts.ts'

type Options = Omit<SenderOptions, 'fn' | 'capacity' | 'close' | 'metrics'> & {
  fn: Pick<Functions, 'takeDueCues' | 'takeLastSlots' | 'lookWaiting' | 'beginAttempts' | 'openLimits' | 'goneAttempts'>
  ahead: Ahead
  queue: Pick<DueQueue, 'addWaiting' | 'count' | 'held'>
  /** Open deliveries that every plan allows an account. */
  leastOpen: number
  /** Maximum open deliveries shared by all accounts, and the reserve on top. */
  capacity?: { shared: number; reserve: number }
  /** Number of live engines. */
  engines?: () => number
  /** Whether the operator holds the account; without one, the service. */
  isHeld?: (account?: string) => boolean
  /** Length of an outage from which `catch_up` applies, as an interval. */
  missedAfter: string
  onError: (error: unknown, task: string) => void
  /** A task has succeeded. */
  onDone?: (task: string) => void
  metrics: SenderOptions['metrics'] & Pick<Metrics, 'taken'>
}

/** Attempts per statement: few at first, so that sending starts sooner, and twice as many each time while there are more. */
const batchSize = 1000
const firstBatchSize = 50
/** Nothing is taken while this many attempts are on hand: as many as are sent while a statement is under way. */
const enoughOnHand = 1000
const maxTakers = 2
/** Two statements that take many at once slow each other down. So the second waits this long: the first may have lost its connection. */
const aloneMs = 250
/**
 * A statement costs as much as ten attempts in it. So after one that takes few, the next waits this long while it is under way, or so many cues
 * are near that some come due meanwhile.
 */
const gatherMs = 10
/** After a statement for cues that others had mostly taken already, the next waits this long, so that few of several engines try each cue. */
const yieldMs = 50
const pauseMs = 500

export type Pump = ReturnType<typeof createPump>

export const createPump = (options: Options) => {
  const { fn, ahead, queue, flights, now, missedAfter, onChange, onError, onDone = () => {}, metrics } = options
  const { engines = () => 1, isHeld = () => false } = options
  let takers = 0
  let size = firstBatchSize
  let aloneUntil = 0
  let gatherUntil = 0
  let pausedUntil = 0
  let yieldsUntil = 0
  let stopped = false
  let lateness: number | null = null

  const isWithinLimits = createLimits({ fn, least: options.leastOpen, engines, onChange, onError, onDone })
  const isAllowed = (account: string, open: number) => !isHeld(account) && isWithinLimits(account, open)
  const capacity = createCapacity({ ...options.capacity, isAllowed })
  const waiting = createWaiting({ fn, queue, now, onChange, onError, onDone })
  const close = (account: string) => {
    capacity.close(account)
    if (capacity.hasRoom(account)) ahead.expectFrom(account)
  }
  const sender = createSender({ ...options, capacity, close })

  /** How many attempts to take now: none while the service is held, enough are on hand or being taken, or all open deliveries are in use. */
  const room = () => {
    if (stopped || isHeld() || takers >= maxTakers || sender.onHand >= enoughOnHand || performance.now() < pausedUntil) return 0
    if (performance.now() < yieldsUntil || (takers > 0 && performance.now() < aloneUntil)) return 0
    if ((takers > 0 || ahead.isDense) && performance.now() < gatherUntil) return 0
    return Math.min(size, capacity.limit - capacity.open)
  }

  const look = async () => {
    try {
      await ahead.look(capacity.full())
      onDone('look ahead')
    } catch (error) {
      onError(error, 'look ahead')
    } finally {
      onChange()
    }
  }

  const take = () => {
    if (!isHeld()) waiting.lookIfDue()
    for (let limit = room(); limit > 0; limit = room()) {
      const count = takeDue(limit)
      if (count === size) size = Math.min(2 * size, batchSize)
      if (count > 0) continue
      size = firstBatchSize
      return
    }
  }

  const takeDue = (limit: number) => {
    const taken = ahead.takeDue('send', limit, capacity.tryOpen)
    waiting.taken(taken.waiting)
    for (const cues of Map.groupBy(taken.cues, isLast).values()) void taking(cues, () => takeCues(cues))
    if (taken.waiting.length > 0) void taking(taken.waiting, () => beginAttempts(taken.waiting))
    return taken.cues.length + taken.waiting.length
  }

  /** Begins attempts that are already counted as open, and closes those that could not be begun. */
  const taking = async (counted: { account_id: string }[], begin: () => Promise<BegunAttempt[]>) => {
    takers++
    const sentAt = performance.now()
    const isFew = counted.length < firstBatchSize
    if (isFew) gatherUntil = sentAt + gatherMs
    aloneUntil = isFew ? 0 : sentAt + aloneMs
    setTimeout(onChange, (isFew ? gatherMs : aloneMs) + 1) // timers may fire a fraction early
    const countOf = new Map<string, number>()
    try {
      const attempts = await begin()
      onDone('take attempts')
      if (attempts.length < counted.length / 2) yieldsUntil = performance.now() + yieldMs
      for (const [flight, own] of Map.groupBy(attempts, attempt => attempt.flight_id)) flights.add(flight, own.length, sentAt)
      for (const attempt of attempts) {
        sender.add(attempt)
        countOf.set(attempt.account_id, (countOf.get(attempt.account_id) ?? 0) + 1)
      }
    } catch (error) {
      // Attempts that were begun although no answer arrived are recovered when their flight's lease expires.
      pausedUntil = performance.now() + pauseMs
      setTimeout(onChange, pauseMs)
      onError(error, 'take attempts')
    } finally {
      takers--
      const restMs = yieldsUntil - performance.now()
      if (restMs > 0) setTimeout(onChange, restMs + 1)
      for (const { account_id } of counted) {
        const begun = countOf.get(account_id) ?? 0
        if (begun > 0) countOf.set(account_id, begun - 1)
        else close(account_id)
      }
      onChange()
    }
  }

  /** Cues of which all complete with this slot, or none. */
  const fire = (cues: DueCue[]) => {
    const columns = { ...dueColumns(cues), missed_after: missedAfter, lease: flights.lease }
    return isLast(cues[0]!) ? fn.takeLastSlots(columns) : fn.takeDueCues({ ...columns, ...movedColumns(cues) })
  }

  const takeCues = async (cues: DueCue[]) => {
    const attempts = await bisect(cues, fire, (cue, error) => {
      onError(error, `fire cue ${cue.cue_id}`)
      ahead.passOver(cue)
    }).finally(() => ahead.doneWith(cues))
    const time = now()
    if (attempts.length > 0) lateness = Math.round(Math.max(0, time - cues[0]!.slot.next_run.getTime()))
    const taken = new Set(attempts.map(attempt => attempt.cue_id))
    for (const cue of cues) {
      if (taken.has(cue.cue_id)) {
        metrics.taken(time - cue.slot.next_run.getTime())
        ahead.putBack(cue)
      } else ahead.tryAgain(cue)
    }
    return attempts
  }

  const beginAttempts = async (tried: WaitingAttempt[]) => {
    let begun: BegunAttempt[] = []
    try {
      begun = await fn.beginAttempts({ execution_ids: tried.map(attempt => attempt.execution_id), lease: flights.lease })
    } finally {
      waiting.ended(tried, new Set(begun.map(attempt => attempt.execution_id)))
    }
    return begun
  }

  return {
    /** Sends and takes what there is room for, and looks ahead if it is time. */
    turn: (): void => {
      sender.send()
      take()
      if (ahead.isLookDue()) void look()
    },
    /** An attempt waits that is due at `at`, in epoch milliseconds. */
    expectWaiting: waiting.expect,
    /** When to take the next turn, as far as is known, in epoch milliseconds; 0 for at once. */
    get wakeAt() {
      return room() > 0 ? Math.min(ahead.wakeAt, waiting.wakeAt) : Number.POSITIVE_INFINITY
    },
    /** Number of open deliveries. */
    get open() {
      return capacity.open
    },
    /** Maximum number of open deliveries. */
    openLimit: capacity.limit,
    /** Accounts that have open deliveries, and may not open another. */
    fullAccounts: capacity.full,
    /** Number of due deliveries that wait for room. */
    get held() {
      return queue.held
    },
    /** How late the latest batch of cues was taken, in milliseconds; null before the first. */
    get lateness() {
      return lateness
    },
    abortGone: sender.abortGone,

    /** Stops taking attempts. Returns those that were taken and not sent. */
    stop: async (signal: AbortSignal): Promise<BegunAttempt[]> => {
      stopped = true
      while (takers > 0 && !signal.aborted) await delay(10)
      return sender.takeUnsent()
    },
    ended: sender.ended
  }
}
