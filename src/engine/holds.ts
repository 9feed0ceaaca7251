/**
 * What the operator holds. The functions that take and begin look for themselves: an engine needs to know only so that it does not try in vain, and
 * keeps the work of a held account where it is.
 */
import type { Functions } from '../database/functions.ts'

type Options = {
  fn: Pick<Functions, 'heldAccounts'>
  /** Something else is held than before. */
  onChange: () => void
}

export const createHolds = ({ fn, onChange }: Options) => {
  // Null stands for the service.
  let held: ReadonlySet<string | null> = new Set()
  return {
    /** Whether the account is held, or the service. */
    isHeld: (account: string | null = null): boolean => held.has(null) || held.has(account),
    read: async (): Promise<void> => {
      const before = held
      held = new Set(await fn.heldAccounts({}))
      if (before.symmetricDifference(held).size > 0) onChange()
    }
  }
}
