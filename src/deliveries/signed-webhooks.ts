/**
 * Webhooks other than deliveries: alerts, on_failure and memory updates. Each is a durable job, signed like a delivery. A refused one is
 * repeated by a new job, so that the delays between tries are ours to choose; one whose process crashed is repeated by pg-boss.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { Functions } from '../database/functions.ts'
import type { Jobs } from '../jobs/boss.ts'
import { canonicalJson } from '../json/canonical-json.ts'
import { userAgent } from './request.ts'
import { signHeaders } from './signature.ts'
import type { WebhookClient, WebhookResult } from './webhook.ts'

export type SignedWebhookOptions = {
  jobs: Pick<Jobs, 'work'>
  fn: Pick<Functions, 'addJob' | 'heldReason'>
  client: Pick<WebhookClient, 'post'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  log: Pick<FastifyBaseLogger, 'info'>
}

/** The request of a job, as it is when it is sent. */
type Notice<E extends object = object> = {
  url: string
  /** Current one first. */
  secrets: string[]
  /** For receivers to deduplicate by. */
  id: string
  event: E
  headers?: (signature: ReturnType<typeof signHeaders>) => Record<string, string>
}

type Queue<T, E extends object> = {
  queue: string
  /** When the next try is due after a refusal; null after the last one. `tries` counts those made. */
  retryAt: (data: T, tries: number, result: WebhookResult) => Date | null | Promise<Date | null>
  /** Reads the request; undefined if there is nothing to send any more. */
  read: (data: T) => Promise<Notice<E> | undefined>
  /** Its members in the log. */
  fields: (data: T) => object
  /** The receiver accepted the request, or responded with 410 and gets no further try. */
  onDone?: (data: T, notice: Notice<E>, result: WebhookResult) => Promise<void>
  /** At most one job with this key waits. */
  key?: (data: T) => string
}

/** A job's data, with its account and the number of tries before it. */
type Tried<T> = T & { account_id?: string; tries?: number }

const timeoutMs = 30_000
/** Between looks whether the service or the account is still held. */
const heldMs = 10_000

/** Retries after these delays, in milliseconds, one after the other. */
export const afterDelays =
  (now: () => number, delays: number[]) =>
  (_: unknown, tries: number): Date | null => {
    const delay = delays[tries - 1]
    return delay === undefined ? null : new Date(now() + delay)
  }

/** Works off a queue of signed webhooks. */
export const workSignedWebhooks = async <T extends object, E extends object>(
  { jobs, fn, client, now, log }: SignedWebhookOptions,
  { queue, retryAt, read, fields, onDone, key }: Queue<T, E>
): Promise<void> => {
  await jobs.work<Tried<T>>(queue, async data => {
    const again = (data: Tried<T>, start_after: Date) => fn.addJob({ queue, data, start_after, ...(key && { singleton_key: key(data) }) })
    if ((await fn.heldReason({ account_id: data.account_id })) !== null) return void (await again(data, new Date(now() + heldMs)))
    const notice = await read(data)
    if (!notice) return
    const { url, secrets, id, event, headers } = notice
    const body = canonicalJson(JSON.stringify(event))
    const signature = signHeaders({ secrets, executionId: id, timestamp: Math.floor(now() / 1000), body })
    const allHeaders = { 'User-Agent': userAgent, ...signature, ...headers?.(signature) }
    const result = await client.post({ url, method: 'POST', headers: allHeaders, body, timeoutMs })
    log.info(
      { queue, ...fields(data), http_status: result.http_status, error: result.error, ms: result.duration_ms },
      'signed webhook ended'
    )
    if (result.ok || result.gone) await onDone?.(data, notice, result)
    if (result.ok) return
    const tries = (data.tries ?? 0) + 1
    const start_after = result.gone ? null : await retryAt(data, tries, result)
    if (start_after) await again({ ...data, tries }, start_after)
    return { tries, isFinal: !start_after }
  })
}
