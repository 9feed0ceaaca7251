/** Cues: pause, resume, fire and test. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { IdempotencyKey, idempotencyErrors, idempotently } from '../database/idempotent.ts'
import { fault, invalid } from '../errors.ts'
import { allFaults } from './faults.ts'
import { previewPayload } from './payload-preview.ts'
import * as schemas from './schemas.ts'
import { createTests } from './test-requests.ts'
import { fireCue, pauseCue, tagged, updateCue, versionsOf } from './write.ts'

const params = schemas.CueParams

const routes: FastifyPluginAsyncTypebox = async app => {
  const test = createTests(app)

  app.post(
    '/v1/cues/:cue_id/pause',
    {
      config: { scope: 'write', errors: ['invalid_state', 'version_conflict'] },
      schema: {
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

  app.post(
    '/v1/cues/test',
    {
      config: {
        scope: 'write',
        errors: ['cue_not_found', 'invalid_state', 'service_held', 'invalid_callback_url', 'invalid_payload_size', 'approval_protected']
      },
      schema: {
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
    '/v1/cues/preview-payload',
    {
      ...allFaults,
      config: { scope: 'read', errors: ['invalid_schedule', 'invalid_payload_size'] },
      schema: {
        operationId: 'previewPayload',
        summary: 'Preview the request of a cue, with the values of its template',
        description:
          'The body is that of `POST /v1/cues`; nothing is stored. Values of earlier runs are those of the cue with this key, or else examples.',
        body: schemas.CreateCue,
        response: { 200: schemas.PayloadPreview }
      }
    },
    async request => previewPayload(app, request, request.body)
  )

  app.post(
    '/v1/cues/:cue_id/fire',
    {
      config: { scope: 'write', errors: ['invalid_state', ...idempotencyErrors, 'execution_limit_exceeded', 'invalid_payload_size'] },
      schema: {
        operationId: 'fireCue',
        summary: 'Fire a cue now, or at a later time',
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

export default routes
