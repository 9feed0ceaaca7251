/** `pgcue worker` */
import type { Log } from '../../client/worker/store.ts'
import { command } from '../command.ts'
import { CliError } from '../exit-codes.ts'
import type { Sink } from '../io.ts'
import { printable } from '../printable.ts'
import { readSettings } from './settings.ts'
import { openState } from './state.ts'
import { runWorker } from './worker.ts'

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
result_type, summary, artifacts and metadata. A handler may run twice: deduplicate by SERVICE_EXECUTION_ID.

On SIGTERM the worker stops claiming; handlers still running after --drain seconds are killed and their claims released. A second SIGTERM
kills them at once. Undelivered reports are kept on disk and sent later, also after a restart. Exit codes: 0 stopped, 2 invalid key.`,
  run: async ({ options, io, out, connect }) => {
    if (process.platform === 'win32') throw new CliError('pgcue worker does not run on Windows, which has no process groups. Use WSL.')
    const settings = readSettings(options, io.env)
    const client = await connect()
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
