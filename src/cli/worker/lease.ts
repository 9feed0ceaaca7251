/** Keeps a claim while its handler runs. */
import { type Client, PgcueError } from '../../client/index.ts'
import { pause, pauseBefore } from '../../client/transport.ts'
import type { Held } from './state.ts'

/** Answers that say that somebody else may have the execution, or that it is gone. */
const lostCodes = ['claim_lost', 'not_execution_owner', 'execution_not_found']

/** Extends the lease every `everyMs` until `end` is called; `onLost` is called once when that cannot be done any more. */
export const keepLease = (client: Client, held: Held, everyMs: number, onLost: (code: string) => void) => {
  const ended = new AbortController()
  const { signal } = ended
  const proof = { claimToken: held.claim_token, apiKey: held.execution_token, signal, retries: 0 }
  const beat = async () => {
    let failures = 0
    for (let waitMs = everyMs; ; ) {
      await pause(waitMs, signal)
      try {
        await client.executions.heartbeat(held.execution_id, proof)
        failures = 0
        waitMs = everyMs
      } catch (error) {
        const { code } = error as PgcueError
        if (lostCodes.includes(code)) return onLost(code)
        // Reported on already, by the handler itself: there is nothing to keep.
        if (code === 'execution_not_claiming') return
        waitMs = Math.min(pauseBefore(++failures, error instanceof PgcueError ? error : undefined), everyMs)
      }
    }
  }
  beat().catch(() => {}) // ended
  return { end: () => ended.abort() }
}
