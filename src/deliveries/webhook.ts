// The one HTTP client: everything that leaves the service goes through `post`. What a receiver does is a result, never a throw.

import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import { memoize } from '../memoize/memoize.ts'
import { AddressError, type AddressRules } from './address.ts'

const MAX_ANSWER_BYTES = 64 * 1024
const KEPT_CHARACTERS = 2000
const MAX_RETRY_AFTER_MS = 3_600_000
/** How long a socket waits for its next request. Short: a receiver that closes it in the same moment loses the request. */
const IDLE_MS = 4000
const MAX_IDLE_SOCKETS = 500
const targetsKept = 1000

export interface WebhookRequest {
  url: string
  method: 'POST' | 'PUT' | 'PATCH' | 'GET'
  headers: Record<string, string>
  /** Sent as it is, as JSON; empty for a GET. */
  body: string
  /** Over everything: DNS, connection, TLS, the whole answer. */
  timeoutMs: number
}

export interface WebhookResult {
  /** The receiver answered 2xx in time. That decides, whatever became of the rest of its answer. */
  ok: boolean
  http_status: number | null
  /** A person's sentence; null exactly when `ok`. */
  error: string | null
  /** The first 2,000 characters of the answer, fit for a text column; null when there was none. */
  body: string | null
  /** What was read of the answer, up to 64 KB. */
  answer: string | null
  /** How long a 429 or 503 asked to wait, at most an hour. */
  retry_after_ms: number | null
  /** The receiver answered 410: it does not want to be asked again. */
  gone: boolean
  started_at: Date
  finished_at: Date
  duration_ms: number
}

/** Set by `post`: ends the request with this for its error, and closes its connection. Does nothing once the request has ended. */
export interface Handle {
  abort?: (reason: string) => void
}

export interface WebhookClient {
  /** Sends one request, once. Never rejects. Where a handle is given, the request can be aborted by it. */
  post(request: WebhookRequest, handle?: Handle): Promise<WebhookResult>
  /** Takes no more requests, waits for those under way, and closes all connections. */
  close(): Promise<void>
  /** Ends what is still open, each with an error for its result. */
  destroy(): Promise<void>
}

export interface WebhookOptions {
  rules: AddressRules
  /** Sent unless a request's headers have a `User-Agent`, written so. */
  userAgent?: string
  /** Certificates to trust instead of the usual ones, in PEM. */
  ca?: string
}

export const createWebhookClient = ({ rules, userAgent = 'pgcue', ca }: WebhookOptions): WebhookClient => {
  const agents = new Map<number, Agent>()
  let sockets = 0
  let running = 0
  let closed = false
  const targetOf = memoize(targetsKept, (text: string) => {
    const { origin, pathname, search } = rules.parseUrl(text)
    return { origin, path: pathname + search }
  })
  let onIdle = () => {}

  /** An agent has one limit on connecting, and that is the deadline of what it sends: so there is one per deadline in use. */
  const agentFor = (timeoutMs: number): Agent => {
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
          // Later than our own deadline, which words the error.
          timeout: timeoutMs + 1000,
          lookup: rules.lookup,
          autoSelectFamily: true,
          // The default of 250 ms gives up on receivers at the other end of the world.
          autoSelectFamilyAttemptTimeout: 1000,
          maxCachedSessions: 1000,
          ca
        })
      )
    })
    agent.on('connect', () => sockets++).on('disconnect', () => sockets--)
    agents.set(timeoutMs, agent)
    return agent
  }

  return {
    post: (request, handle = {}) =>
      new Promise(resolve => {
        running++
        const exchange = new Exchange(request.timeoutMs, result => {
          if (--running === 0) onIdle()
          resolve(result)
        })
        handle.abort = reason => exchange.fail(reason)
        if (closed) return exchange.fail('the service is stopping')
        try {
          const { origin, path } = targetOf(request.url)
          const hasBody = request.method !== 'GET' && request.body !== ''
          const headers = { 'User-Agent': userAgent, ...(hasBody && { 'Content-Type': 'application/json' }), ...request.headers }
          agentFor(request.timeoutMs).dispatch(
            {
              origin,
              path,
              method: request.method,
              headers,
              body: hasBody ? request.body : null,
              reset: sockets - running > MAX_IDLE_SOCKETS
            },
            exchange
          )
        } catch (error) {
          exchange.fail(sentence(error as Error))
        }
      }),

    async close() {
      closed = true
      if (running > 0) await new Promise<void>(resolve => (onIdle = resolve))
      // Not close: that would wait for connections that nobody waits for any more.
      await Promise.all([...agents.values()].map(agent => agent.destroy()))
    },

    async destroy() {
      await Promise.all([...agents.values()].map(agent => agent.destroy()))
    }
  }
}

type Connector = ReturnType<typeof buildConnector>

/**
 * undici ends the connection at a 100 Continue that it did not ask for, while it skips all other interim answers. So one is shown to it as a
 * 102, where it begins an answer. One whose first line comes in pieces is not recognised.
 */
const skippingContinue =
  (connect: Connector): Connector =>
  (options, callback) =>
    connect(options, (...[error, socket]: Parameters<typeof callback>) => {
      if (socket) renameContinue(socket)
      callback(...([error, socket] as Parameters<typeof callback>))
    })

const renameContinue = (socket: Socket): void => {
  let begins = true
  const { read, write } = socket
  socket.write = ((...args: Parameters<typeof write>) => {
    begins = true
    return write.apply(socket, args)
  }) as typeof write
  socket.read = size => {
    const chunk: Buffer | null = read.call(socket, size)
    if (begins && chunk) begins = endsInterim(chunk)
    return chunk
  }
}

/** Renames what a piece of an answer begins with. Whether the next piece begins an answer, too. */
const endsInterim = (chunk: Buffer): boolean => {
  for (let at = 0; at < chunk.length; ) {
    const line = chunk.toString('latin1', at, at + 12)
    if (!/^HTTP\/1\.[01] 1\d\d$/.test(line) || line.endsWith('101')) return false
    if (line.endsWith('100')) chunk[at + 11] = 0x32
    const end = chunk.indexOf('\r\n\r\n', at)
    if (end < 0) return true
    at = end + 4
  }
  return true
}

/** One request and its answer, as undici's handler: several times cheaper than its promises and streams. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #startedAt = new Date()
  readonly #started = performance.now()
  readonly #timer: NodeJS.Timeout
  readonly #resolve: (result: WebhookResult) => void
  #controller: Dispatcher.DispatchController | null = null
  #settled = false
  #status: number | null = null
  #retryAfter: string | undefined
  #chunks: Buffer[] = []
  #size = 0

  constructor(timeoutMs: number, resolve: (result: WebhookResult) => void) {
    this.#resolve = resolve
    this.#timer = setTimeout(() => {
      this.fail(`timed out after ${timeoutMs / 1000} s: no ${this.#controller ? 'response' : 'connection'}`)
    }, timeoutMs)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#settled) controller.abort(ENDED)
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>
  ): void {
    // Interim answers; 101 is none, though it was not asked for.
    if (status < 200 && status !== 101) return
    this.#status = status
    this.#retryAfter = [headers['retry-after']].flat()[0]
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = MAX_ANSWER_BYTES - this.#size
    this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
    this.#size += chunk.length
    // An answer that drips in single bytes would cost a few hundred bytes for each.
    if (this.#chunks.length === 64) this.#chunks = [Buffer.concat(this.#chunks)]
    if (chunk.length > room) this.fail('response too long')
  }

  onResponseEnd(): void {
    this.#settle('no response')
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#settle(sentence(error))
  }

  /** Ends the exchange whatever its state, and its connection. */
  fail(failure: string): void {
    this.#settle(failure)
    this.#controller?.abort(ENDED)
  }

  /** The first call decides the result. `failure` is its error only while there is no status. */
  #settle(failure: string): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    const status = this.#status
    const ok = status !== null && status >= 200 && status < 300
    const answer = status === null ? null : (this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)).toString()
    this.#resolve({
      ok,
      http_status: status,
      error: ok ? null : status === null ? failure : answered(status),
      body: answer === null ? null : storable(answer),
      answer,
      retry_after_ms: status === 429 || status === 503 ? waitAsked(this.#retryAfter) : null,
      gone: status === 410,
      started_at: this.#startedAt,
      finished_at: new Date(),
      duration_ms: Math.round(performance.now() - this.#started)
    })
  }
}

/** What a handler reports in its answer: a JSON object with a boolean `success`. */
export const reportIn = ({ answer }: WebhookResult): { success: boolean; result: string | null; error: string | null } | null => {
  if (!answer?.includes('"success"')) return null
  try {
    const { success, result, error } = JSON.parse(answer) ?? {}
    return typeof success === 'boolean' ? { success, result: textOf(result), error: textOf(error) } : null
  } catch {
    return null
  }
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? storable(value) : null)

/** At most 2,000 characters, none cut in half, and none that PostgreSQL cannot store. */
const storable = (text: string): string => {
  const clean = text.includes('\0') ? text.replaceAll('\0', '') : text
  const short =
    clean.length > KEPT_CHARACTERS
      ? Array.from(clean.slice(0, 2 * KEPT_CHARACTERS))
          .slice(0, KEPT_CHARACTERS)
          .join('')
      : clean
  return short.toWellFormed()
}

/** A `Retry-After` in milliseconds: seconds, or a date. */
const waitAsked = (value: string | undefined): number | null => {
  if (value === undefined) return null
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : / GMT$/.test(value) ? Date.parse(value) - Date.now() : Number.NaN
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS)
}

const answered = (status: number): string =>
  status >= 300 && status < 400
    ? `redirects are not followed (${status})`
    : `answered ${status}${STATUS_CODES[status] ? ` ${STATUS_CODES[status]}` : ''}`

const ENDED = new Error('ended')

const SENTENCES: Record<string, string> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection closed before a response',
  EPIPE: 'connection closed before a response',
  UND_ERR_SOCKET: 'connection closed before a response',
  ETIMEDOUT: 'host not responding',
  UND_ERR_CONNECT_TIMEOUT: 'host not responding',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EPROTO: 'TLS: handshake failed',
  CERT_HAS_EXPIRED: 'TLS: certificate expired',
  CERT_NOT_YET_VALID: 'TLS: certificate not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'TLS: self-signed certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'TLS: self-signed certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'TLS: unknown certificate issuer',
  UNABLE_TO_GET_ISSUER_CERT: 'TLS: unknown certificate issuer',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'TLS: unknown certificate issuer',
  ERR_TLS_CERT_ALTNAME_INVALID: 'TLS: certificate issued for another host',
  UND_ERR_HEADERS_OVERFLOW: 'response headers too long',
  HTTPParserError: 'response is not HTTP/1.1',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'response is not HTTP/1.1',
  UND_ERR_INVALID_ARG: 'invalid request header'
}

/** What went wrong, without the addresses that messages of the network carry. */
const sentence = (error: Error & { code?: string }): string => {
  if (error instanceof AddressError) return error.code === 'EBLOCKED' ? `blocked address: ${error.message}` : error.message
  const code = error.code ?? error.name
  if (/^ERR_(SSL|TLS)_/.test(code)) return SENTENCES[code] ?? 'TLS: handshake failed'
  return SENTENCES[code] ?? SENTENCES[error.name] ?? `connection failed (${code})`
}
