/** Turns an attempt into its HTTP request. */
import type { KeyObject } from 'node:crypto'
import { version } from '../config.ts'
import type { BegunAttempt } from '../database/functions.ts'
import { executionToken, signHeaders } from './signature.ts'
import type { WebhookRequest } from './webhook.ts'

/** The User-Agent of webhooks, unless a cue has its own. */
export const userAgent = `pgcue/${version}`

type Options = {
  tokenKey: KeyObject
  /** Decrypts the API key of an account that wants it sent. */
  decryptKey: (ciphertext: string) => string | undefined
}

/** @returns a function that makes an attempt's request, signed at `now`, in epoch milliseconds */
export const createRequests =
  ({ tokenKey, decryptKey }: Options) =>
  (attempt: BegunAttempt, now: number): WebhookRequest => {
    const body = attempt.callback_method === 'GET' ? '' : attempt.payload
    const own = ownHeaders(attempt.callback_headers)
    const token = executionToken(tokenKey, attempt.execution_id)
    // The account's key replaces the token; a cue's own Authorization header replaces both, and the token gets a header of its own.
    const key = own.Authorization === undefined && attempt.api_key ? decryptKey(attempt.api_key) : undefined
    return {
      url: attempt.callback_url,
      method: attempt.callback_method,
      headers: {
        'User-Agent': userAgent,
        Authorization: `Bearer ${key || token}`,
        ...own,
        ...(own.Authorization !== undefined && { 'X-Service-Execution-Token': token }),
        'X-Service-Cue-Id': attempt.cue_id,
        'X-Service-Execution-Id': attempt.execution_id,
        'X-Service-Scheduled-For': attempt.scheduled_for.toISOString(),
        'X-Service-Attempt': String(attempt.attempt),
        ...signHeaders({ secrets: attempt.secrets, executionId: attempt.execution_id, timestamp: Math.floor(now / 1000), body })
      },
      body,
      timeoutMs: attempt.timeout_seconds * 1000
    }
  }

/** Default headers that a cue may replace, by lowercase name. */
const replaceable: Record<string, string> = { authorization: 'Authorization', 'user-agent': 'User-Agent', 'content-type': 'Content-Type' }

/** A cue's headers. Those that replace defaults get the same spelling, so that none is sent twice. */
const ownHeaders = (headers: Record<string, string>): Record<string, string> => {
  const own: Record<string, string> = {}
  for (const name in headers) own[replaceable[name.toLowerCase()] ?? name] = headers[name]!
  return own
}
