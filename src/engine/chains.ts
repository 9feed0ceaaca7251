/** Starts followers of executions that ended: after a notification, and every second, for what a locked row or a lost connection left. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Functions } from '../database/functions.ts'

/** Before another look, while a follower is locked. */
const restMs = 50
const mostLooks = 20

export const createChains = ({ fn }: { fn: Pick<Functions, 'startFollowers'> }) => {
  let isNoticed = false

  return {
    /** There are new signals. */
    notice: (): void => {
      isNoticed = true
    },
    /** Starts followers, until there are no new signals that this engine knows of. */
    start: async (): Promise<void> => {
      let looks = 0
      do {
        isNoticed = false
        let isBehind = false
        for (let after: string | null = ''; after !== null; ) {
          const page = await fn.startFollowers({ after })
          after = page.after
          isBehind ||= page.is_behind
        }
        if (!isBehind) continue
        await delay(restMs)
        isNoticed ||= ++looks < mostLooks
      } while (isNoticed)
    }
  }
}
