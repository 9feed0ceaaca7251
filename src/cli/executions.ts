/** `pgcue executions …`, `errors` and `destinations` */
import {
  type Execution,
  type ExecutionDetail,
  type ExecutionFilter,
  type ListErrors,
  PgcueError,
  type Replay,
  type Signal,
  type Verification
} from '../client/index.ts'
import { pause } from '../client/transport.ts'
import { acting, command, filtersOf, fromApi, idempotency, integer, listing, pastOf } from './command.ts'
import type { Io } from './io.ts'
import type { Output } from './output.ts'
import { printable } from './printable.ts'
import { cueOption } from './reference.ts'

/** Names of filters that differ from those of the API, which bulk operations share. */
export const executionFilters = (prefix = '') =>
  ({
    cue: { ...cueOption, member: `${prefix}cue_id` },
    outcome: `${prefix}outcome_state`,
    trigger: `${prefix}triggered_by`,
    worker: { member: `${prefix}worker_id`, value: 'ID', help: 'only those last claimed by this worker' },
    'error-group': { member: `${prefix}error_group`, value: 'GROUP', help: 'only dead letters of this group, as listed by pgcue errors' },
    dead: { member: `${prefix}dead`, help: 'only dead letters: failed, missed or timed out, and neither replayed nor dismissed' },
    tag: { member: `${prefix}tag`, type: 'string', multiple: true, value: 'TAG', help: 'only with this tag; of several, all must match' }
  }) as const

export const since = { read: pastOf, help: 'created at or after this time, or in the last 30m, 2h or 3d' } as const
export const until = { read: pastOf, help: 'created before this time, or before the last 30m, 2h or 3d' } as const

export const list = listing(
  ({ executions }, query) => executions.list(query),
  answer => answer.executions,
  ['id', ['cue', 'cue_name'], 'status', ['outcome', 'outcome_state'], 'scheduled_for', 'attempts', ['trigger', 'triggered_by']],
  {
    empty: 'No matching executions.',
    options: filtersOf('listExecutions', {
      ...executionFilters(),
      since: { member: 'since', ...since },
      until: { member: 'until', ...until },
      from: null,
      to: null,
      evidence: { member: 'has_evidence', negatable: true, help: 'only with evidence; --no-evidence: only without' }
    })
  }
)

export const get = command({
  options: { watch: { type: 'boolean', help: 'print each change until the execution has ended' } },
  notes: 'With --watch and --json, each line is the execution as JSON after a change.',
  run: async ({ args: [id], options, out, io, connect }) => {
    const { executions } = connect()
    if (!options.watch) {
      const execution = await executions.get(id!)
      return out.show(execution, () => showExecution(execution, out))
    }
    const ended = await watch({ out, io, intervalMs: 1000 }, signal => executions.get(id!, { signal }))
    if (!ended || out.json) return
    out.line('')
    showExecution(ended, out)
  }
})

/** `rejected by key:… (too much)`, `waiting (Refund?)` */
const approvalText = ({ decision, decided_by, reason, message }: NonNullable<Execution['approval']>) => {
  const text = [
    decision ?? 'waiting',
    decided_by && `by ${decided_by}`,
    (decision ? reason : message) && `(${decision ? reason : message})`
  ]
  return text.filter(Boolean).join(' ')
}

/** All that the API knows about an execution. */
const showExecution = (execution: ExecutionDetail, out: Output) => {
  const {
    id,
    cue_id,
    cue_name,
    outcome,
    outcome_state,
    payload,
    response_body,
    attempt_log,
    costs,
    parents,
    followers,
    approval,
    ...more
  } = execution
  const { success: _, recorded_at, result, error, metadata, artifacts, ...evidence } = outcome ?? { success: null }
  const { created_at, updated_at, due_at, outcome_success, replayed_from, claimed_by_worker, error_message, ...steps } = more
  const text = (value: unknown) => value && JSON.stringify(value)
  out.fields({
    ...{ id, cue: `${cue_name} (${cue_id})`, ...steps, error: error_message, 'replay of': replayed_from, worker: claimed_by_worker },
    after: parents.map(({ cue_key, cue_id, execution_id }) => `${cue_key ?? cue_id} (${execution_id})`),
    ...{ due_at: due_at === steps.scheduled_for ? null : due_at, outcome: outcome_state, reported_at: recorded_at, result },
    ...{ 'reported error': error, ...evidence, artifacts: text(artifacts), metadata: text(metadata) },
    approval: approval && approvalText(approval),
    costs: costs.map(({ amount, unit }) => `${amount} ${unit}`).join(', '),
    ...{ payload: JSON.stringify(payload), created: created_at, updated: updated_at, response_body }
  })
  const columns = [
    'attempt',
    'result',
    'started_at',
    ['ms', 'duration_ms'],
    ['http', 'http_status'],
    ['worker', 'worker_id'],
    'error'
  ] as const
  out.section('', attempt_log, columns)
  const waiting = 'waiting for other signals'
  out.section('Followers', followers, [['cue', row => row.cue_key ?? row.cue_id], ['status', row => row.status ?? waiting], 'execution_id'])
}

export const replay = acting(
  ({ executions }, id, body: Replay, call) => executions.replay(id, { ...body, ...call }),
  ({ id, status, replayed_from }) => `Execution ${id} is ${status}; it replays ${replayed_from}`,
  { options: { ...fromApi('replayExecution', { overlap: { member: 'overlap', value: 'RULE' } }), ...idempotency } }
)

export const cancel = acting(
  ({ executions }, id) => executions.cancel(id),
  ({ id }) => `Cancelled execution ${id}`
)
export const dismiss = acting(
  ({ executions }, id) => executions.dismiss(id),
  ({ id }) => `Dismissed execution ${id}`
)

export const signal = acting(
  ({ executions }, id, body: Signal) => executions.signal(id, body),
  ({ id }) => `Execution ${id} counts for the followers of its cue`,
  { options: fromApi('signalExecution', { reason: { member: 'reason', value: 'TEXT', help: 'why, for the audit log' } }) }
)

export const verify = acting(
  ({ executions }, id, body: Verification) => executions.verify(id, { valid: true, ...body }),
  ({ execution_id, outcome_state }) => `Execution ${execution_id} is ${outcome_state}`,
  {
    options: fromApi('verifyExecution', {
      reject: { member: 'valid', help: 'reject it instead', read: () => false },
      reason: { member: 'reason', value: 'TEXT', help: 'why' }
    })
  }
)

const window = (operation: string) => filtersOf(operation, { since: { member: 'from', ...since }, until: { member: 'to', ...until } })

export const errors = acting(
  (client, _, query: ListErrors) => client.errors(query),
  ({ errors, since, total }, out) => {
    if (errors.length === 0) return `No errors since ${since}.`
    out.table(errors, ['count', 'cues', 'status', ['http', 'http_status'], 'first_at', 'last_at', ['group', 'error_group'], 'message'])
    out.line('')
    return `${total} executions since ${since}; for those of a group: pgcue executions list --error-group GROUP`
  },
  { options: window('listErrors'), notes: 'Without --since: those of the last 7 days.' }
)

export const destinations = acting(
  (client, _, query: ListErrors) => client.destinations(query),
  ({ destinations, since }, out) => {
    if (destinations.length === 0) return `No webhooks were sent since ${since}.`
    out.table(destinations, [
      ...(['host', 'cues', 'attempts', 'per_minute', 'failures', ['p50 ms', 'response_p50_ms'], ['p95 ms', 'response_p95_ms']] as const),
      ['last attempt', ({ last_attempt }) => last_attempt.at],
      ['http', ({ last_attempt }) => last_attempt.http_status],
      ['error', ({ last_attempt }) => last_attempt.error]
    ])
    out.line('')
    return `since ${since}`
  },
  { options: window('listDestinations'), notes: 'Without --since: those of the last 24 hours.' }
)

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
const watch = async (watching: Watching, read: (signal: AbortSignal) => Promise<ExecutionDetail>) => {
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
