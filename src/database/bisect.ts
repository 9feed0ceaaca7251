import { isUnavailable, mayBeOfOne } from '../errors.ts'

/**
 * Runs a batch. If the database refuses it, runs each half on its own, down to the items at fault, which are passed to `leaveOut` instead of
 * failing all the others. If nothing succeeds, and the database may be the cause, no item is at fault.
 * @returns the results of all runs, concatenated
 * @throws the error of an unavailable database
 */
export const bisect = async <T, R>(
  batch: T[],
  run: (batch: T[]) => Promise<R[]>,
  leaveOut: (item: T, error: unknown) => void
): Promise<R[]> => {
  const results: R[] = []
  const faulty: { item: T; error: unknown }[] = []
  let hasSucceeded = false
  const attempt = async (part: T[]): Promise<void> => {
    try {
      for (const result of await run(part)) results.push(result)
      hasSucceeded = true
    } catch (error) {
      if (!mayBeOfOne(error)) throw error
      if (part.length === 1) return void faulty.push({ item: part[0]!, error })
      const half = part.length >> 1
      await attempt(part.slice(0, half))
      await attempt(part.slice(half))
    }
  }
  await attempt(batch)
  const suspects = faulty.filter(({ error }) => isUnavailable(error))
  if (!hasSucceeded && suspects.length > 0) throw suspects[0]!.error
  // The database may have been the cause until just now.
  for (const { item } of suspects) await attempt([item])
  for (const fault of faulty) if (!suspects.includes(fault)) leaveOut(fault.item, fault.error)
  return results
}
