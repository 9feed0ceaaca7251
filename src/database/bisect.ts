import { isAway } from '../errors.ts'

/**
 * Does something with a batch; where the database refuses it for what is in it, with each half, down to the one at fault. That one is left
 * out, and told to `leaveOut`: it must not stand before all the others. Rejects when the database does not answer.
 */
export const inHalves = async <T, R>(
  batch: T[],
  run: (batch: T[]) => Promise<R[]>,
  leaveOut: (one: T, error: unknown) => void
): Promise<R[]> => {
  try {
    return await run(batch)
  } catch (error) {
    if (isAway(error)) throw error
    if (batch.length === 1) {
      leaveOut(batch[0]!, error)
      return []
    }
    const half = batch.length >> 1
    const first = await inHalves(batch.slice(0, half), run, leaveOut)
    return [...first, ...(await inHalves(batch.slice(half), run, leaveOut))]
  }
}
