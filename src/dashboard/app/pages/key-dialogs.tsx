/** Dialogs of the page Keys and secrets: creating and renaming keys, showing and rotating secrets. */
import { useState } from 'preact/hooks'
import type { AlertWebhookSecret, CreatedKey, Key, WebhookSecret } from '../../../client/types.ts'
import { call, get, post } from '../api.ts'
import { Confirm } from '../ui/dialog.tsx'
import { CheckField, SelectField, TextField } from '../ui/form.tsx'

export const secretTexts = {
  webhook: { name: 'Webhook secret', path: '/v1/auth/webhook-secret' },
  alert: { name: 'Alert secret', path: '/v1/auth/alert-webhook-secret' }
} as const
export type SecretKind = keyof typeof secretTexts
type Secret = Partial<WebhookSecret & AlertWebhookSecret>
const textOf = ({ webhook_secret, alert_webhook_secret }: Secret): string => webhook_secret ?? alert_webhook_secret ?? ''

export const readSecret = async (kind: SecretKind): Promise<string> => textOf(await get<Secret>(secretTexts[kind].path))

export const RotateSecret = ({ secret, onClose, onDone }: { secret: SecretKind; onClose: () => void; onDone: (text: string) => void }) => {
  const { name, path } = secretTexts[secret]
  const [overlap, setOverlap] = useState('86400')
  const rotate = async () =>
    onDone(
      textOf(
        await call<Secret>('POST', `${path}/regenerate`, {
          query: { overlap_seconds: overlap },
          headers: { 'x-confirm-destructive': 'true' }
        })
      )
    )
  return (
    <Confirm title={`Rotate the ${name.toLowerCase()}`} label="Rotate" kind="danger" onClose={onClose} action={rotate} staysOpen>
      <p>A new secret is made and shown. Until the old one ends, both sign, so that receivers accept either.</p>
      <SelectField
        label="The old secret ends"
        value={overlap}
        onInput={setOverlap}
        options={[
          { value: '86400', label: 'in 24 hours' },
          { value: '3600', label: 'in an hour' },
          { value: '0', label: 'immediately' }
        ]}
      />
    </Confirm>
  )
}

export const RenameKey = ({ of, onClose, onDone }: { of: Key; onClose: () => void; onDone: () => void }) => {
  const [label, setLabel] = useState(of.label)
  const rename = () => call('PATCH', `/v1/auth/keys/${of.id}`, { body: { label: label.trim() } }).then(onDone)
  return (
    <Confirm title={`Rename ${of.label}`} label="Rename" onClose={onClose} action={rename} done="Renamed">
      <TextField label="Name" value={label} onInput={setLabel} required maxLength={100} />
    </Confirm>
  )
}

const scopeTexts = {
  read: 'see cues, executions, workers and alerts',
  write: 'create and change cues, fire, replay, verify',
  worker: 'claim executions and report outcomes',
  account: 'keys, secrets, settings and the plan'
} as const
type Scope = keyof typeof scopeTexts

export const CreateKey = ({ onClose, onCreated }: { onClose: () => void; onCreated: (key: CreatedKey) => void }) => {
  const [label, setLabel] = useState('')
  const [scopes, setScopes] = useState<Scope[]>(['read', 'write', 'worker'])
  const create = async () => onCreated(await post<CreatedKey>('/v1/auth/keys', { label: label.trim(), scopes }))
  return (
    <Confirm title="Create a key" label="Create" onClose={onClose} action={create} staysOpen>
      <TextField label="Name" value={label} onInput={setLabel} required maxLength={100} placeholder="report worker" />
      <fieldset>
        <legend>What it may do</legend>
        {(Object.keys(scopeTexts) as Scope[]).map(scope => (
          <CheckField
            key={scope}
            label={scope}
            hint={scopeTexts[scope]}
            checked={scopes.includes(scope)}
            onInput={is => setScopes(is ? [...scopes, scope] : scopes.filter(other => other !== scope))}
          />
        ))}
      </fieldset>
    </Confirm>
  )
}
