/** The HTTP client for webhooks: every request to an address that a tenant chose goes through `post`. A failure is a result, not an exception. */
import { Agent } from 'undici'
import { memoize } from '../cache/memoize.ts'
import { headerName, headerValue } from '../http/header-text.ts'
import type { AddressRules } from './address.ts'
import { type Answer, Exchange, type Handle } from './exchange.ts'
import { type ResponseHeaders, textOf } from './response-text.ts'
import { createSockets } from './sockets.ts'
import { answered, sentence } from './webhook-errors.ts'

/** How long an idle connection is kept. Short, because a request is sent twice if the receiver closes the connection at that moment. */
const IDLE_MS = 4000
/** While more connections are idle, new requests close theirs. */
const MAX_IDLE = 500
const MAX_CACHED_TARGETS = 1000
const MAX_RETRY_AFTER_MS = 3_600_000
/** Headers that say where the request ends, or belong to the connection. */
const reserved = /^(?:host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect)$/i

export interface WebhookRequest {
  url: string
  method: 'POST' | 'PUT' | 'PATCH' | 'GET'
  headers: Record<string, string>
  /** JSON, sent unchanged; empty for a GET. */
  body: string
  /** Limit for everything: DNS, connection, TLS and the whole response. */
  timeoutMs: number
  /** Values of headers that must not be kept if the response repeats them. */
  secrets?: readonly string[]
}

export interface WebhookResult {
  /** The status is 2xx and arrived in time, whatever happened to the rest of the response. */
  ok: boolean
  http_status: number | null
  /** A sentence for the cue's owner; null exactly if `ok`. */
  error: string | null
  /** The text of the response as far as it was read, up to 64 KB; null without a response. It may contain the request's secrets. */
  answer: string | null
  /** The headers of a response that isn't `ok`. They may contain the request's secrets. */
  headers: ResponseHeaders | null
  /** Delay requested by a 429 or 503, at most an hour. */
  retry_after_ms: number | null
  /** The status is 410: the receiver wants no more requests. */
  gone: boolean
  duration_ms: number
}

export interface WebhookClient {
  /**
   * Sends a request, and once more at once if the receiver had closed the connection that was used for it. Never rejects. With a handle, the
   * request can be aborted.
   */
  post(request: WebhookRequest, handle?: Handle): Promise<WebhookResult>
  /** Ends the open requests, each with an error as its result, and closes all connections. */
  destroy(): Promise<void>
}

export interface WebhookOptions {
  rules: AddressRules
  /** Sent unless a request has a `User-Agent` header, in this spelling. */
  userAgent?: string
  /** Certificates to trust instead of the usual ones, in PEM. */
  ca?: string
}

/** Makes a client. Call `destroy` when done with it: it keeps connections open. */
export const createWebhookClient = ({ rules, userAgent = 'pgcue', ca }: WebhookOptions): WebhookClient => {
  const sockets = createSockets({ lookup: rules.lookup, ca })
  const options = {
    connect: sockets.connect,
    allowH2: false,
    // The exchange has the time limit.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // A connection isn't used in the second before its receiver closes it.
    keepAliveTimeoutThreshold: 1000
  }
  const agent = new Agent({ ...options, pipelining: 1 })
  /** Uses a new connection for each request. */
  const freshAgent = new Agent({ ...options, pipelining: 0 })
  const targetOf = memoize(MAX_CACHED_TARGETS, (text: string) => {
    const { origin, pathname, search } = rules.parseUrl(text)
    return { origin, path: pathname + search }
  })
  let running = 0

  const send = ({ url, method, headers, body, timeoutMs }: WebhookRequest, handle: Handle, since: number, isAgain: boolean) =>
    new Promise<Answer>(resolve => {
      const exchange = new Exchange(timeoutMs, handle, sockets, resolve, since)
      try {
        checkHeaders(headers)
        const content = method === 'GET' || body === '' ? null : body
        exchange.dispatch(isAgain ? freshAgent : agent, {
          ...targetOf(url),
          method,
          headers: { 'User-Agent': userAgent, ...(content !== null && { 'Content-Type': 'application/json' }), ...headers },
          body: content,
          reset: sockets.open - running > MAX_IDLE
        })
      } catch (error) {
        exchange.fail(sentence(error as Error))
      }
    })

  return {
    post: async (request, handle = {}) => {
      const since = performance.now()
      running++
      const first = await send(request, handle, since, false)
      const answer = first.isStale ? await send(request, handle, since, true) : first
      running--
      return resultOf(answer, Math.round(performance.now() - since))
    },

    destroy: async () => {
      await Promise.all([agent.destroy(), freshAgent.destroy()])
    }
  }
}

/** @throws an error with the code `INVALID_HEADER` if a header isn't one line, or would change how the request is read */
const checkHeaders = (headers: Record<string, string>): void => {
  for (const name in headers)
    if (!headerName.test(name) || reserved.test(name) || !headerValue.test(headers[name]!))
      throw Object.assign(new Error(`header ${name} cannot be sent`), { code: 'INVALID_HEADER' })
}

const resultOf = async ({ head, failure, body }: Answer, duration_ms: number): Promise<WebhookResult> => {
  if (!head)
    return { ok: false, http_status: null, error: failure, answer: null, headers: null, retry_after_ms: null, gone: false, duration_ms }
  const { status, headers } = head
  const ok = status >= 200 && status < 300
  return {
    ok,
    http_status: status,
    error: ok ? null : answered(status),
    answer: await textOf(body, String(headers['content-encoding'] ?? '')),
    headers: ok ? null : headers,
    retry_after_ms: status === 429 || status === 503 ? retryAfterMs([headers['retry-after']].flat()[0]) : null,
    gone: status === 410,
    duration_ms
  }
}

/** A `Retry-After` header, in seconds or as a date, in milliseconds from now; null if it is missing or invalid. */
const retryAfterMs = (value: string | undefined): number | null => {
  if (value === undefined) return null
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : / GMT$/.test(value) ? Date.parse(value) - Date.now() : Number.NaN
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS)
}
