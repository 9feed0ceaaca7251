/** Account deletion: requested by the owner, cancelled by mail, or requested by someone whose address another person registered. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { ApiError } from '../errors.ts'
import * as pages from '../pages/account.ts'
import { acceptForms, asksForPage, jsonOrForm, pageErrors } from '../pages/forms.ts'
import { type Page, sendPage } from '../pages/page.ts'
import { Confirmation } from '../schemas.ts'
import { createLinks, type LinkKind } from './links.ts'
import * as schemas from './sign-in-schemas.ts'

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

  /** The page of a mailed link, which changes nothing. */
  const page = (url: string, kind: LinkKind, show: (id: string, token: string) => Promise<Page>) =>
    app.get<{ Querystring: Static<typeof schemas.TokenLink> }>(
      url,
      { config: { public: true }, schema: { hide: true, querystring: schemas.TokenLink }, errorHandler: pageErrors(problem) },
      async ({ query: { token } }, reply) => sendPage(reply, 200, await show(idIn(kind, token), token))
    )
  /** The form of such a page. */
  const form = (url: string, kind: LinkKind, act: (id: string, ip: string) => Promise<Page>) =>
    app.post<{ Body: Static<typeof schemas.TokenForm> }>(
      url,
      { config: { public: true }, schema: { hide: true, body: schemas.TokenForm }, errorHandler: pageErrors(problem) },
      async ({ body, ip }, reply) => sendPage(reply, 200, await act(idIn(kind, body.token), ip))
    )

  page('/auth/cancel-deletion', 'cancel-deletion', async (deletion_id, token) => {
    const { status, due_at } = await fn.deletionStatus({ deletion_id })
    if (status === 'cancelled') throw new ApiError('already_cancelled', 'This deletion is already cancelled.')
    if (status === 'completed' || !due_at) throw new ApiError('deletion_already_completed', 'The account has been deleted.')
    return pages.confirmCancel({ action: `${root}/v1/auth/me/cancel-deletion`, token, due_at })
  })

  app.post(
    '/v1/auth/me/cancel-deletion',
    {
      config: { public: true, errors: ['not_found', 'already_cancelled', 'deletion_already_completed'] },
      schema: {
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

  page('/auth/confirm-email', 'confirm-email', async (account_id, token) => {
    const isConfirmed = await fn.isEmailConfirmed({ account_id })
    return isConfirmed ? pages.emailConfirmed : pages.confirmEmail({ action: `${root}/auth/confirm-email`, token })
  })
  form('/auth/confirm-email', 'confirm-email', async account_id => {
    await fn.confirmEmail({ account_id })
    return pages.emailConfirmed
  })

  page('/auth/confirm-address', 'confirm-address', async (_, token) =>
    pages.confirmAddress({ action: `${root}/auth/confirm-address`, token })
  )
  form('/auth/confirm-address', 'confirm-address', async address_id => {
    await fn.confirmAddress({ address_id })
    return pages.emailConfirmed
  })

  page('/auth/not-me', 'not-me', async (account_id, token) => {
    const [account, due_at] = await Promise.all([fn.disownableAccount({ account_id }), fn.disownedUntil({ account_id })])
    if (due_at) return pages.disownedBefore(due_at)
    if (!account) throw new ApiError('not_found', 'The account no longer exists, or this link is older than 30 days.')
    return pages.confirmDisown({ action: `${root}/auth/not-me`, token, account })
  })
  form('/auth/not-me', 'not-me', async (account_id, ip) => pages.disowned(await fn.disownAccount({ account_id, ip })))

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
