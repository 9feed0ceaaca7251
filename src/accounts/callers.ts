/**
 * Keeps one caller's requests from crowding out everybody else's: only so many are with the database at once, refusing a caller again within
 * a second costs no statement, and one that doesn't wait gets its refusals later.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { batchSize } from '../database/batched.ts'
import { createTurns } from '../database/turns.ts'

type Answer = { error: string | null; retry_after: number | null }
type Refusal<A> = { answer: A; atMs: number; untilMs: number; times: number }

/** Half of what a statement takes, so that no caller has one to itself: large cues fill it, too. */
const mostAtOnce = batchSize / 2
/** How long a refusal is known. Short, because a caller may change its plan. */
const knownMs = 1000
/** Refusals that are sent at once, per caller and second. Others are held, so that each connection sends about one request in two seconds. */
const promptly = 20
const holdMs = 2000

type Options<Q> = {
  /** Names the caller: its questions count towards one limit. */
  callerOf: (question: Q) => string
  now: () => Date
  /** Aborted when the service begins to stop: no answer is held any longer. */
  closing?: AbortSignal
}

/** Wraps `ask`, whose answers may be `rate_limit_exceeded`, with the seconds until the caller may retry. */
export const limitCallers = <Q, A extends Answer>(ask: (question: Q) => Promise<A>, { callerOf, now, closing }: Options<Q>) => {
  const inTurn = createTurns(mostAtOnce)
  const refusals = new Map<string, Refusal<A>>()

  const refusalOf = (caller: string) => {
    const refusal = refusals.get(caller)
    return refusal && now().getTime() < refusal.untilMs ? refusal : undefined
  }

  const remember = (caller: string, answer: A) => {
    const atMs = now().getTime()
    // In the last of these seconds, which are rounded up, the caller may be admitted.
    const untilMs = atMs + Math.min(knownMs, (answer.retry_after! - 1) * 1000)
    for (const [other, refusal] of refusals) {
      if (refusal.untilMs > atMs) break
      refusals.delete(other)
    }
    if (untilMs > atMs && !refusalOf(caller)) refusals.set(caller, { answer, atMs, untilMs, times: 0 })
  }

  const again = async (refusal: Refusal<A>): Promise<A> => {
    refusal.times++
    if (refusal.times > promptly) await delay(holdMs * (0.5 + Math.random()), undefined, { signal: closing }).catch(() => {})
    const { answer, atMs } = refusal
    return { ...answer, retry_after: Math.max(1, answer.retry_after! - Math.floor((now().getTime() - atMs) / 1000)) }
  }

  return async (question: Q): Promise<A> => {
    const caller = callerOf(question)
    let refusal = refusalOf(caller)
    const answer =
      refusal ??
      (await inTurn(caller, async () => {
        refusal = refusalOf(caller)
        if (refusal) return refusal
        const fresh = await ask(question)
        if (fresh.error === 'rate_limit_exceeded') remember(caller, fresh)
        return fresh
      }))
    return refusal ? again(refusal) : (answer as A)
  }
}
