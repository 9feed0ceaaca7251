/**
 * Fast slots limit concurrent requests to receivers that respond quickly. A request that takes long gives its slot back and goes on without
 * one, so that slow receivers don't delay fast ones.
 */
type Options = {
  /** Number of slots. */
  slots: number
  /** A request gives its slot back after this time: sooner, down to a quarter of it, the fewer slots are free. */
  slowAfterMs: number
  /** A request of the account took too long for a fast slot. */
  onSlow: (account: string) => void
}

/** Makes the slots of one engine, all free. */
export const createFastSlots = ({ slots, slowAfterMs, onSlow }: Options) => {
  const usedBy = new Map<string, number>()
  let used = 0

  return {
    /** Whether the account may take another slot: only while it has fewer than are free. */
    hasRoom: (account: string): boolean => (usedBy.get(account) ?? 0) < slots - used,

    /** Lends a slot. The returned function gives it back, if it isn't back already. */
    lend: (account: string): (() => void) => {
      used++
      usedBy.set(account, (usedBy.get(account) ?? 0) + 1)
      const giveBack = () => {
        if (!slow) return
        clearTimeout(slow)
        slow = undefined
        used--
        const left = usedBy.get(account)! - 1
        if (left > 0) usedBy.set(account, left)
        else usedBy.delete(account)
      }
      // If this process was busy, the response may have arrived already: it is read before the immediate runs.
      const late = () => {
        if (!slow) return
        giveBack()
        onSlow(account)
      }
      let slow: NodeJS.Timeout | undefined = setTimeout(
        () => setImmediate(late),
        // In four steps: timers of the same duration share a list, which makes them cheaper.
        (slowAfterMs * Math.max(1, Math.ceil(4 * (1 - used / slots)))) / 4
      )
      return giveBack
    }
  }
}
