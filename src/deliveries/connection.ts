/**
 * A connection to a receiver, with one request at a time. Requests are written and responses read here rather than by undici's client: that
 * would take another fifth of the process's CPU.
 */
import type { Socket } from 'node:net'
import type { Dial, Receiver } from './dial.ts'
import type { Exchange } from './exchange.ts'
import { ResponseReader } from './response-reader.ts'

type Options = {
  receiver: Receiver
  dial: Dial
  /** The response is complete, and the receiver keeps the connection open for so many milliseconds. */
  onRest: (connection: Connection, keptMs: number) => void
  onEnd: (connection: Connection) => void
}

const isClosed = ({ code }: Error & { code?: string }) => code === 'ECONNRESET' || code === 'EPIPE'
const CLOSED = Object.assign(new Error('closed'), { code: 'ECONNRESET' })

export class Connection {
  /** Whether it is established. */
  isOpen = false
  /** Whether it was still open when all had been read that arrived with a response. */
  staysOpen = false
  readonly origin: string
  readonly #options: Options
  readonly #socket: Socket
  #hasEnded = false
  #exchange: Exchange | undefined
  #reader: ResponseReader | undefined
  /** A request to be sent when the connection is established. */
  #waiting: { head: string; body: string } | undefined
  /** It has served a request. */
  #isReused = false
  /** Something arrived since the request was sent. */
  #isAnswered = false

  constructor(options: Options) {
    const { receiver, dial } = options
    this.origin = receiver.origin
    this.#options = options
    this.#socket = dial(receiver, {
      onOpen: () => this.#open(),
      onBytes: bytes => this.#read(bytes),
      onError: error => this.#end(error)
    })
      .on('end', () => this.close())
      .on('close', () => this.close())
  }

  /** Sends a request, whose head ends with an empty line. The connection must be new or at rest. */
  send(head: string, body: string, exchange: Exchange): void {
    exchange.connection = this
    this.#exchange = exchange
    this.#reader = new ResponseReader(exchange)
    this.#isAnswered = false
    if (this.isOpen) this.#write(head, body)
    else this.#waiting = { head, body }
  }

  /** Closes it in any state. */
  close(): void {
    this.#end(CLOSED)
  }

  #open(): void {
    this.isOpen = true
    const { head, body } = this.#waiting!
    this.#waiting = undefined
    this.#write(head, body)
  }

  #write(head: string, body: string): void {
    // One write of a text is the cheapest. Only the head is in Latin-1.
    const isAscii = Buffer.byteLength(head) === head.length
    this.#socket.write(isAscii ? head + body : Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]))
  }

  #read(bytes: Buffer): void {
    const reader = this.#reader
    this.#isAnswered = true
    try {
      // Nothing was requested.
      if (!reader) this.close()
      else if (reader.read(bytes) && !this.#hasEnded) this.#finish(reader.keptMs)
    } catch (error) {
      this.#end(error as Error)
    }
  }

  /** The response is complete. */
  #finish(keptMs: number): void {
    this.#isReused = true
    this.#leave()?.end()
    // If it came before all of the request was sent, the rest would be taken for the next request.
    if (keptMs > 0 && this.#socket.writableLength === 0) this.#options.onRest(this, keptMs)
    else this.close()
  }

  #end(error: Error): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#options.onEnd(this)
    this.#leave()?.lose(error, this.#isReused && !this.#isAnswered && isClosed(error))
    // With the error, so that the connector hears of it, too.
    this.#socket.destroy(error)
  }

  /** Lets go of the exchange, if there is one, and returns it. */
  #leave(): Exchange | undefined {
    const exchange = this.#exchange
    if (exchange) exchange.connection = undefined
    this.#exchange = undefined
    this.#reader = undefined
    return exchange
  }
}
