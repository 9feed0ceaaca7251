/** `/metrics` for Prometheus, and the measurement of requests. */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { createLook } from '../health/cached-health.ts'
import { comesFromNear } from './access.ts'
import type { MetricValues } from './metrics.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Values of this cell alone. */
    measure: () => Promise<MetricValues>
  }
}

export default fp(
  async (app: FastifyInstance) => {
    const { metrics } = app

    app.addHook('onResponse', ({ method, routeOptions }, { statusCode, elapsedTime }, done) => {
      metrics.requestEnded(method, routeOptions.url ?? 'none', statusCode, elapsedTime)
      done()
    })

    const look = createLook(app, async () => {
      const [health, jobs, ended, held] = await Promise.all([
        app.fn.serviceHealth({}),
        app.fn.jobCounts({}),
        app.fn.endedExecutions({}),
        app.fn.heldSeconds({})
      ])
      return { ...health, jobs, ended, held }
    })
    app.decorate('measure', async () => metrics.valuesWith(await look(), app.now()))
    app.get(
      '/metrics',
      {
        config: { exempt: true, errors: ['not_authenticated', 'rate_limit_exceeded'] },
        schema: {
          operationId: 'getMetrics',
          summary: 'Metrics of this replica in Prometheus format',
          description: 'Open to loopback and private networks; others need METRICS_TOKEN as bearer token.',
          response: { 200: { content: { 'text/plain': { schema: Type.String() } } } }
        }
      },
      async (request, reply) => {
        const { authorization, forwarded, 'x-forwarded-for': forwardedFor } = request.headers
        const peer = { ips: request.ips ?? [request.ip], forwards: forwarded !== undefined || forwardedFor !== undefined }
        if (!comesFromNear(peer) && !app.hasToken(authorization, app.config.metricsToken, request.ip)) {
          throw new ApiError('not_authenticated', 'Metrics require a private network, or METRICS_TOKEN as bearer token.')
        }
        const elsewhere = app.cells.flatMap(cell => (cell.config.cell === app.config.cell ? [] : cell.measure()))
        return reply.type(metrics.contentType).send(await metrics.text(await look(), app.now(), elsewhere))
      }
    )
  },
  { name: 'metrics' }
)
