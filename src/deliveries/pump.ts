/**
 * Takes attempts when there is room for them, and has them sent. There are two kinds of room: fast slots, which slow requests give back, and a
 * much larger capacity for open deliveries, shared by all accounts.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createCounts } from '../cache/counts.ts'
import { bisect } from '../database/bisect.ts'
import type { BegunAttempt, Functions } from '../database/functions.ts'
import { type DueCue, dueColumns, isLast, movedColumns } from '../firing/due-cue.ts'
import type { DueQueue, WaitingAttempt } from '../firing/due-queue.ts'
import type { Ahead } from '../firing/look-ahead.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type Capacity, createCapacity } from './capacity.ts'
import { createLimits } from './limits.ts'
import { createSender, type SenderOptions } from './sender.ts'
import { createWaitingAttempts } from './waiting-attempts.ts'

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
  /** Runs a task unless it is running or has just failed, and then takes a turn. */
  run: (task: string, work: () => Promise<unknown>) => unknown
  onError: (error: unknown, task: string) => void
  /** A task has succeeded. */
  onDone?: (task: string) => void
  metrics: SenderOptions['metrics'] & Pick<Metrics, 'taken'>
}

/** Attempts per statement. More would put off sending the first. */
const batchSize = 1000
/** A statement that takes fewer is cheap, and leaves nothing due. */
const few = 50
/** Nothing is taken while this many attempts are on hand: as many as are sent while a statement is under way. */
const enoughOnHand = 1000
const maxTakers = 2
/** Two statements that take many at once slow each other down. So the second waits this long: the first may have lost its connection. */
const aloneMs = 250
/** A statement costs as much as ten attempts in it. So after one that takes few, the next waits this long, and cues gather. */
const gatherMs = 10
/** After a statement for cues that others had mostly taken already, the next waits this long, so that few of several engines try each cue. */
const yieldMs = 50
const pauseMs = 500

export type Pump = ReturnType<typeof createPump>

export const createPump = (options: Options) => {
  const { fn, ahead, queue, now, run } = options
  const { engines = () => 1, isHeld = () => false } = options
  const isWithinLimits = createLimits({ fn, least: options.leastOpen, engines, run })
  const isAllowed = (account: string, open: number) => !isHeld(account) && isWithinLimits(account, open)
  const capacity = createCapacity({ ...options.capacity, isAllowed })
  const waiting = createWaitingAttempts({ fn, queue, now, run })
  const close = (account: string) => {
    capacity.close(account)
    if (capacity.hasRoom(account)) ahead.expectFrom(account)
  }
  const sender = createSender({ ...options, capacity, close })
  const taker = createTaker({ ...options, capacity, waiting, sender, close })

  return {
    /** Sends and takes what there is room for, and looks ahead if it is time. */
    turn: (): void => {
      sender.send()
      if (!isHeld()) waiting.lookIfDue()
      taker.take()
      if (ahead.isLookDue()) void run('look ahead', () => ahead.look(capacity.full()))
    },
    /** An attempt waits that is due at `at`, in epoch milliseconds. */
    expectWaiting: waiting.expect,
    /** When to take the next turn, as far as is known, in epoch milliseconds; 0 for at once. */
    get wakeAt() {
      return taker.room() > 0 ? Math.min(ahead.wakeAt, waiting.wakeAt) : Number.POSITIVE_INFINITY
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
      return taker.lateness
    },
    abortGone: sender.abortGone,

    /** Stops taking attempts. Returns those that were taken and not sent. */
    stop: async (signal: AbortSignal): Promise<BegunAttempt[]> => {
      await taker.stop(signal)
      return sender.takeUnsent()
    },
    ended: sender.ended
  }
}

type TakerOptions = Omit<Options, 'capacity'> & {
  capacity: Capacity
  waiting: ReturnType<typeof createWaitingAttempts>
  sender: ReturnType<typeof createSender>
  close: (account: string) => void
}

/** Takes due cues and begins waiting attempts, in batches. */
const createTaker = (options: TakerOptions) => {
  const { fn, ahead, flights, now, missedAfter, onChange, onError, onDone = () => {}, isHeld = () => false, metrics } = options
  const { capacity, waiting, sender, close } = options
  let takers = 0
  let restsUntil = 0
  let stopped = false
  let lateness: number | null = null

  /** Nothing more is taken for this long, unless a statement ends that took many. */
  const rest = (ms: number) => {
    restsUntil = performance.now() + ms
    setTimeout(onChange, ms + 1) // timers may fire a fraction early
  }

  /** How many attempts to take now: none while the service is held, enough are on hand or being taken, or all open deliveries are in use. */
  const room = () => {
    if (stopped || isHeld() || takers >= maxTakers || sender.onHand >= enoughOnHand || performance.now() < restsUntil) return 0
    return Math.min(batchSize, capacity.limit - capacity.open)
  }

  const take = () => {
    for (let limit = room(); limit > 0; limit = room()) if (takeDue(limit) === 0) return
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
    const isFew = counted.length < few
    rest(isFew ? gatherMs : aloneMs)
    const unbegun = createCounts()
    for (const { account_id } of counted) unbegun.add(account_id, 1)
    try {
      const attempts = await begin()
      // One that takes nothing has written nothing: a disk may still be full.
      if (attempts.length > 0) onDone('take attempts')
      if (attempts.length < counted.length / 2) rest(yieldMs)
      else if (!isFew) restsUntil = 0
      for (const [flight, begun] of Map.groupBy(attempts, attempt => attempt.flight_id)) flights.add(flight, begun.length, sentAt)
      for (const attempt of attempts) {
        sender.add(attempt)
        unbegun.add(attempt.account_id, -1)
      }
    } catch (error) {
      // Attempts that were begun although no answer arrived are recovered when their flight's lease expires.
      rest(pauseMs)
      onError(error, 'take attempts')
    } finally {
      takers--
      for (const account of unbegun.names()) for (let n = unbegun.of(account); n > 0; n--) close(account)
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
        ahead.fired(cue)
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
    take,
    room,
    get lateness() {
      return lateness
    },
    /** Takes nothing more. Resolves when no statement is under way. */
    stop: async (signal: AbortSignal): Promise<void> => {
      stopped = true
      while (takers > 0 && !signal.aborted) await delay(10)
    }
  }
}
