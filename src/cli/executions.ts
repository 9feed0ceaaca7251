/** `pgcue executions …` */
import type { ExecutionDetail, Replay } from '../client/index.ts'
import { acting, command, filtersOf, fromApi, idempotency, listing, pastOf } from './command.ts'
import type { Output } from './output.ts'
import { cueOption } from './reference.ts'
import { watch } from './watch.ts'

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
    const { executions } = await connect()
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

/** All that the API knows about an execution. */
const showExecution = (execution: ExecutionDetail, out: Output) => {
  const { id, cue_id, cue_name, outcome, outcome_state, payload, response_body, attempt_log, ...more } = execution
  const { success: _, recorded_at, result, error, metadata, artifacts, ...evidence } = outcome ?? { success: null }
  const { created_at, updated_at, due_at, outcome_success, replayed_from, claimed_by_worker, error_message, ...steps } = more
  const text = (value: unknown) => value && JSON.stringify(value)
  out.fields({
    ...{ id, cue: `${cue_name} (${cue_id})`, ...steps, error: error_message, 'replay of': replayed_from, worker: claimed_by_worker },
    ...{ due_at: due_at === steps.scheduled_for ? null : due_at, outcome: outcome_state, reported_at: recorded_at, result },
    ...{ 'reported error': error, ...evidence, artifacts: text(artifacts), metadata: text(metadata) },
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
}

export const replay = command({
  options: { ...fromApi('replayExecution', { overlap: { member: 'overlap', value: 'RULE' } }), ...idempotency },
  run: async ({ args: [id], options, ready }) => {
    const { client, body } = await ready<Replay>()
    return client.executions.replay(id!, { ...body, idempotencyKey: options['idempotency-key'] })
  },
  text: ({ id, status, replayed_from }) => `Execution ${id} is ${status}; it replays ${replayed_from}`
})

export const cancel = acting(
  ({ executions }, id) => executions.cancel(id),
  ({ id }) => `Cancelled execution ${id}`
)
export const dismiss = acting(
  ({ executions }, id) => executions.dismiss(id),
  ({ id }) => `Dismissed execution ${id}`
)

export const verify = command({
  options: {
    reject: { type: 'boolean', help: 'reject it instead' },
    reason: { type: 'string', value: 'TEXT', help: 'why' }
  },
  run: async ({ args: [id], options: { reject, reason }, connect }) =>
    (await connect()).executions.verify(id!, { valid: !reject, ...(reason !== undefined && { reason }) }),
  text: ({ execution_id, outcome_state }) => `Execution ${execution_id} is ${outcome_state}`
})
