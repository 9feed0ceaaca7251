/** Long work that lets other requests run in between. */
import { setImmediate } from 'node:timers/promises'

/** Milliseconds of work before other requests get their turn. */
const turnMs = 5
/** Of all long work in this thread, only one part runs in each turn of the event loop. */
let latest: Promise<unknown> = Promise.resolve()

/** Makes a function that lets other requests run once it has been called for a while. */
export const createYield = () => {
  let since = performance.now()
  return async (): Promise<void> => {
    if (performance.now() - since < turnMs) return
    latest = latest.then(() => setImmediate())
    await latest
    since = performance.now()
  }
}
