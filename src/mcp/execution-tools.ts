/** Tools for executions, operations on them, and outcomes. */
import { Type } from 'typebox'
import { GivenOverlap as overlap } from '../executions/schemas.ts'
import { lengths } from '../outcomes/schemas.ts'
import { executionLine, more } from './lines.ts'
import { count_to, cursor, Id, IdempotencyKey, limit, offset, type Tool, tag, tool } from './tool.ts'

const Execution = Type.Object({ execution_id: Id('execution') })

const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }))
const evidence = {
  external_id: text(lengths.external_id),
  result_url: text(lengths.result_url),
  result_ref: text(lengths.result_ref),
  result_type: text(lengths.result_type),
  summary: text(lengths.summary),
  artifacts: Type.Optional(Type.Array(Type.Unknown())),
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown()))
}

export const executionTools: readonly Tool[] = [
  tool({
    name: 'list_executions',
    description:
      'List runs, newest first, optionally of one cue, with one status such as failed, or those that failed and await a decision.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({
      cue_id: Type.Optional(Id('cue')),
      status: Type.Optional(Type.String()),
      dead: Type.Optional(Type.Boolean({ description: 'Only those that failed, and were neither replayed nor dismissed.' })),
      error: Type.Optional(Type.String({ description: 'Part of the error message.' })),
      tag,
      limit,
      offset,
      cursor,
      count_to
    }),
    run: async (client, { limit = 10, ...filter }) => {
      const { executions, ...page } = await client.executions.list({ limit, ...filter } as never)
      return { executions: executions.map(executionLine), ...more(page, 'get_execution shows one with its attempts') }
    }
  }),
  tool({
    name: 'get_execution',
    description: 'Get one run with its payload, attempts and outcome.',
    scope: ['read', 'worker'],
    readOnly: true,
    input: Execution,
    run: async (client, { execution_id }) => client.executions.get(execution_id)
  }),
  tool({
    name: 'replay_execution',
    description: 'Replay an ended run as a new execution with the same payload.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ execution_id: Id('execution'), overlap, idempotency_key: IdempotencyKey }),
    run: async (client, { execution_id, overlap, idempotency_key: idempotencyKey }) => ({
      ...(await client.executions.replay(execution_id, { overlap, idempotencyKey })),
      next_step: 'get_execution with the new id shows the result'
    })
  }),
  tool({
    name: 'replay_failed',
    description:
      'Replay the runs that failed, were missed or timed out, and were neither replayed nor dismissed: of the last 7 days, optionally of one cue, with a tag or an error. ' +
      'By default it only says how many there are; show that, then repeat it with dry_run: false.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({
      cue_id: Type.Optional(Id('cue')),
      tag,
      error: Type.Optional(Type.String({ description: 'Part of the error message.' })),
      from: Type.Optional(Type.String({ description: 'Created at or after this time: ISO 8601 with Z or an offset.' })),
      to: Type.Optional(Type.String({ description: 'Created before this time.' })),
      rate_per_minute: Type.Optional(Type.Integer({ minimum: 1 })),
      dry_run: Type.Optional(Type.Boolean({ description: 'Default: true.' })),
      idempotency_key: IdempotencyKey
    }),
    run: async (client, { rate_per_minute, dry_run = true, idempotency_key: idempotencyKey, ...filter }) => {
      const body = { type: 'replay', filter: { dead: true, ...filter }, ...(rate_per_minute && { rate_per_minute }) } as const
      if (dry_run)
        return {
          dry_run,
          ...(await client.operations.dryRun(body)),
          next_step: 'nothing was changed: replay_failed with dry_run: false replays them'
        }
      const operation = await client.operations.create(body, { idempotencyKey })
      return { dry_run, ...operation, next_step: 'get_operation with this id shows its progress' }
    }
  }),
  tool({
    name: 'get_operation',
    description: 'Get an operation, such as that of replay_failed: its progress, and what failed.',
    scope: 'read',
    readOnly: true,
    input: Type.Object({ operation_id: Id('operation') }),
    run: async (client, { operation_id }) => client.operations.get(operation_id)
  }),
  tool({
    name: 'report_outcome',
    description: 'Report, once, whether a run succeeded, with evidence.',
    scope: 'worker',
    readOnly: false,
    input: Type.Object({
      execution_id: Id('execution'),
      success: Type.Boolean(),
      result: Type.Optional(Type.String({ maxLength: 2000 })),
      error: Type.Optional(Type.String({ maxLength: 2000 })),
      ...evidence
    }),
    run: async (client, { execution_id, ...report }) => ({
      ...(await client.executions.reportOutcome(execution_id, report as never)),
      next_step: 'attach_evidence adds evidence; the report itself cannot be changed'
    })
  }),
  tool({
    name: 'attach_evidence',
    description: 'Add evidence to a reported outcome. Existing evidence is kept.',
    scope: 'worker',
    readOnly: false,
    input: Type.Object({ execution_id: Id('execution'), ...evidence }),
    run: async (client, { execution_id, ...given }) => client.executions.attachEvidence(execution_id, given as never)
  }),
  tool({
    name: 'verify_execution',
    description: 'Verify a reported success, or reject it with valid: false.',
    scope: 'write',
    readOnly: false,
    input: Type.Object({ execution_id: Id('execution'), valid: Type.Optional(Type.Boolean()), reason: Type.Optional(Type.String()) }),
    run: async (client, { execution_id, ...body }) => client.executions.verify(execution_id, body)
  })
]
