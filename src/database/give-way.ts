/** Long work that lets other requests run in between. */
import { setImmediate } from 'node:timers/promises'

/** Milliseconds of work before other requests get their turn. */
const turnMs = 5

/** Makes a function that lets other requests run once it has been called for a while. */
export const createGiveWay = () => {
  let since = performance.now()
  return async (): Promise<void> => {
    if (performance.now() - since < turnMs) return
    await setImmediate()
    since = performance.now()
  }
}
