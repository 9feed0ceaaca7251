/** Runs one claim: starts its handler, extends its lease and reports its outcome. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CallOptions, type Claim, type Client, PgcueError } from '../../client/index.ts'
import { keepLease } from './lease.ts'
import type { WorkerOptions } from './options.ts'
import { readOutcomeFile, reportOf } from './outcome.ts'
import { startHandler } from './process.ts'
import type { Reporter } from './reporter.ts'
import type { Handler } from './settings.ts'
import type { Held } from './state.ts'

export type Run = ReturnType<typeof runClaim>

/** Payloads up to this size are also passed in the environment; Linux allows 128 KiB per variable. */
const mostInEnvironment = 100_000

/** Runs a claim's handler and passes the outcome to the reporter. */
export const runClaim = (options: WorkerOptions, reporter: Reporter, claim: Claim, handler: Handler) => {
  const { client, state, log, env, leaseMs = (claim.lease_seconds * 1000) / 3 } = options
  const { execution_id, claim_token, execution_token, attempt, task } = claim
  const held: Held = { execution_id, claim_token, execution_token, attempt }
  let cut: 'released' | 'lost' | 'timed out' | undefined
  let process: ReturnType<typeof startHandler> | undefined
  const end = (why: NonNullable<typeof cut>) => {
    if (!process || process.stop()) cut ??= why
  }

  const work = async () => {
    log('claimed', { execution_id, task, attempt, cue_id: claim.cue_id })
    state.claims.put(held, held)
    const dir = state.openRun(held)
    const payload = JSON.stringify(claim.payload)
    const files = { payload: join(dir, 'payload.json'), outcome: join(dir, 'outcome.json') }
    writeFileSync(files.payload, payload, { mode: 0o600 })
    // Handlers get a key for their execution only, never the worker's key.
    const own = { PGCUE_API_KEY: undefined, ...handler.env, ...serviceEnv(claim, client.baseUrl, state.id, payload, files) }
    process = startHandler(handler, { ...env, ...own }, payload)
    if (cut) process.stop()
    if (process.mark) {
      state.claims.put(held, { ...held, process: process.mark })
      log('started', { execution_id, pid: process.mark.pid })
    }
    const lease = keepLease(client, held, leaseMs, code => {
      log('claim lost', { execution_id, code })
      end('lost')
    })
    const timer = setTimeout(end, handler.timeoutMs, 'timed out')
    const ending = await process.ended
    clearTimeout(timer)
    lease.end()
    if (cut === 'lost' || cut === 'released') {
      if (cut === 'released') await giveBack()
      else state.claims.remove(held)
      return state.removeRun(held)
    }

    const file = readOutcomeFile(files.outcome)
    const spooled = { held, ...reportOf(ending, cut === 'timed out' ? handler.timeoutMs : null, file, files.outcome) }
    state.reports.put(held, spooled)
    state.claims.remove(held)
    const { code, signal } = ending
    const { broken, ignored } = file
    log('handler ended', { execution_id, code, signal, success: spooled.report.success, broken, ignored: ignored.join(',') || null })
    if (broken === null) state.removeRun(held)
    else rmSync(files.payload)
    reporter.add(spooled)
  }

  const giveBack = async () => {
    const answer = await releaseClaim(client, held, { retries: 1, timeoutMs: 3000 })
    log('released', { execution_id, answer })
    if (answer !== null) state.claims.remove(held)
  }

  const done = work().catch(async error => {
    log('run failed', { execution_id, message: error.message })
    process?.stop(true)
    await giveBack()
    throw error
  })
  return { done, giveBack: () => end('released'), kill: () => process?.stop(true) }
}

/** Releases a claim. Returns null if there was no response; the worker's next start then releases it. */
export const releaseClaim = ({ executions }: Client, { execution_id, claim_token }: Held, options: CallOptions = {}) =>
  executions.release(execution_id, claim_token, options).then(
    () => 'released',
    error => (error instanceof PgcueError && error.status > 0 && error.status < 500 ? error.code : null)
  )

type Environment = Record<string, string | undefined>

const serviceEnv = (
  claim: Claim,
  baseUrl: string,
  workerId: string,
  payload: string,
  files: { payload: string; outcome: string }
): Environment => ({
  SERVICE_EXECUTION_ID: claim.execution_id,
  SERVICE_CUE_ID: claim.cue_id,
  SERVICE_CUE_NAME: claim.cue_name,
  SERVICE_WORKER_ID: workerId,
  SERVICE_PAYLOAD: Buffer.byteLength(payload) <= mostInEnvironment ? payload : undefined,
  SERVICE_PAYLOAD_FILE: files.payload,
  SERVICE_SCHEDULED_FOR: claim.scheduled_for,
  SERVICE_ATTEMPT: String(claim.attempt),
  SERVICE_BASE_URL: baseUrl,
  SERVICE_API_KEY: claim.execution_token,
  SERVICE_OUTCOME_FILE: files.outcome
})
