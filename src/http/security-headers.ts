/** What browsers are told about every answer. Pages say what they need besides with a Content-Security-Policy of their own. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import helmet from 'helmet'

const year = 31_536_000

export default fp(
  async (app: FastifyInstance) => {
    const setHeaders = helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: { defaultSrc: ["'none'"], baseUri: ["'none'"], formAction: ["'none'"], frameAncestors: ["'none'"] }
      },
      frameguard: { action: 'deny' },
      referrerPolicy: { policy: 'no-referrer' },
      // Not of a service that is reached without TLS: browsers would not come back to it.
      strictTransportSecurity: app.config.baseUrl.startsWith('https:') && { maxAge: year, includeSubDomains: false }
    })
    // They are the same for every request, and making them would cost each a twentieth of its time.
    const request = new IncomingMessage(new Socket())
    const answer = new ServerResponse(request)
    setHeaders(request, answer, () => {})
    const headers = answer.getHeaders()

    app.addHook('onRequest', async (_, reply) => {
      reply.headers(headers)
    })
  },
  { name: 'security-headers' }
)
