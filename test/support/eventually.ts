import { setTimeout as delay } from 'node:timers/promises'

/**
 * Calls the function every 20 to 100 ms, ever less often, until its result is truthy, and returns that. Throwing counts as false.
 * @throws {Error} the error of the last call, after the time limit
 */
export const eventually = async <T>(attempt: () => T | Promise<T>, limitMs = 60_000): Promise<NonNullable<T>> => {
  for (let [end, restMs] = [Date.now() + limitMs, 20]; ; restMs = Math.min(restMs * 1.1, 100)) {
    try {
      const answer = await attempt()
      if (answer) return answer
      if (Date.now() > end) throw new Error(`condition not met within ${limitMs} ms: ${attempt}`)
    } catch (error) {
      if (Date.now() > end) throw error
    }
    await delay(restMs)
  }
}
