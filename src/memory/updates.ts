/**
 * Notifies subscribers of new memory block versions: one durable job each, signed like a callback. The content is determined when it is
 * sent.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { Functions } from '../database/functions.ts'
import { userAgent } from '../deliveries/request.ts'
import { signHeaders } from '../deliveries/signature.ts'
import type { WebhookClient } from '../deliveries/webhook.ts'
import type { Jobs } from '../jobs/boss.ts'
import { canonicalJson } from '../json/canonical-json.ts'
import { release } from './block.ts'

type Options = {
  jobs: Jobs
  fn: Pick<Functions, 'memoryNotice' | 'endMemoryNotice' | 'addJob'>
  client: WebhookClient
  now: () => number
  log: FastifyBaseLogger
}
type Job = { subscription_id: string; account_id: string; tries?: number }

const queue = 'memory_updates'
const event = 'memory_block.updated'
const timeoutMs = 30_000
const waits = [10_000, 60_000, 300_000, 1_800_000]

export const startMemoryUpdates = async ({ jobs, fn, client, now, log }: Options): Promise<void> => {
  await jobs.work<Job>(queue, async ({ subscription_id, account_id, tries = 0 }) => {
    const notice = await fn.memoryNotice({ subscription_id, release })
    // The subscription is gone, or the subscriber already has this version.
    if (!notice) return
    const { url, secrets, version, changelog, updated_at } = notice
    const body = canonicalJson(JSON.stringify({ event, version, changelog, updated_at }))
    const id = `${subscription_id}_${version}`
    const signature = signHeaders({ secrets, executionId: id, timestamp: Math.floor(now() / 1000), body })
    const headers = { 'User-Agent': userAgent, 'X-Service-Event': event, ...signature }
    const result = await client.post({ url, method: 'POST', headers, body, timeoutMs })
    log.info({ subscription_id, version, http_status: result.http_status, ms: result.duration_ms }, 'memory block update sent')
    if (result.ok || result.gone) return fn.endMemoryNotice({ subscription_id, version: result.gone ? null : version, url })
    const wait = waits[tries]
    if (wait === undefined) return log.warn({ subscription_id, error: result.error }, 'memory block update failed for good')
    await fn.addJob({
      queue,
      data: { subscription_id, account_id, tries: tries + 1 },
      start_after: new Date(now() + wait),
      singleton_key: subscription_id
    })
  })
}
