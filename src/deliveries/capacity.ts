/**
 * How many deliveries are open, and which account may open another. Capacity is shared according to what is free: an account may open more
 * only while it holds less than is free, and n accounts together leave 1/(n+1) of it to the next one, in whichever order they come. Beyond
 * that there is a reserve, in which every account may hold a few: the accounts that fill the rest, and there may be hundreds of them, keep
 * nobody from delivering.
 */

/** What all accounts share. */
export const sharedAtMost = 5000
/** The reserve on top. With one trial each, it takes a thousand accounts whose receivers hang to fill it. */
export const reserveAtMost = 1000
/** How much of the reserve an account may hold: one delivery to find out how fast its receivers answer; more if the last one was fast. */
const trials = 1
const quickTrials = 5
/** Accounts whose pace is remembered. */
const pacesKept = 10_000

type Options = {
  shared?: number
  reserve?: number
  /** Whether the account's plan allows another open delivery beside so many. */
  isAllowed: (account: string, open: number) => boolean
}

export type Capacity = ReturnType<typeof createCapacity>

export const createCapacity = ({ shared = sharedAtMost, reserve = reserveAtMost, isAllowed }: Options) => {
  const openOf = new Map<string, number>()
  // Whether the account's latest delivery was quick, the account noted last at the end.
  const quick = new Map<string, boolean>()
  let open = 0
  // Accounts that hold something and are not known to be quick.
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
    get open() {
      return open
    },
    limit: shared + reserve,
    openOf: (account: string): number => openOf.get(account) ?? 0,
    hasRoom,

    /** Counts another delivery of the account as open, if it may have one. */
    tryOpen: (account: string): boolean => {
      if (!hasRoom(account)) return false
      const own = openOf.get(account) ?? 0
      openOf.set(account, own + 1)
      if (own === 0 && !isQuick(account)) holders++
      open++
      return true
    },

    close: (account: string): void => {
      const own = openOf.get(account)! - 1
      open--
      if (own > 0) return void openOf.set(account, own)
      openOf.delete(account)
      if (!isQuick(account)) holders--
    },

    /** A delivery of this account ended quickly, or did not. */
    note: (account: string, wasQuick: boolean): void => {
      notePace(account, wasQuick)
      if (quick.size > pacesKept) notePace(quick.keys().next().value!, undefined)
    },

    /** The account's latest delivery took long. */
    isSlow: (account: string): boolean => quick.get(account) === false,

    /** The accounts that may not open another now. */
    full: (): string[] => [...openOf.keys()].filter(account => !hasRoom(account))
  }
}
