/** Limits what one owner, an account or a caller, has under way; further operations wait for their turn. */
import { unavailable, unsent } from '../errors.ts'

/** After this time in the queue, an operation is rejected as unavailable. */
const patienceMs = 5000

type Owner = { running: number; waiting: Set<() => void> }

export type Turns = ReturnType<typeof createTurns>

/** @param most operations of an owner at a time */
export const createTurns = (most: number) => {
  const owners = new Map<string, Owner>()

  const turnOf = ({ waiting }: Owner): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    waiting.add(resolve)
    const refuse = () => waiting.delete(resolve) && reject(unavailable(unsent(new Error('too many operations of one owner'))))
    const timer = setTimeout(refuse, patienceMs)
    return promise.finally(() => clearTimeout(timer))
  }

  /** Runs `work` of an owner when it is its turn. @throws ApiError unavailable after waiting too long */
  return async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const owner = owners.get(name) ?? { running: 0, waiting: new Set() }
    owners.set(name, owner)
    if (owner.running < most) owner.running++
    else await turnOf(owner)
    try {
      return await work()
    } finally {
      // Whoever waits longest takes its place.
      const [next] = owner.waiting
      owner.waiting.delete(next!)
      if (next) next()
      else if (--owner.running === 0) owners.delete(name)
    }
  }
}
