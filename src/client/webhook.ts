/** Verification of received webhooks. */

/** A webhook that failed verification. `code` says why; respond with 401. */
export class WebhookError extends Error {
  override name = 'WebhookError'
  readonly code: 'no_signature' | 'stale_timestamp' | 'wrong_signature' | 'not_json'

  constructor(code: WebhookError['code'], message: string) {
    super(message)
    this.code = code
  }
}

export type VerifiedWebhook = {
  /** The parsed body; null if empty. */
  payload: unknown
  /** Deduplicate by this id: that of the execution in a callback; alerts and other webhooks have ids of their own. */
  id: string
  /** Empty, like `cueId` and `scheduledFor`, in webhooks that are not callbacks. */
  executionId: string
  cueId: string
  /** ISO 8601 in UTC. */
  scheduledFor: string
  /** 1 for the first attempt; 0 in webhooks that are not callbacks. */
  attempt: number
  /** Epoch seconds. */
  timestamp: number
}

/** Headers as provided by `fetch`, `node:http` and frameworks built on them. */
export type IncomingHeaders = Headers | Record<string, string | string[] | undefined>

type Options = {
  /** A Date, or epoch seconds; the current time by default. */
  now?: Date | number
  /** Maximum difference between timestamp and current time in seconds; 300 by default. */
  tolerance?: number
}

/**
 * Verifies a webhook and returns its content. Every signature present (`X-Service-Signature`, `webhook-signature`) must have been made with
 * one of the secrets; there are several during an overlap. `body` must be the raw text, not parsed and serialised again. Works for
 * callbacks, alerts and all other webhooks of the service, and on any platform with WebCrypto.
 * @throws {WebhookError}
 */
export const verifyWebhook = async (
  rawBody: string | Uint8Array,
  headers: IncomingHeaders,
  secrets: string | readonly string[],
  { now = Date.now() / 1000, tolerance = 300 }: Options = {}
): Promise<VerifiedWebhook> => {
  const signingSecrets = [secrets].flat()
  if (signingSecrets.length === 0 || signingSecrets.includes('')) throw new TypeError('verifyWebhook needs the signing secret')
  const header = readerOf(headers)
  const body = typeof rawBody === 'string' ? new TextEncoder().encode(rawBody) : rawBody
  const seconds = now instanceof Date ? now.getTime() / 1000 : now
  const id = header('webhook-id')
  const schemes = [
    { signature: header('x-service-signature'), timestamp: header('x-service-timestamp'), ...prefixed },
    { signature: header('webhook-signature'), timestamp: header('webhook-timestamp'), ...standard(id) }
  ].filter(({ signature }) => signature !== '')
  if (schemes.length === 0) throw new WebhookError('no_signature', 'X-Service-Signature and webhook-signature are both missing.')
  for (const { signature, timestamp, name, split, prefix, decode, keyOf } of schemes) {
    if (!/^\d{1,12}$/.test(timestamp) || Math.abs(seconds - Number(timestamp)) > tolerance) {
      throw new WebhookError('stale_timestamp', `The timestamp of ${name} is not within ${tolerance} seconds of now.`)
    }
    const signed = join(prefix(timestamp), body)
    const values = signature.split(split).flatMap(value => decode(value.trim()) ?? [])
    if (!(await anyMatches(signingSecrets.map(keyOf), values, signed))) {
      throw new WebhookError('wrong_signature', `${name} does not match: another secret, or a changed body.`)
    }
  }
  const isCallback = header('x-service-alert-id') === '' && header('x-service-event') === ''
  const executionId = header('x-service-execution-id') || (isCallback ? id : '')
  if (id && executionId && id !== executionId) throw new WebhookError('wrong_signature', 'webhook-id and X-Service-Execution-Id differ.')
  return {
    payload: parse(body),
    id: id || executionId,
    executionId,
    cueId: header('x-service-cue-id'),
    scheduledFor: header('x-service-scheduled-for'),
    attempt: Number(header('x-service-attempt')),
    timestamp: Number(schemes[0]!.timestamp)
  }
}

type Bytes = Uint8Array<ArrayBuffer>

const text = (value: string): Bytes => new TextEncoder().encode(value)

/** `v1=` and hex over `timestamp.body`; the key is the whole secret as text. */
const prefixed = {
  name: 'X-Service-Signature',
  split: ',',
  prefix: (timestamp: string) => `${timestamp}.`,
  decode: (value: string) =>
    /^v1=[0-9a-f]{64}$/.test(value) ? Uint8Array.from(value.slice(3).match(/../g)!, hex => parseInt(hex, 16)) : undefined,
  keyOf: text
}

/** Standard Webhooks: `v1,` and base64 over `id.timestamp.body`; the key is the decoded secret. */
const standard = (id: string) => ({
  name: 'webhook-signature',
  split: ' ',
  prefix: (timestamp: string) => `${id}.${timestamp}.`,
  decode: (value: string) => (/^v1,[A-Za-z0-9+/]{43}=$/.test(value) ? fromBase64(value.slice(3)) : undefined),
  keyOf: (secret: string) => fromBase64(secret.replace(/^whsec_/, ''))
})

const fromBase64 = (value: string): Bytes => Uint8Array.from(atob(value), character => character.charCodeAt(0))

/** WebCrypto compares in constant time. All pairs are compared, so that the time doesn't depend on which one matches. */
const anyMatches = async (keys: Bytes[], values: Bytes[], signed: Bytes): Promise<boolean> => {
  const results = keys.flatMap(async bytes => {
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    return Promise.all(values.map(value => crypto.subtle.verify('HMAC', key, value, signed)))
  })
  return (await Promise.all(results)).flat().includes(true)
}

const join = (prefix: string, body: Uint8Array): Bytes => {
  const start = text(prefix)
  const joined = new Uint8Array(start.length + body.length)
  joined.set(start)
  joined.set(body, start.length)
  return joined
}

const readerOf = (headers: IncomingHeaders) => {
  if (typeof headers.get === 'function') return (name: string) => (headers as Headers).get(name) ?? ''
  const values = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value ?? ''].flat().join(', ')]))
  return (name: string) => values.get(name) ?? ''
}

const parse = (body: Uint8Array): unknown => {
  if (body.length === 0) return null
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new WebhookError('not_json', 'The body is signed but not valid JSON.')
  }
}
