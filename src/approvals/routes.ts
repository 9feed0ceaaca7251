/** The page that the link in a request for approval leads to. Opening it changes nothing: scanners of mails and previews of chats do so. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { createLinks } from '../accounts/links.ts'
import { ApiError } from '../errors.ts'
import * as pages from '../pages/approval.ts'
import { acceptForms, pageErrors } from '../pages/forms.ts'
import { sendPage } from '../pages/page.ts'
import { Strict } from '../schemas.ts'
import { sent } from '../templates/sent.ts'

/** A cancelled run has no link any more. */
type Decided = Parameters<typeof pages.decided>[0]

const Link = Type.Object({ token: Type.String() })
const Decision = Strict({
  token: Type.String(),
  decision: Type.Enum(['approved', 'rejected']),
  reason: Type.Optional(Type.String({ maxLength: 500 }))
})

const routes: FastifyPluginAsyncTypebox = async app => {
  const { fn, config } = app
  const links = createLinks(config)
  const action = `${new URL(config.baseUrl).pathname.replace(/\/$/, '')}/approval`
  acceptForms(app)

  const find = async (token: string) => {
    const execution_id = links.read('approval', token)
    const waiting = execution_id && (await fn.linkedApproval({ execution_id }))
    if (!waiting) throw new ApiError('not_found', 'This link has expired or is incomplete.')
    return { execution_id, ...sent(waiting) }
  }
  const problem = ({ code, about }: ApiError) =>
    code === 'not_found' || code === 'execution_not_found' || code === 'invalid_state'
      ? pages.nothingWaits
      : code === 'already_decided'
        ? pages.decided(about!.decision as Decided, false)
        : code === 'approval_protected'
          ? pages.signInToDecide(`${config.baseUrl}/dashboard`)
          : undefined

  app.get(
    '/approval',
    { config: { public: true }, schema: { hide: true, querystring: Link }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      const { token } = request.query
      const { execution_id, by_link, decision, ...waiting } = await find(token)
      const page =
        decision !== null
          ? pages.decided(decision as Decided, false)
          : by_link
            ? pages.decide({ action, token, waiting })
            : pages.signInToDecide(`${config.baseUrl}/dashboard/executions/${execution_id}`)
      return sendPage(reply, 200, page)
    }
  )

  app.post(
    '/approval',
    { config: { public: true }, schema: { hide: true, body: Decision }, errorHandler: pageErrors(problem) },
    async (request, reply) => {
      const { token, decision, reason = '' } = request.body
      const { execution_id, account_id } = await find(token)
      if (decision === 'rejected' && reason.trim() === '') return sendPage(reply, 422, pages.reasonMissing)
      await fn.decideApproval({
        account_id,
        execution_id,
        decision,
        reason: reason.trim() || null,
        source: 'link',
        actor: 'link',
        ip: request.ip
      })
      return sendPage(reply, 200, pages.decided(decision, true))
    }
  )
}

export default routes
