/** Starts followers of executions that ended. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Functions } from '../database/functions.ts'

/** Before another look, while a follower is locked. */
const restMs = 50
const mostLooks = 20

export const startFollowers = async (fn: Pick<Functions, 'startFollowers'>): Promise<void> => {
  for (let looks = 0, isBehind = true; isBehind && looks < mostLooks; looks++) {
    if (looks > 0) await delay(restMs)
    isBehind = false
    for (let after: string | null = ''; after !== null; ) {
      const page = await fn.startFollowers({ after })
      after = page.after
      isBehind ||= page.is_behind
    }
  }
}
