/** Gates: limits that cues share. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { readPage } from '../database/read-page.ts'
import { ApiError, fault, invalid } from '../errors.ts'
import * as schemas from './schemas.ts'
import { columnsOf } from './settings.ts'

const columns = [
  ...(['key', 'parallel', 'rate', 'per', 'order', 'on_failure', 'breaker', 'budget', 'max_wait', 'description'] as const),
  ...(['paused_at', 'paused_by', 'pause_reason', 'paused_until', 'created_at', 'updated_at'] as const)
]
type Gate = Static<typeof schemas.Gate>

const routes: FastifyPluginAsyncTypebox = async app => {
  const gatesOf = (account_id: string) => app.db.selectFrom('gate_view').where('account_id', '=', account_id)

  const find = async (account_id: string, key: string) =>
    gatesOf(account_id)
      .select(columns)
      .where('key', '=', key)
      .$castTo<Gate>()
      .executeTakeFirstOrThrow(() => new ApiError('gate_not_found', 'Gate not found in this account.'))

  app.get(
    '/v1/gates',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listGates',
        summary: 'List gates by key',
        description: 'With their settings.',
        querystring: schemas.ListGates,
        response: { 200: schemas.Gates }
      }
    },
    async request => {
      const query = gatesOf(request.caller.account_id).select(columns).orderBy('key').$castTo<Gate>()
      const { rows: gates, ...page } = await readPage(query, request.query)
      return { gates, ...page }
    }
  )

  /** A gate, or `key#part`, with what it does now. */
  const findDetail = async (account_id: string, gate: string): Promise<Static<typeof schemas.GateDetail>> => {
    const [key] = gate.split('#') as [string]
    const settings = await find(account_id, key)
    const state = gate === key ? await app.fn.gateStates({ account_id, key }) : await app.fn.gateState({ account_id, gate })
    return { parts: [], ...settings, key: gate, ...state } as Static<typeof schemas.GateDetail>
  }

  app.get(
    '/v1/gates/:gate_key',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getGate',
        summary: 'Get a gate',
        description: 'With what it does now. `openai%23tenant-42` shows one part.',
        params: schemas.PartParams,
        response: { 200: schemas.GateDetail }
      }
    },
    async request => findDetail(request.caller.account_id, request.params.gate_key)
  )

  app.put(
    '/v1/gates/:gate_key',
    {
      config: { scope: 'write', errors: ['gate_limit_exceeded'] },
      schema: {
        operationId: 'putGate',
        summary: 'Create or replace a gate',
        description:
          'Cues name it as `gate`: `"openai"`, or `"openai#tenant-42"` for a part that has the same settings and is counted by itself. Changes apply to what ' +
          'already waits. Omitted fields return to their defaults.',
        params: schemas.NewGateParams,
        body: schemas.PutGate,
        response: { 200: schemas.Gate, 201: schemas.Gate }
      }
    },
    async (request, reply) => {
      const { gate_key: key } = request.params
      const result = await app.fn.putGate({ key, gate: JSON.stringify(columnsOf(request.body)), ...request.caller })
      return reply.code(result === 'created' ? 201 : 200).send(await find(request.caller.account_id, key))
    }
  )

  app.delete(
    '/v1/gates/:gate_key',
    {
      config: { scope: 'write', errors: ['gate_in_use'] },
      schema: {
        operationId: 'deleteGate',
        summary: 'Delete a gate that no cue uses',
        description: 'If cues use it, `gate_in_use` lists them.',
        params: schemas.GateParams,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      await app.fn.deleteGate({ key: request.params.gate_key, ...request.caller })
      return reply.code(204).send(null)
    }
  )

  app.post(
    '/v1/gates/:gate_key/pause',
    {
      config: { scope: 'write' },
      schema: {
        operationId: 'pauseGate',
        summary: 'Pause a gate: its executions are held until it is resumed',
        description: 'Running executions continue. Of a paused gate, sets the reason and the end.',
        params: schemas.GateParams,
        body: schemas.PauseGate,
        response: { 200: schemas.Gate }
      }
    },
    async request => {
      const { gate_key: key } = request.params
      const { reason } = request.body
      const until = request.body.until == null ? undefined : new Date(request.body.until)
      if (until && until <= app.now()) throw invalid([fault(['until'], 'must be in the future')])
      await app.fn.pauseGate({ key, reason: reason ?? undefined, until, ...request.caller })
      return find(request.caller.account_id, key)
    }
  )

  app.post(
    '/v1/gates/:gate_key/resume',
    {
      config: { scope: 'write' },
      schema: {
        operationId: 'resumeGate',
        summary: 'Resume a gate',
        description: 'Without effect unless it is paused, or its breaker is open: then the next attempt begins now.',
        params: schemas.GateParams,
        body: schemas.ResumeGate,
        response: { 200: schemas.Gate }
      }
    },
    async request => {
      const { gate_key: key } = request.params
      await app.fn.resumeGate({ key, ...request.caller })
      return find(request.caller.account_id, key)
    }
  )
}

export default routes
