/**
 * Takes attempts when there is room for them, sends them, and hands their results on. Room is of two kinds: a fast slot, given back when the
 * receiver takes long, and a much larger bound on what stays open. Free room alternates between cues that come due and attempts that waited.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { BegunAttempt, Functions } from '../functions.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Ahead, DueCue } from '../schedule/ahead.ts'
import { inHalves } from '../schedule/in-halves.ts'
import type { Flights } from './flights.ts'
import type { AttemptResult, createResults } from './results.ts'
import { reportIn, type WebhookClient, type WebhookRequest, type WebhookResult } from './webhook.ts'

type Options = {
  fn: Pick<Functions, 'takeDueCues' | 'beginWaiting' | 'nextWakes'>
  ahead: Ahead
  flights: Flights
  results: ReturnType<typeof createResults>
  client: WebhookClient
  request: (attempt: BegunAttempt, now: number) => WebhookRequest
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  /** Fast slots. */
  concurrency: number
  missedAfter: string
  /** Something changed that may allow or call for more: the engine takes another turn. */
  onChange: () => void
  onError: (error: unknown, doing: string) => void
  metrics: Pick<Metrics, 'taken' | 'attemptEnded'>
  log: Pick<FastifyBaseLogger, 'debug' | 'info'>
}

/** What may be open beyond the fast slots, and the share of it at which an account is not taken from any more. */
const openAtMost = 5000
const openPerAccount = openAtMost / 5
/** An attempt still open after this gives its fast slot back. */
const slowAfterMs = 200
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
  const onHand: BegunAttempt[] = []
  const openOf = new Map<string, number>()
  const sending = new Set<BegunAttempt>()
  let fast = 0
  let takers = 0
  let waitingAt = 0
  let pausedUntil = 0
  let dueNext = true
  let stopped = false
  let lateness: number | null = null

  const isFull = (account: string) => (openOf.get(account) ?? 0) >= openPerAccount
  const fullAccounts = () => [...openOf.keys()].filter(isFull)

  /** How many to take now: nothing while enough is on hand, or while what is open fills the second bound. */
  const room = () => {
    if (stopped || takers >= takersAtMost || onHand.length >= enoughOnHand || performance.now() < pausedUntil) return 0
    const underWay = sending.size + onHand.length
    return Math.min(underWay < fewUnderWay ? firstBatchSize : batchSize, openAtMost + concurrency - underWay - takers * batchSize)
  }

  const take = () => {
    for (let limit = room(); limit > 0; limit = room()) {
      const waitingDue = waitingAt <= now()
      const cues = dueNext || !waitingDue ? ahead.takeDue('send', limit, isWanted) : []
      if (cues.length > 0) void taking(() => takeCues(cues))
      else if (waitingDue) void taking(() => beginWaiting(limit))
      else return
      dueNext = cues.length === 0
    }
  }

  const isWanted = (cue: DueCue) => !isFull(cue.account_id)

  const taking = async (begin: () => Promise<BegunAttempt[]>) => {
    takers++
    const sentAt = performance.now()
    try {
      const attempts = await begin()
      const begun = new Map<number, number>()
      for (const { flight_id } of attempts) begun.set(flight_id, (begun.get(flight_id) ?? 0) + 1)
      for (const [flight, count] of begun) flights.add(flight, count, sentAt)
      for (const attempt of attempts) {
        onHand.push(attempt)
        openOf.set(attempt.account_id, (openOf.get(attempt.account_id) ?? 0) + 1)
      }
    } catch (error) {
      // What was committed without our knowing lapses with its flight.
      pausedUntil = performance.now() + pauseMs
      setTimeout(onChange, pauseMs)
      onError(error, 'taking attempts')
    } finally {
      takers--
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
    const attempts = await inHalves(cues, fire, (cue, error) => {
      onError(error, `firing cue ${cue.cue_id}, which is passed over`)
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

  const beginWaiting = async (limit: number) => {
    waitingAt = Number.POSITIVE_INFINITY
    const attempts = await fn.beginWaiting({ limit, skip_accounts: fullAccounts() })
    if (attempts.length === limit) expectWaiting(0)
    else void expectNext(attempts.length > 0 ? 10 : 250)
    return attempts
  }

  /** Asks what waits next. Due and yet not begun: another replica is at it, or its account is full; so not again before `pause`. */
  const expectNext = async (pause: number) => {
    try {
      const { waiting_at } = await fn.nextWakes({})
      if (waiting_at) expectWaiting(Math.max(waiting_at.getTime(), now() + pause))
    } catch (error) {
      onError(error, 'reading what waits')
    }
    onChange()
  }

  const expectWaiting = (at: number) => {
    waitingAt = Math.min(waitingAt, at)
  }

  const send = () => {
    while (onHand.length > 0 && fast < concurrency) {
      const attempt = onHand.shift()!
      if (flights.stands(attempt.flight_id)) void deliver(attempt)
      else if (flights.has(attempt.flight_id)) {
        // The lease is in doubt until the next extension.
        onHand.unshift(attempt)
        return
      } else close(attempt) // taken over
    }
  }

  const deliver = async (attempt: BegunAttempt) => {
    sending.add(attempt)
    fast++
    let isFast = true
    const slowDown = setTimeout(() => {
      isFast = false
      fast--
      onChange()
    }, slowAfterMs)
    const startedAt = now()
    const result = await client.post(request(attempt, startedAt))
    clearTimeout(slowDown)
    if (isFast) fast--
    // Given back meanwhile, when the engine stopped.
    if (!sending.delete(attempt)) return
    close(attempt)
    results.add(attempt, resultOf(attempt, result, startedAt))
    metrics.attemptEnded(result.ok ? 'success' : 'failed')
    const level = result.ok ? 'debug' : 'info'
    log[level](
      { execution_id: attempt.execution_id, attempt: attempt.attempt, http_status: result.http_status, ms: result.duration_ms },
      'attempt ended'
    )
    onChange()
  }

  const close = (attempt: BegunAttempt) => {
    const open = openOf.get(attempt.account_id)! - 1
    if (open === openPerAccount - 1) ahead.expect(now())
    if (open > 0) openOf.set(attempt.account_id, open)
    else openOf.delete(attempt.account_id)
  }

  return {
    /** Sends and takes what there is room for. */
    turn: () => {
      send()
      take()
    },
    /** An attempt waits and is due at this instant, in epoch milliseconds. */
    expectWaiting,
    /** When a waiting attempt is due, as far as is known. */
    get waitingAt() {
      return waitingAt
    },
    /** Whether due cues of webhooks may be taken now. */
    get hasRoom() {
      return room() > 0
    },
    get open() {
      return sending.size + onHand.length
    },
    /** How late the latest batch of cues was taken, in milliseconds. */
    get lateness() {
      return lateness
    },
    skipAccounts: fullAccounts,

    /** Takes nothing more. Returns what was taken and not sent. */
    stop: async (signal: AbortSignal): Promise<BegunAttempt[]> => {
      stopped = true
      while (takers > 0 && !signal.aborted) await delay(10)
      const unsent = onHand.splice(0)
      for (const attempt of unsent) close(attempt)
      return unsent
    },

    /** Waits until what is being sent has ended. Returns what is still open at the signal. */
    ended: async (signal: AbortSignal): Promise<BegunAttempt[]> => {
      while (sending.size > 0 && !signal.aborted) await delay(10)
      const open = [...sending]
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
