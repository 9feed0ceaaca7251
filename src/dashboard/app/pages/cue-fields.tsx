/** The fields of a cue besides its schedule. */

import { serviceUrl } from '../root.ts'
import { Panel } from '../ui/basics.tsx'
import { AreaField, CheckField, Choice, type Option, SelectField, TextField } from '../ui/form.tsx'
import { fieldsOf } from './draft-field.tsx'
import type { FormProps } from './schedule-fields.tsx'

export const AboutFields = (props: FormProps) => {
  const field = fieldsOf(props)
  return (
    <Panel title="What">
      {field(TextField, 'name', {
        label: 'Name',
        required: true,
        maxLength: 255,
        placeholder: 'daily report',
        autofocus: true,
        at: ['name']
      })}
      {field(TextField, 'description', { label: 'Description (optional)', maxLength: 2000, at: ['description'] })}
      <div class="two">
        {field(TextField, 'key', {
          label: 'Key (optional)',
          mono: true,
          maxLength: 255,
          spellcheck: false,
          hint: 'Your own identifier, unique in the account.',
          at: ['key']
        })}
        {field(TextField, 'tags', { label: 'Tags (optional)', hint: 'Up to 10, separated by commas.', at: ['tags'] })}
      </div>
    </Panel>
  )
}

const EchoHint = ({ set }: Pick<FormProps, 'set'>) => (
  <p class="hint">
    {'To try it without a server, use the echo buffer: '}
    <button type="button" class="chip" onClick={() => set({ url: `${serviceUrl}/v1/echo/dashboard-${crypto.randomUUID()}` })}>
      fill in its address
    </button>
  </p>
)

export const DeliveryFields = (props: FormProps) => {
  const { draft, set, isNew } = props
  const field = fieldsOf(props)
  return (
    <Panel title="Where">
      {isNew &&
        field(Choice, 'transport', {
          label: 'Transport',
          options: [
            { value: 'webhook', label: 'Webhook: pgcue calls you' },
            { value: 'worker', label: 'Worker: you claim it' }
          ]
        })}
      {draft.transport === 'webhook' ? (
        <div class="stack">
          <div class="two wide-first">
            {field(TextField, 'url', {
              label: 'Callback URL',
              type: 'url',
              required: true,
              mono: true,
              placeholder: 'https://example.com/hook',
              at: ['callback.url', 'callback_url', 'callback']
            })}
            {field(SelectField, 'method', {
              label: 'Method',
              options: ['POST', 'PUT', 'PATCH', 'GET'].map(value => ({ value, label: value }))
            })}
          </div>
          {isNew && <EchoHint set={set} />}
        </div>
      ) : (
        <p class="hint">Workers claim its executions by the task in the payload.</p>
      )}
      {field(AreaField, 'payload', {
        label: 'Payload',
        mono: true,
        rows: 5,
        hint: 'Any JSON, delivered with each execution. For workers, its member "task" names the task.',
        at: ['payload']
      })}
    </Panel>
  )
}

const verifications: Option[] = [
  { value: '', label: 'not set' },
  { value: 'none', label: 'none' },
  { value: 'require_external_id', label: 'requires an external id' },
  { value: 'require_result_url', label: 'requires a result URL' },
  { value: 'require_artifacts', label: 'requires artifacts' },
  { value: 'manual', label: 'a person decides' }
]
const catchUps: Option[] = [
  { value: 'run_once_if_missed', label: 'run the latest missed slot' },
  { value: 'skip_missed', label: 'skip missed slots' },
  { value: 'replay_all_missed', label: 'run all missed slots' }
]
const overlaps: Option[] = [
  { value: 'allow', label: 'run alongside it' },
  { value: 'skip', label: 'skip the slot' },
  { value: 'queue_one', label: 'queue one run' },
  { value: 'queue_all', label: 'queue all runs' },
  { value: 'cancel_previous', label: 'cancel the previous run' }
]

export const MoreFields = (props: FormProps) => {
  const { draft, set } = props
  const field = fieldsOf(props)
  return (
    <details class="panel more-fields">
      <summary>Advanced: retries, verification, overlap and failures</summary>
      <div class="stack">
        <div class="two">
          {field(TextField, 'attempts', { label: 'Attempts', type: 'number', at: ['retry.max_attempts'] })}
          {field(TextField, 'backoff', { label: 'Minutes between attempts', hint: 'Separated by commas.', at: ['retry.backoff_minutes'] })}
        </div>
        {field(SelectField, 'verification', { label: 'Verification', options: verifications })}
        {field(SelectField, 'catch_up', { label: 'After an outage', options: catchUps })}
        {field(SelectField, 'overlap', { label: 'If the previous run has not ended', options: overlaps })}
        <CheckField label="Email me when an execution fails" checked={draft.email} onInput={email => set({ email })} />
        {field(TextField, 'pause_after', {
          label: 'Pause after failures in a row',
          type: 'number',
          hint: 'Leave it empty to never pause.',
          at: ['on_failure.pause_after']
        })}
      </div>
    </details>
  )
}
