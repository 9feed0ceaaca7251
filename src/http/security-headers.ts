/** Security headers of every response. Pages that load anything replace the Content-Security-Policy with their own. */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyInstance {
    /** For responses to requests that reach no hook. */
    securityHeaders: Record<string, string>
  }
}

export default fp(
  async (app: FastifyInstance) => {
    const headers = {
      'content-security-policy': "default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'",
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      // A year. Not without TLS: browsers could not reach the service again.
      ...(app.config.baseUrl.startsWith('https:') && { 'strict-transport-security': 'max-age=31536000' })
    }
    app.decorate('securityHeaders', headers)
    app.addHook('onRequest', (_request, reply, done) => {
      reply.headers(headers)
      done()
    })
  },
  { name: 'security-headers' }
)
