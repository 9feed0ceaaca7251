/** The HTTP client for webhooks: every request to an address that a tenant chose goes through `post`. A failure is a result, not an exception. */
import { memoize } from '../memoize/memoize.ts'
import type { AddressRules } from './address.ts'
import { createConnections } from './connections.ts'
import { createDial } from './dial.ts'
import { Exchange, type Handle, type WebhookResult } from './exchange.ts'
import { requestHead } from './request-head.ts'
import { sentence } from './webhook-errors.ts'

/** How long an idle connection is kept. Short, because a request is lost if the receiver closes the connection at that moment. */
const IDLE_MS = 4000
const MAX_IDLE = 500
const MAX_CACHED_TARGETS = 1000

export interface WebhookRequest {
  url: string
  method: 'POST' | 'PUT' | 'PATCH' | 'GET'
  headers: Record<string, string>
  /** JSON, sent unchanged; empty for a GET. */
  body: string
  /** Limit for everything: DNS, connection, TLS and the whole response. */
  timeoutMs: number
}

export interface WebhookClient {
  /** Sends a request once. Never rejects. With a handle, the request can be aborted. */
  post(request: WebhookRequest, handle?: Handle): Promise<WebhookResult>
  /** Ends the open requests, each with an error as its result, and closes all connections. */
  destroy(): void
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
  const connections = createConnections({
    mostIdle: MAX_IDLE,
    idleMs: IDLE_MS,
    dial: createDial({ lookup: rules.lookup, ca })
  })
  const targetOf = memoize(MAX_CACHED_TARGETS, (text: string) => {
    const { origin, protocol, host, hostname, port, pathname, search } = rules.parseUrl(text)
    return { receiver: { origin, protocol, host, hostname: hostname.replace(/^\[|\]$/g, ''), port }, path: pathname + search }
  })

  return {
    post: (request, handle = {}) =>
      new Promise(resolve => {
        const exchange = new Exchange(request.timeoutMs, handle, resolve)
        try {
          const { receiver, path } = targetOf(request.url)
          const body = request.method === 'GET' ? '' : request.body
          connections.send(receiver, requestHead({ ...request, host: receiver.host, path, body, userAgent }), body, exchange)
        } catch (error) {
          exchange.fail(sentence(error as Error))
        }
      }),

    destroy: connections.destroy
  }
}
