/** Outcomes: reports, evidence and verification. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { constants } from '../catalog.ts'
import { costsText } from '../costs/amounts.ts'
import type { Costs } from '../costs/schemas.ts'
import type { ExecutionsRow } from '../database/functions.ts'
import { filled, textLengths } from '../deliveries/report.ts'
import { ApiError } from '../errors.ts'
import type { Json } from '../json/canonical-json.ts'
import { ExecutionParams as params } from '../workers/schemas.ts'
import { claimTokenOf } from '../workers/token.ts'
import * as schemas from './schemas.ts'

type Text = string | null | undefined
type Given = {
  external_id?: Text
  result_url?: Text
  result_ref?: Text
  result_type?: Text
  summary?: Text
  artifacts?: Json | null
  costs?: Costs | null
  metadata?: Json | null
}

/** Converts evidence for SQL: JSON becomes text, and blank text becomes null, so that it doesn't overwrite anything. */
const evidenceOf = <T extends Given>({ artifacts, metadata, costs, ...rest }: T) => {
  if (metadata && metadata.bytes > constants.metadataBytes)
    throw new ApiError('metadata_too_large', 'metadata too large: the maximum is 10 KB of JSON.')
  if (artifacts && artifacts.bytes > constants.artifactsBytes) {
    throw new ApiError('artifacts_too_large', 'artifacts too large: the maximum is 64 KB of JSON.')
  }
  const { external_id, result_url, result_ref, result_type, summary } = rest
  return {
    ...rest,
    external_id: filled(external_id),
    result_url: filled(result_url),
    result_type: filled(result_type),
    summary: filled(summary),
    result_ref: filled(result_ref),
    artifacts: artifacts?.text,
    metadata: metadata?.text,
    costs: costsText(costs)
  }
}

const routes: FastifyPluginAsyncTypebox = async app => {
  app.post(
    '/v1/executions/:execution_id/outcome',
    {
      config: {
        scope: 'worker',
        executionToken: true,
        errors: ['outcome_already_reported', 'invalid_state', 'claim_lost', 'metadata_too_large', 'artifacts_too_large']
      },
      schema: {
        operationId: 'reportOutcome',
        summary: 'Report the outcome of an execution, once',
        description:
          'Ends an execution that was claimed or awaits its outcome. A second report gets `outcome_already_reported`. Also accepts the token that came with the delivery.',
        params,
        headers: schemas.TokenHeaders,
        body: schemas.Report,
        response: { 200: schemas.Reported }
      }
    },
    async request => {
      const claim_token = claimTokenOf(request.headers)
      const e = await app.fn.reportOutcome({ ...evidenceOf(request.body), claim_token, ...request.params, ...request.caller })
      app.metrics.outcomeReported(e.transport, e.outcome_success!)
      return {
        execution_id: e.id,
        outcome: {
          success: e.outcome_success!,
          result: e.result,
          metadata: request.body.metadata ?? null,
          recorded_at: e.outcome_recorded_at!
        },
        outcome_state: e.outcome_state!,
        outcome_recorded: true
      }
    }
  )

  app.patch(
    '/v1/executions/:execution_id/evidence',
    {
      config: { scope: 'worker', executionToken: true, errors: ['no_outcome', 'claim_lost', 'metadata_too_large', 'artifacts_too_large'] },
      schema: {
        operationId: 'attachEvidence',
        summary: 'Add evidence to a reported outcome',
        description: "Evidence is added, never removed, and the cue's verification is applied again. Success or failure stay as reported.",
        params,
        headers: schemas.TokenHeaders,
        body: schemas.Evidence,
        response: { 200: schemas.Attached }
      }
    },
    async request => {
      const { summary } = request.body
      const cut = summary && Array.from(summary).slice(0, textLengths.summary).join('')
      const claim_token = claimTokenOf(request.headers)
      return app.fn.attachEvidence({ ...evidenceOf({ ...request.body, summary: cut }), claim_token, ...request.params, ...request.caller })
    }
  )

  app.post(
    '/v1/executions/:execution_id/verify',
    {
      config: { scope: 'write', errors: ['invalid_state', 'no_outcome'] },
      schema: {
        operationId: 'verifyExecution',
        summary: 'Verify or reject a reported success',
        description: 'The outcome becomes `verified_success`. With `valid: false`, it becomes `verification_failed`.',
        params,
        body: schemas.Verify,
        response: { 200: schemas.Verified }
      }
    },
    async request => {
      const { valid = true, reason } = request.body ?? {}
      const state = valid ? 'verified_success' : 'verification_failed'
      return verified(await app.fn.verifyOutcome({ state, reason, ...request.params, ...request.caller }))
    }
  )

  app.post(
    '/v1/executions/:execution_id/verification-pending',
    {
      config: { scope: 'write', errors: ['invalid_state', 'no_outcome'] },
      schema: {
        operationId: 'requestVerification',
        summary: 'Mark a reported success for manual verification',
        description: 'The outcome becomes `verification_pending` until a person decides.',
        params,
        response: { 200: schemas.Verified }
      }
    },
    async request => {
      return verified(await app.fn.verifyOutcome({ state: 'verification_pending', ...request.params, ...request.caller }))
    }
  )
}

const verified = ({ id, status, outcome_state }: ExecutionsRow) => ({ execution_id: id, status, outcome_state: outcome_state! })

export default routes
