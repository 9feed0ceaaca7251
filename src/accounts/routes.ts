/** Accounts: registration, settings and the audit log. Registers the routes for keys, secrets, sessions, sign-in and deletion. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { readPage } from '../database/read-page.ts'
import { ApiError } from '../errors.ts'
import { subjectOf } from '../http/address-subject.ts'
import { refusals } from './admission.ts'
import deletion from './deletion-routes.ts'
import devices from './device-routes.ts'
import keys from './key-routes.ts'
import { createKey, storedKey } from './keys.ts'
import { isFromOperator, isLocalOperator } from './operator.ts'
import * as schemas from './schemas.ts'
import secrets from './secret-routes.ts'
import sessions from './session-routes.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  app.post(
    '/v1/auth/register',
    {
      config: { public: true, errors: ['duplicate_email'] },
      schema: {
        operationId: 'register',
        summary: 'Create an account and its first key',
        description: '`api_key` is shown only in this response. The account has the plan `free`.',
        body: schemas.Register,
        response: { 201: schemas.Registered }
      }
    },
    async (request, reply) => {
      const api_key = createKey(app.config.cell)
      const account_id = await app.fn.newAccountId({})
      const account = await app.fn.register({
        ...request.body,
        account_id,
        ...storedKey(app.config.encryptionKeys, api_key, account_id),
        address: app.config.rateLimit ? subjectOf(request.ip) : null,
        ip: request.ip
      })
      if (!account) throw new ApiError('duplicate_email', 'An account with this email address already exists. Sign in instead.')
      return reply.code(201).send({ api_key, ...account })
    }
  )

  app.get(
    '/v1/auth/me',
    {
      config: { scope: 'any' },
      schema: {
        operationId: 'getAccount',
        summary: 'Get the account and its usage',
        description: 'Works with any credential, whatever its scopes.',
        response: { 200: schemas.Me }
      }
    },
    async request => showAccount(app, request)
  )

  app.patch(
    '/v1/auth/me',
    {
      config: { scope: 'account', errors: ['approval_protected'] },
      schema: {
        operationId: 'updateAccount',
        summary: 'Update account settings',
        description: 'Fields that are not sent stay as they are.',
        body: schemas.UpdateMe,
        response: { 200: schemas.Me }
      }
    },
    async request => {
      const { alert_webhook_url: url } = request.body
      const checked = url ? await app.rules.checkUrl(url) : null
      if (checked?.ok === false) throw new ApiError('invalid_alert_webhook_url', `alert_webhook_url: ${checked.reason}`)
      await app.fn.updateAccount({ changes: request.body, ...request.caller })
      return showAccount(app, request)
    }
  )

  app.get(
    '/v1/auth/audit',
    {
      config: { scope: 'account' },
      schema: {
        operationId: 'listAuditEvents',
        summary: 'List the audit log of the account, newest first',
        description: 'Who changed keys, sessions, cues and settings, and from where. The newest 10,000 of each kind are kept.',
        querystring: schemas.ListEvents,
        response: { 200: schemas.Events }
      }
    },
    async request => {
      const entries = app.db.selectFrom('audit_view').where('account_id', '=', request.caller.account_id)
      const query = entries.selectAll().orderBy('seq', 'desc').$castTo<Static<typeof schemas.Events>['events'][number]>()
      const { rows: events, ...page } = await readPage(query, request.query)
      return { events, ...page }
    }
  )

  await app.register(keys)
  await app.register(secrets)
  await app.register(sessions)
  await app.register(devices)
  await app.register(deletion)
}

export default routes

type Shown = Static<typeof schemas.Me>

const showAccount = async (app: FastifyInstance, request: FastifyRequest): Promise<Shown> => {
  const { account_id } = request.caller
  const [account, used] = await Promise.all([
    app.db.selectFrom('account_view').selectAll().where('id', '=', account_id).$castTo<Shown>().executeTakeFirst(),
    app.fn.executionsUsed({ account_id })
  ])
  if (!account) throw new ApiError('invalid_api_key', refusals.invalid_api_key) // deleted since the key was checked
  const is_operator = isLocalOperator(account.email, app.config) || isFromOperator(request, app.config, app.now())
  return { ...account, monthly_executions: used, executions_this_month: used, scopes: [...request.scopes], is_operator }
}
