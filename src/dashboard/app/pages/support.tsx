/** Support tickets: writing one, and how far each is. */
import { useState } from 'preact/hooks'
import type { Ticket, Tickets, Usage } from '../../../client/types.ts'
import { post } from '../api.ts'
import { labelOf, optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { serviceNow } from '../time.ts'
import { Badge, Button, Empty, Facts, Loading, Problem } from '../ui/basics.tsx'
import { Confirm, Dialog, show } from '../ui/dialog.tsx'
import { AreaField, SelectField, TextField } from '../ui/form.tsx'
import { Paged, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import type { Column } from '../ui/table.tsx'
import { say } from '../ui/toast.tsx'
import { When } from '../ui/when.tsx'
import { errorOf, errorsOf } from './form-errors.ts'
import { supportCalls } from './teach.ts'

const tones = { open: 'info', in_progress: 'warn', resolved: 'good', closed: 'quiet' } as const
const Status = ({ of: { status } }: { of: Pick<Ticket, 'status'> }) => <Badge tone={tones[status]}>{labelOf('ticketStatus', status)}</Badge>

const columnsFor = (open: (id: string) => void): Column<Tickets['tickets'][number]>[] => [
  [
    'Ticket',
    ({ ticket_id, subject, type }) => (
      <>
        <button type="button" class="link name" onClick={() => open(String(ticket_id))}>
          {subject}
        </button>
        <div class="under">{`#${ticket_id} · ${labelOf('ticketType', type)}`}</div>
      </>
    ),
    'cell-main'
  ],
  ['Status', ticket => <Status of={ticket} />, 'bare'],
  ['Severity', ({ severity }) => severity],
  ['Opened', ({ created_at }) => <When at={created_at} only="relative" />],
  ['Changed', ({ updated_at }) => <When at={updated_at} only="relative" />]
]

const text =
  'A ticket reaches the people who run this service, up to five an hour. Keys and secrets in it are masked. Open one here, or with a call:'

export const Support = () => {
  const isAllowed = useMay('account')
  const me = useMe()
  const read = useRead<Tickets>(isAllowed ? '/v1/support' : undefined, { limit: 50, offset: useOffset() })
  const usage = useRead<Usage>(isAllowed ? '/v1/usage' : undefined, {}, { repeat: false }).data
  const { query, setQuery } = usePlace()
  const open = (ticket: string | undefined) => setQuery({ ticket })
  // The API refuses tickets of very new accounts, and of those without an active cue.
  let refusal: string | undefined
  if (serviceNow() - Date.parse(me.created_at) < 3_600_000) refusal = 'Accounts can open tickets one hour after registration.'
  else if (usage?.cues.active === 0) refusal = 'A ticket requires an active cue. Create or resume one first.'
  const empty = <Empty title="No tickets" text={text} calls={supportCalls(me)} />
  const isDisabled = refusal !== undefined || !usage
  return (
    <Page
      title="Support"
      read={read}
      needs={{ what: 'Support tickets need', scope: 'account' }}
      actions={
        <Button
          label="Open a ticket"
          icon="plus"
          kind="main"
          disabled={isDisabled}
          onClick={() => show(<NewTicket onDone={read.reload} />)}
        />
      }
    >
      {data => (
        <>
          {refusal && <p class="problem warn">{refusal}</p>}
          <Paged page={data} rows={data.tickets} columns={columnsFor(open)} caption="Tickets" noun="ticket" empty={empty} />
          {query.ticket && <TicketDialog id={query.ticket} onClose={() => open(undefined)} />}
        </>
      )}
    </Page>
  )
}

const TicketDialog = ({ id, onClose }: { id: string; onClose: () => void }) => {
  const { data, failure } = useRead<Ticket>(`/v1/support/${encodeURIComponent(id)}`)
  return (
    <Dialog title={data?.subject ?? 'Ticket'} onClose={onClose} kind="wide">
      <Problem failure={failure} />
      {!data && !failure && <Loading lines={3} />}
      {data && (
        <div class="stack">
          <Facts
            items={[
              ['Ticket', data.ticket_id],
              ['Status', <Status of={data} />],
              ['Severity', data.severity],
              ['Type', labelOf('ticketType', data.type)],
              ['Opened', <When at={data.created_at} />],
              ['Changed', <When at={data.updated_at} />]
            ]}
          />
          <p class="message">{data.message}</p>
        </div>
      )}
    </Dialog>
  )
}

const NewTicket = ({ onDone }: { onDone: () => void }) => {
  const [draft, setDraft] = useState({ subject: '', message: '', severity: 'medium', type: 'bug' })
  const field = (name: keyof typeof draft, label: string) => ({
    label,
    value: draft[name],
    onInput: (text: string) => setDraft(old => ({ ...old, [name]: text }))
  })
  const send = async () => {
    const { ticket_id } = await post<{ ticket_id: number }>('/v1/support', draft)
    say(`Ticket ${ticket_id} is open.`)
  }
  return (
    <Confirm title="Open a ticket" label="Send" action={send} onDone={onDone}>
      {failure => (
        <>
          <TextField
            {...field('subject', 'Subject')}
            required
            maxLength={200}
            hint="At least 10 characters."
            error={errorOf(errorsOf(failure), 'subject')}
          />
          <AreaField
            {...field('message', 'Message')}
            rows={8}
            hint="What you did, what you expected and what happened, with ids of cues and executions. At least 30 characters."
            error={errorOf(errorsOf(failure), 'message')}
          />
          <div class="two">
            <SelectField {...field('severity', 'Severity')} options={optionsOf('ticketSeverity')} />
            <SelectField {...field('type', 'Type')} options={optionsOf('ticketType')} />
          </div>
        </>
      )}
    </Confirm>
  )
}
