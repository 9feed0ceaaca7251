/** Tests of cues and addresses: one request, signed and sent like a delivery, of which nothing is stored. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import type { Caller } from '../accounts/admission.ts'
import { decryptKey } from '../accounts/keys.ts'
import { constants } from '../catalog.ts'
import { createTurns } from '../database/turns.ts'
import { maskSecrets } from '../deliveries/mask-secrets.ts'
import { createRequests } from '../deliveries/request.ts'
import { storable } from '../deliveries/response-text.ts'
import { deriveKey } from '../deliveries/signature.ts'
import { createWebhookClient } from '../deliveries/webhook.ts'
import { ApiError, fault, invalid } from '../errors.ts'
import { payloadColumns } from './payload.ts'
import { MAX_TEST_SECONDS, type TestCue, type TestResult } from './schemas.ts'

/** Tests of an account under way at the same time: slow receivers take up no more connections. */
const MAX_AT_ONCE = 5

export const createTests = (app: FastifyInstance) => {
  const { encryptionKeys, sessionSecret } = app.config
  const client = createWebhookClient({ rules: app.rules })
  app.addHook('preClose', client.destroy)
  const requestOf = createRequests({
    tokenKey: deriveKey(sessionSecret, 'execution-token'),
    decryptKey: (ciphertext, purpose) => decryptKey(encryptionKeys, ciphertext, purpose)
  })
  const inTurn = createTurns(MAX_AT_ONCE)

  const send = async (caller: Caller, { cue_id, url, payload }: Static<typeof TestCue>): Promise<Static<typeof TestResult>> => {
    const content = payload && payloadColumns(payload).payload
    const attempt = await app.fn.beginTest({ cue_id, url, payload: content, ...caller })
    const { headers, timeoutMs, secrets = [], ...request } = requestOf(attempt, +app.now())
    if (attempt.cue_id === '') delete headers['X-Service-Cue-Id']
    if (request.body !== '') headers['Content-Type'] ??= 'application/json'
    const result = await client.post({ ...request, headers, timeoutMs: Math.min(timeoutMs, MAX_TEST_SECONDS * 1000) })
    const { http_status, answer, error, duration_ms } = result
    const shown = Object.entries(headers).map(([name, value]) => [name, secrets.includes(value) ? constants.mask : value])
    return {
      request: { method: request.method, url: request.url, headers: Object.fromEntries(shown), body: request.body },
      response: http_status === null ? null : { http_status, body: storable(maskSecrets(answer ?? '', secrets)) },
      error,
      duration_ms
    }
  }

  /** @throws ApiError if the request can't be sent, or isn't allowed */
  return async (caller: Caller, test: Static<typeof TestCue>): Promise<Static<typeof TestResult>> => {
    if ((test.cue_id === undefined) === (test.url === undefined)) throw invalid([fault(['cue_id'], 'give either cue_id or url')])
    const checked = test.url !== undefined && (await app.rules.checkUrl(test.url))
    if (checked && !checked.ok) throw new ApiError('invalid_callback_url', `url: ${checked.reason}`)
    return inTurn(caller.account_id, () => send(caller, test))
  }
}
