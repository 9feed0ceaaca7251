/**
 * How many open deliveries each account may have. Its limit is read only while it has as many as the smallest limit of all, which few have,
 * and again every few seconds. The engines share an account's limit evenly.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Functions } from '../database/functions.ts'

type Options = {
  fn: Pick<Functions, 'openLimits'>
  /** Open deliveries that every plan allows. */
  least: number
  /** Number of live engines. */
  engines: () => number
  /** Runs a task unless it is running, and then takes a turn: accounts may have room. */
  run: (task: string, work: () => Promise<unknown>) => unknown
}

/** A changed limit takes effect within this time. */
const keptMs = 5000
const accountsKept = 10_000

/** Returns a function: whether an account that holds `open` deliveries may open another. */
export const createLimits = ({ fn, least: leastOfPlans, engines, run }: Options) => {
  const recent = new Map<string, { limit: number; readAt: number }>()
  const accountsToRead = new Set<string>()
  /** The smallest limit, and when it was read. */
  let least = leastOfPlans
  let leastReadAt = -keptMs

  const read = async () => {
    await nextTurn() // others may follow
    const account_ids = [...accountsToRead]
    accountsToRead.clear()
    const limits = new Map((await fn.openLimits({ account_ids })).map(row => [row.account_id, row.open_deliveries]))
    least = Math.min(leastOfPlans, limits.get(null) ?? leastOfPlans)
    if (recent.size > accountsKept) recent.clear()
    const readAt = performance.now()
    for (const id of account_ids) recent.set(id, { limit: limits.get(id) ?? least, readAt })
  }

  const ask = (account?: string) => {
    if (account) accountsToRead.add(account)
    void run('read delivery limits', read)
  }

  const shareOf = (limit: number) => Math.ceil(limit / Math.max(1, engines()))

  /** Whether the account may open another delivery beside `open` ones. Uses the smallest limit until the account's is read. */
  return (account: string, open: number): boolean => {
    if (performance.now() - leastReadAt > keptMs) {
      leastReadAt = performance.now()
      ask()
    }
    if (open < shareOf(least)) return true
    const entry = recent.get(account)
    if (!entry || performance.now() - entry.readAt > keptMs) ask(account)
    return open < shareOf(entry?.limit ?? least)
  }
}
