/** Dialogs of the page Keys and secrets: creating and renaming keys, showing and rotating secrets. */
import { useState } from 'preact/hooks'
import type { AlertWebhookSecret, CreatedKey, Key, WebhookSecret } from '../../../client/types.ts'
import { call, get, post } from '../api.ts'
import { useMay } from '../session.ts'
import { Code } from '../ui/basics.tsx'
import { Confirm, Dialog, show } from '../ui/dialog.tsx'
import { CheckField, SelectField, TextField, useText } from '../ui/form.tsx'

export const secretTexts = {
  webhook: { name: 'Webhook secret', path: '/v1/auth/webhook-secret' },
  alert: { name: 'Alert secret', path: '/v1/auth/alert-webhook-secret' }
} as const
export type SecretKind = keyof typeof secretTexts
type Secret = Partial<WebhookSecret & AlertWebhookSecret>
const textOf = ({ webhook_secret, alert_webhook_secret }: Secret): string => webhook_secret ?? alert_webhook_secret ?? ''

export const readSecret = async (kind: SecretKind): Promise<string> => textOf(await get<Secret>(secretTexts[kind].path))

/** Shows a secret in a dialog, instead of the one that is there. */
export const reveal = (title: string, text: string): void =>
  show(
    <Dialog title={title}>
      <Code text={text} label={title} wrap />
      <p class="hint">Keep it in a safe place.</p>
    </Dialog>
  )

export const RotateSecret = ({ secret }: { secret: SecretKind }) => {
  const { name, path } = secretTexts[secret]
  const overlap = useText('86400')
  const rotate = async () => {
    const options = { query: { overlap_seconds: overlap.value }, headers: { 'x-confirm-destructive': 'true' } }
    reveal(`New ${name.toLowerCase()}`, textOf(await call<Secret>('POST', `${path}/regenerate`, options)))
  }
  return (
    <Confirm title={`Rotate the ${name.toLowerCase()}`} label="Rotate" kind="danger" action={rotate}>
      <p>A new secret is made and shown. Until the old one ends, both sign, so that receivers accept either.</p>
      <SelectField
        label="The old secret ends"
        {...overlap}
        options={[
          { value: '86400', label: 'in 24 hours' },
          { value: '3600', label: 'in an hour' },
          { value: '0', label: 'immediately' }
        ]}
      />
    </Confirm>
  )
}

export const RenameKey = ({ of, onDone }: { of: Key; onDone: () => void }) => {
  const label = useText(of.label)
  const rename = () => call('PATCH', `/v1/auth/keys/${of.id}`, { body: { label: label.value.trim() } }).then(onDone)
  return (
    <Confirm title={`Rename ${of.label}`} label="Rename" action={rename} done="Renamed">
      <TextField label="Name" {...label} required maxLength={100} />
    </Confirm>
  )
}

const scopeTexts = {
  read: 'see cues, executions, workers and alerts',
  write: 'create and change cues, fire, replay, verify',
  worker: 'claim executions and report outcomes',
  account: 'keys, secrets, settings and the plan',
  approve: 'decide about runs that wait for approval'
} as const
type Scope = keyof typeof scopeTexts

export const CreateKey = ({ onDone }: { onDone: () => void }) => {
  const label = useText()
  const [scopes, setScopes] = useState<Scope[]>(['read', 'write', 'worker'])
  const mayApprove = useMay('approve')
  const offered = (Object.keys(scopeTexts) as Scope[]).filter(scope => scope !== 'approve' || mayApprove)
  const create = async () => {
    const { label: name, api_key } = await post<CreatedKey>('/v1/auth/keys', { label: label.value.trim(), scopes })
    reveal(`New key: ${name}`, api_key)
    onDone()
  }
  return (
    <Confirm title="Create a key" label="Create" action={create}>
      <TextField label="Name" {...label} required maxLength={100} placeholder="report worker" />
      <fieldset>
        <legend>What it may do</legend>
        {offered.map(scope => (
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
