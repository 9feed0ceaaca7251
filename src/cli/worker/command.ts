/** `pgcue worker` */
import { command, none } from '../command.ts'
import { CliError } from '../exit-codes.ts'
import { createLog } from './log.ts'
import { readSettings } from './settings.ts'
import { openState } from './state.ts'
import { runWorker } from './worker.ts'

export const worker = command({
  args: '(--config FILE | --handler TASK=COMMAND …) [options]',
  summary: 'Claim executions, run the command of their task, report the outcome',
  longRunning: true,
  options: {
    config: { type: 'string', value: 'FILE', help: 'a YAML file; see below' },
    handler: { type: 'string', value: 'TASK=COMMAND', multiple: true, help: 'what the shell runs for a task; * stands for any other' },
    concurrency: { type: 'string', value: 'N', help: 'how many run at once; 1 by default' },
    timeout: { type: 'string', value: 'SECONDS', help: 'after which a handler is killed, with all it started; 3600 by default' },
    drain: {
      type: 'string',
      value: 'SECONDS',
      help: 'how long handlers may go on after SIGTERM before they are given back; 25 by default'
    },
    'worker-id': { type: 'string', value: 'ID', help: "its name; by default the host's" },
    'state-dir': { type: 'string', value: 'DIR', help: 'where claims and reports are kept; ~/.local/state/pgcue/workers by default' }
  },
  notes: `The file
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
  Also worker_id, drain and state_dir; flags go before it.

A handler gets the payload on standard input and in SERVICE_PAYLOAD_FILE (up to 100 KB also in SERVICE_PAYLOAD), besides
SERVICE_EXECUTION_ID, SERVICE_CUE_ID, SERVICE_CUE_NAME, SERVICE_WORKER_ID, SERVICE_SCHEDULED_FOR, SERVICE_ATTEMPT, SERVICE_BASE_URL,
SERVICE_API_KEY (good for this execution only) and SERVICE_OUTCOME_FILE. Exit code 0 is a success; the end of its output is the result, or
the error. In the outcome file it may leave a JSON object with result, error, success, external_id, result_url, result_ref, result_type,
summary, artifacts and metadata. It may run twice: SERVICE_EXECUTION_ID tells.

SIGTERM: nothing more is claimed, handlers go on until --drain, then they are ended and given back; a second one ends them at once.
A report that cannot be delivered waits on disk, also for the next start. Exit codes: 0 stopped, 2 bad key.`,
  run: async context => {
    none(context)
    const { options, io, out } = context
    if (process.platform === 'win32') throw new CliError('pgcue worker needs process groups, which Windows has not; WSL has')
    const settings = readSettings(options, io.env)
    const client = await context.connect()
    const state = openState(settings.stateDir, client.baseUrl, settings.workerId)
    const log = createLog(io.stdout, out.json)
    try {
      await runWorker({ client, settings, state, log, env: io.env, stopping: io.stopping, dying: io.dying })
    } finally {
      state.close()
    }
  }
})
