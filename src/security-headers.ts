/** What browsers are told about every answer. Pages say what they need besides with a Content-Security-Policy of their own. */
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

const year = 31_536_000

export default fp(
  async (app: FastifyInstance) => {
    await app.register(helmet, {
      contentSecurityPolicy: {
        useDefaults: false,
        directives: { defaultSrc: ["'none'"], baseUri: ["'none'"], formAction: ["'none'"], frameAncestors: ["'none'"] }
      },
      frameguard: { action: 'deny' },
      referrerPolicy: { policy: 'no-referrer' },
      // Not of a service that is reached without TLS: browsers would not come back to it.
      hsts: app.config.baseUrl.startsWith('https:') && { maxAge: year, includeSubDomains: false }
    })
  },
  { name: 'security-headers' }
)
