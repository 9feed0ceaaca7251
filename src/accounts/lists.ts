/** Lists may read megabytes each, so an account's are read one after another. Its other requests don't wait for them. */
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { createTurns, type Turns } from '../database/turns.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Responds with a list of the account. */
    isList?: boolean
  }
  interface FastifyInstance {
    /** Reads a list of an account when it is its turn. */
    readList: Turns
  }
}

export default fp(
  async (app: FastifyInstance) => {
    const readList = createTurns(1)
    app.decorate('readList', readList)
    app.addHook('onRoute', route => {
      const { handler, config } = route
      if (!config?.isList) return
      route.handler = function (request, reply) {
        const askedAt = performance.now()
        return readList(request.caller.account_id, async () => {
          request.remainingMs -= performance.now() - askedAt
          return handler.call(this, request, reply)
        })
      }
    })
  },
  { name: 'lists' }
)
