/**
 * An array as a statement's parameter: instants in PostgreSQL's binary format, which it reads in a fifth of the time (0.14 instead of 0.78 µs
 * each), everything else as its input text. Columns of a batch often repeat a value, whose text is made once.
 *
 * @throws TypeError, or RangeError for an invalid instant
 */
export const arrayParameter = (values: readonly unknown[]): string | Buffer => {
  if (values.find(isPresent) instanceof Date) return instantBytes(values)
  if (values.length === 0) return '{}'
  let last = values[0]
  let lastText = elementText(last)
  let text = `{${lastText}`
  for (let n = 1; n < values.length; n++) {
    const value = values[n]
    if (value !== last) {
      last = value
      lastText = elementText(value)
    }
    text += `,${lastText}`
  }
  return `${text}}`
}

const isPresent = (value: unknown) => value !== null && value !== undefined

const elementText = (value: unknown): string => {
  if (!isPresent(value)) return 'NULL'
  if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`
  if (Buffer.isBuffer(value)) return `"\\\\x${value.toString('hex')}"`
  if (typeof value === 'object') throw new TypeError(unsupported)
  return String(value)
}

const unsupported = 'an array for PostgreSQL holds texts, numbers, booleans or bytes, or instants only'

const TIMESTAMPTZ = 1184
const headerBytes = 20
/** PostgreSQL counts from 2000, in microseconds. */
const since = Date.UTC(2000)
const wordSize = 2 ** 32

const instantBytes = (values: readonly unknown[]): Buffer => {
  const bytes = Buffer.allocUnsafe(headerBytes + 12 * values.length)
  let at = headerBytes
  for (const value of values) {
    if (!isPresent(value)) at = bytes.writeInt32BE(-1, at)
    else if (value instanceof Date) at = writeMicroseconds(bytes, bytes.writeInt32BE(8, at), value.getTime() - since)
    else throw new TypeError(unsupported)
  }
  // Dimensions, a flag for nulls that PostgreSQL doesn't read, type of the elements, length and first index.
  for (const [n, word] of [1, 0, TIMESTAMPTZ, values.length, 1].entries()) bytes.writeInt32BE(word, 4 * n)
  return bytes.subarray(0, at)
}

const writeMicroseconds = (bytes: Buffer, at: number, ms: number): number => {
  if (!Number.isSafeInteger(ms * 1000)) return bytes.writeBigInt64BE(BigInt(ms) * 1000n, at) // throws for an invalid instant
  const high = Math.floor((ms * 1000) / wordSize)
  return bytes.writeUInt32BE(ms * 1000 - high * wordSize, bytes.writeInt32BE(high, at))
}
