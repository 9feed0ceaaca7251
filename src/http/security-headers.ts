/** Security headers of every response. Pages that load anything replace the Content-Security-Policy with their own. */
import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import helmet from 'helmet'

declare module 'fastify' {
  interface FastifyInstance {
    /** For responses to requests that reach no hook. */
    securityHeaders: OutgoingHttpHeaders
  }
}

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
      // Read only by browsers of the past, or without an effect on these pages; each costs half a percent of a request's CPU.
      xDownloadOptions: false,
      xPermittedCrossDomainPolicies: false,
      xXssProtection: false,
      xDnsPrefetchControl: false,
      originAgentCluster: false,
      // Not without TLS: browsers could not reach the service again.
      strictTransportSecurity: app.config.baseUrl.startsWith('https:') && { maxAge: year, includeSubDomains: false }
    })
    // Made once, since they are the same for every response: making them takes a twentieth of a request's time.
    const request = new IncomingMessage(new Socket())
    const answer = new ServerResponse(request)
    setHeaders(request, answer, () => {})
    const headers = answer.getHeaders()
    app.decorate('securityHeaders', headers)

    app.addHook('onRequest', (_request, reply, done) => {
      reply.headers(headers)
      done()
    })
  },
  { name: 'security-headers' }
)
