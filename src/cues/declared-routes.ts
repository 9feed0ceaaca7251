/** Cues by the user's keys: single ones, and sets as declared. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { IdempotencyKey, idempotencyErrors, idempotently } from '../database/idempotent.ts'
import { applyCues } from './apply.ts'
import * as declared from './declared-schemas.ts'
import { allFaults } from './faults.ts'
import { detail, unknownCue } from './read.ts'
import * as schemas from './schemas.ts'
import { deleteCue, putCue, refusals, tagged, versionsOf } from './write.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '/v1/cues/by-key/:key',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'getCueByKey',
        summary: 'Get a cue by its key',
        description: 'As `GET /v1/cues/{cue_id}`.',
        params: schemas.KeyParams,
        response: { 200: schemas.CueDetail }
      }
    },
    async (request, reply) => tagged(reply, detail(await app.fn.cueDetailByKey({ ...request.params, ...request.caller })))
  )

  app.put(
    '/v1/cues/by-key/:key',
    {
      ...allFaults,
      config: { scope: 'write', errors: ['invalid_state', 'cue_exists', 'version_conflict', 'approval_protected', ...refusals] },
      schema: {
        operationId: 'putCueByKey',
        summary: 'Create the cue with a key, or replace its definition',
        description:
          'Omitted fields return to their defaults. Status, counters and an unchanged next run stay; a finished cue with a new schedule becomes active again.',
        params: schemas.NewKeyParams,
        headers: schemas.PutConditions,
        body: schemas.PutCue,
        response: { 200: schemas.UpsertedCue, 201: schemas.UpsertedCue }
      }
    },
    async (request, reply) => {
      const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
      const conditions = { versions: versionsOf(ifMatch), isOnlyNew: ifNoneMatch !== undefined }
      const { cue, created, changed } = await putCue(app, request, request.params.key, request.body, conditions)
      return tagged(reply.code(created ? 201 : 200), { ...cue, changed })
    }
  )

  app.delete(
    '/v1/cues/by-key/:key',
    {
      config: { scope: 'write', errors: ['version_conflict', 'cue_has_followers', 'approval_protected'] },
      schema: {
        operationId: 'deleteCueByKey',
        summary: 'Delete a cue by its key, with its history',
        description: 'As `DELETE /v1/cues/{cue_id}`.',
        params: schemas.KeyParams,
        headers: schemas.IfMatch,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      const cue_id = await app.fn.cueIdByKey({ ...request.params, ...request.caller })
      if (cue_id === null) throw unknownCue()
      await deleteCue(app, request.caller, cue_id, versionsOf(request.headers['if-match']))
      return reply.code(204).send(null)
    }
  )

  app.post(
    '/v1/cues/apply',
    {
      // The levels are: list, cue. Its members are read one cue at a time.
      config: {
        scope: 'write',
        computes: true,
        free: { names: ['cues'], depth: 2, asWritten: true },
        errors: ['managed_elsewhere', 'invalid_state', 'cue_has_followers', 'approval_protected', ...idempotencyErrors, ...refusals]
      },
      schema: {
        operationId: 'applyCues',
        summary: 'Make the cues of a set as declared, all or none',
        description:
          'Creates cues, and replaces definitions that differ, by their keys. A cue without a set is adopted. All errors are reported at once: `loc` names ' +
          'the key and the field. If they have the same code, it is that of the response; otherwise that is `validation_error`, and `type` is the code.',
        headers: IdempotencyKey,
        body: declared.Apply,
        response: { 200: declared.Applied }
      }
    },
    async (request, reply) => idempotently(app, request, reply, async fn => applyCues(app, request, request.body, fn ?? app.fn))
  )
}

export default routes
