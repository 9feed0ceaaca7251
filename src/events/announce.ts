/**
 * Tells engines about the events of cues that requests have written, once their transactions have ended: in a transaction, a notification would make
 * its commit wait for others.
 */
import type { FastifyInstance } from 'fastify'

/** Requests that end within this time are announced together. */
const togetherMs = 20
const paths = /^\/(v1\/cues|mcp)\b/

export const announceEvents = (app: FastifyInstance): void => {
  let timer: NodeJS.Timeout | undefined
  app.addHook('onResponse', async ({ method, url }) => {
    if (method === 'GET' || !paths.test(url)) return
    timer ??= setTimeout(() => {
      timer = undefined
      // Engines look every second anyway.
      app.fn.noticeEvents({}).catch(() => {})
    }, togetherMs)
  })
  app.addHook('onClose', async () => clearTimeout(timer))
}
