import { isAway } from '../errors.ts'

/**
 * Runs a batch. If the database refuses it, runs each half on its own, down to the one item at fault, which is passed to `leaveOut` instead of
 * failing all the others.
 * @returns the results of all runs, concatenated
 * @throws the error of the first run that the database did not answer
 */
export const bisect = async <T, R>(
  batch: T[],
  run: (batch: T[]) => Promise<R[]>,
  leaveOut: (item: T, error: unknown) => void
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
    const first = await bisect(batch.slice(0, half), run, leaveOut)
    return [...first, ...(await bisect(batch.slice(half), run, leaveOut))]
  }
}
