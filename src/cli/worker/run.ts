/** Runs the command of a claim's task, and reads the outcome. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Claim, Client } from '../../client/index.ts'
import type { LoopOptions } from '../../client/worker/loop.ts'
import type { Handling } from '../../client/worker/run.ts'
import type { Held, Log } from '../../client/worker/store.ts'
import { readOutcomeFile, reportOf } from './outcome.ts'
import { type Ending, startHandler } from './process.ts'
import type { Settings } from './settings.ts'
import type { State } from './state.ts'

export type WorkerOptions = Pick<LoopOptions, 'stopping' | 'dying' | 'beatMs' | 'leaseMs' | 'waitSeconds'> & {
  client: Client
  settings: Settings
  state: State
  log: Log
  /** Environment of the worker, passed on to handlers. */
  env: Record<string, string | undefined>
}

/** Payloads up to this size are also passed in the environment; Linux allows 128 KiB per variable. */
const mostInEnvironment = 100_000

export const startCommand = ({ client, settings, state, log, env }: WorkerOptions, claim: Claim, held: Held): Handling => {
  const { execution_id, task } = claim
  const handler = settings.handlers.get(task ?? '*') ?? settings.handlers.get('*')!
  const dir = state.openRun(held)
  const payload = JSON.stringify(claim.payload)
  const files = { payload: join(dir, 'payload.json'), outcome: join(dir, 'outcome.json') }
  writeFileSync(files.payload, payload, { mode: 0o600 })
  // Handlers get a key for their execution only, never the worker's key.
  const own = { PGCUE_API_KEY: undefined, ...handler.env, ...serviceEnv(claim, client.baseUrl, state.id, payload, files) }
  const process = startHandler(handler, { ...env, ...own }, payload)
  if (process.mark) {
    state.claims.put(held, { ...held, process: process.mark })
    log('started', { execution_id, pid: process.mark.pid })
  }
  let ending: Ending
  let isBroken = false
  return {
    timeoutMs: handler.timeoutMs,
    ended: process.ended.then(end => {
      ending = end
    }),
    stop: process.stop,
    report: timedOut => {
      const file = readOutcomeFile(files.outcome)
      const report = reportOf(ending, timedOut ? handler.timeoutMs : null, file, files.outcome)
      const { code, signal } = ending
      const { broken, ignored } = file
      log('handler ended', { execution_id, code, signal, success: report.report.success, broken, ignored: ignored.join(',') || null })
      isBroken = broken !== null
      return report
    },
    clean: () => (isBroken ? rmSync(files.payload) : state.removeRun(held))
  }
}

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
