/** Signed webhooks that report failures and alerts. */
import type { Functions } from '../database/functions.ts'
import { afterDelays, type SignedWebhookOptions, workSignedWebhooks } from './signed-webhooks.ts'

type Options = SignedWebhookOptions & {
  fn: Pick<Functions, 'failureNotice' | 'failureNoticeRetryAt' | 'alertNotice' | 'addJob' | 'heldReason'>
  baseUrl: string
}
type Failure = { kind: 'cue_failed'; url: string; execution_id: string; failed_at: string }
type Alert = { alert_id: string }

const minute = 60_000

/** Works off the queues `notifications` (on_failure webhooks) and `alerts`. */
export const startNotifications = async (options: Options): Promise<void> => {
  const { fn, now, baseUrl } = options
  await workSignedWebhooks(options, {
    queue: 'notifications',
    retryAt: ({ execution_id }, tries, { retry_after_ms }) => fn.failureNoticeRetryAt({ execution_id, tries, retry_after_ms }),
    read: async ({ url, execution_id, failed_at }: Failure) => {
      const notice = await fn.failureNotice({ execution_id })
      if (!notice) return
      const { secrets, ...failure } = notice
      const dashboard_url = `${baseUrl}/v1/executions/${execution_id}`
      const event = { event: 'cue.failed', ...failure, failed_at: new Date(failed_at).toISOString(), dashboard_url }
      // The callback has the execution's id, and receivers deduplicate by it.
      return { url, secrets, id: `${execution_id}_failed`, event, headers: () => ({ 'X-Service-Event': event.event }) }
    },
    fields: ({ execution_id }) => ({ execution_id })
  })
  await workSignedWebhooks(options, {
    queue: 'alerts',
    retryAt: afterDelays(now, [10_000, minute, 5 * minute, 30 * minute]),
    read: async ({ alert_id }: Alert) => {
      const notice = await fn.alertNotice({ alert_id })
      if (!notice) return
      const { url, secrets, ...event } = notice
      return {
        url,
        secrets,
        id: event.alert_id,
        event,
        headers: signature => ({
          'X-Service-Alert-Id': event.alert_id,
          'X-Service-Alert-Type': event.alert_type,
          'X-Service-Alert-Signature': signature['X-Service-Signature'],
          'X-Service-Alert-Timestamp': signature['X-Service-Timestamp']
        })
      }
    },
    fields: ({ alert_id }) => ({ alert_id })
  })
}
