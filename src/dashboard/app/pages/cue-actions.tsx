/** Firing, pausing and deleting a cue. */

import { useState } from 'preact/hooks'
import type { CueDetail, FiredExecution } from '../../../client/types.ts'
import { call, Failure, parseExactly, post } from '../api.ts'

import { to, usePlace } from '../router.ts'
import { Confirm } from '../ui/dialog.tsx'
import { AreaField, Choice, TextField } from '../ui/form.tsx'
import { say } from '../ui/toast.tsx'

type Props = { cue: CueDetail; onClose: () => void; onDone: () => void }

/** The text as it is, which keeps numbers of any length. */
const parsed = (text: string): unknown => {
  try {
    return parseExactly(text)
  } catch (error) {
    throw new Failure(422, 'validation_error', `Not valid JSON: ${(error as Error).message}`)
  }
}

export const FireDialog = ({ cue, onClose, onDone }: Props) => {
  const [text, setText] = useState('')
  const [strategy, setStrategy] = useState('merge')
  const fire = async () => {
    const body = text.trim() === '' ? {} : { merge_strategy: strategy, payload_override: parsed(text) }
    const { id } = await post<FiredExecution>(`/v1/cues/${cue.id}/fire`, body, { 'idempotency-key': crypto.randomUUID() })
    say(`${cue.name} was fired.`, 'good', { href: to(`/executions/${id}`), text: 'Show the execution' })
    onDone()
  }
  return (
    <Confirm title={`Fire ${cue.name} now`} label="Fire" onClose={onClose} action={fire}>
      <p>
        {cue.transport === 'worker' ? 'A worker can claim it immediately.' : 'It is delivered immediately. Its schedule does not change.'}
      </p>
      <AreaField
        label="Payload override (optional)"
        value={text}
        onInput={setText}
        mono
        rows={4}
        hint="JSON. Leave it empty to send the payload of the cue."
      />
      {text.trim() !== '' && (
        <Choice
          label="How to apply it"
          value={strategy}
          onInput={setStrategy}
          options={[
            { value: 'merge', label: 'Merge into the payload' },
            { value: 'replace', label: 'Replace the payload' }
          ]}
        />
      )}
    </Confirm>
  )
}

export const PauseDialog = ({ cue, onClose, onDone }: Props) => {
  const [reason, setReason] = useState('')
  const [until, setUntil] = useState('')
  const pause = async () => {
    const at = until === '' ? undefined : new Date(until).toISOString()
    await post(`/v1/cues/${cue.id}/pause`, { ...(reason.trim() && { reason: reason.trim() }), ...(at && { until: at }) })
    onDone()
  }
  return (
    <Confirm title={`Pause ${cue.name}`} label="Pause" onClose={onClose} action={pause} done="The cue is paused">
      <p>It does not run until you resume it. Existing executions continue.</p>
      <TextField label="Reason (optional)" value={reason} onInput={setReason} maxLength={500} />
      <TextField
        label="Until (optional)"
        type="datetime-local"
        value={until}
        onInput={setUntil}
        hint="In your time zone. Leave it empty to pause until you resume it."
      />
    </Confirm>
  )
}

export const DeleteDialog = ({ cue, onClose }: Props) => {
  const { go } = usePlace()
  const remove = () => call('DELETE', `/v1/cues/${cue.id}`, { headers: { 'if-match': '*' } }).then(() => go(to('/cues')))
  return (
    <Confirm title={`Delete ${cue.name}`} label="Delete" kind="danger" onClose={onClose} done="The cue is deleted" action={remove}>
      <p>The cue and its history are removed. This cannot be undone.</p>
    </Confirm>
  )
}
