/** Spans of webhook requests, in the trace of the execution or alert that they are for, and of the statements that take attempts. */
import { type Attributes, type Link, type SpanContext, SpanKind, TraceFlags, type Tracer } from '@opentelemetry/api'
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_REQUEST_RESEND_COUNT,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_SCHEME
} from '@opentelemetry/semantic-conventions'
import type { BegunAttempt } from '../database/functions.ts'
import type { WebhookRequest, WebhookResult } from '../deliveries/webhook.ts'
import { accountId, cueId, executionId, fail } from './attributes.ts'
import { beginCall, endWith } from './calls.ts'
import type { Ids } from './ids.ts'
import { headersOf } from './requests.ts'
import type { Traces } from './traces.ts'

type Taking = (args: never) => Promise<BegunAttempt[]>

export const createWebhookSpans = (tracer: Tracer, ids: Ids): Pick<Traces, 'taking' | 'client'> => {
  const takenBy = new WeakMap<BegunAttempt, SpanContext>()

  const taking =
    <F extends Taking>(name: string, take: F) =>
    async (args: Parameters<F>[0]): Promise<BegunAttempt[]> => {
      const span = beginCall(tracer, name)
      const attempts = await endWith(span, take(args))
      const context = span.spanContext()
      if (context.traceFlags & TraceFlags.SAMPLED) for (const attempt of attempts) takenBy.set(attempt, context)
      return attempts
    }

  return {
    taking: fn => ({
      ...fn,
      takeDueCues: taking('takeDueCues', fn.takeDueCues),
      takeLastSlots: taking('takeLastSlots', fn.takeLastSlots),
      beginAttempts: taking('beginAttempts', fn.beginAttempts)
    }),
    client: client => ({
      ...client,
      post: async (request, handle) => {
        const { method, headers } = request
        const attempt = handle?.attempt
        const context = attempt && takenBy.get(attempt)
        const links: Link[] = context ? [{ context }] : []
        const attributes = { ...about(request), ...(attempt && aboutAttempt(attempt)) }
        const span = ids.within(headers['webhook-id'], () =>
          tracer.startSpan(method, { kind: SpanKind.CLIENT, root: true, attributes, links })
        )
        // A cue's own header wins.
        const isSet = Object.keys(headers).some(name => /^trace(parent|state)$/i.test(name))
        const result = await client.post(isSet ? request : { ...request, headers: { ...headers, ...headersOf(span) } }, handle)
        if (result.http_status !== null) span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, result.http_status)
        if (!result.ok) fail(span, typeOf(result), result.error ?? undefined)
        span.end()
        return result
      }
    })
  }
}

/** Path and query of a callback may be its receiver's secret. */
const about = ({ method, url, headers }: WebhookRequest): Attributes => {
  const { protocol, hostname, port } = URL.parse(url) ?? { protocol: '', hostname: '', port: '' }
  return {
    [ATTR_HTTP_REQUEST_METHOD]: method,
    [ATTR_URL_SCHEME]: protocol.slice(0, -1),
    [ATTR_SERVER_ADDRESS]: hostname,
    [ATTR_SERVER_PORT]: Number(port) || (protocol === 'https:' ? 443 : 80),
    'pgcue.webhook.id': headers['webhook-id']
  }
}

const aboutAttempt = ({ account_id, cue_id, execution_id, attempt }: BegunAttempt): Attributes => ({
  [accountId]: account_id,
  [cueId]: cue_id,
  [executionId]: execution_id,
  'pgcue.attempt': attempt,
  ...(attempt > 1 && { [ATTR_HTTP_REQUEST_RESEND_COUNT]: attempt - 1 })
})

/** One of a few words: the status, or the beginning of the sentence, without lengths of time and addresses. */
const typeOf = ({ http_status, error }: WebhookResult): string =>
  http_status === null ? (/^[a-z ]+?(?= after|:| \(|$)/i.exec(error ?? '')?.[0] ?? '_OTHER') : String(http_status)
