/** Cues: create, read, change and delete. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { IdempotencyKey, idempotencyErrors, idempotently } from '../database/idempotent.ts'
import { Confirmation } from '../schemas.ts'
import actionRoutes from './action-routes.ts'
import { type Cues, createCueBatches, createSingleCues } from './batched.ts'
import declaredRoutes from './declared-routes.ts'
import { allFaults } from './faults.ts'
import { readHistory } from './history.ts'
import * as lists from './list-schemas.ts'
import { listCues } from './read.ts'
import * as schemas from './schemas.ts'
import { withSummaries } from './summaries.ts'
import { createCue, deleteCue, deleteCues, refusals, tagged, updateCue, versionsOf } from './write.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Single cues. */
    cues: Cues
  }
}

const params = schemas.CueParams

const routes: FastifyPluginAsyncTypebox = async app => {
  const { find, findDetail, create } = createCueBatches(app.shared, app.fn)
  const show = app.traces.call('readCueDetails', findDetail)
  app.decorate('cues', { find: app.traces.call('readCues', find), create: app.traces.call('createEachCue', create) })

  app.post(
    '/v1/cues',
    {
      ...allFaults,
      config: { scope: 'write', errors: ['key_taken', ...idempotencyErrors, ...refusals] },
      schema: {
        operationId: 'createCue',
        summary: 'Create a cue',
        description:
          'Starts at once: the first slot after now is `next_run`. Unknown fields are ignored, and named in `warning`. To create or replace by your own key, use `PUT /v1/cues/by-key/{key}`.',
        headers: IdempotencyKey,
        body: schemas.CreateCue,
        response: { 201: schemas.Cue }
      }
    },
    async (request, reply) =>
      idempotently(app, request, reply.code(201), async fn => {
        const writes = fn ? { cues: createSingleCues(fn), shared: fn } : app
        return tagged(reply, await createCue(app, request, request.body, writes))
      })
  )

  app.get(
    '/v1/cues',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listCues',
        summary: 'List cues, newest first',
        description: 'All filters that are given must match.',
        querystring: lists.ListCues,
        response: { 200: lists.Cues }
      }
    },
    async request => {
      const list = await listCues(app.db, request.caller.account_id, request.query)
      return request.query.summary ? { ...list, cues: await withSummaries(app.fn, list.cues) } : list
    }
  )

  app.get(
    '/v1/cues/:cue_id',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getCue',
        summary: 'Get a cue and its latest executions',
        description: 'With its latest 10 executions, and the latest ranges of slots that did not run.',
        params,
        response: { 200: schemas.CueDetail }
      }
    },
    async ({ caller, params }, reply) => tagged(reply, await show(caller.account_id, params.cue_id))
  )

  app.get(
    '/v1/cues/:cue_id/history',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'getCueHistory',
        summary: "Get what became of a cue's slots, by day",
        description: "Executions counted by day in the cue's time zone, and the slots that did not run, with the reason.",
        params,
        querystring: schemas.HistoryQuery,
        response: { 200: schemas.History }
      }
    },
    async request => readHistory(app, { ...request.query, ...request.params, ...request.caller })
  )

  app.patch(
    '/v1/cues/:cue_id',
    {
      ...allFaults,
      config: {
        scope: 'write',
        errors: ['invalid_state', 'key_taken', 'version_conflict', 'approval_protected', ...refusals]
      },
      schema: {
        operationId: 'updateCue',
        summary: 'Update, pause or resume a cue',
        description:
          'Objects are merged with the stored ones, lists, headers and the payload replaced; null restores a default. A change of the schedule moves `next_run`.',
        params,
        headers: schemas.IfMatch,
        body: schemas.UpdateCue,
        response: { 200: schemas.Cue }
      }
    },
    async (request, reply) =>
      tagged(reply, await updateCue(app, request, request.params.cue_id, request.body, versionsOf(request.headers['if-match'])))
  )

  app.delete(
    '/v1/cues/:cue_id',
    {
      config: { scope: 'write', errors: ['version_conflict', 'cue_has_followers', 'approval_protected'] },
      schema: {
        operationId: 'deleteCue',
        summary: 'Delete a cue with its history',
        description:
          'It no longer fires, and its executions are removed in the background. This cannot be undone; to stop it only, pause it.',
        params,
        headers: schemas.IfMatch,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      await deleteCue(app, request.caller, request.params.cue_id, versionsOf(request.headers['if-match']))
      return reply.code(204).send(null)
    }
  )

  app.post(
    '/v1/cues/bulk-delete',
    {
      config: { scope: 'write', errors: ['approval_protected'] },
      schema: {
        operationId: 'deleteCues',
        summary: 'Delete up to 100 cues with their history',
        description:
          'Ids of other accounts, or of no cue, are listed as `skipped`, and so are cues that others follow, unless those are in the list, too.',
        headers: Confirmation,
        body: schemas.BulkDelete,
        response: { 200: schemas.BulkDeleted }
      }
    },
    async request => deleteCues(app, request.caller, request.body.ids)
  )

  await app.register(declaredRoutes)
  await app.register(actionRoutes)
}

export default routes
