/** `pgcue worker`: the client's loop, with commands as handlers and a state that outlives the process. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Claim, Client } from '../../client/index.ts'
import { type LoopOptions, runLoop } from '../../client/worker/loop.ts'
import { type Handling, releaseClaim } from '../../client/worker/run.ts'
import type { Held, Log } from '../../client/worker/store.ts'
import { command } from '../command.ts'
import { CliError } from '../exit-codes.ts'
import type { Sink } from '../io.ts'
import { printable } from '../printable.ts'
import { readOutcomeFile, reportOf } from './outcome.ts'
import { type Ending, endLeftover, startHandler } from './process.ts'
import { readSettings, type Settings } from './settings.ts'
import { type CommandClaim, openState, type State } from './state.ts'

export const worker = command({
  longRunning: true,
  options: {
    config: { type: 'string', value: 'FILE', help: 'YAML file, described below' },
    handler: { type: 'string', value: 'TASK=COMMAND', multiple: true, help: 'shell command for a task; * matches any other task' },
    concurrency: { type: 'string', value: 'N', help: 'maximum handlers at once (default: 1)' },
    timeout: { type: 'string', value: 'SECONDS', help: 'kill a handler and its processes after this time (default: 3600)' },
    drain: { type: 'string', value: 'SECONDS', help: 'time for handlers to end after SIGTERM, before claims are released (default: 25)' },
    'worker-id': { type: 'string', value: 'ID', help: 'name of this worker (default: the host name)' },
    'state-dir': { type: 'string', value: 'DIR', help: 'directory for claims and reports (default: ~/.local/state/pgcue/workers)' }
  },
  notes: `Configuration file
  concurrency: 4
  timeout: 600
  handlers:
    report: ./report.sh                 # for the shell, in the directory of this file
    mail:
      command: [node, mail.js, --once]  # a program and its arguments
      timeout: 60
      cwd: /srv/mail
      env: { MAIL_FROM: ops@example.com }
    "*": ./anything-else.sh
  It may also set worker_id, drain and state_dir. Flags override the file.

A handler gets the payload on standard input and in SERVICE_PAYLOAD_FILE (up to 100 KB also in SERVICE_PAYLOAD), and
SERVICE_EXECUTION_ID, SERVICE_CUE_ID, SERVICE_CUE_NAME, SERVICE_WORKER_ID, SERVICE_SCHEDULED_FOR, SERVICE_ATTEMPT, SERVICE_BASE_URL,
SERVICE_API_KEY (valid for this execution only) and SERVICE_OUTCOME_FILE. Exit code 0 is a success; the end of its output becomes the
result, or the error. To the outcome file it may write a JSON object with result, error, success, external_id, result_url, result_ref,
result_type, summary, artifacts, metadata and costs. A handler may run twice: deduplicate by SERVICE_EXECUTION_ID.

On SIGTERM the worker stops claiming; handlers still running after --drain seconds are killed and their claims released. A second SIGTERM
kills them at once. Undelivered reports are kept on disk and sent later, also after a restart. Exit codes: 0 stopped, 2 invalid key.`,
  run: async ({ options, io, out, connect }) => {
    if (process.platform === 'win32') throw new CliError('pgcue worker does not run on Windows, which has no process groups. Use WSL.')
    const settings = readSettings(options, io.env)
    const client = connect()
    const state = openState(settings.stateDir, client.baseUrl, settings.workerId)
    const log = createLog(io.stdout, out.json)
    try {
      await runWorker({ client, settings, state, log, env: io.env, stopping: io.stopping, dying: io.dying })
    } finally {
      state.close()
    }
  }
})

/** One line per event, with ids as fields. */
export const createLog =
  (sink: Sink, json: boolean): Log =>
  (event, fields = {}) => {
    const line = { at: new Date().toISOString(), event, ...fields }
    const members = Object.entries(line).filter(([, value]) => value !== undefined && value !== null)
    const words = members.map(([name, value]) => (name === 'at' || name === 'event' ? value : `${name}=${wordOf(value)}`))
    sink.write(`${json ? printable(JSON.stringify(Object.fromEntries(members))) : words.join('  ')}\n`)
  }

const wordOf = (value: unknown) => (/^[\w.:/@+-]+$/.test(String(value)) ? String(value) : printable(JSON.stringify(value)))

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
