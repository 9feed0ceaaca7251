/** Account deletion: requested by the owner, cancelled by mail, or requested by someone whose address another person registered. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../errors.ts'
import * as pages from '../pages/account.ts'
import { acceptForms, asksForPage, jsonOrForm, pageErrors } from '../pages/forms.ts'
import { sendPage } from '../pages/page.ts'
import { Confirmation } from '../schemas.ts'
import { createLinks, type LinkKind } from './links.ts'
import * as schemas from './sign-in-schemas.ts'

const tags = ['auth']

const routes: FastifyPluginAsyncTypebox = async app => {
  const { fn } = app
  const links = createLinks(app.config)
  const root = new URL(app.config.baseUrl).pathname.replace(/\/$/, '')
  acceptForms(app)

  app.delete(
    '/v1/auth/me',
    {
      config: { scope: 'account', errors: ['deletion_already_pending'] },
      schema: {
        tags,
        operationId: 'deleteAccount',
        summary: 'Delete the account in 24 hours; a link in a mail cancels this',
        description: 'During these 24 hours everything goes on; then the account and all its data are removed.',
        headers: Confirmation,
        response: { 202: schemas.DeletionRequested }
      }
    },
    async (request, reply) =>
      reply.code(202).send({
        can_cancel_until: await fn.requestDeletion(request.caller),
        grace_period_hours: 24,
        message: 'The account and all its data will be deleted in 24 hours. To cancel, open the link in the mail we sent you.'
      })
  )

  app.get(
    '/auth/cancel-deletion',
    { config: { public: true }, schema: { hide: true, querystring: schemas.TokenLink }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      const { token } = request.query
      const { status, due_at } = await fn.deletionStatus({ deletion_id: idIn('cancel-deletion', token) })
      if (status === 'cancelled') throw new ApiError('already_cancelled', 'This deletion is already cancelled.')
      if (status === 'completed' || !due_at) throw new ApiError('deletion_already_completed', 'The account has been deleted.')
      return sendPage(reply, 200, pages.confirmCancel({ action: `${root}/v1/auth/me/cancel-deletion`, token, due_at }))
    }
  )

  app.post(
    '/v1/auth/me/cancel-deletion',
    {
      config: { public: true, errors: ['not_found', 'already_cancelled', 'deletion_already_completed'] },
      schema: {
        tags,
        operationId: 'cancelDeletion',
        summary: 'Cancel the deletion of an account',
        description: 'The token is in the link of the mail.',
        consumes: jsonOrForm,
        body: schemas.CancelDeletion,
        response: { 200: schemas.DeletionCancelled }
      },
      errorHandler: pageErrors(problem)
    },
    async (request, reply) => {
      await fn.cancelDeletion({ deletion_id: idIn('cancel-deletion', request.body.token), ip: request.ip })
      return asksForPage(request) ? sendPage(reply, 200, pages.deletionCancelled) : { cancelled: true }
    }
  )

  app.get(
    '/auth/confirm-email',
    { config: { public: true }, schema: { hide: true, querystring: schemas.TokenLink }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      const { token } = request.query
      const isConfirmed = await fn.isEmailConfirmed({ account_id: idIn('confirm-email', token) })
      return sendPage(reply, 200, isConfirmed ? pages.emailConfirmed : pages.confirmEmail({ action: `${root}/auth/confirm-email`, token }))
    }
  )

  app.post(
    '/auth/confirm-email',
    { config: { public: true }, schema: { hide: true, body: schemas.TokenForm }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      await fn.confirmEmail({ account_id: idIn('confirm-email', request.body.token) })
      return sendPage(reply, 200, pages.emailConfirmed)
    }
  )

  app.get(
    '/auth/confirm-address',
    { config: { public: true }, schema: { hide: true, querystring: schemas.TokenLink }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      const { token } = request.query
      idIn('confirm-address', token)
      return sendPage(reply, 200, pages.confirmAddress({ action: `${root}/auth/confirm-address`, token }))
    }
  )

  app.post(
    '/auth/confirm-address',
    { config: { public: true }, schema: { hide: true, body: schemas.TokenForm }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      await fn.confirmAddress({ address_id: idIn('confirm-address', request.body.token) })
      return sendPage(reply, 200, pages.emailConfirmed)
    }
  )

  app.get(
    '/auth/not-me',
    { config: { public: true }, schema: { hide: true, querystring: schemas.TokenLink }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      const { token } = request.query
      const account_id = idIn('not-me', token)
      const [account, due_at] = await Promise.all([fn.disownableAccount({ account_id }), fn.disownedUntil({ account_id })])
      if (due_at) return sendPage(reply, 200, pages.disownedBefore(due_at))
      if (!account) throw new ApiError('not_found', 'The account no longer exists, or this link is older than 30 days.')
      return sendPage(reply, 200, pages.confirmDisown({ action: `${root}/auth/not-me`, token, account }))
    }
  )

  app.post(
    '/auth/not-me',
    { config: { public: true }, schema: { hide: true, body: schemas.TokenForm }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      const due_at = await fn.disownAccount({ account_id: idIn('not-me', request.body.token), ip: request.ip })
      return sendPage(reply, 200, pages.disowned(due_at))
    }
  )

  function idIn(kind: LinkKind, token: string): string {
    const id = links.read(kind, token)
    if (!id) throw new ApiError('not_found', 'Invalid token. Copy the complete token from the link in the mail.')
    return id
  }
}

export default routes

const problem = ({ code }: ApiError) =>
  code === 'not_found'
    ? pages.linkDead
    : code === 'already_cancelled'
      ? pages.alreadyCancelled
      : code === 'deletion_already_completed'
        ? pages.deletionCompleted
        : undefined
