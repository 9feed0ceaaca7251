/** Extends a claim while its handler runs. */
import { PgcueError } from '../errors.ts'
import type { Methods } from '../methods.ts'
import { pause, pauseBefore } from '../transport.ts'
import type { Held } from './store.ts'

/** Errors which mean that another worker may have the execution, or that it is gone. */
const lostCodes = ['claim_lost', 'not_execution_owner', 'execution_not_found']

/** Extends the lease every `everyMs` until `end` is called. Calls `onLost` once if the claim is lost. */
export const keepLease = (client: Methods, held: Held, everyMs: number, onLost: (code: string) => void) => {
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
        // The handler has reported the outcome itself, so there is no claim to keep.
        if (code === 'execution_not_claiming') return
        waitMs = Math.min(pauseBefore(++failures, error instanceof PgcueError ? error : undefined), everyMs)
      }
    }
  }
  beat().catch(() => {}) // rejects when `end` is called
  return { end: () => ended.abort() }
}
