/**
 * Takes attempts when there is room for them, sends them, and hands their results on. Room is of two kinds: a fast slot, given back when the
 * receiver takes long, and a much larger capacity for what stays open, which accounts share. Deliveries of an account whose receivers are known
 * to be slow need no fast slot. Free room alternates between cues that come due and attempts that waited.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { bisect } from '../database/bisect.ts'
import type { BegunAttempt, Functions } from '../database/functions.ts'
import type { Ahead, DueCue, Share } from '../firing/look-ahead.ts'
import { createTurnQueue } from '../firing/turn-queue.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { createCapacity } from './capacity.ts'
import type { WebhookResult } from './exchange.ts'
import type { Flights } from './flights.ts'
import { createLimits } from './limits.ts'
import { reportIn } from './response-text.ts'
import type { AttemptResult, createResults } from './results.ts'
import { createWaiting, type Waiting } from './waiting-attempts.ts'
import type { Handle, WebhookClient, WebhookRequest } from './webhook.ts'

type Options = {
  fn: Pick<Functions, 'takeDueCues' | 'lookWaiting' | 'beginAttempts' | 'openLimits' | 'goneAttempts'>
  ahead: Ahead
  flights: Flights
  results: ReturnType<typeof createResults>
  client: WebhookClient
  request: (attempt: BegunAttempt, now: number) => WebhookRequest
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  /** Fast slots. */
  concurrency: number
  /** How many deliveries every plan allows an account to hold open. */
  leastOpen: number
  /**
   * A receiver that has not answered after this is slow, and its delivery gives its fast slot back: sooner, down to a quarter of it, the fewer
   * slots are free. 200 ms, unless a test says otherwise.
   */
  slowAfterMs?: number
  /** What all accounts share of open deliveries, and the reserve on top. */
  capacity?: { shared: number; reserve: number }
  share?: () => Share
  missedAfter: string
  /** Something changed that may allow or call for more: the engine takes another turn. */
  onChange: () => void
  onError: (error: unknown, task: string) => void
  metrics: Pick<Metrics, 'taken' | 'attemptEnded' | 'attemptTook'>
  log: Pick<FastifyBaseLogger, 'debug' | 'info'>
}

/** What is taken at once; and while so little is under way that senders would wait for it, less, so that they can begin. */
const batchSize = 300
const firstBatchSize = 50
const fewUnderWay = 100
/** While so many are on hand, nothing more is taken. */
const enoughOnHand = 200
const takersAtMost = 2
const pauseMs = 500

export type Pump = ReturnType<typeof createPump>

export const createPump = (options: Options) => {
  const { fn, ahead, flights, results, client, request, now, concurrency, missedAfter, onChange, onError, metrics, log } = options
  const { slowAfterMs = 200, share = () => ({ engines: 1, place: 0 }) } = options
  const onHand = createTurnQueue<BegunAttempt>()
  const sending = new Map<BegunAttempt, Handle>()
  const fastOf = new Map<string, number>()
  let fast = 0
  let takers = 0
  let pausedUntil = 0
  let dueNext = true
  let stopped = false
  let lateness: number | null = null

  const isAllowed = createLimits({ fn, least: options.leastOpen, engines: () => share().engines, onChange, onError })
  const capacity = createCapacity({ ...options.capacity, isAllowed })
  const waiting = createWaiting({ fn, now, share, onChange, onError })

  /** How many to take now: nothing while enough is on hand, or while everything that may be open is. */
  const room = () => {
    if (stopped || takers >= takersAtMost || onHand.size >= enoughOnHand || performance.now() < pausedUntil) return 0
    return Math.min(sending.size + onHand.size < fewUnderWay ? firstBatchSize : batchSize, capacity.limit - capacity.open)
  }

  const take = () => {
    waiting.lookIfDue()
    for (let limit = room(); limit > 0; limit = room()) {
      if (!(dueNext ? takeDue(limit) || takeWaiting(limit) : takeWaiting(limit) || takeDue(limit))) return
    }
  }

  const takeDue = (limit: number) => {
    const cues = ahead.takeDue('send', limit, capacity.tryOpen)
    if (cues.length === 0) return false
    dueNext = false
    void taking(cues, () => takeCues(cues))
    return true
  }

  const takeWaiting = (limit: number) => {
    const tried = waiting.take(limit, capacity.tryOpen)
    if (tried.length === 0) return false
    dueNext = true
    void taking(tried, () => beginAttempts(tried))
    return true
  }

  /** Begins what was counted as open before: what then is not begun is not open. */
  const taking = async (counted: { account_id: string }[], begin: () => Promise<BegunAttempt[]>) => {
    takers++
    const sentAt = performance.now()
    const countOf = new Map<string, number>()
    try {
      const attempts = await begin()
      for (const [flight, own] of Map.groupBy(attempts, attempt => attempt.flight_id)) flights.add(flight, own.length, sentAt)
      for (const attempt of attempts) {
        onHand.add(attempt.account_id, attempt)
        countOf.set(attempt.account_id, (countOf.get(attempt.account_id) ?? 0) + 1)
      }
    } catch (error) {
      // What was committed without our knowing lapses with its flight.
      pausedUntil = performance.now() + pauseMs
      setTimeout(onChange, pauseMs)
      onError(error, 'take attempts')
    } finally {
      takers--
      for (const { account_id } of counted) {
        const begun = countOf.get(account_id) ?? 0
        if (begun > 0) countOf.set(account_id, begun - 1)
        else close(account_id)
      }
      onChange()
    }
  }

  const fire = (cues: DueCue[]) =>
    fn.takeDueCues({
      cue_ids: cues.map(cue => cue.cue_id),
      versions: cues.map(cue => cue.version),
      expected: cues.map(cue => cue.next_run),
      next: cues.map(cue => cue.next),
      success_due: cues.map(cue => cue.successDue),
      missed_after: missedAfter
    })

  const takeCues = async (cues: DueCue[]) => {
    const attempts = await bisect(cues, fire, (cue, error) => {
      onError(error, `fire cue ${cue.cue_id}`)
      ahead.passOver(cue)
    })
    const time = now()
    if (attempts.length > 0) lateness = Math.round(Math.max(0, time - cues[0]!.next_run.getTime()))
    const taken = new Set(attempts.map(attempt => attempt.cue_id))
    for (const cue of cues) {
      if (taken.has(cue.cue_id)) {
        metrics.taken(time - cue.next_run.getTime())
        ahead.putBack(cue)
      } else ahead.tryAgain(cue)
    }
    return attempts
  }

  const beginAttempts = async (tried: Waiting[]) => {
    let begun: BegunAttempt[] = []
    try {
      begun = await fn.beginAttempts({ execution_ids: tried.map(one => one.execution_id) })
    } finally {
      waiting.ended(tried, new Set(begun.map(attempt => attempt.execution_id)))
    }
    return begun
  }

  const send = () => {
    while (onHand.size > 0) {
      const [attempt] = onHand.take(1, maySend)
      if (!attempt) return
      if (flights.stands(attempt.flight_id)) void deliver(attempt)
      else if (flights.has(attempt.flight_id)) {
        // The lease is in doubt until the next extension.
        onHand.add(attempt.account_id, attempt)
        return
      } else close(attempt.account_id) // taken over
    }
  }

  /** Fast slots are shared as capacity is: an account takes another only while it has fewer than are free. */
  const maySend = (account: string) => capacity.isSlow(account) || (fastOf.get(account) ?? 0) < concurrency - fast

  const deliver = async (attempt: BegunAttempt) => {
    const { account_id } = attempt
    const handle: Handle = {}
    sending.set(attempt, handle)
    const giveBack = capacity.isSlow(account_id) ? () => {} : lendSlot(account_id)
    const startedAt = now()
    const result = await client.post(request(attempt, startedAt), handle)
    giveBack()
    // Given back meanwhile, when the engine stopped, or no longer wanted.
    if (!sending.delete(attempt)) return
    capacity.note(account_id, result.duration_ms < slowAfterMs)
    close(account_id)
    results.add(attempt, resultOf(attempt, result, startedAt))
    metrics.attemptEnded(result.ok ? 'success' : 'failed')
    metrics.attemptTook(result.ok ? 'success' : 'failed', result.duration_ms)
    const level = result.ok ? 'debug' : 'info'
    log[level](
      { execution_id: attempt.execution_id, attempt: attempt.attempt, http_status: result.http_status, ms: result.duration_ms },
      'attempt ended'
    )
    onChange()
  }

  /** Lends a fast slot. The returned function gives it back, as the account's slowness does. */
  const lendSlot = (account: string) => {
    fast++
    fastOf.set(account, (fastOf.get(account) ?? 0) + 1)
    const giveBack = () => {
      if (!slow) return
      clearTimeout(slow)
      slow = undefined
      fast--
      const left = fastOf.get(account)! - 1
      if (left > 0) fastOf.set(account, left)
      else fastOf.delete(account)
    }
    const lentForMs = slowAfterMs * Math.max(1 / 4, 1 - fast / concurrency)
    let slow: NodeJS.Timeout | undefined = setTimeout(() => {
      giveBack()
      capacity.note(account, false)
      onChange()
    }, lentForMs)
    return giveBack
  }

  const close = (account: string) => {
    capacity.close(account)
    if (capacity.hasRoom(account)) ahead.expectFrom(account)
  }

  /** Ends requests of attempts that are not to be sent any more. Whatever they are answered changes nothing. */
  const abort = (gone: ReadonlySet<string>) => {
    for (const [attempt, handle] of sending) {
      if (!gone.has(attempt.execution_id)) continue
      sending.delete(attempt)
      handle.abort?.('no longer wanted')
      close(attempt.account_id)
      flights.end(new Map([[attempt.flight_id, 1]]))
      metrics.attemptEnded('aborted')
      log.info({ execution_id: attempt.execution_id, attempt: attempt.attempt }, 'attempt aborted')
    }
    onChange()
  }

  return {
    /** Sends and takes what there is room for. */
    turn: () => {
      send()
      take()
    },
    /** An attempt waits and is due at this instant, in epoch milliseconds. */
    expectWaiting: waiting.expect,
    /** When a waiting attempt is due, as far as is known. */
    get waitingAt() {
      return waiting.wakeAt
    },
    /** Whether due cues of webhooks may be taken now. */
    get hasRoom() {
      return room() > 0
    },
    get open() {
      return capacity.open
    },
    /** What `open` may come to. */
    openLimit: capacity.limit,
    /** Due deliveries on hand that wait until their accounts, or all, have room. */
    get held() {
      return ahead.held + waiting.held
    },
    /** Aborts the requests of attempts that ended by another way: their cue or account was deleted, or they were cancelled. */
    abortGone: async (): Promise<void> => {
      if (sending.size === 0) return
      const asked = [...sending.keys()]
      const gone = await fn.goneAttempts({
        execution_ids: asked.map(attempt => attempt.execution_id),
        attempts: asked.map(attempt => attempt.attempt)
      })
      if (gone.length > 0) abort(new Set(gone))
    },
    /** How late the latest batch of cues was taken, in milliseconds. */
    get lateness() {
      return lateness
    },
    skipAccounts: capacity.full,

    /** Takes nothing more. Returns what was taken and not sent. */
    stop: async (signal: AbortSignal): Promise<BegunAttempt[]> => {
      stopped = true
      while (takers > 0 && !signal.aborted) await delay(10)
      const unsent = onHand.take(onHand.size)
      for (const attempt of unsent) close(attempt.account_id)
      return unsent
    },

    /** Waits until what is being sent has ended. Returns what is still open at the signal. */
    ended: async (signal: AbortSignal): Promise<BegunAttempt[]> => {
      while (sending.size > 0 && !signal.aborted) await delay(10)
      const open = [...sending.keys()]
      sending.clear()
      return open
    }
  }
}

const resultOf = (attempt: BegunAttempt, result: WebhookResult, startedAt: number): AttemptResult => ({
  started_at: startedAt,
  duration_ms: result.duration_ms,
  http_status: result.http_status,
  body: result.body,
  error: result.error,
  retry_after_ms: result.retry_after_ms,
  gone: result.gone,
  reported: attempt.plain || !result.ok ? null : reportIn(result)
})
