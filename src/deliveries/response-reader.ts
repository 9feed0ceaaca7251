/** Reads an HTTP/1.1 response from the pieces in which it arrives, as strictly as llhttp. Pure: no network. */

const MAX_HEAD_BYTES = 16 * 1024
const MAX_LINE_BYTES = 16 * 1024
/** Interim responses, heads, sizes of chunks and trailers together: without a limit, a receiver could keep this process busy with them. */
const MAX_OVERHEAD_BYTES = 64 * 1024
const NOTHING: Buffer = Buffer.alloc(0)

// RFC 9112: a status line, and fields without folded lines.
const field = /[!#$%&'*+\-.^_`|~\w]+:[\t\x20-\x7e\x80-\xff]*/
const wholeHead = new RegExp(String.raw`^HTTP/1\.[01] [1-9]\d\d(?: [^\r\n]*)?\r\n(?:${field.source}\r\n)*$`)
const wholeField = new RegExp(`^${field.source}$`)
const statusStart = /^HTTP\/1\.[01] [1-9]\d\d[ \r]$/
const usedField = /^(content-length|transfer-encoding|content-encoding|connection|keep-alive|retry-after):[\t ]*(.*?)[\t ]*\r$/gim
const chunkSize = /^([\da-f]{1,12})(?:;[^\r\n]*)?$/i

/** Why a response cannot be read. */
export class ResponseError extends Error {
  override name = 'ResponseError'
  readonly code: 'NOT_HTTP' | 'HEAD_TOO_LONG'

  constructor(code: ResponseError['code']) {
    super(code)
    this.code = code
  }
}

/** What is used of the head of a response. */
export interface ResponseHead {
  status: number
  retryAfter: string | undefined
  /** Values of `Content-Encoding`, separated by commas; empty if there are none. */
  contentEncoding: string
}

/** Takes what is read. */
export interface ResponseSink {
  /** The head of the final response, after any interim ones. */
  onHead(head: ResponseHead): void
  onBody(bytes: Buffer): void
}

type State = 'head' | 'length' | 'size' | 'chunk' | 'chunk end' | 'trailer' | 'until close' | 'ended'

export class ResponseReader {
  readonly #sink: ResponseSink
  #state: State = 'head'
  /** Bytes of the body or chunk that are still missing. */
  #left = 0
  /** Bytes read that don't belong to the body. */
  #overhead = 0
  /** Read before, and not complete. */
  #rest = NOTHING
  /** How long the receiver keeps the connection open after this response, in milliseconds; 0 if it doesn't. Infinity if it didn't say. */
  keptMs = 0

  constructor(sink: ResponseSink) {
    this.#sink = sink
  }

  /**
   * Reads the next piece. Returns whether the response has ended.
   * @throws ResponseError
   */
  read(piece: Buffer): boolean {
    let bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, piece]) : piece
    for (let used = 0; bytes.length > 0 && this.#state !== 'ended'; bytes = bytes.subarray(used)) {
      used = this.#step(bytes)
      if (used === 0) break
    }
    // A connection on which more arrives than the response is not to be trusted.
    if (this.#state === 'ended' && bytes.length > 0) this.keptMs = 0
    this.#rest = bytes
    return this.#state === 'ended'
  }

  /** Reads one part. Returns the number of bytes read: 0 if the part is not complete. */
  #step(bytes: Buffer): number {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes)
      case 'length':
        return this.#readBody(bytes, 'ended')
      case 'chunk':
        return this.#readBody(bytes, 'chunk end')
      case 'until close':
        this.#sink.onBody(bytes)
        return bytes.length
      default:
        return this.#readLine(bytes)
    }
  }

  /** Counts bytes outside the body, and returns their number. */
  #spend(count: number): number {
    this.#overhead += count
    if (this.#overhead > MAX_OVERHEAD_BYTES) throw new ResponseError('HEAD_TOO_LONG')
    return count
  }

  #readHead(bytes: Buffer): number {
    if (bytes[0] === 0x0d || bytes[0] === 0x0a) return this.#spend(1) // tolerated before a response
    // Whoever speaks another protocol may not send more.
    const start = bytes.toString('latin1', 0, 13)
    if (!statusStart.test(start + 'HTTP/1.1 200 '.slice(start.length))) throw new ResponseError('NOT_HTTP')
    const end = bytes.indexOf('\r\n\r\n')
    if (end > MAX_HEAD_BYTES || (end < 0 && bytes.length > MAX_HEAD_BYTES)) throw new ResponseError('HEAD_TOO_LONG')
    if (end < 0) return 0
    const head = bytes.toString('latin1', 0, end + 2)
    if (!wholeHead.test(head)) throw new ResponseError('NOT_HTTP')
    const status = Number(head.slice(9, 12))
    // A 101 is final, since no upgrade was requested.
    if (status >= 200 || status === 101) this.#begin(status, head)
    return this.#spend(end + 4)
  }

  /** The head is read: decides how long the body is, as RFC 9112, section 6.3. */
  #begin(status: number, head: string): void {
    let length: string | undefined
    let encoding: string | undefined
    let contentEncoding = ''
    let connection = ''
    let keepAlive = ''
    let retryAfter: string | undefined
    usedField.lastIndex = 0
    for (let field = usedField.exec(head); field; field = usedField.exec(head)) {
      const value = field[2]!
      switch (field[1]!.toLowerCase()) {
        case 'content-length':
          if (length !== undefined || !/^\d{1,15}$/.test(value)) throw new ResponseError('NOT_HTTP')
          length = value
          break
        case 'transfer-encoding':
          encoding = encoding === undefined ? value : `${encoding},${value}`
          break
        case 'content-encoding':
          contentEncoding += contentEncoding ? `,${value}` : value
          break
        case 'connection':
          connection += `${value},`
          break
        case 'keep-alive':
          keepAlive += `${value},`
          break
        default:
          retryAfter ??= value
      }
    }
    if (length !== undefined && encoding !== undefined) throw new ResponseError('NOT_HTTP')
    const isOld = head.startsWith('HTTP/1.0')
    const staysOpen = isOld ? /(?:^|,)[\t ]*keep-alive[\t ]*,/i.test(connection) : !/(?:^|,)[\t ]*close[\t ]*,/i.test(connection)
    const seconds = /timeout=(\d+)/i.exec(keepAlive)?.[1]
    if (staysOpen) this.keptMs = seconds === undefined ? Number.POSITIVE_INFINITY : Number(seconds) * 1000
    this.#left = Number(length ?? 0)
    if (status === 101 || status === 204 || status === 304) {
      // If a body follows all the same, it must not be taken for the next response.
      if (status === 101 || this.#left > 0 || encoding !== undefined) this.keptMs = 0
      this.#state = 'ended'
    } else if (encoding !== undefined) this.#state = /(?:^|,)[\t ]*chunked$/i.test(encoding) ? 'size' : 'until close'
    else if (length === undefined) this.#state = 'until close'
    else this.#state = this.#left > 0 ? 'length' : 'ended'
    if (this.#state === 'until close') this.keptMs = 0
    this.#sink.onHead({ status, retryAfter, contentEncoding })
  }

  #readBody(bytes: Buffer, next: State): number {
    const part = bytes.subarray(0, this.#left)
    this.#left -= part.length
    if (this.#left === 0) this.#state = next
    this.#sink.onBody(part)
    return part.length
  }

  /** Reads a line of the chunked encoding, RFC 9112, section 7.1. */
  #readLine(bytes: Buffer): number {
    const end = bytes.indexOf('\r\n')
    if (end > MAX_LINE_BYTES || (end < 0 && bytes.length > MAX_LINE_BYTES)) throw new ResponseError('NOT_HTTP')
    if (end < 0) return 0
    const line = bytes.toString('latin1', 0, end)
    if (this.#state === 'size') {
      const size = chunkSize.exec(line)
      if (!size) throw new ResponseError('NOT_HTTP')
      this.#left = Number.parseInt(size[1]!, 16)
      this.#state = this.#left > 0 ? 'chunk' : 'trailer'
    } else if (this.#state === 'chunk end') {
      if (end > 0) throw new ResponseError('NOT_HTTP')
      this.#state = 'size'
    } else if (end === 0) this.#state = 'ended'
    else if (!wholeField.test(line)) throw new ResponseError('NOT_HTTP') // fields of the trailer are not used
    return this.#spend(end + 2)
  }
}
