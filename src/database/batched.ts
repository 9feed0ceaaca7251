/**
 * Queries that arrive while others are being answered share one statement: of the database's CPU, GET /v1/cues/{id} then takes a ninth, and
 * POST /v1/cues an eighth (`npm run bench -- api`).
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { isHeld, mayBeOfOne, unavailable } from '../errors.ts'

type Options<Q, A> = {
  /** Answers queries, in order. Null: another session has locked a row that the query needs. */
  many: (questions: Q[]) => Promise<(A | null)[]>
  /** Answers a query that is alone in its batch; `many` by default. */
  one?: (question: Q) => Promise<A | null>
  /** Whose rows a query needs. While an owner's rows are locked, its queries wait apart from all others. */
  ownerOf: (question: Q) => string
  /** Maximum queries in a statement; `batchSize` by default. */
  size?: number
}

type Waiting<Q, A> = { question: Q; until: number; resolve: (answer: A) => void; reject: (error: unknown) => void }

/** Maximum queries in a statement, unless the batcher has another. */
export const batchSize = 100

/** A statement that takes longer may be waiting for a lock or the disk: a second one starts beside it. */
const patienceMs = 50
const atOnce = 2

/** Time after which a query whose rows stay locked is rejected as unavailable, and between its attempts. */
const lockPatienceMs = 2000
const retryMs = 50

/**
 * Makes a batcher: a function that answers a query, or rejects with its error. Queries that arrive in the same turn of the event loop are sent
 * together; while a statement is under way, queries gather for the next one.
 */
export const createBatches = <Q, A>({
  many,
  one = async question => (await many([question]))[0]!,
  ownerOf,
  size = batchSize
}: Options<Q, A>): ((question: Q) => Promise<A>) => {
  const queue: Waiting<Q, A>[] = []
  let running = 0
  let isBusy = false
  let isAboutToSend = false
  /** Queries that need locked rows, by owner. */
  const locked = new Map<string, Waiting<Q, A>[]>()

  /** Runs a batch as one statement. Queries that need locked rows are set apart before the others continue. */
  const answer = async (batch: Waiting<Q, A>[]): Promise<void> => {
    const questions = batch.map(({ question }) => question)
    try {
      const answers = questions.length === 1 ? [await one(questions[0]!)] : await many(questions)
      for (const [n, waiting] of batch.entries()) if (answers[n] === null) setApart(waiting)
      for (const [n, waiting] of batch.entries()) if (answers[n] !== null) waiting.resolve(answers[n]!)
    } catch (error) {
      if (isHeld(error)) for (const waiting of batch) setApart(waiting)
      // One query may be at fault, and only it should fail. A statement is known to have changed nothing only if the server refused it.
      else if (batch.length > 1 && error instanceof pg.DatabaseError && mayBeOfOne(error))
        for (const waiting of batch) await answer([waiting])
      else for (const { reject } of batch) reject(error)
    }
  }

  const send = () => {
    isAboutToSend = false
    if (isBusy || running === atOnce || queue.length === 0) return
    const free = () => {
      isBusy = false
      send()
    }
    isBusy = true
    running++
    const timer = setTimeout(free, patienceMs)
    void answer(queue.splice(0, size)).then(() => {
      clearTimeout(timer)
      running--
      free()
    })
  }

  const add = (waiting: Waiting<Q, A>) => {
    queue.push(waiting)
    if (!isAboutToSend) setImmediate(send)
    isAboutToSend = true
  }

  const setApart = (waiting: Waiting<Q, A>) => {
    const owner = ownerOf(waiting.question)
    const isFirst = locked.size === 0
    if (waiting.until === 0) waiting.until = performance.now() + lockPatienceMs
    const list = locked.get(owner)
    if (list) list.push(waiting)
    else locked.set(owner, [waiting])
    if (isFirst) void retryLocked()
  }

  /** Retries one query of each owner, without holding a connection in between. Once it is answered, the owner's other queries are sent again. */
  const retryLocked = async () => {
    while (locked.size > 0) {
      await delay(retryMs)
      for (const [owner, list] of locked) {
        const rest = list.filter(({ until }) => until > performance.now())
        for (const waiting of list) if (!rest.includes(waiting)) waiting.reject(unavailable())
        if (rest.length > 0) locked.set(owner, rest)
        else locked.delete(owner)
      }
      const batch = [...locked.values()].slice(0, size).map(list => list.shift()!)
      if (batch.length > 0) await answer(batch)
      for (const waiting of batch) {
        const owner = ownerOf(waiting.question)
        const list = locked.get(owner)!
        // Owners take turns if there are more than a statement's.
        locked.delete(owner)
        if (list.includes(waiting)) locked.set(owner, list)
        else for (const other of list) add(other)
      }
    }
  }

  return question =>
    new Promise((resolve, reject) => {
      const waiting = { question, until: 0, resolve, reject }
      if (locked.has(ownerOf(question))) setApart(waiting)
      else add(waiting)
    })
}
