/** Service health: details for people and dashboards, and a status for load balancers. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { version } from '../config.ts'
import { judge, judgeCells } from './check.ts'
import { Health, Status } from './schemas.ts'

const health: FastifyPluginAsyncTypebox = async app => {
  const judgeService = async (now: Date) => {
    if (app.cells.length === 1) return judge(await app.lookAtHealth(), now)
    const looks = app.cells.map(async ({ config, lookAtHealth }) => ({ id: config.cell, found: await lookAtHealth() }))
    return judgeCells(await Promise.all(looks), now)
  }

  app.get(
    '/health',
    {
      config: { exempt: true },
      schema: {
        operationId: 'getHealth',
        summary: 'Get service health in detail',
        description: 'For people and monitoring, without a key; load balancers use `GET /status`.',
        response: { 200: Health }
      }
    },
    async () => {
      const now = app.now()
      return { ...(await judgeService(now)), version, replica: app.config.replicaName, timestamp: now }
    }
  )

  app.get(
    '/status',
    {
      config: { exempt: true },
      schema: {
        operationId: 'getStatus',
        summary: 'Get the status for load balancers: 200 if the service is up, 503 if not',
        description: 'Needs no key. `GET /health` says what is wrong.',
        response: { 200: Status, 503: Status }
      }
    },
    async (_, reply) => {
      const { status, reason } = await judgeService(app.now())
      return reply.code(status === 'down' ? 503 : 200).send({ status, reason })
    }
  )
}

export default health
