/** Bulk operations: create, list, get and abort. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { IdempotencyKey, idempotencyErrors, idempotently } from '../database/idempotent.ts'
import { readPage } from '../database/read-page.ts'
import { ApiError, sqlstates } from '../errors.ts'
import { checkOperation, createOperation, dryRun } from './create.ts'
import * as schemas from './schemas.ts'

const params = schemas.OperationParams
const MAX_BODY = 1024 * 1024
const columns = [
  'id',
  'type',
  'name',
  'status',
  'total',
  'done',
  'succeeded',
  'failed',
  'skipped',
  'created_by',
  'created_at',
  'ended_at'
] as const

const routes: FastifyPluginAsyncTypebox = async app => {
  app.post(
    '/v1/operations',
    {
      bodyLimit: MAX_BODY,
      config: { scope: 'write', computes: true, errors: ['confirmation_required', 'operation_running', ...idempotencyErrors] },
      schema: {
        operationId: 'createOperation',
        summary: 'Replay, cancel, pause … many executions or cues, or backfill one cue',
        description:
          'Acts in the background, on what the filter matches now. What has changed by then is skipped. At most 100,000 targets and 10 operations per hour; ' +
          'one of each type runs at a time. Fires count towards `fires_per_hour` of the plan (10 per cue).',
        headers: Type.Object({ ...IdempotencyKey.properties, ...schemas.Confirmed }),
        body: schemas.CreateOperation,
        response: { 200: schemas.DryRun, 202: schemas.Operation }
      }
    },
    async (request, reply) => {
      const { body, headers } = request
      checkOperation(body, headers['x-confirm-destructive'], app.now())
      if (body.dry_run) return dryRun(app, request, body)
      return idempotently(app, request, reply.code(202), async fn => shown(await createOperation(app, request, body, fn ?? app.fn)))
    }
  )

  app.get(
    '/v1/operations',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listOperations',
        summary: 'List operations, newest first',
        description: 'Without their errors; see `GET /v1/operations/{operation_id}`.',
        querystring: schemas.ListOperations,
        response: { 200: schemas.Operations }
      }
    },
    async request => {
      const { type, status } = request.query
      let matching = app.db.selectFrom('operation_view').where('account_id', '=', request.caller.account_id)
      if (type !== undefined) matching = matching.where('type', '=', type)
      if (status !== undefined) matching = matching.where('status', '=', status)
      const query = matching.select(columns).orderBy('created_at', 'desc').orderBy('id', 'desc')
      const { rows, ...page } = await readPage(query, request.query)
      return { operations: rows as unknown as Static<typeof schemas.Operation>[], ...page }
    }
  )

  app.get(
    '/v1/operations/:operation_id',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getOperation',
        summary: 'Get an operation and its errors',
        description: 'Poll it until `ended_at` is set.',
        params,
        response: { 200: schemas.OperationDetail }
      }
    },
    async request => {
      const row = await app.db
        .selectFrom('operation_view')
        .selectAll()
        .where('id', '=', request.params.operation_id)
        .where('account_id', '=', request.caller.account_id)
        .executeTakeFirstOrThrow(() => new ApiError('operation_not_found', 'Operation not found in this account.'))
      const errors = row.errors as unknown as Error[]
      return { ...row, errors: errors.map(named) } as unknown as Static<typeof schemas.OperationDetail>
    }
  )

  app.post(
    '/v1/operations/:operation_id/abort',
    {
      config: { scope: 'write', errors: ['invalid_state'] },
      schema: {
        operationId: 'abortOperation',
        summary: 'Abort a running operation',
        description: 'What it has done stays done. Repeating this changes nothing.',
        params,
        response: { 200: schemas.Operation }
      }
    },
    async request => shown(await app.fn.abortOperation({ ...request.params, ...request.caller }))
  )
}

type Error = { target: string; code: string; message: string }
/** SQL names refusals by SQLSTATE. */
const named = (error: Error): Error => ({ ...error, code: sqlstates[error.code] ?? error.code })

const shown = <O extends { succeeded: number; failed: number; skipped: number }>(operation: O) =>
  ({ ...operation, done: operation.succeeded + operation.failed + operation.skipped }) as unknown as Static<typeof schemas.Operation>

export default routes
