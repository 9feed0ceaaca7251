// Signing what goes out, and the token that a callback's receiver answers with. Nothing here knows the network or the database.
import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'

const MAX_CACHED_SECRETS = 10_000
const TOKEN_PREFIX = 'svc_sk_x_'

export interface Message {
  /** The secrets that sign: the current one first, then, while their overlap lasts, former ones. */
  secrets: readonly string[]
  /** What receivers deduplicate by; becomes `webhook-id`. */
  executionId: string
  /** Epoch seconds. */
  timestamp: number
  /** The body exactly as it is sent; empty for a GET. */
  body: string
}

/**
 * The headers that sign one request: `X-Service-*`, and the trio of the Standard Webhooks specification. Several secrets
 * give several values, separated by commas in the one and by blanks in the other.
 */
export const signHeaders = ({ secrets, executionId, timestamp, body }: Message) => {
  let own = ''
  let standard = ''
  const signed = `${timestamp}.${body}`
  for (const secret of secrets) {
    const keys = keysOf(secret)
    own += `${own && ','}v1=${createHmac('sha256', keys.text).update(signed).digest('hex')}`
    standard += `${standard && ' '}v1,${createHmac('sha256', keys.decoded).update(`${executionId}.${signed}`).digest('base64')}`
  }
  return {
    'X-Service-Signature': own,
    'X-Service-Timestamp': String(timestamp),
    'webhook-id': executionId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': standard
  }
}

/** A key of 32 bytes for one purpose. Different purposes give unrelated keys, so none can be used in another's place. */
export const deriveKey = (secret: string, purpose: string): KeyObject =>
  createSecretKey(Buffer.from(hkdfSync('sha256', secret, 'pgcue', purpose, 32)))

/**
 * The bearer token for one execution, `svc_sk_x_…`: the 16 bytes of its id and 16 of an HMAC over them, in base64url.
 * It says nothing about time; how long it is good for is the execution's state to tell.
 *
 * @param executionId a UUID
 */
export const executionToken = (key: KeyObject, executionId: string): string => TOKEN_PREFIX + signId(key, executionId)

/** The id of the execution that a token is for, or undefined when this key did not make it. */
export const readExecutionToken = (key: KeyObject, token: string): string | undefined =>
  token.startsWith(TOKEN_PREFIX) ? readSignedId(key, token.slice(TOKEN_PREFIX.length)) : undefined

/** A UUID's 16 bytes and 16 of an HMAC over them: 43 characters of base64url that only a holder of the key can make. */
export const signId = (key: KeyObject, id: string): string => {
  const token = Buffer.allocUnsafe(32)
  token.write(id.replaceAll('-', ''), 0, 16, 'hex')
  createHmac('sha256', key).update(token.subarray(0, 16)).digest().copy(token, 16, 0, 16)
  return token.toString('base64url')
}

/** The id that was signed, or undefined when this key did not sign it. Compares in constant time. */
export const readSignedId = (key: KeyObject, text: string): string | undefined => {
  if (text.length !== 43) return undefined
  const hex = Buffer.from(text, 'base64url').toString('hex', 0, 16)
  if (hex.length !== 32) return undefined
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  // Compared as text, since base64 has several spellings of the same bytes.
  return sameText(text, signId(key, id)) ? id : undefined
}

const sameText = (a: string, b: string): boolean => {
  const x = Buffer.from(a)
  const y = Buffer.from(b)
  return x.length === y.length && timingSafeEqual(x, y)
}

interface Keys {
  /** The whole secret as UTF-8. */
  text: KeyObject
  /** The bytes that the secret encodes, as Standard Webhooks has it. */
  decoded: KeyObject
}

let recent = new Map<string, Keys>()
let older = new Map<string, Keys>()

/**
 * Making both keys costs three times the signing, so the secrets used last are kept: in two generations, because a Map whose
 * hot keys are deleted and set again, to move them to the end, becomes a long chain of deleted entries.
 */
const keysOf = (secret: string): Keys => {
  const known = recent.get(secret)
  if (known) return known
  const keys = older.get(secret) ?? {
    text: createSecretKey(Buffer.from(secret)),
    decoded: createSecretKey(Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
  }
  if (recent.size >= MAX_CACHED_SECRETS / 2) {
    older = recent
    recent = new Map()
  }
  recent.set(secret, keys)
  return keys
}
