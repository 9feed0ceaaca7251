/** Executions: list, get, replay, cancel, signal and dismiss. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { IdempotencyKey, idempotencyErrors, idempotently } from '../database/idempotent.ts'
import { createShow, listExecutions } from './queries.ts'
import * as schemas from './schemas.ts'

const params = schemas.ExecutionParams

const routes: FastifyPluginAsyncTypebox = async app => {
  const show = app.traces.call('readExecutionDetails', createShow(app.shared))

  app.get(
    '/v1/executions',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listExecutions',
        summary: 'List executions, newest first',
        description: 'All filters must match. Executions are kept for EXECUTION_RETENTION_DAYS.',
        querystring: schemas.ListExecutions,
        response: { 200: schemas.Executions }
      }
    },
    async request => listExecutions(app.db, request.caller.account_id, request.query, app.now())
  )

  app.get(
    '/v1/executions/:execution_id',
    {
      config: { scope: ['read', 'worker'], executionToken: true },
      schema: {
        operationId: 'getExecution',
        summary: 'Get an execution and its attempts',
        description:
          'With its payload, the beginning of the latest response, and a log of its attempts. Also readable with the token that came with its delivery.',
        params,
        response: { 200: schemas.ExecutionDetail }
      }
    },
    async request => show(request.caller.account_id, request.params.execution_id)
  )

  app.post(
    '/v1/executions/:execution_id/replay',
    {
      config: { scope: 'write', errors: ['execution_in_flight', 'execution_limit_exceeded', 'overlap_skipped', ...idempotencyErrors] },
      schema: {
        operationId: 'replayExecution',
        summary: 'Replay an ended execution as a new one',
        description: 'The new one has the payload of the old one, which stays as it is, and `scheduled_for` is now.',
        params,
        headers: IdempotencyKey,
        body: schemas.Replay,
        response: { 200: schemas.Replayed }
      }
    },
    async (request, reply) =>
      idempotently(app, request, reply, async fn => {
        const replayed = await (fn ?? app.fn).replayExecution({
          overlap: request.body?.overlap ?? undefined,
          ...request.params,
          ...request.caller
        })
        return { ...replayed, execution_id: replayed.id } as Static<typeof schemas.Replayed>
      })
  )

  app.post(
    '/v1/executions/:execution_id/approve',
    {
      config: { scope: 'approve', errors: ['invalid_state', 'already_decided', 'own_request'] },
      schema: {
        operationId: 'approveExecution',
        summary: 'Approve an execution that waits for approval',
        description: 'It runs at once, unless its overlap or gate holds it. The key that fired or replayed it cannot approve it.',
        params,
        body: schemas.Approve,
        response: { 200: schemas.Decision }
      }
    },
    async request =>
      (await app.fn.decideApproval({
        ...request.params,
        decision: 'approved',
        reason: request.body?.reason,
        ...request.caller
      })) as Static<typeof schemas.Decision>
  )

  app.post(
    '/v1/executions/:execution_id/reject',
    {
      config: { scope: 'approve', errors: ['invalid_state', 'already_decided'] },
      schema: {
        operationId: 'rejectExecution',
        summary: 'Reject an execution that waits for approval',
        description: 'It ends as `failed`, without `on_failure`, an alert or a dead letter.',
        params,
        body: schemas.Reject,
        response: { 200: schemas.Decision }
      }
    },
    async request =>
      (await app.fn.decideApproval({
        ...request.params,
        decision: 'rejected',
        reason: request.body.reason,
        ...request.caller
      })) as Static<typeof schemas.Decision>
  )

  app.post(
    '/v1/executions/:execution_id/cancel',
    {
      config: { scope: 'write', errors: ['invalid_state'] },
      schema: {
        operationId: 'cancelExecution',
        summary: 'Cancel a waiting execution',
        description:
          'Waiting means `pending`, `retrying` or `retry_ready`. It ends as `failed` with the error `cancelled`, without `on_failure` or an alert.',
        params,
        response: { 200: schemas.Cancelled }
      }
    },
    async request => (await app.fn.cancelExecution({ ...request.params, ...request.caller })) as Static<typeof schemas.Cancelled>
  )

  app.post(
    '/v1/executions/:execution_id/signal',
    {
      config: { scope: 'write', errors: ['invalid_state'] },
      schema: {
        operationId: 'signalExecution',
        summary: 'Count a failed execution as good enough for the followers of its cue',
        description:
          'The cues that follow its cue run as if it had succeeded; the execution stays as it is. Each of its followers gets one signal of an execution and its replays: repeating this changes nothing.',
        params,
        body: schemas.Signal,
        response: { 200: schemas.Signalled }
      }
    },
    async request =>
      (await app.fn.signalExecution({ ...request.body, ...request.params, ...request.caller })) as Static<typeof schemas.Signalled>
  )

  app.post(
    '/v1/executions/:execution_id/dismiss',
    {
      config: { scope: 'write', errors: ['invalid_state'] },
      schema: {
        operationId: 'dismissExecution',
        summary: 'Remove an execution from the dead letters',
        description: 'The execution stays as it is; `dead=true` no longer lists it. Repeating this changes nothing.',
        params,
        response: { 200: schemas.Dismissed }
      }
    },
    async request => {
      const { id, status } = await app.fn.dismissExecution({ ...request.params, ...request.caller })
      return { id, status, dead: false } as Static<typeof schemas.Dismissed>
    }
  )
}

export default routes
