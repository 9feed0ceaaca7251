/** One webhook request and the result of its response. */
import type { ResponseSink } from './response-reader.ts'
import { storable } from './response-text.ts'
import { answered, sentence } from './webhook-errors.ts'

const MAX_RESPONSE_BYTES = 64 * 1024
const MAX_RETRY_AFTER_MS = 3_600_000

export interface WebhookResult {
  /** The status is 2xx and arrived in time, whatever happened to the rest of the response. */
  ok: boolean
  http_status: number | null
  /** A sentence for the cue's owner; null exactly if `ok`. */
  error: string | null
  /** The first 2,000 characters of the response body, fit for a text column; null without a response. */
  body: string | null
  /** The response body as far as it was read, up to 64 KB. */
  answer: string | null
  /** Delay requested by a 429 or 503, at most an hour. */
  retry_after_ms: number | null
  /** The status is 410: the receiver wants no more requests. */
  gone: boolean
  duration_ms: number
}

/** Filled in while the request is open: `exchange.fail` ends it with the reason as its error and closes its connection. */
export interface Handle {
  exchange?: { fail: (reason: string) => void } | undefined
}

/**
 * Nothing refers to it once it has ended: no closure, and not its handle. A handle that was in a set may live until the next major
 * collection, and all it refers to would move to the old space.
 *
 * Calls `resolve` once, at the latest after `timeoutMs`; it never throws.
 */
export class Exchange implements ResponseSink {
  readonly #started = performance.now()
  readonly #timer: NodeJS.Timeout
  readonly #handle: Handle
  readonly #resolve: (result: WebhookResult) => void
  /** Its connection, from the beginning until the response is complete. */
  connection: { isOpen: boolean; close: () => void } | undefined
  #settled = false
  #status: number | null = null
  #retryAfter: string | undefined
  #pieces: Buffer[] = []
  #size = 0

  constructor(timeoutMs: number, handle: Handle, resolve: (result: WebhookResult) => void) {
    this.#handle = handle
    this.#resolve = resolve
    handle.exchange = this
    this.#timer = setTimeout(() => {
      this.fail(`timed out after ${timeoutMs / 1000} s: no ${this.connection?.isOpen ? 'response' : 'connection'}`)
    }, timeoutMs)
  }

  onHead(status: number, retryAfter: string | undefined): void {
    this.#status = status
    this.#retryAfter = retryAfter
  }

  onBody(bytes: Buffer): void {
    const room = MAX_RESPONSE_BYTES - this.#size
    this.#pieces.push(bytes.length > room ? bytes.subarray(0, room) : bytes)
    this.#size += bytes.length
    // A response that drips in single bytes would otherwise take a few hundred bytes of memory for each.
    if (this.#pieces.length === 64) this.#pieces = [Buffer.concat(this.#pieces)]
    if (bytes.length > room) this.fail('response too long')
  }

  /** The response is complete. */
  end(): void {
    this.#settle('no response')
  }

  /** Nothing more will arrive. */
  lose(error: Error): void {
    this.#settle(sentence(error))
  }

  /** Ends the exchange in any state, and closes its connection. */
  fail(failure: string): void {
    this.#settle(failure)
    this.connection?.close()
  }

  /** The first call decides the result. `failure` is its error only if there is no status yet. */
  #settle(failure: string): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    this.#handle.exchange = undefined
    const status = this.#status
    const ok = status !== null && status >= 200 && status < 300
    const answer = status === null ? null : (this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces)).toString()
    this.#resolve({
      ok,
      http_status: status,
      error: ok ? null : status === null ? failure : answered(status),
      body: answer === null ? null : storable(answer),
      answer,
      retry_after_ms: status === 429 || status === 503 ? retryAfterMs(this.#retryAfter) : null,
      gone: status === 410,
      duration_ms: Math.round(performance.now() - this.#started)
    })
  }
}

/** A `Retry-After` header, in seconds or as a date, in milliseconds from now; null if it is missing or invalid. */
const retryAfterMs = (value: string | undefined): number | null => {
  if (value === undefined) return null
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : / GMT$/.test(value) ? Date.parse(value) - Date.now() : Number.NaN
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS)
}
