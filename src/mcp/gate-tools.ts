/** The MCP tools for gates. */
import { Type } from 'typebox'
import { DeclaredGate, Gate, ListGates, PauseGate, PutGate } from '../gates/schemas.ts'
import { limit, NextStep, type Tool, tool } from './tool.ts'

const key = DeclaredGate.properties.key

export const gateTools: readonly Tool[] = [
  tool({
    name: 'list_gates',
    description: 'List gates: limits that cues share, named by their member gate.',
    scope: 'read',
    input: Type.Object({ ...Type.Partial(ListGates).properties, limit }),
    output: Type.Object({ gates: Type.Array(Gate), total: Type.Integer(), next_step: NextStep }),
    run: async (client, { limit = 10, ...page }) => {
      const { gates, total } = await client.gates.list({ limit, ...page })
      return { gates, total, next_step: 'put_gate changes one; pause_gate holds its executions' }
    }
  }),
  tool({
    name: 'put_gate',
    description: 'Create or replace a gate. It applies to what already waits. Omitted members return to their defaults.',
    scope: 'write',
    input: Type.Object({ key, ...PutGate.properties }),
    output: Type.Object({ ...Gate.properties, next_step: NextStep }),
    run: async (client, { key, ...settings }) => ({
      ...(await client.gates.put(key, settings)),
      next_step: 'create_cue and upsert_cue take it as gate'
    })
  }),
  tool({
    name: 'pause_gate',
    description: 'Hold the executions of a gate, or with resume: true let them run again.',
    scope: 'write',
    input: Type.Object({ key, resume: Type.Optional(Type.Boolean({ default: false })), ...PauseGate.properties }),
    output: Type.Object({ ...Gate.properties, next_step: NextStep }),
    run: async (client, { key, resume = false, reason, until }) => ({
      ...(resume ? await client.gates.resume(key) : await client.gates.pause(key, { reason, until: until as never })),
      next_step: resume ? 'list_executions shows its runs' : 'pause_gate with resume: true lets them run'
    })
  })
]
