/** One webhook request and its response. */

import type { ResponseHead, ResponseSink } from './response-reader.ts'
import { MAX_RESPONSE_BYTES } from './response-text.ts'
import { sentence } from './webhook-errors.ts'

export interface Answer {
  /** Null without a response: `failure` says why. */
  head: ResponseHead | null
  failure: string
  /** As far as it was read, up to 64 KB. */
  body: Buffer
  /** The receiver closed a connection that had served another request, without a byte for this one, which it may not have noticed. */
  isStale: boolean
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
  readonly #timer: NodeJS.Timeout
  readonly #handle: Handle
  readonly #resolve: (answer: Answer) => void
  /** Its connection, from the beginning until the response is complete. */
  connection: { isOpen: boolean; close: () => void } | undefined
  #settled = false
  #head: ResponseHead | null = null
  #pieces: Buffer[] = []
  #size = 0

  /** @param since when the time begins to count, on the clock of performance.now() */
  constructor(timeoutMs: number, handle: Handle, resolve: (answer: Answer) => void, since = performance.now()) {
    this.#handle = handle
    this.#resolve = resolve
    handle.exchange = this
    this.#timer = setTimeout(
      () => {
        this.fail(`timed out after ${timeoutMs / 1000} s: no ${this.connection?.isOpen ? 'response' : 'connection'}`)
      },
      timeoutMs + since - performance.now()
    )
  }

  onHead(head: ResponseHead): void {
    this.#head = head
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
  lose(error: Error, isStale: boolean): void {
    this.#settle(sentence(error), isStale)
  }

  /** Ends the exchange in any state, and closes its connection. */
  fail(failure: string): void {
    this.#settle(failure)
    this.connection?.close()
  }

  /** The first call decides the result. */
  #settle(failure: string, isStale = false): void {
    if (this.#settled) return
    this.#settled = true
    clearTimeout(this.#timer)
    this.#handle.exchange = undefined
    const body = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces)
    this.#resolve({ head: this.#head, failure, body, isStale })
  }
}
