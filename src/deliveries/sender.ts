/** Sends attempts that were taken, in turns by account, and passes their results on. */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { BegunAttempt, Functions } from '../database/functions.ts'
import { createTurnQueue } from '../firing/turn-queue.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type Capacity, createFastSlots } from './capacity.ts'
import type { Handle } from './exchange.ts'
import type { Flights } from './flights.ts'
import { maskSecrets } from './mask-secrets.ts'
import { reportIn } from './report.ts'
import { storable, storableHeaders } from './response-text.ts'
import type { AttemptResult, Results } from './results.ts'
import type { WebhookClient, WebhookRequest, WebhookResult } from './webhook.ts'

export type SenderOptions = {
  fn: Pick<Functions, 'goneAttempts'>
  flights: Flights
  results: Results
  client: WebhookClient
  request: (attempt: BegunAttempt, now: number) => WebhookRequest
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  /** Fast slots. */
  concurrency: number
  /** A receiver that hasn't responded after this time is slow: see `createFastSlots`. 200 ms by default. */
  slowAfterMs?: number
  capacity: Capacity
  /** A delivery of the account is no longer open. */
  close: (account: string) => void
  /** A request has ended, or its fast slot is free. */
  onChange: () => void
  metrics: Pick<Metrics, 'attemptEnded' | 'attemptTook'>
  log: Pick<FastifyBaseLogger, 'debug' | 'info'>
}

/** Requests per turn. Responses that arrive meanwhile are read before the next, which uses their connections instead of opening more. */
const burst = 32

/** `since`: in milliseconds of performance.now(). */
type Sending = Handle & { attempt: BegunAttempt; since: number }

export const createSender = (options: SenderOptions) => {
  const { fn, flights, results, client, request, now, concurrency, slowAfterMs = 200, capacity, close, onChange, metrics, log } = options
  const onHand = createTurnQueue<BegunAttempt>()
  const sending = new Set<Sending>()
  const fast = createFastSlots({
    slots: concurrency,
    slowAfterMs,
    onSlow: account => {
      capacity.note(account, false)
      onChange()
    }
  })

  /** An account with slow receivers needs no fast slot. */
  const maySend = (account: string) => capacity.isSlow(account) || fast.hasRoom(account)

  const deliver = async (attempt: BegunAttempt) => {
    const { account_id } = attempt
    const delivery: Sending = { attempt, exchange: undefined, since: performance.now() }
    sending.add(delivery)
    const giveBack = capacity.isSlow(account_id) ? undefined : fast.lend(account_id)
    const startedAt = now()
    const sent = request(attempt, startedAt)
    const result = await client.post(sent, delivery)
    giveBack?.()
    // Aborted, or returned when the engine stopped.
    if (!sending.delete(delivery)) return
    capacity.note(account_id, result.duration_ms < slowAfterMs)
    close(account_id)
    results.add(attempt, resultOf(attempt, sent, result, startedAt))
    const outcome = result.ok ? 'success' : 'failed'
    metrics.attemptEnded(outcome)
    metrics.attemptTook(outcome, result.duration_ms)
    log[result.ok ? 'debug' : 'info'](
      { execution_id: attempt.execution_id, attempt: attempt.attempt, http_status: result.http_status, ms: result.duration_ms },
      'attempt ended'
    )
    onChange()
  }

  const abort = (executionIds: ReadonlySet<string>) => {
    for (const delivery of sending) {
      const { attempt } = delivery
      if (!executionIds.has(attempt.execution_id)) continue
      sending.delete(delivery)
      delivery.exchange?.fail('no longer wanted')
      close(attempt.account_id)
      flights.end([attempt])
      metrics.attemptEnded('aborted')
      log.info({ execution_id: attempt.execution_id, attempt: attempt.attempt }, 'attempt aborted')
    }
    onChange()
  }

  return {
    /** Number of attempts that are not sent yet. */
    get onHand() {
      return onHand.size
    },
    /** Queues an attempt; `send` sends it. */
    add: (attempt: BegunAttempt): void => onHand.add(attempt.account_id, attempt),

    /**
     * Sends what there is room for, a burst per turn. An attempt is sent only while its flight's lease stands, and dropped if the flight was taken
     * over.
     */
    send: (): void => {
      for (let sent = 0; onHand.size > 0; sent++) {
        if (sent === burst) return void onChange()
        const [attempt] = onHand.take(1, maySend)
        if (!attempt) return
        if (flights.stands(attempt.flight_id)) void deliver(attempt)
        else if (flights.has(attempt.flight_id)) {
          // The lease may have expired: the next extension decides.
          onHand.add(attempt.account_id, attempt)
          return
        } else close(attempt.account_id)
      }
    },

    /**
     * Aborts requests whose attempt has ended otherwise: its cue or account was deleted, or its execution was cancelled or taken over. Asks
     * only about those whose receivers are slow: the others usually end by themselves before the answer comes.
     */
    abortGone: async (): Promise<void> => {
      const slowSince = performance.now() - slowAfterMs
      const slow = [...sending].filter(({ since }) => since <= slowSince)
      if (slow.length === 0) return
      const goneIds = await fn.goneAttempts({
        execution_ids: slow.map(({ attempt }) => attempt.execution_id),
        attempts: slow.map(({ attempt }) => attempt.attempt)
      })
      if (goneIds.length > 0) abort(new Set(goneIds))
    },

    /** Removes and returns the attempts that are not sent yet. */
    takeUnsent: (): BegunAttempt[] => {
      const unsent = onHand.take(onHand.size)
      for (const attempt of unsent) close(attempt.account_id)
      return unsent
    },

    /** Waits until all requests have ended. Returns the attempts whose requests are still open at the signal; their results are dropped. */
    ended: async (signal: AbortSignal): Promise<BegunAttempt[]> => {
      while (sending.size > 0 && !signal.aborted) await delay(10)
      const open = [...sending].map(({ attempt }) => attempt)
      sending.clear()
      return open
    }
  }
}

const resultOf = (attempt: BegunAttempt, { secrets = [] }: WebhookRequest, result: WebhookResult, startedAt: number): AttemptResult => ({
  started_at: startedAt,
  duration_ms: result.duration_ms,
  http_status: result.http_status,
  body: result.answer === null ? null : storable(maskSecrets(result.answer, secrets)),
  headers: result.headers && storableHeaders(result.headers, value => maskSecrets(value, secrets)),
  error: result.error,
  retry_after_ms: result.retry_after_ms,
  gone: result.gone,
  reported: attempt.plain || !result.ok ? null : reportIn(result.answer, secrets)
})
