/** Cues: create, read, change, fire and delete. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ErrorBody } from '../schemas.ts'
import { createCueBatches } from './batched.ts'
import { detail, listCues } from './read.ts'
import * as schemas from './schemas.ts'
import { checkTimeout, createCue, deleteCues, fireCue, updateCue } from './write.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Single cues. */
    cues: ReturnType<typeof createCueBatches>
  }
}

const tags = ['cues']
const params = schemas.CueParams

const routes: FastifyPluginAsyncTypebox = async app => {
  app.decorate('cues', createCueBatches(app.shared, app.pacer))

  app.post(
    '/v1/cues',
    {
      config: { scope: 'write', errors: ['cue_limit_exceeded', 'invalid_schedule', 'invalid_callback_url', 'invalid_payload_size'] },
      schema: { tags, summary: 'Create a cue', body: schemas.CreateCue, response: { 201: schemas.Cue, '4xx': ErrorBody } }
    },
    async (request, reply) => {
      checkTimeout(app, request.plan, request.body)
      return reply.code(201).send(await createCue(app, request, request.body))
    }
  )

  app.get(
    '/v1/cues',
    {
      config: { scope: 'read', isList: true },
      schema: { tags, summary: 'List cues, newest first', querystring: schemas.ListCues, response: { 200: schemas.Cues, '4xx': ErrorBody } }
    },
    async request => listCues(app.db, request.caller.account_id, request.query)
  )

  app.get(
    '/v1/cues/:cue_id',
    {
      config: { scope: 'read', withCue: true },
      schema: { tags, summary: 'Get a cue and its latest executions', params, response: { 200: schemas.CueDetail, '4xx': ErrorBody } }
    },
    async request => detail(request.cue)
  )

  app.patch(
    '/v1/cues/:cue_id',
    {
      config: {
        scope: 'write',
        errors: ['cue_limit_exceeded', 'invalid_state', 'invalid_schedule', 'invalid_callback_url', 'invalid_payload_size']
      },
      schema: {
        tags,
        summary: 'Update, pause or resume a cue',
        params,
        body: schemas.UpdateCue,
        response: { 200: schemas.Cue, '4xx': ErrorBody }
      }
    },
    async request => {
      checkTimeout(app, request.plan, request.body)
      return updateCue(app, request, request.params.cue_id, request.body)
    }
  )

  app.delete(
    '/v1/cues/:cue_id',
    {
      config: { scope: 'write' },
      schema: { tags, summary: 'Delete a cue with its history', params, response: { 204: Type.Null(), '4xx': ErrorBody } }
    },
    async (request, reply) => {
      await app.fn.deleteCue({ ...request.params, ...request.caller })
      return reply.code(204).send(null)
    }
  )

  app.post(
    '/v1/cues/bulk-delete',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        summary: 'Delete up to 100 cues with their history',
        headers: schemas.Confirmation,
        body: schemas.BulkDelete,
        response: { 200: schemas.BulkDeleted, '4xx': ErrorBody }
      }
    },
    async request => deleteCues(app, request.caller, request.body.ids)
  )

  app.post(
    '/v1/cues/:cue_id/fire',
    {
      config: { scope: 'write', errors: ['invalid_state', 'idempotency_key_conflict', 'execution_limit_exceeded', 'invalid_payload_size'] },
      schema: {
        tags,
        summary: 'Fire a cue now, or at `send_at`',
        params,
        body: schemas.FireRequest,
        response: { 200: schemas.FiredExecution, '4xx': ErrorBody }
      }
    },
    async request => fireCue(app, request.caller, request.params.cue_id, request.body)
  )
}

export default routes
