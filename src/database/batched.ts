/** Questions that come while others are being answered are asked together, in one statement: under load the database is asked less often. */
import pg from 'pg'
import { isAway, isHeld } from '../errors.ts'
import { createHeldRetry, type Waiting } from './retry-held.ts'

type Options<Q, A> = {
  /** Several, or one; the answers in their order. Null: somebody holds a row that this question needs. */
  many: (questions: Q[]) => Promise<(A | null)[]>
  /** A question that nobody else asked with; by default as several. */
  one?: (question: Q) => Promise<A | null>
  /** Whose rows a question needs. Those of an owner whose rows are held are asked apart from all others. */
  ownerOf?: (question: Q) => string
  size?: number
  /** How many statements at once. */
  atOnce?: number
  /** Shared by batches whose statements are to take turns. */
  turns?: Turns
  /** What it asks waits for the disk: it takes its turn, and meanwhile others have theirs. */
  isDurable?: boolean
  /** A statement that takes longer may be waiting for a lock or for the disk: what has come meanwhile is asked beside it. */
  patienceMs?: number
}

export type Turns = ReturnType<typeof createTurns>

/**
 * Statements of several batches, one after the other: what one kind of question gathers while another is being answered goes in one statement,
 * and the database is asked half as often. Who has waited longest is next.
 */
export const createTurns = () => {
  const waiting = new Set<() => void>()
  let underWay = 0
  return {
    get isFree() {
      return underWay === 0
    },
    begin: () => {
      underWay++
    },
    end: () => {
      underWay--
      const woken = [...waiting]
      waiting.clear()
      for (const next of woken) next()
    },
    /** Calls once, when a statement has ended. */
    wait: (next: () => void) => {
      waiting.add(next)
    }
  }
}

/**
 * Makes a function that asks. A lone question is asked at once, and none waits for another that has not come yet. While a statement is under
 * way the next ones gather, since each costs several times what a question in it does; half a statement full of them go beside it.
 */
export const createBatches = <Q, A>({
  many,
  one = async question => (await many([question]))[0]!,
  ownerOf = () => '',
  size = 50,
  atOnce = 2,
  turns = createTurns(),
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

  /** Answers those whose question was answered, or failed for all. @returns those to be asked alone; if there are any, nothing has ended */
  const together = async (batch: Waiting<Q, A>[], ended: () => void): Promise<Waiting<Q, A>[]> => {
    let answers: (A | null)[]
    try {
      answers = await many(batch.map(({ question }) => question))
    } catch (error) {
      // One of them may be at fault: it alone is to be told so. Only what the server refused is known to have changed nothing, and is asked again.
      if (error instanceof pg.DatabaseError && !isAway(error)) return batch
      ended()
      for (const waiting of batch) {
        if (isHeld(error)) apart.add(waiting)
        else waiting.reject(error)
      }
      return []
    }
    ended()
    // By then the pool has sent the next statement, and the database need not wait for what is done with the answers of this one.
    await new Promise(process.nextTick)
    for (const [n, waiting] of batch.entries()) {
      const answer = answers[n]!
      if (answer === null) apart.add(waiting)
      else waiting.resolve(answer)
    }
    return []
  }

  /** Whoever is asked alone is so in the place of the batch: one tenant's faults take no more connections than others' answers. */
  const ask = async (batch: Waiting<Q, A>[], ended: () => void) => {
    if (batch.length === 1) return alone(batch[0]!, ended)
    const left = await together(batch, ended)
    for (const waiting of left) await alone(waiting)
    if (left.length > 0) ended()
  }

  const next = (gathered = size / 2) => {
    while (queue.length > 0 && asking < atOnce && ((turns.isFree && !(isDurable && asking > 0)) || queue.length >= gathered)) {
      const batch = queue.splice(0, size)
      asking++
      if (!isDurable) turns.begin()
      const ended = () => {
        asking--
        if (isDurable) next()
        else turns.end()
      }
      void ask(batch, ended)
    }
    if (queue.length === 0) return
    turns.wait(wake)
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
