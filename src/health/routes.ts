/** Whether the service is well: for people and dashboards, and for load balancers. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { version } from '../config.ts'
import type { ServiceHealth } from '../functions.ts'
import { judge } from './check.ts'
import { Health, Status } from './schemas.ts'

const maxAgeMs = 5000
/** Whoever asks for health must not wait as long as a lost connection takes to be noticed. */
const patienceMs = 2000

const health: FastifyPluginAsyncTypebox = async app => {
  let asked = Number.NEGATIVE_INFINITY
  let answer: Promise<ServiceHealth | null>

  /** What the database says, at most 5 seconds old; null if it says nothing. */
  const look = () => {
    const now = app.now().getTime()
    if (Math.abs(now - asked) < maxAgeMs) return answer
    asked = now
    let timer: NodeJS.Timeout
    const late = new Promise<null>(resolve => {
      timer = setTimeout(resolve, patienceMs, null)
    })
    const found = app.fn.serviceHealth({}).catch(error => {
      app.log.warn({ err: error }, 'health could not be read')
      return null
    })
    answer = Promise.race([found, late]).finally(() => clearTimeout(timer))
    return answer
  }

  app.get(
    '/health',
    { config: { exempt: true }, schema: { tags: ['service'], summary: 'Diagnostics of the service', response: { 200: Health } } },
    async () => {
      const now = app.now()
      return { ...judge(await look(), now), version, timestamp: now }
    }
  )

  app.get(
    '/status',
    {
      config: { exempt: true },
      schema: {
        tags: ['service'],
        summary: 'Whether the service is up: 200, or 503 when it is down',
        response: { 200: Status, 503: Status }
      }
    },
    async (_, reply) => {
      const { status, reason } = judge(await look(), app.now())
      return reply.code(status === 'down' ? 503 : 200).send({ status, reason })
    }
  )
}

export default health
