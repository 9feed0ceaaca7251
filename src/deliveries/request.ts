/** An attempt as the request that goes out. */
import type { KeyObject } from 'node:crypto'
import { version } from '../config.ts'
import type { BegunAttempt } from '../functions.ts'
import { executionToken, signHeaders } from './signature.ts'
import type { WebhookRequest } from './webhook.ts'

export const userAgent = `pgcue/${version}`

type Options = {
  tokenKey: KeyObject
  /** Opens an account's encrypted key, for those that want it sent. */
  decryptKey: (ciphertext: string) => string | undefined
}

/** Makes requests of attempts: `now` is the instant of signing, in epoch milliseconds. */
export const createRequests =
  ({ tokenKey, decryptKey }: Options) =>
  (attempt: BegunAttempt, now: number): WebhookRequest => {
    const body = attempt.callback_method === 'GET' ? '' : attempt.payload
    const key = attempt.api_key && decryptKey(attempt.api_key)
    return {
      url: attempt.callback_url,
      method: attempt.callback_method,
      headers: {
        ...attempt.callback_headers,
        'User-Agent': userAgent,
        Authorization: `Bearer ${key || executionToken(tokenKey, attempt.execution_id)}`,
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
