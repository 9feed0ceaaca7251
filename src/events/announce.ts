/**
 * What requests leave to be done once their transactions have ended. Engines hear about the events of cues: in a transaction, a notification would make
 * its commit wait for others. And a cue that was refused for the limit becomes an event: that of its transaction is rolled back.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { createRecent } from '../cache/recent.ts'

/** Requests that end within this time are announced together. */
const togetherMs = 20
const paths = /^\/(v1\/cues|mcp)\b/
/** For so long, further refusals of an account need no look: the event comes once in 24 hours. */
const refusedMs = 3_600_000

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
  const refusedAt = createRecent<string, number>(10_000)
  app.addHook('onResponse', async ({ errorCode, caller, body }: FastifyRequest) => {
    if (errorCode !== 'cue_limit_exceeded' || (body as { dry_run?: boolean } | null)?.dry_run) return
    const { account_id } = caller
    const now = +app.now()
    if (now - (refusedAt.get(account_id) ?? -refusedMs) < refusedMs) return
    refusedAt.set(account_id, now)
    await app.fn.addCueLimitEvent({ account_id }).catch(() => refusedAt.set(account_id, 0))
  })
  app.addHook('onClose', async () => clearTimeout(timer))
}
