/** The requests that pgcue sends, as OpenAPI's `webhooks`. */
import { type TSchema, Type } from 'typebox'
import { Alert } from '../../src/alerts/schemas.ts'
import { published, type Schema } from '../../src/http/schema.ts'
import { MemoryBlock } from '../../src/memory/schemas.ts'
import { Nullable, Timestamp } from '../../src/schemas.ts'

const signatures = {
  'X-Service-Signature':
    '`v1=` and the hex HMAC-SHA256 of `timestamp.body`; the key is the whole secret. While a secret is replaced, two, separated by a comma.',
  'X-Service-Timestamp': 'Epoch seconds of the signature. Reject requests more than 300 seconds off.',
  'webhook-id': 'The same for all tries: deduplicate by it.',
  'webhook-timestamp': 'The same timestamp, as in Standard Webhooks.',
  'webhook-signature': 'The signature of Standard Webhooks: `v1,` and base64; several are separated by spaces.'
}

type Webhook = {
  operationId: string
  summary: string
  description: string
  headers?: Record<string, string>
  body: TSchema
  responses: Record<string, string>
}

const retried = { '2XX': 'Received.', '410': 'Not wanted: no more tries.', default: 'Sent again, up to five times.' }
const { id: alert_id, alert_type, severity, message, cue_id, execution_id, created_at, metadata } = Alert.properties
const { version, changelog } = MemoryBlock.properties

const webhooks: Record<string, Webhook> = {
  delivery: {
    operationId: 'deliver',
    summary: 'An execution is due',
    description:
      'Sent to `callback.url` of the cue, with its method and headers; the body is the payload. Delivery is at least once: deduplicate by the execution.',
    headers: {
      ...signatures,
      'X-Service-Cue-Id': 'The cue.',
      'X-Service-Execution-Id': 'The execution.',
      'X-Service-Scheduled-For': 'The nominal time of the slot, ISO 8601 in UTC.',
      'X-Service-Attempt': '1 for the first attempt.',
      Authorization: '`Bearer` and a token that is valid for this execution only: read it, send heartbeats, report the outcome.'
    },
    body: Type.Unknown({ description: 'The payload, as canonical JSON.' }),
    responses: {
      '2XX': 'Success. With `delivery.await_outcome`, the outcome is awaited; a JSON body with a boolean `success` is the report.',
      '410': 'Failure, without further attempts.',
      '429': 'Failure; `Retry-After` delays the next attempt, up to an hour.',
      default: 'Failure: sent again after the backoff, until `retry.max_attempts`.'
    }
  },
  failure: {
    operationId: 'notifyFailure',
    summary: 'An execution has failed for good',
    description: 'Sent to `on_failure.webhook` of the cue when no attempts are left, when it is missed, or when its outcome times out.',
    body: Type.Object({
      event: Type.Enum(['cue.failed']),
      cue_id: Type.String(),
      cue_name: Type.String(),
      execution_id: Type.String({ format: 'uuid' }),
      attempts: Type.Integer(),
      last_http_status: Nullable(Type.Integer()),
      last_error: Nullable(Type.String()),
      failed_at: Timestamp,
      dashboard_url: Type.String()
    }),
    responses: retried
  },
  alert: {
    operationId: 'notifyAlert',
    summary: 'An alert was raised',
    description: 'Sent to `alert_webhook_url` of the account, signed with its alert secret.',
    headers: { ...signatures, 'X-Service-Alert-Id': 'The alert.', 'X-Service-Alert-Type': 'Its type.' },
    body: Type.Object({ alert_id, alert_type, severity, message, cue_id, execution_id, created_at, metadata }),
    responses: retried
  },
  memoryBlock: {
    operationId: 'notifyMemoryBlock',
    summary: 'The memory block has changed',
    description: 'Sent to subscribers of the memory block, with its current version.',
    body: Type.Object({ event: Type.Enum(['memory_block.updated']), version, changelog, updated_at: Timestamp }),
    responses: retried
  }
}

/** The member `webhooks` of the description. */
export const describedWebhooks = (): object =>
  Object.fromEntries(
    Object.entries(webhooks).map(([name, { headers = signatures, body, responses, ...operation }]) => [
      name,
      {
        post: {
          ...operation,
          security: [],
          parameters: Object.entries(headers).map(([name, description]) => ({
            name,
            in: 'header',
            description,
            schema: { type: 'string' }
          })),
          requestBody: { content: { 'application/json': { schema: published(body as Schema) } } },
          responses: Object.fromEntries(Object.entries(responses).map(([status, description]) => [status, { description }]))
        }
      }
    ])
  )
