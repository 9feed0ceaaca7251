/**
 * The two limits of concurrent deliveries. Fast slots limit requests to receivers that respond quickly: one that takes long gives its slot back and
 * goes on without one, so that slow receivers don't delay fast ones. The capacity limits open deliveries, on hand and under way, of all kinds.
 */
import { createCounts } from '../cache/counts.ts'

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

/**
 * Makes the capacity of one engine; the defaults are `sharedAtMost` and `reserveAtMost`. An account may open more only while it holds less than is
 * free, so that n accounts that fill it at the same time leave 1/(n+1). In the reserve, every account may hold a few, so that hundreds of accounts with
 * hanging receivers can't keep others from delivering.
 */
export const createCapacity = ({ shared = sharedAtMost, reserve = reserveAtMost, isAllowed }: Options) => {
  const open = createCounts()
  // Whether each account's latest delivery was quick; ordered by when that last changed.
  const quick = new Map<string, boolean>()

  const hasRoom = (account: string): boolean => {
    const held = open.of(account)
    if (!isAllowed(account, held)) return false
    return held < shared - open.total || (held < (quick.get(account) ? quickTrials : trials) && open.total < shared + reserve)
  }

  return {
    /** Number of open deliveries. */
    get open() {
      return open.total
    },
    /** Maximum of `open`. */
    limit: shared + reserve,
    openOf: open.of,
    /** Whether the account may open another delivery. */
    hasRoom,

    /** Counts another delivery of the account as open, if it has room. Returns whether it has. */
    tryOpen: (account: string): boolean => {
      const isOpened = hasRoom(account)
      if (isOpened) open.add(account, 1)
      return isOpened
    },

    /** A delivery of the account is no longer open. */
    close: (account: string): void => open.add(account, -1),

    /** Notes whether a delivery of the account was quick. */
    note: (account: string, wasQuick: boolean): void => {
      if (quick.get(account) === wasQuick) return
      quick.delete(account)
      quick.set(account, wasQuick)
      if (quick.size > pacesKept) quick.delete(quick.keys().next().value!)
    },

    /** Whether the account's latest delivery was slow. */
    isSlow: (account: string): boolean => quick.get(account) === false,

    /** Accounts with open deliveries that may not open another. */
    full: (): string[] => open.names().filter(account => !hasRoom(account))
  }
}

type SlotOptions = {
  /** Number of slots. */
  slots: number
  /** A request gives its slot back after this time. */
  slowAfterMs: number
  /** A request of the account took too long for a fast slot. */
  onSlow: (account: string) => void
}

/** Makes the fast slots of one engine. */
export const createFastSlots = ({ slots, slowAfterMs, onSlow }: SlotOptions) => {
  const used = createCounts()
  return {
    /** Whether the account may take another slot: only while it has fewer than are free. */
    hasRoom: (account: string): boolean => used.of(account) < slots - used.total,

    /** Lends a slot. The returned function gives it back, if it isn't back already. */
    lend: (account: string): (() => void) => {
      const giveBack = () => {
        if (!timer) return
        clearTimeout(timer)
        timer = undefined
        used.add(account, -1)
      }
      // If this process was busy, the response may have arrived already: it is read before the immediate runs.
      const late = () => {
        if (!timer) return
        giveBack()
        onSlow(account)
      }
      used.add(account, 1)
      let timer: NodeJS.Timeout | undefined = setTimeout(() => setImmediate(late), slowAfterMs)
      return giveBack
    }
  }
}
