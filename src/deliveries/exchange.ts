/** One webhook request and its response, as a handler for undici: cheaper than its promises and streams. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import type { BegunAttempt } from '../database/functions.ts'
import { MAX_RESPONSE_BYTES, type ResponseHeaders } from './response-text.ts'
import type { Sockets } from './sockets.ts'
import { isClosed, sentence } from './webhook-errors.ts'

/** More keep this process busy rather than a receiver's reader informed. */
const MAX_INTERIM_RESPONSES = 100
const ENDED = new Error('ended')

export interface Answer {
  /** Null without a response: `failure` says why. */
  head: { status: number; headers: ResponseHeaders } | null
  failure: string
  /** As far as it was read, up to 64 KB. */
  body: Buffer
  /** The receiver closed a connection that had been used or idle, without a byte for this request, which it may not have noticed. */
  isStale: boolean
}

/** Filled in while the request is open: `exchange.fail` ends it with the reason as its error and closes its connection. */
export interface Handle {
  /** The one that is sent, if the request is a delivery. */
  attempt?: BegunAttempt
  exchange?: { fail: (reason: string) => void } | undefined
}

/**
 * Nothing refers to it once it has ended: no closure, and not its handle. A handle that was in a set may live until the next major
 * collection, and all it refers to would move to the old space.
 *
 * Dispatched once. Calls `resolve` once, at the latest after `timeoutMs`; it never throws.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #timer: NodeJS.Timeout
  readonly #handle: Handle
  readonly #sockets: Sockets
  readonly #resolve: (answer: Answer) => void
  #socket: Socket | undefined
  #controller: Dispatcher.DispatchController | undefined
  #isReused = false
  #hasBegun = false
  #interim = 0
  #settled = false
  #head: Answer['head'] = null
  #pieces: Buffer[] = []
  #size = 0

  /** @param since when the time begins to count, on the clock of performance.now() */
  constructor(timeoutMs: number, handle: Handle, sockets: Sockets, resolve: (answer: Answer) => void, since: number) {
    this.#handle = handle
    this.#sockets = sockets
    this.#resolve = resolve
    handle.exchange = this
    this.#timer = setTimeout(
      () => {
        this.fail(`timed out after ${timeoutMs / 1000} s: no ${this.#controller ? 'response' : 'connection'}`)
      },
      timeoutMs + since - performance.now()
    )
  }

  /** Sends the request. */
  dispatch(agent: Dispatcher, request: Dispatcher.DispatchOptions): void {
    this.#socket = this.#sockets.openedBy(() => agent.dispatch(request, this))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#socket = undefined
    this.#isReused = !this.#sockets.isFirstUse
    if (this.#settled) controller.abort(ENDED)
  }

  onResponseStarted(): void {
    this.#hasBegun = true
  }

  onResponseStart(_: unknown, status: number, headers: IncomingHttpHeaders): void {
    // A 101 is final, since no upgrade was requested.
    if (status < 200 && status !== 101) {
      if (++this.#interim > MAX_INTERIM_RESPONSES) this.fail('too many interim responses')
      return
    }
    this.#head = { status, headers }
    if (status === 101) this.fail('')
  }

  onResponseData(_: unknown, bytes: Buffer): void {
    const room = MAX_RESPONSE_BYTES - this.#size
    this.#pieces.push(bytes.length > room ? bytes.subarray(0, room) : bytes)
    this.#size += bytes.length
    // A response that drips in single bytes would otherwise take a few hundred bytes of memory for each.
    if (this.#pieces.length === 64) this.#pieces = [Buffer.concat(this.#pieces)]
    if (bytes.length > room) this.fail('response too long')
  }

  onResponseEnd(): void {
    this.#settle('')
  }

  onResponseError(_: unknown, error: Error): void {
    // undici doesn't pass on the head of an upgrade.
    if (error.message === 'bad upgrade') this.#head ??= { status: 101, headers: {} }
    this.#settle(sentence(error), this.#isReused && !this.#hasBegun && isClosed(error))
  }

  /** Ends the exchange in any state, and closes its connection. */
  fail(failure: string): void {
    this.#settle(failure)
    if (this.#controller) this.#controller.abort(ENDED)
    else this.#socket?.destroy(ENDED)
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
