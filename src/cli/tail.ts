/** `pgcue executions tail` */
import { type Execution, type ExecutionFilter, PgcueError } from '../client/index.ts'
import { pause } from '../client/transport.ts'
import { command, integer, none } from './command.ts'
import { printable } from './printable.ts'

const pageSize = 100
/** Temporary errors, after which polling continues. */
const passing = ['unreachable', 'timeout', 'unavailable', 'rate_limit_exceeded']

export const executionsTail = command({
  summary: 'Print executions as they appear and change, until interrupted',
  options: {
    cue: { type: 'string', value: 'ID', help: 'only for this cue' },
    trigger: { type: 'string', value: 'TRIGGER', help: 'schedule, manual_fire or replay' },
    last: { type: 'string', value: 'N', help: 'start with the latest N executions, 0 to 100 (default: 10)' },
    interval: { type: 'string', value: 'SECONDS', help: 'poll interval, 1 to 3600 seconds (default: 2)' }
  },
  names: { cue_id: '--cue', triggered_by: '--trigger' },
  notes: `Prints a line whenever the status, outcome or number of attempts of one of the newest 100 executions changes. With --json, each line
is an execution as JSON.`,
  longRunning: true,
  run: async context => {
    none(context)
    const { options: o, out, io } = context
    const last = integer(o.last, 'last', 0, pageSize) ?? 10
    const intervalMs = (integer(o.interval, 'interval', 1, 3600) ?? 2) * 1000
    const filter = { cue_id: o.cue, triggered_by: o.trigger, limit: pageSize } as ExecutionFilter
    const client = await context.connect()
    let known: Map<string, string> | undefined
    while (!io.stopping.aborted) {
      let waitMs = intervalMs
      try {
        const { executions } = await client.executions.list(filter, { signal: io.stopping })
        const news = known ? executions.filter(one => known!.get(one.id) !== stateOf(one)) : executions.slice(0, last)
        for (const one of news.reverse()) print(one)
        known = new Map(executions.map(one => [one.id, stateOf(one)]))
      } catch (error) {
        if (io.stopping.aborted) break
        if (!known || !(error instanceof PgcueError) || !passing.includes(error.code)) throw error
        io.stderr.write(`pgcue: ${printable(error.message)}\n`)
        waitMs = Math.max(waitMs, (error.retryAfter ?? 0) * 1000)
      }
      await pause(waitMs, io.stopping).catch(() => {})
    }

    function print(one: Execution) {
      if (out.json) return out.jsonLine(one)
      const { id, cue_name, status, outcome_state, attempts, http_status, error_message } = one
      const parts = [status, outcome_state, attempts > 1 && `attempt ${attempts}`, http_status && `HTTP ${http_status}`, error_message]
      out.line(`${one.updated_at.slice(0, 19)}Z  ${id}  ${cue_name}  ${parts.filter(Boolean).join(', ')}`)
    }
  }
})

const stateOf = ({ status, outcome_state, attempts }: Execution) => `${status} ${outcome_state} ${attempts}`
