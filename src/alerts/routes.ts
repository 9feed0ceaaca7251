/** Alerts about consecutive failures, missed windows, outcome timeouts and cues paused after failures. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { listAlerts } from './list.ts'
import { Alert, AlertParams, Alerts, ListAlerts } from './schemas.ts'

const tags = ['alerts']

const routes: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '/v1/alerts',
    {
      config: { scope: 'read', isList: true },
      schema: {
        tags,
        operationId: 'listAlerts',
        summary: 'List alerts, newest first',
        description: 'At most one alert per cue and type is open; further failures raise its `failure_count`.',
        querystring: ListAlerts,
        response: { 200: Alerts }
      }
    },
    async request => listAlerts(app.db, request.caller.account_id, request.query)
  )

  app.post(
    '/v1/alerts/:alert_id/acknowledge',
    {
      config: { scope: 'write' },
      schema: {
        tags,
        operationId: 'acknowledgeAlert',
        summary: 'Acknowledge an alert',
        description: 'The next failure raises a new one. Repeating this changes nothing.',
        params: AlertParams,
        response: { 200: Alert }
      }
    },
    async request => {
      const { alert_id } = request.params
      await app.fn.acknowledgeAlert({ alert_id, ...request.caller })
      const alert = await app.db.selectFrom('alert_view').selectAll().where('id', '=', alert_id).executeTakeFirstOrThrow()
      return alert as Static<typeof Alert>
    }
  )
}

export default routes
