/** Sessions, and keys in exchange for a one-time session token. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../errors.ts'
import { createKey, hashKey, keyPrefix } from './keys.ts'
import { createSessions } from './sessions.ts'
import * as schemas from './sign-in-schemas.ts'

const tags = ['auth']

const routes: FastifyPluginAsyncTypebox = async app => {
  const sessions = createSessions(app.config.sessionSecret)
  const approved: readonly string[] = app.config.mcpClientIds

  app.post(
    '/v1/auth/session',
    {
      config: { public: true, errors: ['not_authenticated'] },
      schema: { tags, summary: 'Exchange a one-time token for a session', body: schemas.OpenSession, response: { 200: schemas.Session } }
    },
    async request => {
      const session = await app.fn.openSession({ token_hash: hashKey(request.body.token), ip: request.ip })
      return { session_token: await sessions.sign(session, app.now()), email: session.email }
    }
  )

  app.post(
    '/v1/auth/session/refresh',
    {
      config: { scope: 'any' },
      schema: { tags, summary: 'Renew a session for a year; the current one ends a day later', response: { 200: schemas.Session } }
    },
    async request => {
      const session = await app.fn.refreshSession(request.caller)
      return { session_token: await sessions.sign(session, app.now()), email: session.email }
    }
  )

  app.delete(
    '/v1/auth/session',
    {
      config: { scope: 'account' },
      schema: {
        tags,
        summary: 'End the session, or all sessions, immediately on every replica',
        querystring: schemas.EndSession,
        response: { 200: schemas.EndedSessions }
      }
    },
    async request => ({ revoked: await app.fn.revokeSessions({ ...request.query, ...request.caller }) })
  )

  app.post(
    '/v1/auth/mcp-exchange',
    {
      config: { public: true, errors: ['not_authenticated', 'client_not_approved'] },
      schema: { tags, summary: 'Exchange a one-time token for a scoped key', body: schemas.Exchange, response: { 200: schemas.Exchanged } }
    },
    async request => {
      const { session_token, client_id, label = `MCP: ${client_id}`.slice(0, 100) } = request.body
      if (!approved.includes(client_id)) {
        throw new ApiError('client_not_approved', 'client_id not approved. Ask the operator of this service to add it to MCP_CLIENT_IDS.')
      }
      const api_key = createKey(app.config.cell)
      const { account_id, key_id, scopes } = await app.fn.exchangeSessionToken({
        token_hash: hashKey(session_token),
        client_id,
        label,
        key_hash: hashKey(api_key),
        prefix: keyPrefix(api_key),
        ip: request.ip
      })
      return { api_key, user_id: account_id, key_id, scopes, expires_at: null }
    }
  )
}

export default routes
