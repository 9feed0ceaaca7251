import { setTimeout as delay } from 'node:timers/promises'

/**
 * Calls the function every 20 ms until its result is truthy, and returns that. Throwing counts as false.
 * @throws {Error} the error of the last call, after the time limit
 */
export const eventually = async <T>(attempt: () => T | Promise<T>, limitMs = 60_000): Promise<NonNullable<T>> => {
  for (const end = Date.now() + limitMs; ; await delay(20)) {
    try {
      const answer = await attempt()
      if (answer) return answer
      if (Date.now() > end) throw new Error(`condition not met within ${limitMs} ms: ${attempt}`)
    } catch (error) {
      if (Date.now() > end) throw error
    }
  }
}
