/**
 * Computes schedules, and charges the time to the accounts they belong to. Together, accounts may use a quarter of each second; each has an equal
 * share of that. One that has used more than its share of the last second is passed over until it is below its share again, and nobody else waits.
 */
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { createTurnQueue } from './turn-queue.ts'

/** A long computation, which yields where others may go on. */
export type Steps<T> = Generator<void, T>

export type Computing = ReturnType<typeof createComputing>

type Task = { account: string; steps: Steps<unknown>; resolve: (result: never) => void; reject: (error: unknown) => void }

const budgetMs = 250
/** An account that has used less of the last second is never passed over, and takes no share from others. */
const freeMs = 1
/** Of one computation, before it is another account's turn. */
const sliceMs = 2
/** Of all computations, before everything else in this thread has its turn. */
const turnMs = 5
/** Between looks at the accounts that are passed over. */
const restMs = 20

function* stepsOf<T>(compute: () => T | Steps<T>): Steps<T> {
  const result = compute()
  return isSteps(result) ? yield* result : result
}
const isSteps = <T>(result: T | Steps<T>): result is Steps<T> => Object.prototype.toString.call(result) === '[object Generator]'

/** @param now returns milliseconds of a monotonic clock */
export const createComputing = (now = () => performance.now()) => {
  const tasks = createTurnQueue<Task>()
  // Account → milliseconds that it has used, less what its share has paid for since.
  const used = new Map<string, number>()
  let share = budgetMs
  let paidAt = now()
  let isWorking = false
  let onSettled: (() => void)[] = []

  const pay = () => {
    const paid = (share * (now() - paidAt)) / 1000
    paidAt = now()
    let heavy = 0
    for (const [account, ms] of used) {
      if (ms > paid) used.set(account, ms - paid)
      else used.delete(account)
      if (ms - paid > freeMs) heavy++
    }
    share = Math.max(budgetMs / Math.max(heavy, 1), freeMs)
  }
  const isBelowShare = (account: string) => (used.get(account) ?? 0) < share

  const advance = (task: Task) => {
    const startedAt = now()
    try {
      let step = task.steps.next()
      while (!step.done && now() - startedAt < sliceMs) step = task.steps.next()
      if (step.done) task.resolve(step.value as never)
      else tasks.add(task.account, task)
    } catch (error) {
      task.reject(error)
    }
    used.set(task.account, (used.get(task.account) ?? 0) + now() - startedAt)
  }

  const settle = () => {
    for (const resolve of onSettled) resolve()
    onSettled = []
  }

  const work = async () => {
    if (isWorking) return
    isWorking = true
    do {
      for (const since = now(); tasks.size > 0 && now() - since < turnMs; ) {
        if (now() - paidAt >= restMs) pay()
        const [task] = tasks.take(1, isBelowShare)
        if (task) advance(task)
        else {
          settle()
          await delay(restMs, undefined, { ref: false })
        }
      }
      // What is started until then shares the next turn.
      await nextTurn()
    } while (tasks.size > 0)
    isWorking = false
    settle()
  }

  return {
    /** Resolves to the result of a computation. Starts at once, if there is time. */
    run: <T>(account: string, compute: () => T | Steps<T>): Promise<T> => {
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      tasks.add(account, { account, steps: stepsOf(compute), resolve, reject })
      void work()
      return promise
    },

    /** Resolves when only accounts that are passed over have anything left to compute. */
    settled: (): Promise<void> =>
      new Promise(resolve => {
        onSettled.push(resolve)
        void work()
      }),

    /** The accounts that are passed over. */
    passedOver: (): string[] => {
      pay()
      return [...used.keys()].filter(account => !isBelowShare(account))
    }
  }
}
