/** Sessions, and keys in exchange for a one-time session token. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { readPage } from '../database/read-page.ts'
import { ApiError } from '../errors.ts'
import { isLoopback } from '../http/origins.ts'
import { refusals } from './admission.ts'
import { clearSessionCookie, refuseOtherOrigins, sessionSeconds, setSessionCookie } from './cookies.ts'
import { createKey, hashKey, keyPrefix } from './keys.ts'
import { createLocalToken, hashToken, signInLink } from './local-token.ts'
import { createSessions, createToken } from './sessions.ts'
import * as schemas from './sign-in-schemas.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  const sessions = createSessions(app.config.sessionSecret)
  const approved: readonly string[] = app.config.mcpClientIds

  /** Records where a session was opened. The session is open anyway, and its one-time token used up. */
  const describe = ({ headers, ip, log }: FastifyRequest, { account_id, session_id }: { account_id: string; session_id: string }) =>
    app.fn
      .describeSession({ account_id, session_id, user_agent: wellFormed(headers['user-agent']), ip })
      .catch(error => log.warn({ err: error }, 'origin of a session not recorded'))

  app.post(
    '/v1/auth/session',
    {
      config: { public: true, errors: ['not_authenticated'] },
      schema: {
        operationId: 'openSession',
        summary: 'Exchange a one-time token for a session',
        description: 'The token comes from the approval of a device code, and works once.',
        body: schemas.OpenSession,
        response: { 200: schemas.Session }
      }
    },
    async request => {
      const session = await app.fn.openSession({ token_hash: hashToken(request.body.token, request.ip), ip: request.ip })
      await describe(request, session)
      return { session_token: await sessions.sign(session, app.now()), email: session.email }
    }
  )

  app.post(
    '/v1/auth/browser-session',
    {
      config: { public: true, errors: ['not_authenticated', 'invalid_api_key', 'cross_origin_refused'] },
      schema: {
        operationId: 'openBrowserSession',
        summary: 'Sign a browser in with an API key or a one-time token',
        description:
          'Sets an HttpOnly cookie that is accepted wherever an API key is, but changes something only in requests from pages of this service, ' +
          'and not as a bearer token. It is valid for a year, on loopback for 12 hours. ' +
          'A session opened with a key has its scopes, and ends when the key is revoked.',
        body: schemas.OpenBrowserSession,
        response: { 200: schemas.BrowserSession }
      }
    },
    async (request, reply) => {
      refuseOtherOrigins(request.raw, app.origins)
      const { token, api_key } = request.body
      if ((token === undefined) === (api_key === undefined)) throw new ApiError('validation_error', 'Send either api_key or token.')
      const shared = { lifetime: `${sessionSeconds(app.config)} seconds`, ip: request.ip }
      const session =
        token === undefined
          ? await app.fn.openKeySession({ key_hash: hashKey(api_key!), ...shared })
          : await app.fn.openSession({ token_hash: hashToken(token, request.ip), ...shared })
      await describe(request, session)
      setSessionCookie(reply, await sessions.sign(session, app.now(), true), app.config)
      return { email: session.email }
    }
  )

  app.post(
    '/v1/auth/dashboard-link',
    {
      config: { scope: 'account' },
      schema: {
        operationId: 'createDashboardLink',
        summary: 'Create a link that opens the dashboard signed in',
        description:
          'It works once, within 15 minutes; created from the machine of the service, only there. The session lacks the scope `approve` if the caller does.',
        response: { 201: schemas.DashboardLink }
      }
    },
    async (request, reply) => {
      const token = isLoopback(request.ip) ? createLocalToken() : createToken()
      const expires_at = await app.fn.addSessionToken({ token_hash: hashKey(token), ...request.caller })
      return reply.code(201).send({ url: signInLink(app.config, token), expires_at })
    }
  )

  app.post(
    '/v1/auth/session/refresh',
    {
      config: { scope: 'any' },
      schema: {
        operationId: 'refreshSession',
        summary: 'Renew a session for a year, that of a browser on loopback for 12 hours; the current one ends a day later',
        description: '`session_token` is the new one.',
        response: { 200: schemas.Session }
      }
    },
    async request => {
      const session = await app.fn.refreshSession(request.caller)
      return { session_token: await sessions.sign(session, app.now()), email: session.email }
    }
  )

  app.delete(
    '/v1/auth/session',
    {
      config: { scope: 'any', errors: ['insufficient_scope'] },
      schema: {
        operationId: 'endSession',
        summary: 'End the session, or all sessions, immediately on every replica',
        description: 'To end all of them, the credential needs the scope `account`.',
        querystring: schemas.EndSession,
        response: { 200: schemas.EndedSessions }
      }
    },
    async (request, reply) => {
      if (request.query.all && !request.scopes.includes('account')) throw new ApiError('insufficient_scope', refusals.insufficient_scope)
      const revoked = await app.fn.revokeSessions({ ...request.query, ...request.caller })
      if (request.hasSessionCookie) clearSessionCookie(reply, app.config)
      return { revoked }
    }
  )

  app.get(
    '/v1/auth/sessions',
    {
      config: { scope: 'account' },
      schema: {
        operationId: 'listSessions',
        summary: 'List sessions, newest first',
        description: 'Sign-ins of browsers, devices and programs that have not ended.',
        querystring: schemas.ListSessions,
        response: { 200: schemas.Sessions }
      }
    },
    async request => {
      const { account_id, actor } = request.caller
      const open = app.db.selectFrom('session_view').where('account_id', '=', account_id).where('expires_at', '>', app.now())
      const { rows, ...page } = await readPage(open.selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc'), request.query)
      const listed = rows.map(row => ({ ...row, is_current: actor === `session:${row.id}` }))
      return { sessions: listed as Static<typeof schemas.Sessions>['sessions'], ...page }
    }
  )

  app.delete(
    '/v1/auth/sessions/:session_id',
    {
      config: { scope: 'account' },
      schema: {
        operationId: 'deleteSession',
        summary: 'End a session, immediately on every replica',
        description: 'Whoever uses it has to sign in again.',
        params: schemas.SessionParams,
        response: { 204: Type.Null() }
      }
    },
    async (request, reply) => {
      await app.fn.revokeSession({ ...request.params, ...request.caller })
      return reply.code(204).send(null)
    }
  )

  app.post(
    '/v1/auth/mcp-exchange',
    {
      config: { public: true, errors: ['not_authenticated', 'client_not_approved'] },
      schema: {
        operationId: 'exchangeToken',
        summary: 'Exchange a one-time token for a scoped key',
        description: "For clients that the service's operator has approved. The key does not expire.",
        body: schemas.Exchange,
        response: { 200: schemas.Exchanged }
      }
    },
    async request => {
      const { session_token, client_id, label = `MCP: ${client_id}`.slice(0, 100) } = request.body
      if (!approved.includes(client_id)) {
        throw new ApiError('client_not_approved', 'client_id not approved. Ask the operator of this service to add it to MCP_CLIENT_IDS.')
      }
      const api_key = createKey(app.config.cell)
      const { account_id, key_id, scopes } = await app.fn.exchangeSessionToken({
        token_hash: hashToken(session_token, request.ip),
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

/** Node reads headers as Latin-1, and PostgreSQL takes no null character. */
const wellFormed = (text = '') => Buffer.from(text.slice(0, 1000), 'latin1').toString().replaceAll('\0', '')
