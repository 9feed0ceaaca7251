/**
 * How many deliveries are open, and which account may open another. An account may open more only while it holds less than is free, and n
 * accounts together leave 1/(n+1) of the capacity to the next one, in any order. On top of that there is a reserve, in which every account may
 * hold a few, so that hundreds of accounts with hanging receivers can't keep others from delivering.
 */

/** Open deliveries shared by all accounts. */
export const sharedAtMost = 5000
/** The reserve on top. With one trial each, it takes a thousand accounts with hanging receivers to fill it. */
export const reserveAtMost = 1000
/** An account's part of the reserve: one delivery, to find out how fast its receivers respond; more if the latest one was quick. */
const trials = 1
const quickTrials = 5
/** Maximum accounts whose pace is remembered. */
const pacesKept = 10_000

type Options = {
  shared?: number
  reserve?: number
  /** Whether the account's plan allows another delivery beside `open` ones. */
  isAllowed: (account: string, open: number) => boolean
}

export type Capacity = ReturnType<typeof createCapacity>

/** Makes the count for one engine. The defaults are `sharedAtMost` and `reserveAtMost`. */
export const createCapacity = ({ shared = sharedAtMost, reserve = reserveAtMost, isAllowed }: Options) => {
  const openOf = new Map<string, number>()
  // Whether each account's latest delivery was quick; ordered by when that last changed.
  const quick = new Map<string, boolean>()
  let open = 0
  // Accounts that have open deliveries and are not known to be quick.
  let holders = 0

  const isQuick = (account: string) => quick.get(account) === true

  const notePace = (account: string, now: boolean | undefined) => {
    const before = isQuick(account)
    quick.delete(account)
    if (now !== undefined) quick.set(account, now)
    if (openOf.has(account) && before !== isQuick(account)) holders += before ? 1 : -1
  }

  const hasRoom = (account: string): boolean => {
    const own = openOf.get(account) ?? 0
    if (!isAllowed(account, own)) return false
    const free = shared - open
    const isHolder = own > 0 && !isQuick(account)
    if (own < free && free > shared / (holders + (isHolder ? 1 : 2))) return true
    return own < (isQuick(account) ? quickTrials : trials) && open < shared + reserve
  }

  return {
    /** Number of open deliveries. */
    get open() {
      return open
    },
    /** Maximum of `open`. */
    limit: shared + reserve,
    openOf: (account: string): number => openOf.get(account) ?? 0,
    /** Whether the account may open another delivery. */
    hasRoom,

    /** Counts another delivery of the account as open, if it has room. Returns whether it has. */
    tryOpen: (account: string): boolean => {
      if (!hasRoom(account)) return false
      const own = openOf.get(account) ?? 0
      openOf.set(account, own + 1)
      if (own === 0 && !isQuick(account)) holders++
      open++
      return true
    },

    /** A delivery of the account is no longer open. */
    close: (account: string): void => {
      const own = openOf.get(account)! - 1
      open--
      if (own > 0) return void openOf.set(account, own)
      openOf.delete(account)
      if (!isQuick(account)) holders--
    },

    /** Notes whether a delivery of the account was quick. */
    note: (account: string, wasQuick: boolean): void => {
      if (quick.get(account) === wasQuick) return
      notePace(account, wasQuick)
      if (quick.size > pacesKept) notePace(quick.keys().next().value!, undefined)
    },

    /** Whether the account's latest delivery was slow. */
    isSlow: (account: string): boolean => quick.get(account) === false,

    /** Accounts with open deliveries that may not open another. */
    full: (): string[] => [...openOf.keys()].filter(account => !hasRoom(account))
  }
}
