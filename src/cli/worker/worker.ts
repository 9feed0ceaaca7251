/** The worker of the command line: the client's loop, with commands as handlers and a state that outlives the process. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Claim, Client } from '../../client/index.ts'
import { type LoopOptions, runLoop } from '../../client/worker/loop.ts'
import { type Handling, releaseClaim } from '../../client/worker/run.ts'
import type { Held } from '../../client/worker/store.ts'
import { readOutcomeFile, reportOf } from './outcome.ts'
import { type Ending, endLeftover, startHandler } from './process.ts'
import type { Settings } from './settings.ts'
import type { CommandClaim, State } from './state.ts'

export type WorkerOptions = Pick<LoopOptions, 'log' | 'stopping' | 'dying' | 'beatMs' | 'leaseMs' | 'waitSeconds'> & {
  client: Client
  settings: Settings
  state: State
  /** Environment of the worker, passed on to handlers. */
  env: Record<string, string | undefined>
}

export const runWorker = (options: WorkerOptions): Promise<void> => {
  const { settings, state, ...loop } = options
  return runLoop({
    ...loop,
    workerId: state.id,
    tasks: [...settings.handlers.keys()],
    concurrency: settings.concurrency,
    drainMs: settings.drainMs,
    store: state,
    handle: (claim, held) => startCommand(options, claim, held),
    recover: async reporter => {
      for (const claim of state.claims.all()) await giveBackLeftover(options, claim)
      for (const spooled of state.reports.all()) reporter.add(spooled)
    }
  })
}

/**
 * Handles a claim left by a killed worker: ends its handler if it is still running, and releases the execution. If a report is waiting, the
 * claim is left to that.
 */
const giveBackLeftover = async ({ client, log, state }: WorkerOptions, claim: CommandClaim) => {
  if (state.reports.has(claim)) return state.claims.remove(claim)
  const killed = await endLeftover(claim.process)
  const answer = await releaseClaim(client, claim)
  log('released leftover claims', { execution_id: claim.execution_id, answer, handler_killed: killed })
  state.removeRun(claim)
  if (answer !== null) state.claims.remove(claim)
}

/** Payloads up to this size are also passed in the environment; Linux allows 128 KiB per variable. */
const mostInEnvironment = 100_000

/** Runs the command of a claim's task, and reads the outcome. */
const startCommand = ({ client, settings, state, log, env }: WorkerOptions, claim: Claim, held: Held): Handling => {
  const { execution_id, task } = claim
  const handler = settings.handlers.get(task ?? '*') ?? settings.handlers.get('*')!
  const dir = state.openRun(held)
  const payload = JSON.stringify(claim.payload)
  const files = { payload: join(dir, 'payload.json'), outcome: join(dir, 'outcome.json') }
  writeFileSync(files.payload, payload, { mode: 0o600 })
  const variables = {
    ...env,
    PGCUE_API_KEY: undefined, // handlers get a key for their execution only
    ...handler.env,
    SERVICE_EXECUTION_ID: execution_id,
    SERVICE_CUE_ID: claim.cue_id,
    SERVICE_CUE_NAME: claim.cue_name,
    SERVICE_WORKER_ID: state.id,
    SERVICE_PAYLOAD: Buffer.byteLength(payload) <= mostInEnvironment ? payload : undefined,
    SERVICE_PAYLOAD_FILE: files.payload,
    SERVICE_SCHEDULED_FOR: claim.scheduled_for,
    SERVICE_ATTEMPT: String(claim.attempt),
    SERVICE_BASE_URL: client.baseUrl,
    SERVICE_API_KEY: claim.execution_token,
    SERVICE_OUTCOME_FILE: files.outcome
  }
  const process = startHandler(handler, variables, payload)
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
