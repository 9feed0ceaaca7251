/**
 * Limits what one owner, an account or a caller, has under way; further operations wait for their turn. For 5 s after a lock timeout only one
 * runs, since others would probably wait for the same lock while holding connections that others need.
 */
import { isHeld, unavailable, unsent } from '../errors.ts'

const heldForMs = 5000
/** After this time in the queue, a request is rejected as unavailable. */
const patienceMs = 5000
const patienceWhileHeldMs = 2000

type Owner = { running: number; heldUntil: number; waiting: Set<() => void> }

export type Turns = ReturnType<typeof createTurns>

/** @param most operations of an owner at a time */
export const createTurns = (most: number) => {
  const owners = new Map<string, Owner>()

  const isKnownHeld = ({ heldUntil }: Owner) => performance.now() < heldUntil
  const isFree = (own: Owner) => own.running < (isKnownHeld(own) ? 1 : most)

  const turnOf = (own: Owner): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    own.waiting.add(resolve)
    const refuse = () => own.waiting.delete(resolve) && reject(unavailable(unsent(new Error('too many operations of one owner'))))
    const timer = setTimeout(refuse, isKnownHeld(own) ? patienceWhileHeldMs : patienceMs)
    return promise.finally(() => clearTimeout(timer))
  }

  const leave = (own: Owner): void => {
    own.running--
    for (const letIn of own.waiting) {
      if (!isFree(own)) return
      own.waiting.delete(letIn)
      own.running++
      letIn()
    }
  }

  const forget = (owner: string, own: Owner): void => {
    if (own.running === 0 && own.waiting.size === 0 && !isKnownHeld(own) && owners.get(owner) === own) owners.delete(owner)
  }

  /** Runs `work` of an owner when it is its turn. @throws ApiError unavailable after waiting too long */
  return async <T>(owner: string, work: () => Promise<T>): Promise<T> => {
    const own = owners.get(owner) ?? { running: 0, heldUntil: 0, waiting: new Set() }
    owners.set(owner, own)
    if (isFree(own)) own.running++
    else await turnOf(own)
    try {
      return await work()
    } catch (error) {
      if (isHeld(error)) {
        own.heldUntil = performance.now() + heldForMs
        setTimeout(forget, heldForMs + 1, owner, own).unref()
      }
      throw error
    } finally {
      leave(own)
      forget(owner, own)
    }
  }
}
