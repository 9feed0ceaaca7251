/**
 * Queries that arrive while others are being answered share one statement.
 *
 * CPU time per request with shared statements, and with one per query: of the database, 0.15 and 1.41 ms for GET /v1/cues/{id}, 0.27 and 2.16 ms
 * for POST /v1/cues; of the service, 0.29 and 0.87 ms, 0.39 and 1.49 ms. (Medians of three interleaved runs of `npm run bench -- api --seconds 3`
 * on two busy cores.)
 * Without the pacer only, the database needs 0.16 and 0.31 ms, the service about the same.
 */
import pg from 'pg'
import { isHeld, mayBeOfOne } from '../errors.ts'
import { createHeldRetry, type Waiting } from './retry-held.ts'

type Options<Q, A> = {
  /** Answers queries, in order. Null: another session has locked a row that the query needs. */
  many: (questions: Q[]) => Promise<(A | null)[]>
  /** The same over a pipeline that only this batcher uses (createPipeline). */
  pipelined?: (questions: Q[]) => Promise<(A | null)[]>
  /** Answers a query that is alone in its batch; `many` by default. */
  one?: (question: Q) => Promise<A | null>
  /** Whose rows a query needs. While an owner's rows are locked, its queries are retried separately from all others. */
  ownerOf?: (question: Q) => string
  /** Maximum queries in a statement; `batchSize` by default. */
  size?: number
  /** Shared by batchers whose statements should not run concurrently. */
  pacer?: Pacer
  /** Statements wait for the disk: they start only when the pacer is free, but don't occupy it. */
  isDurable?: boolean
}

/** Maximum queries in a statement, unless the batcher has another. */
export const batchSize = 100

/** Maximum statements of a batcher at the same time: more than one only if some take long. */
const atOnce = 2

/**
 * The least patience with statements that wait for the disk, see createPacer: twice what one of 100 queries takes on a slow and busy CPU. If two
 * ran at the same time, one would often wait for rows that the other has locked.
 */
const durablePatienceMs = 50

export type Pacer = ReturnType<typeof createPacer>

/**
 * Runs the statements of several batchers one after the other, so that queries of one kind gather while those of another are answered. The
 * batcher that has waited longest is next. Two statements at the same time, on two connections, need a tenth more CPU of the database.
 *
 * @param patienceMs A statement that takes longer may be waiting for a lock or the disk, so others don't wait for it.
 */
export const createPacer = (patienceMs = 10) => {
  const waiting = new Set<() => void>()
  const underWay = new Set<{ since: number }>()
  let isTimed = false

  /** How long the next statement has to wait if none ends. */
  const busyMs = () => {
    let last = Number.NEGATIVE_INFINITY
    for (const { since } of underWay) last = since // in order
    return Math.max(last + patienceMs - performance.now(), 0)
  }
  const wake = () => {
    const woken = [...waiting]
    waiting.clear()
    for (const next of woken) next()
  }
  const lookAgain = () => {
    isTimed = false
    const ms = busyMs()
    if (ms === 0) wake()
    else if (waiting.size > 0) wakeAfter(ms)
  }
  /** Results that have arrived by then are read first. */
  const wakeAfter = (ms: number) => {
    if (isTimed) return
    isTimed = true
    setTimeout(() => setImmediate(lookAgain), Math.ceil(ms)).unref()
  }

  return {
    patienceMs,

    /** A statement starts. Call the result when it has ended. */
    begin: () => {
      const statement = { since: performance.now() }
      underWay.add(statement)
      return () => {
        underWay.delete(statement)
        wake()
      }
    },

    /** Whether a statement has to wait. If so, `next` is called once, when that may have changed. */
    isBusy: (next: () => void): boolean => {
      const ms = busyMs()
      if (ms === 0) return false
      waiting.add(next)
      wakeAfter(ms)
      return true
    },

    /** Whether a batcher other than that of `next` waits. */
    isWanted: (next: () => void): boolean => waiting.size > (waiting.has(next) ? 1 : 0)
  }
}

/**
 * Makes a batcher: a function that answers a query, or rejects with its error. Queries that arrive in the same turn of the event loop are sent
 * together; none waits longer for others to arrive. While a statement is under way, queries gather for the next one, since a statement costs ten
 * times as much as a query in it. Of many that have gathered, half are next: while the database answers some, this process takes care of others.
 * Over a pipeline, a statement for many is sent before the previous one has ended.
 */
export const createBatches = <Q, A>({
  many,
  pipelined,
  one = async question => (await many([question]))[0]!,
  ownerOf = () => '',
  size = batchSize,
  pacer = createPacer(),
  isDurable = false
}: Options<Q, A>) => {
  const queue: Waiting<Q, A>[] = []
  let asking = 0
  let isAboutToSend = false
  const own = isDurable ? createPacer(Math.max(pacer.patienceMs, durablePatienceMs)) : pacer

  /** Statements under way in the pipeline, and when the last was sent. */
  let inPipeline = 0
  let sentAt = 0
  const overPipeline = pipelined
    ? async (questions: Q[]) => {
        inPipeline++
        sentAt = performance.now()
        return pipelined(questions).finally(() => inPipeline--)
      }
    : many

  const apart = createHeldRetry({ many, ownerOf, size })

  const alone = (waiting: Waiting<Q, A>, ended = () => {}): Promise<void> =>
    one(waiting.question)
      .finally(ended)
      .then(
        answer => (answer === null ? apart.add(waiting) : waiting.resolve(answer)),
        error => (isHeld(error) ? apart.add(waiting) : waiting.reject(error))
      )

  /** Runs a batch as one statement. Returns the queries to be sent one by one, if the server refused it; only then, `ended` is not called. */
  const together = async (batch: Waiting<Q, A>[], over: typeof many, ended: () => void): Promise<Waiting<Q, A>[]> => {
    let answers: (A | null)[]
    try {
      answers = await over(batch.map(({ question }) => question))
    } catch (error) {
      // One query may be at fault, and only it should fail. A statement is known to have changed nothing only if the server refused it.
      if (error instanceof pg.DatabaseError && mayBeOfOne(error)) return batch
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
  const ask = async (batch: Waiting<Q, A>[], over: typeof many, ended: () => void) => {
    if (batch.length === 1) return alone(batch[0]!, ended)
    const left = await together(batch, over, ended)
    for (const waiting of left) await alone(waiting)
    if (left.length > 0) ended()
  }

  /** How many of the queue are next: all that fit if they wait for the disk, which takes as long for one; otherwise a part, and a small rest with it. */
  const share = () => {
    const part = Math.ceil(Math.max(queue.length / 2, size / 3))
    return isDurable || queue.length < part * 1.5 ? size : Math.min(part, size)
  }

  /**
   * Whether a statement may be sent behind the one under way, for the database to begin without waiting for this process. Few queries rather wait
   * for more, nothing is sent behind a statement that hangs, and other batchers have their turn.
   */
  const mayFollow = () =>
    inPipeline === 1 &&
    queue.length >= (isDurable ? size / 3 : size / 6) &&
    performance.now() - sentAt < own.patienceMs &&
    (isDurable || !pacer.isWanted(next))

  const next = () => {
    while (queue.length > 0 && asking < atOnce) {
      const isFollowing = mayFollow()
      if (!isFollowing && (own.isBusy(next) || pacer.isBusy(next))) return
      const batch = queue.splice(0, share())
      asking++
      const end = own.begin()
      void ask(batch, isFollowing || inPipeline === 0 ? overPipeline : many, () => {
        asking--
        end()
        next()
      })
    }
  }

  const send = () => {
    isAboutToSend = false
    next()
  }

  return (question: Q): Promise<A> =>
    new Promise((resolve, reject) => {
      const waiting = { question, resolve, reject }
      if (apart.has(question)) return apart.add(waiting)
      queue.push(waiting)
      if (!isAboutToSend) setImmediate(send)
      isAboutToSend = true
    })
}
