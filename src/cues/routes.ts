/** Cues: create, read, change, fire and delete. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { IdempotencyKey, idempotencyErrors, idempotently } from '../database/idempotent.ts'
import { invalid } from '../errors.ts'
import { Confirmation } from '../schemas.ts'
import { applyCues } from './apply.ts'
import { type Cues, createCueBatches, createSingleCues } from './batched.ts'
import { fault } from './changes.ts'
import * as declared from './declared-schemas.ts'
import { allFaults } from './faults.ts'
import { readHistory } from './history.ts'
import * as lists from './list-schemas.ts'
import { detail, listCues, unknownCue } from './read.ts'
import * as schemas from './schemas.ts'
import { withSummaries } from './summaries.ts'
import { createTests } from './test-requests.ts'
import { createCue, deleteCue, deleteCues, etagOf, fireCue, pauseCue, putCue, updateCue, versionsOf } from './write.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Single cues. */
    cues: Cues
  }
}

const tags = ['cues']
const params = schemas.CueParams
/** Refusals of a cue's definition. */
const refusals = ['cue_limit_exceeded', 'invalid_schedule', 'invalid_callback_url', 'invalid_payload_size'] as const

const routes: FastifyPluginAsyncTypebox = async app => {
  const { find, findDetail, create } = createCueBatches(app.shared, app.fn)
  const test = createTests(app)
  const show = app.traces.call('readCueDetails', findDetail)
  app.decorate('cues', { find: app.traces.call('readCues', find), create: app.traces.call('createEachCue', create) })

  app.post(
    '/v1/cues',
    {
      ...allFaults,
      config: { scope: 'write', errors: ['key_taken', ...idempotencyErrors, ...refusals] },
      schema: {
        tags,
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
        tags,
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
        tags,
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
        tags,
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
        errors: ['invalid_state', 'key_taken', 'version_conflict', ...refusals]
      },
      schema: {
        tags,
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

  app.post(
    '/v1/cues/:cue_id/pause',
    {
      config: { scope: 'write', errors: ['invalid_state', 'version_conflict'] },
      schema: {
        tags,
        operationId: 'pauseCue',
        summary: 'Pause a cue, until you resume it or until a time',
        description:
          'Existing executions continue. At `until` the cue resumes by itself and counts from then: a slot at `until` runs. For a cue that is paused already, reason and end are replaced.',
        params,
        headers: schemas.IfMatch,
        body: schemas.PauseCue,
        response: { 200: schemas.Cue }
      }
    },
    async (request, reply) =>
      tagged(reply, await pauseCue(app, request, request.params.cue_id, request.body, versionsOf(request.headers['if-match'])))
  )

  app.post(
    '/v1/cues/:cue_id/resume',
    {
      config: { scope: 'write', errors: ['invalid_state', 'version_conflict', 'cue_limit_exceeded', 'invalid_schedule'] },
      schema: {
        tags,
        operationId: 'resumeCue',
        summary: 'Resume a paused cue from now on',
        description: 'Slots of the pause are not caught up.',
        params,
        headers: schemas.IfMatch,
        body: schemas.ResumeCue,
        response: { 200: schemas.Cue }
      }
    },
    async (request, reply) =>
      tagged(reply, await updateCue(app, request, request.params.cue_id, { status: 'active' }, versionsOf(request.headers['if-match'])))
  )

  app.delete(
    '/v1/cues/:cue_id',
    {
      config: { scope: 'write', errors: ['version_conflict'] },
      schema: {
        tags,
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

  app.get(
    '/v1/cues/by-key/:key',
    {
      config: { scope: 'read' },
      schema: {
        tags,
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
      config: { scope: 'write', errors: ['invalid_state', 'cue_exists', 'version_conflict', ...refusals] },
      schema: {
        tags,
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
      config: { scope: 'write', errors: ['version_conflict'] },
      schema: {
        tags,
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
        errors: ['managed_elsewhere', 'invalid_state', ...idempotencyErrors, ...refusals]
      },
      schema: {
        tags,
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

  app.post(
    '/v1/cues/bulk-delete',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        operationId: 'deleteCues',
        summary: 'Delete up to 100 cues with their history',
        description: 'Ids of other accounts, or of no cue, are listed as `skipped`.',
        headers: Confirmation,
        body: schemas.BulkDelete,
        response: { 200: schemas.BulkDeleted }
      }
    },
    async request => deleteCues(app, request.caller, request.body.ids)
  )

  app.post(
    '/v1/cues/test',
    {
      config: {
        scope: 'write',
        errors: ['cue_not_found', 'invalid_state', 'service_held', 'invalid_callback_url', 'invalid_payload_size']
      },
      schema: {
        tags,
        operationId: 'testCue',
        summary: 'Send one signed request to a cue or a URL, and show the response',
        description:
          'The request is that of a delivery, with a new execution id; nothing is stored, and nothing is retried. A test counts as a fire of the cue; for URLs, the same limit applies to all tests together. ' +
          `The timeout is that of the cue, but at most ${schemas.MAX_TEST_SECONDS} seconds.`,
        body: schemas.TestCue,
        response: { 200: schemas.TestResult }
      }
    },
    async request => {
      request.remainingMs += schemas.MAX_TEST_SECONDS * 1000
      return test(request.caller, request.body)
    }
  )

  app.post(
    '/v1/cues/:cue_id/fire',
    {
      config: { scope: 'write', errors: ['invalid_state', ...idempotencyErrors, 'execution_limit_exceeded', 'invalid_payload_size'] },
      schema: {
        tags,
        operationId: 'fireCue',
        summary: 'Fire a cue now, or at `send_at`',
        description: 'Limit per cue and hour: `fires_per_hour` of the plan (10); above it, 429.',
        params,
        headers: IdempotencyKey,
        body: schemas.FireRequest,
        response: { 200: schemas.FiredExecution }
      }
    },
    async (request, reply) => {
      const { 'idempotency-key': key } = request.headers
      const { idempotency_key } = request.body
      if (key !== undefined && idempotency_key != null && idempotency_key !== key)
        throw invalid([fault(['idempotency_key'], 'differs from the header Idempotency-Key; leave one of them out')])
      return idempotently(app, request, reply, async fn => fireCue(app, request.caller, request.params.cue_id, request.body, fn ?? app.fn))
    }
  )
}

/** Adds the version of a cue to its response. */
const tagged = <C extends { version: number }>(reply: { header: (name: string, value: string) => unknown }, cue: C): C => {
  reply.header('etag', etagOf(cue))
  return cue
}

export default routes
