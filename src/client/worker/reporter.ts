/** Sends reports until the service has accepted them. They stay in the store until then. */
import { PgcueError } from '../errors.ts'
import type { Methods } from '../methods.ts'
import { pause, pauseBefore } from '../transport.ts'
import type { Log, Spooled, Store } from './store.ts'

/** Errors after which there is nothing left to report: already reported, or the execution is gone or another worker's. */
const settledCodes = ['outcome_already_reported', 'claim_lost', 'execution_not_found', 'invalid_state', 'no_outcome']
/** Statuses that reject the report's content. */
const malformed = [400, 413, 422]
const noKey = [401, 403]

type Proof = { claimToken: string; apiKey: string | undefined; signal: AbortSignal; retries: number }

export type Reporter = ReturnType<typeof createReporter>

export const createReporter = (client: Methods, store: Store, log: Log) => {
  const stopped = new AbortController()
  const waiting = new Set<Promise<unknown>>()

  /** Retries until the response settles the report; returns the refusal, if any. */
  const untilAnswered = async ({ held }: Spooled, send: (proof: Proof) => Promise<unknown>): Promise<PgcueError | null> => {
    const { execution_id, claim_token, execution_token } = held
    let apiKey: string | undefined = execution_token
    for (let failures = 0; ; ) {
      try {
        await send({ claimToken: claim_token, apiKey, signal: stopped.signal, retries: 0 })
        return null
      } catch (error) {
        if (!(error instanceof PgcueError)) throw error
        const { code, status, message } = error
        if (settledCodes.includes(code) || malformed.includes(status)) return error
        if (noKey.includes(status) && apiKey !== undefined) {
          apiKey = undefined // the token has expired; the worker's own key may still report
          continue
        }
        if (failures === 0) log('report delayed', { execution_id, code, message })
        await pause(pauseBefore(++failures, error), stopped.signal)
      }
    }
  }

  const deliver = async (spooled: Spooled): Promise<void> => {
    const { held, report, evidence } = spooled
    const { execution_id } = held
    const refusal = await untilAnswered(spooled, proof => client.executions.reportOutcome(execution_id, report, proof))
    if (refusal && malformed.includes(refusal.status)) return refused(spooled, refusal.message)
    if (refusal) log('not reported', { execution_id, code: refusal.code })
    else log('reported', { execution_id, success: report.success })
    if (evidence) {
      const missing = await untilAnswered(spooled, proof => client.executions.attachEvidence(execution_id, evidence, proof))
      if (missing) log('evidence rejected', { execution_id, code: missing.code, message: missing.message })
    }
    store.reports.remove(held)
  }

  /** Replaces a rejected report by a failure with the reason, and keeps the original. */
  const refused = async (spooled: Spooled, message: string): Promise<void> => {
    const { held } = spooled
    log('report rejected', { execution_id: held.execution_id, message })
    store.refused.put(held, spooled)
    if (spooled.second) return store.reports.remove(held)
    const instead = { held, report: { success: false, error: `report rejected: ${message}`.slice(0, 2000) }, second: true }
    store.reports.put(held, instead)
    await deliver(instead)
  }

  return {
    add: (spooled: Spooled) => {
      const { execution_id } = spooled.held
      const done = deliver(spooled)
        .catch(error => stopped.signal.aborted || log('report not sent', { execution_id, message: error.message }))
        .finally(() => waiting.delete(done))
      waiting.add(done)
    },
    /** Number of waiting reports. */
    size: () => waiting.size,
    /** Resolves when no report is waiting. */
    settled: async () => {
      while (waiting.size > 0) await Promise.all(waiting)
    },
    /** Stops sending. Waiting reports stay in the store. */
    stop: () => stopped.abort(new Error('stopped'))
  }
}
