/** What was reported, and the decision of a person. */

import { useState } from 'preact/hooks'
import type { Execution } from '../../../client/types.ts'
import { post } from '../api.ts'
import { h } from '../h.ts'
import { useMay } from '../session.ts'
import { Badge, Button, Code, Facts } from '../ui/basics.ts'
import { act, Confirm } from '../ui/dialog.ts'
import { TextField } from '../ui/form.ts'
import { When } from '../ui/when.ts'

type Outcome = NonNullable<Execution['outcome']>

/** A link for web addresses only: the text comes from other people's programs. */
const WebLink = ({ url }: { url: string }) =>
  /^https?:\/\//i.test(url) && URL.canParse(url)
    ? h('a', { href: url, target: '_blank', rel: 'noreferrer noopener', class: 'break' }, url)
    : h('span', { class: 'break' }, url)

const Json = ({ name, value }: { name: string; value: unknown }) =>
  value === undefined || value === null
    ? null
    : h('div', {}, h('p', { class: 'soft' }, name), h(Code, { text: JSON.stringify(value, null, 2), label: name.toLowerCase() }))

export const Evidence = ({ outcome }: { outcome: Outcome }) => {
  const {
    success,
    result,
    error,
    summary,
    external_id,
    result_url,
    result_ref,
    result_type,
    artifacts,
    metadata,
    recorded_at,
    verification_reason
  } = outcome
  return h(
    'div',
    { class: 'stack' },
    h(Facts, {
      items: [
        [
          'Reported',
          h(
            'span',
            {},
            h(Badge, { tone: success ? 'good' : 'bad' }, success ? 'success' : 'failure'),
            ' ',
            h(When, { at: recorded_at, only: 'relative' })
          )
        ],
        ['Summary', summary],
        ['Result', result],
        ['Error', error],
        ['Kind of result', result_type],
        ['External id', external_id && h('span', { class: 'mono break' }, external_id)],
        ['Link', result_url && h(WebLink, { url: result_url })],
        ['Reference', result_ref && h('span', { class: 'mono break' }, result_ref)],
        ['Reason', verification_reason]
      ]
    }),
    h(Json, { name: 'Artifacts', value: artifacts }),
    h(Json, { name: 'Metadata', value: metadata })
  )
}

export const approve = (id: string) => act(() => post(`/v1/executions/${id}/verify`, { valid: true }), 'Approved')

export const RejectDialog = ({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) => {
  const [reason, setReason] = useState('')
  return h(
    Confirm,
    {
      title: 'Reject the outcome',
      label: 'Reject',
      kind: 'danger',
      onClose,
      done: 'Rejected',
      action: async () => {
        await post(`/v1/executions/${id}/verify`, { valid: false, ...(reason.trim() && { reason: reason.trim() }) })
        onDone()
      }
    },
    h(TextField, { label: 'Reason', value: reason, onInput: setReason, maxLength: 2000, hint: 'Stored with the outcome.' })
  )
}

export const VerifyButtons = ({ id, onDone }: { id: string; onDone: () => void }) => {
  const [isOpen, open] = useState(false)
  if (!useMay('write')) return null
  return h(
    'div',
    { class: 'actions' },
    h(Button, { label: 'Approve', icon: 'check', kind: 'main', onClick: () => void approve(id).then(onDone) }),
    h(Button, { label: 'Reject', icon: 'close', onClick: () => open(true) }),
    isOpen && h(RejectDialog, { id, onDone, onClose: () => open(false) })
  )
}
