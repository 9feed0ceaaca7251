/** API keys and the secrets that sign. */
import { useState } from 'preact/hooks'
import type { Key, RevealedKey } from '../../../client/types.ts'
import { call, get } from '../api.ts'
import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { Badge, Button, Code, Panel, Tags } from '../ui/basics.tsx'
import { act, Confirm, Dialog } from '../ui/dialog.tsx'
import { Page } from '../ui/page.tsx'
import { type Column, List } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { CreateKey, RenameKey, RotateSecret, readSecret, type SecretKind, secretTexts } from './key-dialogs.tsx'

type Open =
  | { kind: 'create' }
  | { kind: 'revoke' | 'rename'; key: Key }
  | { kind: 'rotate'; secret: SecretKind }
  | { kind: 'shown'; title: string; text: string }

export const Keys = () => {
  const read = useRead<{ keys: Key[] }>(useMay('account') ? '/v1/auth/keys' : undefined)
  const [open, setOpen] = useState<Open>()
  return (
    <Page
      title="Keys and secrets"
      read={read}
      needs={{ what: 'Keys and secrets need', scope: 'account' }}
      actions={<Button label="Create a key" icon="plus" kind="main" onClick={() => setOpen({ kind: 'create' })} />}
    >
      {({ keys }) => (
        <div class="stack">
          <List
            title="API keys"
            columns={columnsFor(keys, setOpen)}
            rows={keys}
            id={({ id }) => id}
            rowClass={({ revoked_at }) => revoked_at && 'faded'}
          />
          <Secrets setOpen={setOpen} />
          {open && <Opened open={open} setOpen={setOpen} reload={read.reload} />}
        </div>
      )}
    </Page>
  )
}

type SetOpen = (open: Open | undefined) => void
const show = (setOpen: SetOpen, title: string, read: () => Promise<string>) =>
  void act(async () => setOpen({ kind: 'shown', title, text: await read() }))

const columnsFor = (keys: Key[], setOpen: SetOpen): Column<Key>[] => {
  // The API refuses to revoke the last one.
  const isLast = keys.filter(({ revoked_at }) => !revoked_at).length === 1
  const reveal = async () => (await get<RevealedKey>('/v1/auth/key')).api_key
  return [
    [
      'Key',
      ({ label, prefix, is_default }) => (
        <>
          <span class="name">{label}</span>
          <div class="under">
            <span class="mono">{`${prefix}…`}</span>
            {is_default && <Badge tone="info">default</Badge>}
          </div>
        </>
      ),
      'cell-main'
    ],
    ['Scopes', ({ scopes }) => <Tags labels={scopes} />, 'bare'],
    ['Last used', ({ last_used_at }) => <When at={last_used_at} only="relative" none="never" />],
    ['Created', ({ created_at }) => <When at={created_at} only="absolute" />],
    [
      '',
      key =>
        key.revoked_at ? (
          <span class="soft">
            revoked <When at={key.revoked_at} only="relative" />
          </span>
        ) : (
          <div class="row">
            {key.is_default && <Button label="Show" kind="quiet" onClick={() => show(setOpen, 'Default API key', reveal)} />}
            <Button label={`Rename ${key.label}`} icon="edit" kind="quiet" iconOnly onClick={() => setOpen({ kind: 'rename', key })} />
            {!isLast && (
              <Button label={`Revoke ${key.label}`} icon="trash" kind="quiet" iconOnly onClick={() => setOpen({ kind: 'revoke', key })} />
            )}
          </div>
        ),
      'cell-actions'
    ]
  ]
}

const Secrets = ({ setOpen }: { setOpen: SetOpen }) => (
  <Panel title="Secrets">
    <p>Webhooks and alerts are signed. Your receivers verify the signatures with these secrets.</p>
    <ul class="stack">
      {(Object.keys(secretTexts) as SecretKind[]).map(secret => (
        <li key={secret} class="split">
          <span>{secretTexts[secret].name}</span>
          <div class="row">
            <Button label="Show" onClick={() => show(setOpen, secretTexts[secret].name, () => readSecret(secret))} />
            <Button label="Rotate" icon="replay" onClick={() => setOpen({ kind: 'rotate', secret })} />
          </div>
        </li>
      ))}
    </ul>
  </Panel>
)

const Opened = ({ open, setOpen, reload }: { open: Open; setOpen: SetOpen; reload: () => void }) => {
  const close = () => setOpen(undefined)
  const reveal = (title: string, text: string) => {
    setOpen({ kind: 'shown', title, text })
    reload()
  }
  if (open.kind === 'create') return <CreateKey onClose={close} onCreated={({ label, api_key }) => reveal(`New key: ${label}`, api_key)} />
  if (open.kind === 'rename') return <RenameKey of={open.key} onClose={close} onDone={reload} />
  if (open.kind === 'rotate') {
    const name = secretTexts[open.secret].name.toLowerCase()
    return <RotateSecret secret={open.secret} onClose={close} onDone={text => reveal(`New ${name}`, text)} />
  }
  if (open.kind === 'shown')
    return (
      <Dialog title={open.title} onClose={close}>
        <Code text={open.text} label={open.title} wrap />
        <p class="hint">Keep it in a safe place.</p>
      </Dialog>
    )
  const revoke = () => call('DELETE', `/v1/auth/keys/${open.key.id}`).then(reload)
  return (
    <Confirm
      title={`Revoke ${open.key.label}`}
      label="Revoke"
      kind="danger"
      onClose={close}
      done="Revoked"
      action={revoke}
      text="Programs that use it are refused immediately, and browsers signed in with it are signed out."
    />
  )
}
