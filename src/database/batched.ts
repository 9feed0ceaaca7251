/**
 * Queries that arrive while others are being answered share one statement: of the database's CPU, GET /v1/cues/{id} then takes a ninth, and
 * POST /v1/cues an eighth (`npm run bench -- api`).
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { isConflict, mayBeOfOne, unavailable } from '../errors.ts'

type Options<Q, A> = {
  /** Answers queries, in order. Null: another session has locked a row that the query needs. */
  many: (questions: Q[]) => Promise<(A | null)[]>
  /** Answers a query that is alone in its batch; `many` by default. */
  single?: (question: Q) => Promise<A | null>
}

type Waiting<Q, A> = { question: Q; lockedFor: number; resolve: (answer: A) => void; reject: (error: unknown) => void }

/** Maximum queries in a statement. */
export const batchSize = 100

/** A statement that takes longer may be waiting for a lock or the disk: a second one starts beside it. */
const patienceMs = 50
const atOnce = 2

/** A query that needs locked rows is sent again after this time, then after twice as long, up to `lockPatienceMs` in total: others hardly notice. */
const retryMs = 50
const lockPatienceMs = 2000

/**
 * Makes a batcher: a function that answers a query, or rejects with its error. Queries that arrive in the same turn of the event loop are sent
 * together; while a statement is under way, queries gather for the next one.
 */
export const createBatches = <Q, A>({ many, single = async question => (await many([question]))[0]! }: Options<Q, A>) => {
  const queue: Waiting<Q, A>[] = []
  let running = 0
  let isBusy = false
  let isAboutToSend = false

  /** Runs a batch as one statement. */
  const answer = async (batch: Waiting<Q, A>[]): Promise<void> => {
    const questions = batch.map(({ question }) => question)
    try {
      const answers = questions.length === 1 ? [await single(questions[0]!)] : await many(questions)
      for (const [n, waiting] of batch.entries()) {
        if (answers[n] === null) void retryLater(waiting)
        else waiting.resolve(answers[n]!)
      }
    } catch (error) {
      // One query may be at fault, and only it should fail. A statement is known to have changed nothing only if the server refused it.
      if (batch.length > 1 && error instanceof pg.DatabaseError && (mayBeOfOne(error) || isConflict(error)))
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
    void answer(queue.splice(0, batchSize)).then(() => {
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

  const retryLater = async (waiting: Waiting<Q, A>) => {
    const ms = Math.max(retryMs, waiting.lockedFor)
    waiting.lockedFor += ms
    if (waiting.lockedFor > lockPatienceMs) return waiting.reject(unavailable())
    await delay(ms)
    add(waiting)
  }

  return (question: Q): Promise<A> => new Promise((resolve, reject) => add({ question, lockedFor: 0, resolve, reject }))
}
