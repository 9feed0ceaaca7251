/** The HTTP client for webhooks: every request to an address that a tenant chose goes through `post`. A failure is a result, not an exception. */
import { Agent, buildConnector } from 'undici'
import { memoize } from '../memoize/memoize.ts'
import type { AddressRules } from './address.ts'
import { Exchange, type Handle, type WebhookResult } from './exchange.ts'
import { createIdleSockets } from './idle-sockets.ts'
import { skippingContinue } from './interim-responses.ts'
import { sentence } from './webhook-errors.ts'

/** How long an idle socket is kept. Short, because a request is lost if the receiver closes the socket at that moment. */
const IDLE_MS = 4000
const MAX_IDLE_SOCKETS = 500
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
  const agents = new Map<number, { agent: Agent; receiverOf: ReturnType<typeof watch> }>()
  const watch = createIdleSockets(MAX_IDLE_SOCKETS)
  const targetOf = memoize(MAX_CACHED_TARGETS, (text: string) => {
    const { origin, pathname, search } = rules.parseUrl(text)
    return { origin, path: pathname + search }
  })

  /** An agent has a single connect timeout, which must fit the timeout of its requests, so there is one agent per timeout. */
  const agentFor = (timeoutMs: number) => {
    const known = agents.get(timeoutMs)
    if (known) return known
    const agent = new Agent({
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
    const made = { agent, receiverOf: watch(agent) }
    agents.set(timeoutMs, made)
    return made
  }

  return {
    post: (request, handle = {}) =>
      new Promise(resolve => {
        const exchange = new Exchange(request.timeoutMs, handle, resolve)
        try {
          const { origin, path } = targetOf(request.url)
          const { agent, receiverOf } = agentFor(request.timeoutMs)
          const receiver = receiverOf(origin)
          const keepsSocket = receiver.begin()
          exchange.onEnd = receiver.end
          const hasBody = request.method !== 'GET' && request.body !== ''
          // Names and values in turn, which undici takes as they are.
          const headers: string[] = []
          for (const name in request.headers) headers.push(name, request.headers[name]!)
          if (request.headers['User-Agent'] === undefined) headers.push('User-Agent', userAgent)
          if (hasBody && request.headers['Content-Type'] === undefined) headers.push('Content-Type', 'application/json')
          const body = hasBody ? request.body : null
          agent.dispatch({ origin, path, method: request.method, headers, body, reset: !keepsSocket }, exchange)
        } catch (error) {
          exchange.fail(sentence(error as Error))
        }
      }),

    async destroy() {
      await Promise.all([...agents.values()].map(({ agent }) => agent.destroy()))
    }
  }
}
