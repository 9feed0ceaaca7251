/** Firing, pausing and deleting a cue. */
import { useState } from 'preact/hooks'
import type { CueDetail, FiredExecution, TestResult } from '../../../client/types.ts'
import { call, post } from '../api.ts'
import { to } from '../router.ts'
import { duration } from '../time.ts'
import { Badge, Code } from '../ui/basics.tsx'
import { askToRemove, Confirm } from '../ui/dialog.tsx'
import { AreaField, Choice, TextField, useText } from '../ui/form.tsx'
import { say } from '../ui/toast.tsx'
import { instantOf } from './draft-text.ts'
import { jsonOf, jsonProblem } from './json-text.ts'

type Props = { cue: CueDetail; onDone: () => void }

/** `payload`: of an execution, to begin with. */
export const FireDialog = ({ cue, payload, onDone }: Props & { payload?: unknown }) => {
  const isAgain = payload !== undefined
  const text = useText(isAgain ? JSON.stringify(payload, null, 2) : '')
  const strategy = useText(isAgain ? 'replace' : 'merge')
  const fire = async () => {
    const body = text.value.trim() === '' ? {} : { merge_strategy: strategy.value, payload_override: jsonOf(text.value) }
    const { id } = await post<FiredExecution>(`/v1/cues/${cue.id}/fire`, body, { 'idempotency-key': crypto.randomUUID() })
    say(`${cue.name} was fired.`, 'good', { href: to(`/executions/${id}`), text: 'Show the execution' })
    onDone()
  }
  return (
    <Confirm title={isAgain ? `Run ${cue.name} with this payload` : `Fire ${cue.name} now`} label="Fire" action={fire}>
      <p>
        {cue.transport === 'worker' ? 'A worker can claim it immediately.' : 'It is delivered immediately. Its schedule does not change.'}
      </p>
      <AreaField
        label={isAgain ? 'Payload' : 'Payload override (optional)'}
        {...text}
        error={jsonProblem(text.value)}
        mono
        rows={isAgain ? 10 : 4}
        hint="JSON. Leave it empty to send the payload of the cue."
      />
      {text.value.trim() !== '' && (
        <Choice
          label="How to apply it"
          {...strategy}
          options={[
            { value: 'merge', label: 'Merge into the payload' },
            { value: 'replace', label: 'Replace the payload' }
          ]}
        />
      )}
    </Confirm>
  )
}

/** One request to the cue's address or another one, and its response; nothing is recorded. */
export const TestDialog = ({ cue, payload = cue.payload }: Pick<Props, 'cue'> & { payload?: unknown }) => {
  const url = useText(cue.callback.url ?? '')
  const text = useText(JSON.stringify(payload, null, 2))
  const [result, setResult] = useState<TestResult>()
  const send = async () => {
    const target = url.value === cue.callback.url ? { cue_id: cue.id } : { url: url.value }
    setResult(await post<TestResult>('/v1/cues/test', { ...target, payload: jsonOf(text.value) }))
  }
  return (
    <Confirm title={`Test ${cue.name}`} label="Send" action={send} staysOpen>
      <p>One signed request, as a delivery. Nothing is recorded or retried.</p>
      <TextField label="URL" type="url" {...url} mono hint="The headers of the cue are sent to its own URL only." />
      <AreaField label="Payload" {...text} error={jsonProblem(text.value)} mono rows={6} />
      {result && (
        <div role="status" class="stack">
          <p>
            <Badge tone={result.error ? 'bad' : 'good'}>
              {`${result.error ?? `HTTP ${result.response?.http_status}`}, ${duration(result.duration_ms)}`}
            </Badge>
          </p>
          {result.response?.body && <Code text={result.response.body} label="response" wrap />}
        </div>
      )}
    </Confirm>
  )
}

export const PauseDialog = ({ cue, onDone }: Props) => {
  const [reason, until] = [useText(), useText()]
  const pause = () =>
    post(`/v1/cues/${cue.id}/pause`, { reason: reason.value.trim() || undefined, until: instantOf(until.value) }).then(onDone)
  return (
    <Confirm title={`Pause ${cue.name}`} label="Pause" action={pause} done="The cue is paused">
      <p>It does not run until you resume it. Existing executions continue.</p>
      <TextField label="Reason (optional)" {...reason} maxLength={500} />
      <TextField
        label="Until (optional)"
        type="datetime-local"
        {...until}
        hint="In your time zone. Leave it empty to pause until you resume it."
      />
    </Confirm>
  )
}

export const removeCue = ({ id, name }: CueDetail, onDone: () => void): void =>
  askToRemove({
    title: `Delete ${name}`,
    text: 'The cue and its history are removed. This cannot be undone.',
    done: 'The cue is deleted',
    action: () => call('DELETE', `/v1/cues/${id}`, { headers: { 'if-match': '*' } }).then(onDone)
  })
