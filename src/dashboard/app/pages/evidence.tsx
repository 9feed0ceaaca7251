/** What was reported, and the decision of a person. */

import { useState } from 'preact/hooks'
import type { Execution } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useMay } from '../session.ts'
import { Badge, Button, Code, Facts } from '../ui/basics.tsx'
import { act, Confirm } from '../ui/dialog.tsx'
import { TextField } from '../ui/form.tsx'
import { When } from '../ui/when.tsx'

type Outcome = NonNullable<Execution['outcome']>

/** A link for web addresses only: the text comes from other people's programs. */
const WebLink = ({ url }: { url: string }) =>
  /^https?:\/\//i.test(url) && URL.canParse(url) ? (
    <a href={url} target="_blank" rel="noreferrer noopener" class="break">
      {url}
    </a>
  ) : (
    <span class="break">{url}</span>
  )

const Json = ({ name, value }: { name: string; value: unknown }) =>
  value === undefined || value === null ? null : (
    <div>
      <p class="soft">{name}</p>
      <Code text={JSON.stringify(value, null, 2)} label={name.toLowerCase()} />
    </div>
  )

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
  return (
    <div class="stack">
      <Facts
        items={[
          [
            'Reported',
            <span>
              <Badge tone={success ? 'good' : 'bad'}>{success ? 'success' : 'failure'}</Badge> <When at={recorded_at} only="relative" />
            </span>
          ],
          ['Summary', summary],
          ['Result', result],
          ['Error', error],
          ['Kind of result', result_type],
          ['External id', external_id && <span class="mono break">{external_id}</span>],
          ['Link', result_url && <WebLink url={result_url} />],
          ['Reference', result_ref && <span class="mono break">{result_ref}</span>],
          ['Reason', verification_reason]
        ]}
      />
      <Json name="Artifacts" value={artifacts} />
      <Json name="Metadata" value={metadata} />
    </div>
  )
}

export const approve = (id: string) => act(() => post(`/v1/executions/${id}/verify`, { valid: true }), 'Approved')

export const RejectDialog = ({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) => {
  const [reason, setReason] = useState('')
  return (
    <Confirm
      title="Reject the outcome"
      label="Reject"
      kind="danger"
      onClose={onClose}
      done="Rejected"
      action={async () => {
        await post(`/v1/executions/${id}/verify`, { valid: false, ...(reason.trim() && { reason: reason.trim() }) })
        onDone()
      }}
    >
      <TextField label="Reason" value={reason} onInput={setReason} maxLength={2000} hint="Stored with the outcome." />
    </Confirm>
  )
}

export const VerifyButtons = ({ id, onDone }: { id: string; onDone: () => void }) => {
  const [isOpen, open] = useState(false)
  if (!useMay('write')) return null
  return (
    <div class="actions">
      <Button label="Approve" icon="check" kind="main" onClick={() => void approve(id).then(onDone)} />
      <Button label="Reject" icon="close" onClick={() => open(true)} />
      {isOpen && <RejectDialog id={id} onDone={onDone} onClose={() => open(false)} />}
    </div>
  )
}
