/** Text of webhook responses: how it is read, and the part that is stored. */
import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib'
import { clean } from './report.ts'

/** By lower-case names. */
export type ResponseHeaders = Record<string, string | string[] | undefined>

const STORED_CHARACTERS = 2000
/** Read of a response, before and after decompression. */
export const MAX_RESPONSE_BYTES = 64 * 1024
const MAX_ENCODINGS = 3
const STORED_HEADER_BYTES = 2048
/** 8 MB, which RFC 9659 allows a sender: decompression needs that much memory. */
const MAX_WINDOW_BITS = 23

const utf8 = new TextDecoder()

const decoders = new Map<string, (bytes: Buffer) => Transform>([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  // Some servers leave out the header of zlib.
  ['deflate', bytes => ((bytes[0]! & 15) === 8 ? createInflate() : createInflateRaw())],
  ['br', () => createBrotliDecompress()],
  ['zstd', () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: MAX_WINDOW_BITS } })]
])

/** The text of a response without a byte order mark, decompressed if it has a `Content-Encoding`. */
export const textOf = async (bytes: Buffer, encodings = ''): Promise<string> => {
  if (encodings === '' || bytes.length === 0) return utf8.decode(bytes)
  // One response after the other, since each may need megabytes of memory.
  const turn = last.then(() => decompress(bytes, encodings))
  last = turn.catch(() => {})
  return utf8.decode(await turn)
}

let last: Promise<unknown> = Promise.resolve()

/** Undoes encodings, the last one first. What cannot be decompressed is returned as it is. */
const decompress = async (bytes: Buffer, encodings: string): Promise<Buffer> => {
  let decoded = bytes
  for (const encoding of encodings.toLowerCase().split(',', MAX_ENCODINGS).reverse()) {
    const decoder = decoders.get(encoding.trim())?.(decoded)
    if (decoder) decoded = await beginningOf(decoder.end(decoded), decoded)
  }
  return decoded
}

/** The first 64 KB that a decoder returns, also if its input is incomplete; `otherwise` if it returns nothing. */
const beginningOf = async (decoder: Transform, otherwise: Buffer): Promise<Buffer> => {
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of decoder) {
      pieces.push(piece)
      size += piece.length
      if (size >= MAX_RESPONSE_BYTES) break
    }
  } catch {
    if (size === 0) return otherwise
  }
  return Buffer.concat(pieces).subarray(0, MAX_RESPONSE_BYTES)
}

/** The first 2,000 characters, none of them cut in half. */
export const storable = (text: string): string => {
  const cleaned = clean(text)
  return cleaned.length > STORED_CHARACTERS
    ? Array.from(cleaned.slice(0, 2 * STORED_CHARACTERS))
        .slice(0, STORED_CHARACTERS)
        .join('')
        .toWellFormed()
    : cleaned
}

/** The first headers that fit in 2 KB, as a JSON object. Cookies are left out: they are credentials for the receiver. */
export const storableHeaders = (headers: ResponseHeaders, mask: (text: string) => string): string => {
  const lines: string[] = []
  let bytes = 0
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name === 'set-cookie') continue
    const line = `${name}: ${[value].flat().join(', ')}`
    const size = Buffer.byteLength(JSON.stringify(line)) + 2
    if (bytes + size > STORED_HEADER_BYTES) continue
    lines.push(line)
    bytes += size
  }
  // Masked together: looking for secrets takes 30 µs, however short the text. A mask may cover a character on either side of a secret.
  const masked = clean(mask(lines.join('\n\n\n'))).split(/\n+/)
  return JSON.stringify(Object.fromEntries(masked.flatMap(pairsOf)))
}

const pairsOf = (line: string): [name: string, value: string][] => {
  const end = line.indexOf(':')
  return end < 0 ? [] : [[line.slice(0, end), line.slice(end + 1).trim()]]
}
