/** Sends notices to channels: each is a durable job, and its row owns the tries. */
import type { FastifyBaseLogger } from 'fastify'
import { createLinks } from '../accounts/links.ts'
import type { Config } from '../config.ts'
import type { Functions } from '../database/functions.ts'
import type { WebhookClient } from '../deliveries/webhook.ts'
import type { Jobs } from '../jobs/boss.ts'
import { messageOf, requestTo } from './messages.ts'

type Options = {
  jobs: Pick<Jobs, 'work'>
  fn: Pick<Functions, 'beginNotice' | 'endNotice'>
  client: Pick<WebhookClient, 'post'>
  config: Pick<Config, 'baseUrl' | 'sessionSecret'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  log: Pick<FastifyBaseLogger, 'info'>
}

/** Less than the lease that begin_notice grants. */
export const timeoutMs = 30_000

/** Works off the queue `notices`. */
export const startNotices = ({ jobs, fn, client, config, now, log }: Options): Promise<void> => {
  const { baseUrl } = config
  const links = createLinks(config)
  return jobs.work<{ notice_id: string }>('notices', async ({ notice_id }) => {
    const notice = await fn.beginNotice({ notice_id })
    if (!notice) return
    const { tries, type, kind } = notice
    const { message, sent } = messageOf(notice_id, notice, { baseUrl, links })
    const result = await client.post({ ...requestTo(notice, message, sent, now()), timeoutMs })
    const { http_status, error, gone, retry_after_ms, duration_ms: ms } = result
    const state = await fn.endNotice({ notice_id, tries, http_status, error, is_final: gone, retry_after_ms })
    log.info({ notice_id, type, kind, http_status, error, ms }, 'notice ended')
    return state === 'sent' || state === null ? undefined : { tries, isFinal: state === 'failed' }
  })
}
