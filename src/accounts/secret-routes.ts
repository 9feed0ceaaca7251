/** The secrets that sign an account's webhooks and alerts. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Confirmation } from '../schemas.ts'
import * as schemas from './schemas.ts'

const config = { scope: 'account' } as const
const querystring = schemas.Overlap

const routes: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '/v1/auth/webhook-secret',
    {
      config,
      schema: {
        operationId: 'getWebhookSecret',
        summary: 'Get the secret that signs webhooks',
        description: '`whsec_…`: the key of the signatures of webhooks, as text.',
        response: { 200: schemas.WebhookSecret }
      }
    },
    async request => ({ webhook_secret: await app.fn.webhookSecret(request.caller) })
  )

  app.post(
    '/v1/auth/webhook-secret/regenerate',
    {
      config,
      schema: {
        operationId: 'regenerateWebhookSecret',
        summary: 'Replace the secret that signs webhooks',
        description: 'With `overlap_seconds`, requests have the signatures of both secrets for that long.',
        querystring,
        response: { 200: schemas.NewWebhookSecret }
      }
    },
    async request => ({
      webhook_secret: await app.fn.regenerateWebhookSecret({ ...request.query, ...request.caller }),
      previous_secret_revoked: request.query.overlap_seconds === 0
    })
  )

  app.get(
    '/v1/auth/alert-webhook-secret',
    {
      config,
      schema: {
        operationId: 'getAlertWebhookSecret',
        summary: 'Get the secret that signs alert webhooks, created by the first call',
        description: 'Signs what is sent to `alert_webhook_url`.',
        response: { 200: schemas.AlertWebhookSecret }
      }
    },
    async request => ({ alert_webhook_secret: await app.fn.alertWebhookSecret(request.caller) })
  )

  app.post(
    '/v1/auth/alert-webhook-secret/regenerate',
    {
      config,
      schema: {
        operationId: 'regenerateAlertWebhookSecret',
        summary: 'Replace the secret that signs alert webhooks',
        description: 'With `overlap_seconds`, alerts have the signatures of both secrets for that long.',
        headers: Confirmation,
        querystring,
        response: { 200: schemas.NewAlertWebhookSecret }
      }
    },
    async request => ({
      alert_webhook_secret: await app.fn.regenerateAlertWebhookSecret({ ...request.query, ...request.caller }),
      previous_secret_revoked: request.query.overlap_seconds === 0
    })
  )
}

export default routes
