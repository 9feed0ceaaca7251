/**
 * Limits the connections per account, and to only one for 5 s after a lock timeout, since further queries would probably wait for the same
 * lock while holding connections that others need.
 */
import { isHeld, unavailable } from '../errors.ts'

const heldForMs = 5000
/** After this time in the queue, a request is rejected as unavailable. */
const patienceMs = 5000
const patienceWhileHeldMs = 2000

type Account = { running: number; heldUntil: number; waiting: Set<() => void> }

export type ConnectionLimits = ReturnType<typeof createConnectionLimits>

/** @param most operations of an account at a time */
export const createConnectionLimits = (most: number) => {
  const accounts = new Map<string, Account>()

  const isKnownHeld = ({ heldUntil }: Account) => performance.now() < heldUntil
  const isFree = (own: Account) => own.running < (isKnownHeld(own) ? 1 : most)

  const enter = async (own: Account): Promise<void> => {
    if (!isFree(own)) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      own.waiting.add(resolve)
      const late = setTimeout(
        () => own.waiting.delete(resolve) && reject(unavailable()),
        isKnownHeld(own) ? patienceWhileHeldMs : patienceMs
      )
      await promise.finally(() => clearTimeout(late))
    } else own.running++
  }

  const leave = (own: Account): void => {
    own.running--
    for (const letIn of own.waiting) {
      if (!isFree(own)) return
      own.waiting.delete(letIn)
      own.running++
      letIn()
    }
  }

  const forget = (account_id: string, own: Account): void => {
    if (own.running === 0 && own.waiting.size === 0 && !isKnownHeld(own) && accounts.get(account_id) === own) accounts.delete(account_id)
  }

  /** Runs `work` for an account once it has a free connection. @throws ApiError unavailable after waiting too long */
  return async <T>(account_id: string, work: () => Promise<T>): Promise<T> => {
    const own = accounts.get(account_id) ?? { running: 0, heldUntil: 0, waiting: new Set() }
    accounts.set(account_id, own)
    await enter(own)
    try {
      return await work()
    } catch (error) {
      if (isHeld(error)) {
        own.heldUntil = performance.now() + heldForMs
        setTimeout(forget, heldForMs + 1, account_id, own).unref()
      }
      throw error
    } finally {
      leave(own)
      forget(account_id, own)
    }
  }
}
