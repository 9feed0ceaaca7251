/** Sends reports until the service has taken them. They stay on disk until then, also when the worker ends before. */
import { type Client, PgcueError } from '../../client/index.ts'
import { pause, pauseBefore } from '../../client/transport.ts'
import type { Log } from './log.ts'
import type { Spooled, State } from './state.ts'

/** Nothing is left to report: it was, or the execution is somebody else's or gone. */
export const settledCodes = ['outcome_already_reported', 'claim_lost', 'execution_not_found', 'invalid_state', 'no_outcome']
/** Refusals of what the report says. */
export const malformed = [400, 413, 422]
const noKey = [401, 403]

type Proof = { claimToken: string; apiKey: string | undefined; signal: AbortSignal; retries: number }

export type Reporter = ReturnType<typeof createReporter>

export const createReporter = (client: Client, state: State, log: Log) => {
  const stopped = new AbortController()
  const waiting = new Set<Promise<unknown>>()

  /** Asks again as long as the answer says nothing about the report. Gives the refusal that does. */
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
          apiKey = undefined // the token's time is over; the worker's own key may still report
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
    state.reports.remove(held)
  }

  /** What the service cannot take becomes a failure with its reason; what the handler said is kept. */
  const refused = async (spooled: Spooled, message: string): Promise<void> => {
    const { held } = spooled
    log('report rejected', { execution_id: held.execution_id, message })
    state.refused.put(held, spooled)
    if (spooled.second) return state.reports.remove(held)
    const instead = { held, report: { success: false, error: `report rejected: ${message}`.slice(0, 2000) }, second: true }
    state.reports.put(held, instead)
    await deliver(instead)
  }

  return {
    add: (spooled: Spooled) => {
      const { execution_id } = spooled.held
      const done = deliver(spooled)
        .catch(error => stopped.signal.aborted || log('report kept on disk', { execution_id, message: error.message }))
        .finally(() => waiting.delete(done))
      waiting.add(done)
    },
    /** How many wait. */
    size: () => waiting.size,
    /** When none waits any more. */
    settled: async () => {
      while (waiting.size > 0) await Promise.all(waiting)
    },
    /** What waits still, stays on disk. */
    stop: () => stopped.abort(new Error('stopped'))
  }
}
