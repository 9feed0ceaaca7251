/** Support tickets on the wire. */
import { Type } from 'typebox'
import { enums } from '../catalog.ts'
import { Listed, orElse, Page, Strict, Timestamp } from '../schemas.ts'

const severities = enums.ticketSeverity
const types = enums.ticketType
const statuses = enums.ticketStatus

export const CreateTicket = Strict({
  subject: Type.String({ minLength: 10, maxLength: 200, pattern: '\\S' }),
  message: Type.String({ minLength: 30, maxLength: 5000, pattern: '\\S' }),
  severity: Type.Enum([...severities], { default: 'medium' }),
  type: Type.Enum([...types], { default: 'bug' })
})
export const Received = Type.Object({
  status: Type.Enum(['received']),
  ticket_id: Type.Integer(),
  ticket_status: Type.Enum(['open']),
  message: Type.String()
})

export const TicketParams = Type.Object({
  ticket_id: orElse('ticket_not_found', 'Ticket not found in this account.', Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 }))
})
export const Ticket = Type.Object({
  ticket_id: Type.Integer(),
  subject: Type.String(),
  severity: Type.Enum([...severities]),
  type: Type.Enum([...types]),
  status: Type.Enum([...statuses]),
  created_at: Timestamp,
  updated_at: Timestamp
})
export const TicketDetail = Type.Object({ ...Ticket.properties, message: Type.String() })
export const ListTickets = Type.Object(Page())
export const Tickets = Type.Object({
  tickets: Type.Array(Ticket),
  ...Listed
})
