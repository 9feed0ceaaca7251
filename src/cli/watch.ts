/** Watching executions: `pgcue executions tail` and `pgcue executions get --watch`. */
import { type Execution, type ExecutionDetail, type ExecutionFilter, PgcueError } from '../client/index.ts'
import { pause } from '../client/transport.ts'
import { command, fromApi, integer } from './command.ts'
import type { Io } from './io.ts'
import type { Output } from './output.ts'
import { printable } from './printable.ts'
import { cueOption } from './reference.ts'

const pageSize = 100
/** Temporary errors, after which polling continues. */
const passing = ['unreachable', 'timeout', 'unavailable', 'rate_limit_exceeded']
const ended = ['success', 'failed', 'missed', 'outcome_timeout']

type Watching = { out: Output; io: Io; intervalMs: number }

/** Reads again and again until `next` returns true or the process is interrupted. Temporary errors after the first read are printed. */
export const poll = async <A>({ io, intervalMs }: Watching, read: (signal: AbortSignal) => Promise<A>, next: (answer: A) => boolean) => {
  for (let reads = 0; !io.stopping.aborted; reads++) {
    let waitMs = intervalMs
    try {
      if (next(await read(io.stopping))) return
    } catch (error) {
      if (io.stopping.aborted) return
      if (reads === 0 || !(error instanceof PgcueError) || !passing.includes(error.code)) throw error
      io.stderr.write(`pgcue: ${printable(error.message)}\n`)
      waitMs = Math.max(waitMs, (error.retryAfter ?? 0) * 1000)
    }
    await pause(waitMs, io.stopping).catch(() => {})
  }
}

/** Prints an execution's changes, and returns it once it has ended; undefined if interrupted. */
export const watch = async (watching: Watching, read: (signal: AbortSignal) => Promise<ExecutionDetail>) => {
  let state: string | undefined
  let last: ExecutionDetail | undefined
  await poll(watching, read, execution => {
    if (stateOf(execution) !== state) print(watching.out, execution)
    state = stateOf(execution)
    if (ended.includes(execution.status) && execution.outcome_state !== 'verification_pending') last = execution
    return last !== undefined
  })
  return last
}

export const tail = command({
  options: {
    ...fromApi('listExecutions', { cue: cueOption, trigger: 'triggered_by' }),
    last: { type: 'string', value: 'N', help: 'start with the latest N executions, 0 to 100 (default: 10)' },
    interval: { type: 'string', value: 'SECONDS', help: 'poll interval, 1 to 3600 seconds (default: 2)' }
  },
  notes: `Prints a line whenever the status, outcome or number of attempts of one of the newest 100 executions changes, until interrupted. With
--json, each line is an execution as JSON.`,
  longRunning: true,
  run: async ({ options, out, io, ready }) => {
    const last = integer(options.last, 'last', 0, pageSize) ?? 10
    const intervalMs = (integer(options.interval, 'interval', 1, 3600) ?? 2) * 1000
    const { client, body } = await ready<ExecutionFilter>()
    const filter = { ...body, limit: pageSize }
    let states: Map<string, string> | undefined
    await poll(
      { out, io, intervalMs },
      async signal => (await client.executions.list(filter, { signal })).executions,
      executions => {
        const news = states ? executions.filter(execution => states!.get(execution.id) !== stateOf(execution)) : executions.slice(0, last)
        for (const execution of news.reverse()) print(out, execution)
        states = new Map(executions.map(execution => [execution.id, stateOf(execution)]))
        return false
      }
    )
  }
})

const print = (out: Output, execution: Execution) => {
  if (out.json) return out.jsonLine(execution)
  const { id, cue_name, status, outcome_state, attempts, http_status, error_message, updated_at } = execution
  const parts = [status, outcome_state, attempts > 1 && `attempt ${attempts}`, http_status && `HTTP ${http_status}`, error_message]
  out.line(`${updated_at.slice(0, 19)}Z  ${id}  ${cue_name}  ${parts.filter(Boolean).join(', ')}`)
}

const stateOf = ({ status, outcome_state, attempts }: Execution) => `${status} ${outcome_state} ${attempts}`
