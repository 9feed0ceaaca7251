/** Support tickets: writing one, and how far each is. */
import { useState } from 'preact/hooks'
import type { Ticket, Tickets, Usage } from '../../../client/types.ts'
import { post } from '../api.ts'
import { h } from '../h.ts'
import { useRead } from '../query.ts'
import { setQuery, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { serviceNow } from '../time.ts'
import { Badge, Button, Empty, Facts, Loading, Problem } from '../ui/basics.ts'
import { Dialog, useAction } from '../ui/dialog.ts'
import { AreaField, SelectField, TextField } from '../ui/form.ts'
import { NotAllowed, Page } from '../ui/frame.ts'
import { OffsetList, useOffset } from '../ui/list.ts'
import { say } from '../ui/toast.ts'
import { When } from '../ui/when.ts'
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
  if (!mayWrite) return h(NotAllowed, { title: 'Support', what: 'Support tickets need', scope: 'account' })
  // The API refuses tickets of very new accounts, and of those without an active cue.
  const isNew = serviceNow() - Date.parse(me.created_at) < 3_600_000
  const refusal = isNew
    ? 'Accounts can open tickets one hour after registration.'
    : usage?.cues.active === 0
      ? 'A ticket requires an active cue. Create or resume one first.'
      : undefined
  return h(
    Page,
    {
      title: 'Support',
      read,
      actions: h(Button, {
        label: 'Open a ticket',
        icon: 'plus',
        kind: 'main',
        disabled: refusal !== undefined || !usage,
        onClick: () => write(true)
      })
    },
    refusal && h('p', { class: 'problem warn' }, refusal),
    h(OffsetList<Tickets>, {
      read,
      caption: 'Tickets',
      columns: ['Ticket', 'Status', 'Severity', 'Opened', 'Changed'],
      noun: 'ticket',
      empty: h(Empty, {
        title: 'No tickets',
        text: 'A ticket reaches the people who run this service, up to five an hour. Keys and secrets in it are masked. Open one here, or with a call:',
        calls: supportCalls(me)
      }),
      rows: ({ tickets }) =>
        tickets.map(one =>
          h(
            'tr',
            { key: one.ticket_id, 'data-row': true },
            h(
              'td',
              { class: 'cell-main' },
              h('button', { type: 'button', class: 'link name', onClick: () => setQuery({ ticket: String(one.ticket_id) }) }, one.subject),
              h('div', { class: 'under' }, `#${one.ticket_id} · ${words(one.type)}`)
            ),
            h('td', {}, h(Badge, { tone: tones[one.status] }, words(one.status))),
            h('td', {}, one.severity),
            h('td', {}, h('span', { class: 'phone-only' }, 'opened '), h(When, { at: one.created_at, only: 'relative' })),
            h('td', {}, h('span', { class: 'phone-only' }, 'changed '), h(When, { at: one.updated_at, only: 'relative' }))
          )
        )
    }),
    opened && h(TicketDialog, { id: opened, onClose: () => setQuery({ ticket: undefined }) }),
    isWriting && h(NewTicket, { onClose: () => write(false), onDone: read.reload })
  )
}

const TicketDialog = ({ id, onClose }: { id: string; onClose: () => void }) => {
  const { data, failure } = useRead<Ticket>(`/v1/support/${encodeURIComponent(id)}`)
  return h(
    Dialog,
    { title: data ? `Ticket ${data.ticket_id}` : 'Ticket', onClose, wide: true },
    h(Problem, { failure }),
    !data
      ? !failure && h(Loading, { lines: 3 })
      : [
          h('h3', { key: 'subject' }, data.subject),
          h(Facts, {
            key: 'facts',
            items: [
              ['Status', h(Badge, { tone: tones[data.status] }, words(data.status))],
              ['Severity', data.severity],
              ['Type', words(data.type)],
              ['Opened', h(When, { at: data.created_at })],
              ['Changed', h(When, { at: data.updated_at })]
            ]
          }),
          h('p', { key: 'message', class: 'message' }, data.message)
        ]
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
  return h(
    Dialog,
    { title: 'Open a ticket', onClose, wide: true },
    h(
      'form',
      { onSubmit: submit },
      h(TextField, {
        label: 'Subject',
        value: draft.subject,
        onInput: subject => set({ subject }),
        required: true,
        maxLength: 200,
        hint: 'At least 10 characters.',
        error: errorOf(errors, 'subject')
      }),
      h(AreaField, {
        label: 'Message',
        value: draft.message,
        onInput: message => set({ message }),
        rows: 8,
        hint: 'What you did, what you expected and what happened, with ids of cues and executions. At least 30 characters.',
        error: errorOf(errors, 'message')
      }),
      h(
        'div',
        { class: 'two' },
        h(SelectField, {
          label: 'Severity',
          value: draft.severity,
          onInput: severity => set({ severity }),
          options: optionsOf(['low', 'medium', 'high'])
        }),
        h(SelectField, { label: 'Type', value: draft.type, onInput: type => set({ type }), options: optionsOf(types) })
      ),
      failure && h('p', { class: 'field-error', role: 'alert' }, failure.message),
      h(
        'div',
        { class: 'dialog-foot' },
        h(Button, { label: 'Cancel', onClick: onClose }),
        h(Button, { label: 'Send', kind: 'main', type: 'submit', busy })
      )
    )
  )
}
const types: Ticket['type'][] = ['bug', 'feature-request']
