/** Webhooks that are no deliveries: what on_failure asks for. Durable jobs, tried again by pg-boss, signed like a delivery. */
import type { FastifyBaseLogger } from 'fastify'
import type { Jobs } from '../boss.ts'
import type { Functions } from '../functions.ts'
import { canonicalJson } from './canonical-json.ts'
import { userAgent } from './request.ts'
import { signHeaders } from './signature.ts'
import type { WebhookClient } from './webhook.ts'

type Options = {
  jobs: Jobs
  fn: Pick<Functions, 'failureNotice'>
  client: WebhookClient
  baseUrl: string
  now: () => number
  log: FastifyBaseLogger
}

type Notification = { kind: 'cue_failed'; url: string; execution_id: string; failed_at: string }

const timeoutMs = 30_000

export const startNotifications = ({ jobs, fn, client, baseUrl, now, log }: Options): Promise<void> =>
  jobs.work<Notification>('notifications', async ({ url, execution_id, failed_at }, id) => {
    const notice = await fn.failureNotice({ execution_id })
    // Deleted meanwhile: there is nobody left to tell.
    if (!notice) return
    const { secrets, ...failure } = notice
    const body = canonicalJson(
      JSON.stringify({
        event: 'cue.failed',
        ...failure,
        failed_at: new Date(failed_at).toISOString(),
        dashboard_url: `${baseUrl}/v1/executions/${execution_id}`
      })
    )
    const result = await client.post({
      url,
      method: 'POST',
      headers: { 'User-Agent': userAgent, ...signHeaders({ secrets, executionId: id, timestamp: Math.floor(now() / 1000), body }) },
      body,
      timeoutMs
    })
    log.info({ execution_id, http_status: result.http_status, ms: result.duration_ms }, 'on_failure webhook ended')
    if (result.error !== null && !result.gone) throw new Error(result.error)
  })
