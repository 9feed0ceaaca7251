import { setTimeout as delay } from 'node:timers/promises'

/**
 * Asks again every 20 ms until the answer is truthy, and gives it. An attempt that throws has not come true yet.
 * @throws {Error} what the last attempt threw, when the limit is over
 */
export const eventually = async <T>(attempt: () => T | Promise<T>, limitMs = 60_000): Promise<NonNullable<T>> => {
  for (const end = Date.now() + limitMs; ; await delay(20)) {
    try {
      const answer = await attempt()
      if (answer) return answer
      if (Date.now() > end) throw new Error(`this did not come true within ${limitMs} ms: ${attempt}`)
    } catch (error) {
      if (Date.now() > end) throw error
    }
  }
}
