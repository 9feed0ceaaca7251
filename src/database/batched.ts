/**
 * Queries that arrive while others are being answered share one statement.
 *
 * CPU time per request with shared statements, and with one per query: of the database, 0.15 and 1.41 ms for GET /v1/cues/{id}, 0.27 and 2.16 ms
 * for POST /v1/cues; of the service, 0.29 and 0.87 ms, 0.39 and 1.49 ms. (Medians of three interleaved runs of `npm run bench -- api --seconds 3`
 * on two busy cores.)
 * Without the pacer only, the database needs 0.16 and 0.31 ms, the service about the same.
 */
import pg from 'pg'
import { isAway, isHeld } from '../errors.ts'
import { createHeldRetry, type Waiting } from './retry-held.ts'

type Options<Q, A> = {
  /** Answers queries, in order. Null: another session has locked a row that the query needs. */
  many: (questions: Q[]) => Promise<(A | null)[]>
  /** Answers a query that is alone in its batch; `many` by default. */
  one?: (question: Q) => Promise<A | null>
  /** Whose rows a query needs. While an owner's rows are locked, its queries are retried separately from all others. */
  ownerOf?: (question: Q) => string
  /** Maximum queries in a statement; `batchSize` by default. */
  size?: number
  /** Maximum concurrent statements. */
  atOnce?: number
  /** Shared by batchers whose statements should not run concurrently. */
  pacer?: Pacer
  /** Statements wait for the disk: they start only when the pacer is free, but don't occupy it. */
  isDurable?: boolean
  /** A statement that takes longer may be waiting for a lock or the disk, so queries that arrived meanwhile get another one. */
  patienceMs?: number
}

/** Maximum queries in a statement, unless the batcher has another. */
export const batchSize = 100

export type Pacer = ReturnType<typeof createPacer>

/**
 * Runs the statements of several batchers one after the other, so that queries of one kind gather while those of another are answered. The
 * batcher that has waited longest is next.
 */
export const createPacer = () => {
  const waiting = new Set<() => void>()
  let underWay = 0
  return {
    /** Whether no statement is under way. */
    get isFree() {
      return underWay === 0
    },
    /** A statement starts. */
    begin: () => {
      underWay++
    },
    /** A statement has ended: wakes the batchers that wait. */
    end: () => {
      underWay--
      const woken = [...waiting]
      waiting.clear()
      for (const next of woken) next()
    },
    /** Calls `next` once, when a statement has ended. */
    wait: (next: () => void) => {
      waiting.add(next)
    }
  }
}

/**
 * Makes a batcher: a function that answers a query, or rejects with its error. A lone query is sent at once; none waits for others to arrive.
 * While a statement is under way, queries gather for the next one, since a statement costs several times as much as a query in it. Once half a
 * statement's worth have gathered, they get one of their own.
 */
export const createBatches = <Q, A>({
  many,
  one = async question => (await many([question]))[0]!,
  ownerOf = () => '',
  size = batchSize,
  atOnce = 2,
  pacer = createPacer(),
  isDurable = false,
  patienceMs = 5
}: Options<Q, A>) => {
  const queue: Waiting<Q, A>[] = []
  let asking = 0
  let isPatient = false

  const apart = createHeldRetry({ many, ownerOf, size })

  const alone = (waiting: Waiting<Q, A>, ended = () => {}): Promise<void> =>
    one(waiting.question)
      .finally(ended)
      .then(
        answer => (answer === null ? apart.add(waiting) : waiting.resolve(answer)),
        error => (isHeld(error) ? apart.add(waiting) : waiting.reject(error))
      )

  /** Runs a batch as one statement. Returns the queries to be sent one by one, if the server refused it; only then, `ended` is not called. */
  const together = async (batch: Waiting<Q, A>[], ended: () => void): Promise<Waiting<Q, A>[]> => {
    let answers: (A | null)[]
    try {
      answers = await many(batch.map(({ question }) => question))
    } catch (error) {
      // One query may be at fault, and only it should fail. A statement is known to have changed nothing only if the server refused it.
      if (error instanceof pg.DatabaseError && !isAway(error)) return batch
      ended()
      for (const waiting of batch) {
        if (isHeld(error)) apart.add(waiting)
        else waiting.reject(error)
      }
      return []
    }
    ended()
    // By then, the pool has sent the next statement, so the database doesn't wait while these answers are processed.
    await new Promise(process.nextTick)
    for (const [n, waiting] of batch.entries()) {
      const answer = answers[n]!
      if (answer === null) apart.add(waiting)
      else waiting.resolve(answer)
    }
    return []
  }

  /** Queries sent one by one take the place of their batch, so that one tenant's faults take no further connections. */
  const ask = async (batch: Waiting<Q, A>[], ended: () => void) => {
    if (batch.length === 1) return alone(batch[0]!, ended)
    const left = await together(batch, ended)
    for (const waiting of left) await alone(waiting)
    if (left.length > 0) ended()
  }

  const next = (gathered = size / 2) => {
    while (queue.length > 0 && asking < atOnce && ((pacer.isFree && !(isDurable && asking > 0)) || queue.length >= gathered)) {
      const batch = queue.splice(0, size)
      asking++
      if (!isDurable) pacer.begin()
      const ended = () => {
        asking--
        if (isDurable) next()
        else pacer.end()
      }
      void ask(batch, ended)
    }
    if (queue.length === 0) return
    pacer.wait(wake)
    if (asking === atOnce || isPatient) return
    isPatient = true
    setTimeout(() => {
      isPatient = false
      next(1)
    }, patienceMs).unref()
  }
  const wake = () => next()

  return (question: Q): Promise<A> =>
    new Promise((resolve, reject) => {
      const waiting = { question, resolve, reject }
      if (apart.has(question)) return apart.add(waiting)
      queue.push(waiting)
      next()
    })
}
