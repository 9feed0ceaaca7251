/** Tools for executions, operations on them, and outcomes. */
import { Type } from 'typebox'
import * as executions from '../executions/schemas.ts'
import * as operations from '../operations/schemas.ts'
import * as outcomes from '../outcomes/schemas.ts'
import * as workers from '../workers/schemas.ts'
import { dry_run } from './cue-tools.ts'
import { ExecutionLine, executionLine, more, page } from './lines.ts'
import { Id, IdempotencyKey, limit, NextStep, type Tool, tool } from './tool.ts'

const Execution = Type.Object({ execution_id: Id('execution') })
const execution_id = Type.String()
const claim_token = Type.Optional(workers.ClaimToken)

export const executionTools: readonly Tool[] = [
  tool({
    name: 'list_executions',
    description:
      'List runs, newest first, optionally of one cue, with one status such as failed, or those that failed and await a decision.',
    scope: 'read',
    input: Type.Object({
      ...Type.Partial(Type.Pick(executions.ListExecutions, ['cue_id', 'status', 'dead', 'error', 'tag', 'offset', 'cursor', 'count_to']))
        .properties,
      limit
    }),
    output: Type.Object({ executions: Type.Array(ExecutionLine), ...page }),
    run: async (client, { limit = 10, ...filter }) => {
      const { executions, ...page } = await client.executions.list({ limit, ...filter } as never)
      return { executions: executions.map(executionLine), ...more(page, 'get_execution shows one with its attempts') }
    }
  }),
  tool({
    name: 'get_execution',
    description: 'Get one run with its payload, attempts and outcome.',
    scope: ['read', 'worker'],
    input: Execution,
    output: Type.Object({ execution_id, ...executions.ExecutionDetail.properties }),
    run: async (client, { execution_id }) => ({ execution_id, ...(await client.executions.get(execution_id)) })
  }),
  tool({
    name: 'replay_execution',
    description: 'Replay an ended run as a new execution with the same payload.',
    scope: 'write',
    input: Type.Object({ ...Execution.properties, overlap: executions.GivenOverlap, idempotency_key: IdempotencyKey }),
    output: Type.Object({ ...executions.Replayed.properties, next_step: NextStep }),
    run: async (client, { execution_id, overlap, idempotency_key: idempotencyKey }) => ({
      ...(await client.executions.replay(execution_id, { overlap, idempotencyKey })),
      next_step: 'get_execution with the new execution_id shows the result'
    })
  }),
  tool({
    name: 'replay_failed',
    description:
      'Replay the runs that failed, were missed or timed out, and were neither replayed nor dismissed: of the last 7 days, optionally of one cue, with a tag or an error. ' +
      'By default it only says how many there are; show that, then repeat it with dry_run: false.',
    scope: 'write',
    input: Type.Object({
      ...Type.Pick(executions.ListExecutions, ['cue_id', 'tag', 'error', 'from', 'to']).properties,
      rate_per_minute: operations.CreateOperation.properties.rate_per_minute,
      dry_run,
      idempotency_key: IdempotencyKey
    }),
    output: Type.Object({
      dry_run: Type.Boolean(),
      operation_id: Type.Optional(Type.String()),
      ...Type.Partial(operations.Operation).properties,
      total: operations.DryRun.properties.total,
      sample: Type.Optional(
        Type.Array(Type.Object({ execution_id, ...Type.Omit(operations.DryRun.properties.sample.items, ['key', 'name']).properties }))
      ),
      next_step: NextStep
    }),
    run: async (client, { rate_per_minute, dry_run = true, idempotency_key: idempotencyKey, ...filter }) => {
      const body = { type: 'replay', filter: { dead: true, ...filter }, ...(rate_per_minute && { rate_per_minute }) } as const
      if (dry_run) {
        const { total, sample } = await client.operations.dryRun(body)
        return {
          dry_run,
          total,
          sample: sample.map(target => ({ ...target, execution_id: target.id })),
          next_step: 'nothing was changed: replay_failed with dry_run: false replays them'
        }
      }
      const operation = await client.operations.create(body, { idempotencyKey })
      return { dry_run, ...operation, operation_id: operation.id, next_step: 'get_operation with this operation_id shows its progress' }
    }
  }),
  tool({
    name: 'signal_execution',
    description:
      'Count a failed run as good enough for the cues that follow its cue, which then run. replay_execution is better if it can succeed.',
    scope: 'write',
    input: Type.Object({ ...Execution.properties, ...executions.Signal.properties }),
    output: Type.Object({ execution_id, ...executions.Signalled.properties, next_step: NextStep }),
    run: async (client, { execution_id, ...body }) => ({
      ...(await client.executions.signal(execution_id, body)),
      execution_id,
      next_step: 'get_execution shows the runs of its followers'
    })
  }),
  tool({
    name: 'get_operation',
    description: 'Get an operation, such as that of replay_failed: its progress, and what failed.',
    scope: 'read',
    input: Type.Object({ operation_id: Id('operation') }),
    output: Type.Object({ operation_id: Type.String(), ...operations.OperationDetail.properties }),
    run: async (client, { operation_id }) => ({ operation_id, ...(await client.operations.get(operation_id)) })
  }),
  tool({
    name: 'claim_next',
    description:
      'Claim the next run of a worker cue, to work on its payload. Then report_outcome ends it; until then, heartbeat_execution keeps the claim.',
    scope: 'worker',
    input: Type.Omit(workers.ClaimNextRequest, ['limit']),
    output: Type.Object({ ...Type.Partial(workers.Claim).properties, claimed: Type.Boolean(), next_step: NextStep }),
    run: async (client, request, signal) => {
      const [claim] = await client.executions.claimNext(request as never)
      if (!claim) return { claimed: false, next_step: 'nothing is claimable now; claim_next with wait: 30 waits for work' }
      const { execution_id, claim_token, lease_seconds } = claim
      // An agent that never learns of the claim cannot work on it.
      const giveBack = () => void client.executions.release(execution_id, claim_token).catch(() => {})
      if (signal.aborted) giveBack()
      else signal.addEventListener('abort', giveBack)
      return {
        ...claim,
        next_step: `report_outcome with this execution_id and claim_token within ${lease_seconds} seconds, or heartbeat_execution until then`
      }
    }
  }),
  tool({
    name: 'heartbeat_execution',
    description: 'Extend the claim of a run that takes longer than its lease.',
    scope: 'worker',
    input: Type.Object({ ...Execution.properties, claim_token: workers.ClaimToken }),
    output: Type.Object({ execution_id, ...workers.Extended.properties }),
    run: async (client, { execution_id, claim_token: claimToken }) => ({
      execution_id,
      ...(await client.executions.heartbeat(execution_id, { claimToken }))
    })
  }),
  tool({
    name: 'release_execution',
    description: 'Give a claim back without an outcome, so that the run can be claimed again at once.',
    scope: 'worker',
    input: Type.Object({ ...Execution.properties, claim_token: workers.ClaimToken }),
    output: workers.Released,
    run: async (client, { execution_id, claim_token }) => client.executions.release(execution_id, claim_token)
  }),
  tool({
    name: 'report_outcome',
    description: 'Report, once, whether a run succeeded, with evidence.',
    scope: 'worker',
    input: Type.Object({ ...Execution.properties, claim_token, ...outcomes.Report.properties }),
    output: Type.Object({ ...outcomes.Reported.properties, next_step: NextStep }),
    run: async (client, { execution_id, claim_token: claimToken, ...report }) => ({
      ...(await client.executions.reportOutcome(execution_id, report as never, { claimToken })),
      next_step: 'attach_evidence adds evidence; the report itself cannot be changed'
    })
  }),
  tool({
    name: 'attach_evidence',
    description: 'Add evidence to a reported outcome. Existing evidence is kept.',
    scope: 'worker',
    input: Type.Object({ ...Execution.properties, claim_token, ...outcomes.Evidence.properties }),
    output: outcomes.Attached,
    run: async (client, { execution_id, claim_token: claimToken, ...evidence }) =>
      client.executions.attachEvidence(execution_id, evidence as never, { claimToken })
  }),
  tool({
    name: 'verify_execution',
    description: 'Verify a reported success, or reject it with valid: false.',
    scope: 'write',
    input: Type.Object({ ...Execution.properties, ...outcomes.Verification.properties }),
    output: outcomes.Verified,
    run: async (client, { execution_id, ...body }) => client.executions.verify(execution_id, body)
  })
]
