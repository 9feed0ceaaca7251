/**
 * Retries queries whose rows are locked by another session: every 50 ms, separately from all other queries, without holding a
 * connection in between.
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { isHeld, mayBeOfOne, unavailable } from '../errors.ts'

export type Waiting<Q, A> = { question: Q; resolve: (answer: A) => void; reject: (error: unknown) => void }

type Options<Q, A> = {
  many: (questions: Q[]) => Promise<(A | null)[]>
  ownerOf: (question: Q) => string
  /** Maximum queries in one statement. */
  size: number
}

/** After this time, a query is rejected as unavailable. */
const patienceMs = 2000
const pauseMs = 50

/** Makes a queue of queries to retry. `many` answers null for a query whose rows are still locked. */
export const createHeldRetry = <Q, A>({ many, ownerOf, size }: Options<Q, A>) => {
  // Owner → waiting queries with their deadlines, oldest first.
  const owners = new Map<string, Map<Waiting<Q, A>, number>>()
  let isAsking = false

  const leave = (waiting: Waiting<Q, A>) => {
    const owner = ownerOf(waiting.question)
    const own = owners.get(owner)!
    own.delete(waiting)
    if (own.size === 0) owners.delete(owner)
    return waiting
  }

  const expire = () => {
    const time = performance.now()
    for (const own of [...owners.values()]) {
      for (const [waiting, until] of own) {
        if (until > time) break
        leave(waiting).reject(unavailable())
      }
    }
  }

  /** A few per owner, so that none waits behind another's backlog. */
  const some = () => {
    const each = Math.ceil(size / owners.size)
    return [...owners.values()].flatMap(own => [...own.keys().take(each)]).slice(0, size)
  }

  const ask = async (batch: Waiting<Q, A>[]): Promise<void> => {
    try {
      const answers = await many(batch.map(({ question }) => question))
      for (const [n, waiting] of batch.entries()) {
        const answer = answers[n]!
        if (answer !== null) leave(waiting).resolve(answer)
      }
    } catch (error) {
      if (isHeld(error)) return
      // One query may be at fault: retry them one by one, as in batches.
      if (batch.length > 1 && error instanceof pg.DatabaseError && mayBeOfOne(error)) for (const waiting of batch) await ask([waiting])
      else for (const waiting of batch) leave(waiting).reject(error)
    }
  }

  const askAgain = async (): Promise<void> => {
    isAsking = true
    for (;;) {
      await delay(pauseMs)
      expire()
      if (owners.size === 0) break
      await ask(some())
    }
    isAsking = false
  }

  return {
    /** Whether queries of this owner are waiting; new ones must queue behind them. */
    has: (question: Q): boolean => owners.has(ownerOf(question)),

    /** Resolves once the row is free, or rejects as unavailable. */
    add: (waiting: Waiting<Q, A>): void => {
      const owner = ownerOf(waiting.question)
      const own = owners.get(owner) ?? new Map()
      owners.set(owner, own.set(waiting, performance.now() + patienceMs))
      if (!isAsking) void askAgain()
    }
  }
}
