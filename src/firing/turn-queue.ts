/**
 * A queue that serves accounts in turns: a few items of one, then the next. An account's backlog delays only itself, and accounts without room
 * are passed over.
 */
type Queue<T> = { items: T[]; head: number }

/** Maximum accounts that one call passes over. The next call continues after them, so that no call takes long. */
const passedOverAtMost = 500
/** Items that a queue has handed out and still holds. */
const takenAtMost = 1000

/**
 * @param turnLength items of an account in one turn
 * @param dueOf by which an account's items are ordered; by default, they are served in the order in which they were added
 */
export const createTurnQueue = <T>(turnLength = 1, dueOf: (item: T) => number = () => 0) => {
  const queues = new Map<string, Queue<T>>()
  let size = 0
  let untried = 0
  return {
    get size() {
      return size
    },
    /** Number of items that `take` may return now: 0 once a call found no more that are admitted. */
    get untried() {
      return untried
    },
    /** Whether an account has an item of which a condition holds. */
    has: (account: string, condition: (item: T) => boolean): boolean => {
      const queue = queues.get(account)
      return queue?.items.some((item, n) => n >= queue.head && condition(item)) ?? false
    },
    add: (account: string, item: T): void => {
      const queue = queues.get(account)
      if (queue) insertByDue(queue.items, item, dueOf, queue.head)
      else queues.set(account, { items: [item], head: 0 })
      size++
      untried++
    },

    /** Takes up to `limit` items. `admit` is called before each; an account for which it returns false keeps its items. */
    take: (limit: number, admit: (account: string) => boolean = () => true): T[] => {
      const taken: T[] = []
      let passedOver = 0
      while (taken.length < limit && passedOver < Math.min(queues.size, passedOverAtMost)) {
        const [account, queue] = queues.entries().next().value!
        const before = taken.length
        while (queue.head < queue.items.length && taken.length < Math.min(limit, before + turnLength) && admit(account))
          taken.push(queue.items[queue.head++]!)
        passedOver = taken.length === before ? passedOver + 1 : 0
        queues.delete(account)
        if (queue.head >= takenAtMost) {
          queue.items.splice(0, queue.head)
          queue.head = 0
        }
        if (queue.head < queue.items.length) queues.set(account, queue)
      }
      size -= taken.length
      untried = taken.length === limit ? size : 0
      return taken
    },

    /** Removes the items of which a condition doesn't hold. */
    keepOnly: (condition: (item: T) => boolean): void => {
      size = 0
      for (const [account, queue] of queues) {
        queue.items = queue.items.slice(queue.head).filter(condition)
        queue.head = 0
        size += queue.items.length
        if (queue.items.length === 0) queues.delete(account)
      }
      untried = Math.min(untried, size)
    }
  }
}

/** Inserts an item into an ordered list, after those of the same instant. */
export const insertByDue = <T>(items: T[], item: T, dueOf: (item: T) => number, from = 0): void => {
  let [at, end] = [from, items.length]
  if (at === end || dueOf(items[end - 1]!) <= dueOf(item)) return void items.push(item)
  while (at < end) {
    const middle = (at + end) >> 1
    if (dueOf(items[middle]!) > dueOf(item)) end = middle
    else at = middle + 1
  }
  items.splice(at, 0, item)
}
