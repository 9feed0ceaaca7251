/** `pgcue executions …` */
import type { Execution, ExecutionFilter } from '../client/index.ts'
import { command, none, only } from './command.ts'
import { idempotency, type Overlap, overlap } from './cue-definition.ts'
import { UsageError } from './exit-codes.ts'
import { executionFilterNames, executionFilterOf, executionFilters } from './filters.ts'
import { longPage, longPageNames, longPageOf } from './page.ts'

const filters = {
  ...executionFilters,
  'result-type': { type: 'string', value: 'TYPE', help: 'only with this result_type' },
  evidence: { type: 'boolean', help: 'only with evidence' },
  'no-evidence': { type: 'boolean', help: 'only without evidence' },
  ...longPage
} as const

export const executionsList = command({
  summary: 'List executions, newest first',
  options: filters,
  names: { ...executionFilterNames, result_type: '--result-type', since: '--since', until: '--until', ...longPageNames },
  run: async context => {
    none(context)
    const { options: o, out } = context
    if (o.evidence && o['no-evidence']) throw new UsageError('give either --evidence or --no-evidence, not both')
    const { from: since, to: until, ...matching } = executionFilterOf(o)
    const filter = {
      ...matching,
      since,
      until,
      result_type: o['result-type'],
      has_evidence: o.evidence ? true : o['no-evidence'] ? false : undefined,
      ...longPageOf(o)
    }
    const answer = await (await context.connect()).executions.list(filter as ExecutionFilter)
    const columns: Parameters<typeof out.list<Execution>>[2] = [
      ['id', one => one.id],
      ['cue', one => one.cue_name],
      ['status', one => one.status],
      ['outcome', one => one.outcome_state],
      ['scheduled for', one => one.scheduled_for],
      ['attempts', one => one.attempts],
      ['trigger', one => one.triggered_by]
    ]
    out.list(answer, answer.executions, columns, 'No matching executions.')
  }
})

export const executionsGet = command({
  args: 'ID',
  summary: 'Show an execution and its attempts',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    const execution = await (await context.connect()).executions.get(id)
    const { outcome } = execution
    out.show(execution, () => {
      out.fields({
        id,
        cue: `${execution.cue_name} (${execution.cue_id})`,
        status: execution.status,
        error: execution.error_message,
        'scheduled for': execution.scheduled_for,
        'triggered by': execution.triggered_by,
        'replay of': execution.replayed_from,
        'next retry': execution.next_retry,
        worker: execution.claimed_by_worker,
        'lease until': execution.lease_expires_at,
        outcome: execution.outcome_state,
        result: outcome?.result,
        'reported error': outcome?.error,
        summary: outcome?.summary,
        'external id': outcome?.external_id,
        'result url': outcome?.result_url,
        'result ref': outcome?.result_ref,
        artifacts: outcome?.artifacts && JSON.stringify(outcome.artifacts),
        metadata: outcome?.metadata && JSON.stringify(outcome.metadata),
        payload: JSON.stringify(execution.payload)
      })
      if (execution.attempt_log.length === 0) return
      out.line('')
      out.table(execution.attempt_log, [
        ['attempt', one => one.attempt],
        ['result', one => one.result],
        ['started', one => one.started_at],
        ['ms', one => one.duration_ms],
        ['http', one => one.http_status],
        ['worker', one => one.worker_id],
        ['error', one => one.error]
      ])
    })
  }
})

export const executionsReplay = command({
  args: 'ID',
  summary: 'Replay an ended execution as a new one',
  options: { ...overlap, ...idempotency },
  names: { overlap: '--overlap' },
  run: async context => {
    const { out, options } = context
    const id = only(context, 'ID')
    const given = { overlap: options.overlap as Overlap | undefined, idempotencyKey: options['idempotency-key'] }
    const replayed = await (await context.connect()).executions.replay(id, given)
    out.show(replayed, () => out.line(`Execution ${replayed.id} is ${replayed.status}; it replays ${replayed.replayed_from}`))
  }
})

export const executionsCancel = command({
  args: 'ID',
  summary: 'Cancel a waiting execution',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    const cancelled = await (await context.connect()).executions.cancel(id)
    out.show(cancelled, () => out.line(`Cancelled execution ${cancelled.id}`))
  }
})

export const executionsDismiss = command({
  args: 'ID',
  summary: 'Remove an execution from the dead letters',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    const dismissed = await (await context.connect()).executions.dismiss(id)
    out.show(dismissed, () => out.line(`Dismissed execution ${dismissed.id}`))
  }
})

export const executionsVerify = command({
  args: 'ID [--reject] [--reason TEXT]',
  summary: 'Verify or reject a reported success',
  options: {
    reject: { type: 'boolean', help: 'reject it instead' },
    reason: { type: 'string', value: 'TEXT', help: 'why' }
  },
  run: async context => {
    const { options, out } = context
    const id = only(context, 'ID')
    const body = { valid: !options.reject, ...(options.reason !== undefined && { reason: options.reason }) }
    const verified = await (await context.connect()).executions.verify(id, body)
    out.show(verified, () => out.line(`Execution ${verified.execution_id} is ${verified.outcome_state}`))
  }
})
