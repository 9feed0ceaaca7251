/** Support tickets: writing one, and how far each is. */
import { useState } from 'preact/hooks'
import type { Ticket, Tickets, Usage } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useRead } from '../query.ts'
import { setQuery, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { serviceNow } from '../time.ts'
import { Badge, Button, Empty, Facts, Loading, Problem } from '../ui/basics.tsx'
import { Dialog, useAction } from '../ui/dialog.tsx'
import { AreaField, SelectField, TextField } from '../ui/form.tsx'
import { NotAllowed, Page } from '../ui/frame.tsx'
import { OffsetList, useOffset } from '../ui/list.tsx'
import { say } from '../ui/toast.tsx'
import { When } from '../ui/when.tsx'
import { errorOf, errorsOf } from './form-errors.ts'
import { supportCalls } from './teach.ts'

const tones = { open: 'info', in_progress: 'warn', resolved: 'good', closed: 'quiet' } as const
const words = (text: string) => text.replaceAll('_', ' ').replaceAll('-', ' ')
const optionsOf = (values: string[]) => values.map(value => ({ value, label: words(value) }))

export const Support = () => {
  const mayWrite = useMay('account')
  const me = useMe()
  const read = useRead<Tickets>(mayWrite ? '/v1/support' : undefined, { limit: 50, offset: useOffset() })
  const usage = useRead<Usage>(mayWrite ? '/v1/usage' : undefined, {}, { repeat: false }).data
  const [isWriting, write] = useState(false)
  const opened = usePlace().query.get('ticket')
  if (!mayWrite) return <NotAllowed title="Support" what="Support tickets need" scope="account" />
  // The API refuses tickets of very new accounts, and of those without an active cue.
  const isNew = serviceNow() - Date.parse(me.created_at) < 3_600_000
  const refusal = isNew
    ? 'Accounts can open tickets one hour after registration.'
    : usage?.cues.active === 0
      ? 'A ticket requires an active cue. Create or resume one first.'
      : undefined
  return (
    <Page
      title="Support"
      read={read}
      actions={
        <Button label="Open a ticket" icon="plus" kind="main" disabled={refusal !== undefined || !usage} onClick={() => write(true)} />
      }
    >
      {refusal && <p class="problem warn">{refusal}</p>}
      <OffsetList<Tickets>
        read={read}
        caption="Tickets"
        columns={['Ticket', 'Status', 'Severity', 'Opened', 'Changed']}
        noun="ticket"
        empty={
          <Empty
            title="No tickets"
            text="A ticket reaches the people who run this service, up to five an hour. Keys and secrets in it are masked. Open one here, or with a call:"
            calls={supportCalls(me)}
          />
        }
        rows={({ tickets }) =>
          tickets.map(one => (
            <tr key={one.ticket_id} data-row>
              <td class="cell-main">
                <button type="button" class="link name" onClick={() => setQuery({ ticket: String(one.ticket_id) })}>
                  {one.subject}
                </button>
                <div class="under">{`#${one.ticket_id} · ${words(one.type)}`}</div>
              </td>
              <td>
                <Badge tone={tones[one.status]}>{words(one.status)}</Badge>
              </td>
              <td>{one.severity}</td>
              <td>
                <span class="phone-only">{'opened '}</span>
                <When at={one.created_at} only="relative" />
              </td>
              <td>
                <span class="phone-only">{'changed '}</span>
                <When at={one.updated_at} only="relative" />
              </td>
            </tr>
          ))
        }
      />
      {opened && <TicketDialog id={opened} onClose={() => setQuery({ ticket: undefined })} />}
      {isWriting && <NewTicket onClose={() => write(false)} onDone={read.reload} />}
    </Page>
  )
}

const TicketDialog = ({ id, onClose }: { id: string; onClose: () => void }) => {
  const { data, failure } = useRead<Ticket>(`/v1/support/${encodeURIComponent(id)}`)
  return (
    <Dialog title={data ? `Ticket ${data.ticket_id}` : 'Ticket'} onClose={onClose} wide>
      <Problem failure={failure} />
      {!data ? (
        !failure && <Loading lines={3} />
      ) : (
        <>
          <h3>{data.subject}</h3>
          <Facts
            items={[
              ['Status', <Badge tone={tones[data.status]}>{words(data.status)}</Badge>],
              ['Severity', data.severity],
              ['Type', words(data.type)],
              ['Opened', <When at={data.created_at} />],
              ['Changed', <When at={data.updated_at} />]
            ]}
          />
          <p class="message">{data.message}</p>
        </>
      )}
    </Dialog>
  )
}

const NewTicket = ({ onClose, onDone }: { onClose: () => void; onDone: () => void }) => {
  const [draft, setDraft] = useState({ subject: '', message: '', severity: 'medium', type: 'bug' })
  const { busy, failure, run } = useAction()
  const errors = errorsOf(failure)
  const set = (changes: Partial<typeof draft>) => setDraft(old => ({ ...old, ...changes }))
  const submit = async (event: Event) => {
    event.preventDefault()
    const isSent = await run(async () => {
      const { ticket_id } = await post<{ ticket_id: number }>('/v1/support', draft)
      say(`Ticket ${ticket_id} is open.`)
    })
    if (!isSent) return
    onDone()
    onClose()
  }
  return (
    <Dialog title="Open a ticket" onClose={onClose} wide>
      <form onSubmit={submit}>
        <TextField
          label="Subject"
          value={draft.subject}
          onInput={subject => set({ subject })}
          required
          maxLength={200}
          hint="At least 10 characters."
          error={errorOf(errors, 'subject')}
        />
        <AreaField
          label="Message"
          value={draft.message}
          onInput={message => set({ message })}
          rows={8}
          hint="What you did, what you expected and what happened, with ids of cues and executions. At least 30 characters."
          error={errorOf(errors, 'message')}
        />
        <div class="two">
          <SelectField
            label="Severity"
            value={draft.severity}
            onInput={severity => set({ severity })}
            options={optionsOf(['low', 'medium', 'high'])}
          />
          <SelectField label="Type" value={draft.type} onInput={type => set({ type })} options={optionsOf(types)} />
        </div>
        {failure && (
          <p class="field-error" role="alert">
            {failure.message}
          </p>
        )}
        <div class="dialog-foot">
          <Button label="Cancel" onClick={onClose} />
          <Button label="Send" kind="main" type="submit" busy={busy} />
        </div>
      </form>
    </Dialog>
  )
}
const types: Ticket['type'][] = ['bug', 'feature-request']
