/** Turns an attempt into its HTTP request. */
import type { KeyObject } from 'node:crypto'
import { version } from '../config.ts'
import type { BegunAttempt } from '../database/functions.ts'
import { readValues, renderHeaders, renderPayload, renderUrl } from '../templates/template.ts'
import { executionToken, signHeaders } from './signature.ts'
import type { WebhookRequest } from './webhook.ts'

/** The User-Agent of webhooks, unless a cue has its own. */
export const userAgent = `pgcue/${version}`

type Options = {
  tokenKey: KeyObject
  /** Decrypts the API key of an account that wants it sent. */
  decryptKey: (ciphertext: string, purpose: `api_key ${string}`) => string | undefined
}

/** @returns a function that makes an attempt's request, signed at `now`, in epoch milliseconds */
export const createRequests =
  ({ tokenKey, decryptKey }: Options) =>
  (begun: BegunAttempt, now: number): WebhookRequest => {
    const attempt = begun.template_values === null ? begun : rendered(begun, begun.template_values)
    const body = attempt.callback_method === 'GET' ? '' : attempt.payload
    const { callback_headers, execution_id } = attempt
    const token = executionToken(tokenKey, execution_id)
    // One object, made without copies of its parts: there is one per request.
    const headers: Record<string, string> = signHeaders({
      secrets: attempt.secrets,
      executionId: execution_id,
      timestamp: Math.floor(now / 1000),
      body
    })
    headers['User-Agent'] = userAgent
    headers['X-Service-Cue-Id'] = attempt.cue_id
    headers['X-Service-Execution-Id'] = execution_id
    headers['X-Service-Scheduled-For'] = attempt.scheduled_for.toISOString()
    headers['X-Service-Attempt'] = String(attempt.attempt)
    for (const name in callback_headers) headers[replaceable[name.toLowerCase()] ?? name] = callback_headers[name]!
    // The account's key replaces the token; a cue's own Authorization header replaces both, and the token gets a header of its own.
    if (headers.Authorization === undefined) {
      const key = attempt.api_key && decryptKey(attempt.api_key, `api_key ${attempt.account_id}`)
      headers.Authorization = `Bearer ${key || token}`
    } else headers['X-Service-Execution-Token'] = token
    return {
      url: attempt.callback_url,
      method: attempt.callback_method,
      headers,
      body,
      timeoutMs: attempt.timeout_seconds * 1000,
      secrets: [headers.Authorization, token, ...Object.values(callback_headers)]
    }
  }

const rendered = (attempt: BegunAttempt, text: string): BegunAttempt => {
  const values = readValues(text)
  return {
    ...attempt,
    callback_url: renderUrl(attempt.callback_url, values),
    callback_headers: renderHeaders(attempt.callback_headers, values),
    payload: attempt.callback_method === 'GET' ? '' : renderPayload(attempt.payload, values)
  }
}

/** Default headers that a cue may replace, by lowercase name; the same spelling, so that none is sent twice. */
const replaceable: Record<string, string> = { authorization: 'Authorization', 'user-agent': 'User-Agent', 'content-type': 'Content-Type' }
