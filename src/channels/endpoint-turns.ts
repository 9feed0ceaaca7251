/**
 * Sends events to endpoints, one after the other: the order of the feed is kept, a receiver gets one request at a time, and an endpoint occupies one socket.
 * A turn is a job; what a crash interrupts is repeated from the place where the turn began.
 */
import type { FastifyBaseLogger } from 'fastify'
import type { Functions } from '../database/functions.ts'
import type { WebhookClient, WebhookResult } from '../deliveries/webhook.ts'
import { textOf } from '../events/shown.ts'
import type { Jobs } from '../jobs/boss.ts'
import { signedRequest } from './messages.ts'
import { timeoutMs } from './send.ts'

type Options = {
  jobs: Pick<Jobs, 'work'>
  fn: Pick<Functions, 'beginEndpointTurn' | 'endEndpointTurn'>
  client: Pick<WebhookClient, 'post'>
  /** The database's clock, in epoch milliseconds. */
  now: () => number
  log: Pick<FastifyBaseLogger, 'info'>
}

/** No event is sent later in a turn: with `timeoutMs`, it ends within the lease that begin_endpoint_turn grants, and slow receivers take turns. */
const turnMs = 5000

/** Works off the queue `event_endpoints`. */
export const startEndpoints = ({ jobs, fn, client, now, log }: Options): Promise<void> =>
  jobs.work<{ endpoint_id: string }>('event_endpoints', async ({ endpoint_id }) => {
    const events = await fn.beginEndpointTurn({ endpoint_id })
    const [first] = events
    if (!first) return
    const endsAt = performance.now() + turnMs
    let place: number | undefined
    let result: WebhookResult | undefined
    for (const event of events) {
      const request = signedRequest(event.url, [event.secret], event.id, textOf(event), now())
      if (event.truncated && event === first) request.headers['X-Service-Truncated'] = 'true'
      result = await client.post({ ...request, timeoutMs })
      if (!result.ok && !result.gone) break
      place = event === events.at(-1) ? event.next_place : event.place
      if (performance.now() > endsAt) break
    }
    const { http_status, error, retry_after_ms, duration_ms: ms, gone } = result!
    const failure = gone ? null : error
    const ended = await fn.endEndpointTurn({ endpoint_id, turn: first.turn, place, http_status, error: failure, retry_after_ms })
    log.info({ endpoint_id, http_status, error, ms }, 'turn of an event endpoint ended')
    return ended && ended.tries > 0 ? { tries: ended.tries, isFinal: ended.status === 'disabled' } : undefined
  })
