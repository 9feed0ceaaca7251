/** Alerts about consecutive failures, missed windows, outcome timeouts and cues paused after failures. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { fault, invalid } from '../errors.ts'
import { listAlerts } from './list.ts'
import { Alert, AlertParams, Alerts, ListAlerts, SnoozeAlert } from './schemas.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '/v1/alerts',
    {
      config: { scope: 'read', isList: true },
      schema: {
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
      return read(alert_id)
    }
  )

  app.post(
    '/v1/alerts/:alert_id/snooze',
    {
      config: { scope: 'write' },
      schema: {
        operationId: 'snoozeAlert',
        summary: 'Send nothing about an alert until a time',
        description:
          'Then its channels get one message that says what happened meanwhile, if anything did. Snoozing again moves the time. The alert webhook and ' +
          'mails are not affected.',
        params: AlertParams,
        body: SnoozeAlert,
        response: { 200: Alert }
      }
    },
    async request => {
      const { alert_id } = request.params
      const until = new Date(request.body.until)
      if (until <= app.now()) throw invalid([fault(['until'], 'must be in the future')])
      await app.fn.snoozeAlert({ alert_id, until, ...request.caller })
      return read(alert_id)
    }
  )

  async function read(alert_id: string): Promise<Static<typeof Alert>> {
    const alert = await app.db.selectFrom('alert_view').selectAll().where('id', '=', alert_id).executeTakeFirstOrThrow()
    return alert as unknown as Static<typeof Alert>
  }
}

export default routes
