/**
 * Webhooks that are no deliveries: alerts, and what on_failure asks for. Durable jobs, signed like a delivery. A refused one is put off by a
 * job of its own, so that the waits are ours to choose; a crash is pg-boss's to repeat.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { Functions } from '../database/functions.ts'
import type { Jobs } from '../jobs/boss.ts'
import { canonicalJson } from '../json/canonical-json.ts'
import { userAgent } from './request.ts'
import { signHeaders } from './signature.ts'
import type { WebhookClient } from './webhook.ts'

type Options = {
  jobs: Jobs
  fn: Pick<Functions, 'failureNotice' | 'alertNotice' | 'addJob'>
  client: WebhookClient
  baseUrl: string
  now: () => number
  log: FastifyBaseLogger
}

type Failure = { kind: 'cue_failed'; url: string; execution_id: string; failed_at: string }
type Alert = { alert_id: string }
/** A job's data, with how often it was tried. */
type Tried<T> = T & { tries?: number }

const timeoutMs = 30_000
const minute = 60_000
const waits = {
  notifications: [minute, 2 * minute, 4 * minute],
  alerts: [10_000, minute, 5 * minute, 30 * minute]
}

export const startNotifications = async ({ jobs, fn, client, baseUrl, now, log }: Options): Promise<void> => {
  const send = (url: string, secrets: string[], id: string, event: object, headers: (signature: Signature) => Record<string, string>) => {
    const body = canonicalJson(JSON.stringify(event))
    const signature = signHeaders({ secrets, executionId: id, timestamp: Math.floor(now() / 1000), body })
    return client.post({ url, method: 'POST', headers: { 'User-Agent': userAgent, ...signature, ...headers(signature) }, body, timeoutMs })
  }

  const retry = async <T extends object>(queue: keyof typeof waits, data: Tried<T>, error: string) => {
    const tries = (data.tries ?? 0) + 1
    const wait = waits[queue][tries - 1]
    if (wait === undefined) return log.warn({ queue, error, tries }, 'webhook failed for good')
    await fn.addJob({ queue, data: { ...data, tries }, start_after: new Date(now() + wait) })
  }

  await jobs.work<Tried<Failure>>('notifications', async data => {
    const notice = await fn.failureNotice({ execution_id: data.execution_id })
    // Deleted meanwhile: there is nobody left to tell.
    if (!notice) return
    const { secrets, ...failure } = notice
    const failed_at = new Date(data.failed_at).toISOString()
    const dashboard_url = `${baseUrl}/v1/executions/${data.execution_id}`
    const event = { event: 'cue.failed', ...failure, failed_at, dashboard_url }
    const result = await send(data.url, secrets, data.execution_id, event, () => ({ 'X-Service-Event': event.event }))
    log.info({ execution_id: data.execution_id, http_status: result.http_status, ms: result.duration_ms }, 'on_failure webhook ended')
    if (!result.ok && !result.gone) await retry('notifications', data, result.error!)
  })

  await jobs.work<Tried<Alert>>('alerts', async data => {
    const notice = await fn.alertNotice({ alert_id: data.alert_id })
    if (!notice) return
    const { url, secrets, ...alert } = notice
    const result = await send(url, secrets, alert.alert_id, alert, signature => ({
      'X-Service-Alert-Id': alert.alert_id,
      'X-Service-Alert-Type': alert.alert_type,
      'X-Service-Alert-Signature': signature['X-Service-Signature'],
      'X-Service-Alert-Timestamp': signature['X-Service-Timestamp']
    }))
    log.info({ alert_id: alert.alert_id, http_status: result.http_status, ms: result.duration_ms }, 'alert webhook ended')
    if (!result.ok && !result.gone) await retry('alerts', data, result.error!)
  })
}

type Signature = ReturnType<typeof signHeaders>
