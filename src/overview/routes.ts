/** The overview of an account: what needs attention, and how the last day went. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { Overview } from './schemas.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  app.get(
    '/v1/overview',
    {
      config: { scope: 'read', isList: true },
      schema: { tags: ['executions'], summary: 'Get what needs attention, and figures on the last 24 hours', response: { 200: Overview } }
    },
    async request => (await app.fn.readOverview(request.caller)) as Static<typeof Overview>
  )
}

export default routes
