/** Support tickets. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { readPage } from '../database/read-page.ts'
import { ApiError } from '../errors.ts'
import * as schemas from './schemas.ts'
import { hasTracker } from './tracker.ts'

const config = { scope: 'account' } as const
const columns = ['ticket_id', 'subject', 'severity', 'type', 'status', 'created_at', 'updated_at'] as const
type Ticket = Static<typeof schemas.Ticket>

const routes: FastifyPluginAsyncTypebox = async app => {
  const tracked = hasTracker(app.config)

  app.post(
    '/v1/support',
    {
      config: { ...config, errors: ['account_too_new', 'no_active_cue'] },
      bodyLimit: 32 * 1024, // the longest message with every character escaped
      schema: {
        operationId: 'createTicket',
        summary: 'Open a support ticket',
        description: 'Accounts that are too new, or have no active cue, are refused.',
        body: schemas.CreateTicket,
        response: { 200: schemas.Received }
      }
    },
    async request => {
      const ticket_id = await app.fn.createTicket({ ...request.body, tracked, ...request.caller })
      return {
        status: 'received' as const,
        ticket_id,
        ticket_status: 'open' as const,
        message: `Ticket received. GET /v1/support/${ticket_id} shows its status.`
      }
    }
  )

  app.get(
    '/v1/support',
    {
      config: { ...config, isList: true },
      schema: {
        operationId: 'listTickets',
        summary: 'List support tickets, newest first',
        description: 'Without their messages.',
        querystring: schemas.ListTickets,
        response: { 200: schemas.Tickets }
      }
    },
    async request => {
      const source = app.db.selectFrom('ticket_view').where('account_id', '=', request.caller.account_id)
      const query = source.select(columns).orderBy('ticket_id', 'desc').$castTo<Ticket>()
      const { rows: tickets, ...page } = await readPage(query, request.query)
      return { tickets, ...page }
    }
  )

  app.get(
    '/v1/support/:ticket_id',
    {
      config,
      schema: {
        operationId: 'getTicket',
        summary: 'Get a support ticket',
        description: 'With its message.',
        params: schemas.TicketParams,
        response: { 200: schemas.TicketDetail }
      }
    },
    async request =>
      app.db
        .selectFrom('ticket_view')
        .select([...columns, 'message'])
        .where('ticket_id', '=', request.params.ticket_id)
        .where('account_id', '=', request.caller.account_id)
        .$castTo<Static<typeof schemas.TicketDetail>>()
        .executeTakeFirstOrThrow(() => new ApiError('ticket_not_found', 'Ticket not found in this account.'))
  )
}

export default routes
