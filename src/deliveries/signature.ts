/** Signatures of outgoing requests, and the token with which a handler reports. Pure: no network, no database. */
import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'

const TOKEN_PREFIX = 'svc_sk_x_'

export interface Message {
  /** Signing secrets: the current one first, then former ones while they are still valid. */
  secrets: readonly string[]
  /** For receivers to deduplicate by; sent as `webhook-id`. */
  executionId: string
  /** Epoch seconds. */
  timestamp: number
  /** The exact request body; empty for a GET. */
  body: string
}

/**
 * Returns the headers that sign a request: `X-Service-*`, and the three of the Standard Webhooks specification. With several secrets, each
 * signature header has several values, separated by commas in the former and by spaces in the latter.
 */
export const signHeaders = ({ secrets, executionId, timestamp, body }: Message) => {
  let service = ''
  let standard = ''
  const signed = `${timestamp}.${body}`
  for (const secret of secrets) {
    // The key is the whole secret; in Standard Webhooks, the bytes that it encodes.
    // As a key object: with the same bytes in a Buffer, createHmac takes three times as long.
    const standardKey = createSecretKey(secret.replace(/^whsec_/, ''), 'base64')
    service += `${service && ','}v1=${createHmac('sha256', secret).update(signed).digest('hex')}`
    standard += `${standard && ' '}v1,${createHmac('sha256', standardKey).update(`${executionId}.${signed}`).digest('base64')}`
  }
  return {
    'X-Service-Signature': service,
    'X-Service-Timestamp': String(timestamp),
    'webhook-id': executionId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standard
  }
}

/** Derives a 32-byte key for a purpose. Keys of different purposes are unrelated. */
export const deriveKey = (secret: string, purpose: string): KeyObject =>
  createSecretKey(Buffer.from(hkdfSync('sha256', secret, 'pgcue', purpose, 32)))

/**
 * Returns the bearer token for one execution, `svc_sk_x_…`: the 16 bytes of its id and 16 of an HMAC over them, in base64url.
 * It has no expiry: the execution's state decides what it is valid for.
 *
 * @param executionId a UUID
 */
export const executionToken = (key: KeyObject, executionId: string): string => TOKEN_PREFIX + signId(key, executionId)

/** Returns the id of the execution that a token is for, or undefined if it was not made with this key. */
export const readExecutionToken = (key: KeyObject, token: string): string | undefined =>
  token.startsWith(TOKEN_PREFIX) ? readSignedId(key, token.slice(TOKEN_PREFIX.length)) : undefined

/** Returns a UUID's 16 bytes and 16 of an HMAC over them: 43 characters of base64url that only a holder of the key can make. */
export const signId = (key: KeyObject, id: string): string => {
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex')
  const half = createHmac('sha256', key).update(bytes).digest().subarray(0, 16)
  return Buffer.concat([bytes, half]).toString('base64url')
}

/** Returns the id in an execution token, whoever signed it. */
export const idInToken = (token: string): string | undefined =>
  token.startsWith(TOKEN_PREFIX) ? idInSigned(token.slice(TOKEN_PREFIX.length)) : undefined

/** Returns the id in a text of `signId`, whoever signed it. */
export const idInSigned = (text: string): string | undefined => {
  if (text.length !== 43) return undefined
  const hex = Buffer.from(text, 'base64url').toString('hex', 0, 16)
  return hex.length === 32 ? hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-') : undefined
}

/** Returns the id that was signed, or undefined if it was not signed with this key. Compares in constant time. */
export const readSignedId = (key: KeyObject, text: string): string | undefined => {
  const id = idInSigned(text)
  if (id === undefined) return undefined
  // Compared as text, since base64 can spell the same bytes in several ways.
  return sameText(text, signId(key, id)) ? id : undefined
}

const sameText = (a: string, b: string): boolean => {
  const x = Buffer.from(a)
  const y = Buffer.from(b)
  return x.length === y.length && timingSafeEqual(x, y)
}
