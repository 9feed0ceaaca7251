/** The MCP tools for approvals. */
import { Type } from 'typebox'
import * as executions from '../executions/schemas.ts'
import { ExecutionLine, executionLine, more, page } from './lines.ts'
import { Id, limit, NextStep, type Tool, tool } from './tool.ts'

const ApprovalLine = Type.Object({
  ...Type.Pick(ExecutionLine, ['execution_id', 'cue_id', 'cue_name', 'scheduled_for']).properties,
  approval: executions.Execution.properties.approval
})

export const approvalTools: readonly Tool[] = [
  tool({
    name: 'list_approvals',
    description: 'List runs that wait until a person approves them, newest first.',
    scope: 'read',
    input: Type.Object({
      ...Type.Partial(Type.Pick(executions.ListExecutions, ['cue_id', 'tag', 'cursor', 'count_to'])).properties,
      limit
    }),
    output: Type.Object({ approvals: Type.Array(ApprovalLine), ...page }),
    run: async (client, { limit = 10, ...filter }) => {
      const { executions, ...page } = await client.executions.list({ held: 'approval', limit, ...filter })
      return { approvals: executions.map(executionLine), ...more(page, 'get_execution shows the payload of one') }
    }
  }),
  tool({
    name: 'decide_approval',
    description: 'Approve or reject a run that waits, as its person decided. A rejection needs a reason.',
    scope: 'approve',
    input: Type.Object({
      execution_id: Id('execution'),
      decision: Type.Enum(['approve', 'reject']),
      reason: Type.Optional(executions.Reject.properties.reason)
    }),
    output: Type.Object({ ...executions.Decision.properties, next_step: NextStep }),
    run: async (client, { execution_id, decision, reason }) => ({
      ...(await client.executions[decision](execution_id, { reason } as never)),
      next_step: 'get_execution shows what became of it'
    })
  })
]
