/** What dashboards show of an account: what needs attention, how the last day went, errors, and destinations. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { Destinations, Errors, ListDestinations, ListErrors, Overview, OverviewQuery } from './schemas.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '/v1/overview',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'getOverview',
        summary: 'Get what needs attention, and figures on a time window',
        description:
          'Failing cues, tasks without a live worker, outcomes to decide, paused cues, open alerts, and the runs of the next hour.',
        querystring: OverviewQuery,
        response: { 200: Overview }
      }
    },
    async request => (await app.fn.readOverview({ from: windowOf(request.query).from, ...request.caller })) as Static<typeof Overview>
  )

  app.get(
    '/v1/errors',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listErrors',
        summary: 'Get the dead letters of a time window, grouped by error',
        description:
          'Messages that differ only in numbers and ids are one group. Replay or dismiss a group with `POST /v1/operations` and `error_group`.',
        querystring: ListErrors,
        response: { 200: Errors }
      }
    },
    async request => (await app.fn.readErrors({ ...windowOf(request.query), ...request.caller })) as Static<typeof Errors>
  )

  app.get(
    '/v1/destinations',
    {
      config: { scope: 'read', isList: true },
      schema: {
        operationId: 'listDestinations',
        summary: 'Get the hosts that webhooks went to in a time window',
        description: 'With their attempts, failures and response times.',
        querystring: ListDestinations,
        response: { 200: Destinations }
      }
    },
    async request => (await app.fn.readDestinations({ ...windowOf(request.query), ...request.caller })) as Static<typeof Destinations>
  )
}

export default routes

const windowOf = ({ from, to }: { from?: string; to?: string }) => ({
  from: from === undefined ? from : new Date(from),
  to: to === undefined ? to : new Date(to)
})
