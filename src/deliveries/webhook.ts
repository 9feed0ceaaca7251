/** The HTTP client for webhooks: every request to an address that a tenant chose goes through `post`. A failure is a result, not an exception. */
import { buildConnector } from 'undici'
import { memoize } from '../memoize/memoize.ts'
import type { AddressRules } from './address.ts'
import { createConnections, type Send } from './connections.ts'
import { Exchange, type Handle, type WebhookResult } from './exchange.ts'
import { skippingContinue } from './interim-responses.ts'
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
  const connections = createConnections(MAX_IDLE)
  const senders = new Map<number, Send>()
  const targetOf = memoize(MAX_CACHED_TARGETS, (text: string) => {
    const { origin, pathname, search } = rules.parseUrl(text)
    return { origin, path: pathname + search }
  })

  /** Connections have a connect timeout, which must fit the timeout of their requests. */
  const senderFor = (timeoutMs: number): Send => {
    const known = senders.get(timeoutMs)
    if (known) return known
    const made = connections.make({
      allowH2: false,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      keepAliveTimeoutThreshold: 1000,
      connect: skippingContinue(
        buildConnector({
          allowH2: false,
          // Later than our own timeout, which has the better message.
          timeout: timeoutMs + 1000,
          lookup: rules.lookup,
          autoSelectFamily: true,
          // The default of 250 ms is too short for receivers at the other end of the world.
          autoSelectFamilyAttemptTimeout: 1000,
          maxCachedSessions: 1000,
          ca
        })
      )
    })
    senders.set(timeoutMs, made)
    return made
  }

  return {
    post: (request, handle = {}) =>
      new Promise(resolve => {
        const exchange = new Exchange(request.timeoutMs, handle, resolve)
        try {
          const { origin, path } = targetOf(request.url)
          const hasBody = request.method !== 'GET' && request.body !== ''
          // Names and values in turn, which undici takes as they are.
          const headers: string[] = []
          for (const name in request.headers) headers.push(name, request.headers[name]!)
          if (request.headers['User-Agent'] === undefined) headers.push('User-Agent', userAgent)
          if (hasBody && request.headers['Content-Type'] === undefined) headers.push('Content-Type', 'application/json')
          const body = hasBody ? request.body : null
          senderFor(request.timeoutMs)({ origin, path, method: request.method, headers, body }, exchange)
        } catch (error) {
          exchange.fail(sentence(error as Error))
        }
      }),

    destroy: connections.destroy
  }
}
