/** API keys and the secrets that sign. */
import type { Key, RevealedKey } from '../../../client/types.ts'
import { call, get } from '../api.ts'
import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { Badge, Button, Panel, Tags } from '../ui/basics.tsx'
import { act, askToRemove, show } from '../ui/dialog.tsx'
import { Page } from '../ui/page.tsx'
import { type Column, List } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { CreateKey, RenameKey, RotateSecret, readSecret, reveal, type SecretKind, secretTexts } from './key-dialogs.tsx'

export const Keys = () => {
  const read = useRead<{ keys: Key[] }>(useMay('account') ? '/v1/auth/keys' : undefined)
  return (
    <Page
      title="Keys and secrets"
      read={read}
      needs={{ what: 'Keys and secrets need', scope: 'account' }}
      actions={<Button label="Create a key" icon="plus" kind="main" onClick={() => show(<CreateKey onDone={read.reload} />)} />}
    >
      {({ keys }) => (
        <div class="stack">
          <List
            title="API keys"
            columns={columnsFor(keys, read.reload)}
            rows={keys}
            id={({ id }) => id}
            rowClass={({ revoked_at }) => revoked_at && 'faded'}
          />
          <Secrets />
        </div>
      )}
    </Page>
  )
}

const readAndReveal = (title: string, read: () => Promise<string>) => void act(async () => reveal(title, await read()))

const columnsFor = (keys: Key[], reload: () => void): Column<Key>[] => {
  // The API refuses to revoke the last one.
  const isLast = keys.filter(({ revoked_at }) => !revoked_at).length === 1
  const readDefault = async () => (await get<RevealedKey>('/v1/auth/key')).api_key
  const revoke = ({ id, label }: Key) =>
    askToRemove({
      title: `Revoke ${label}`,
      label: 'Revoke',
      text: 'Programs that use it are refused immediately, and browsers signed in with it are signed out.',
      done: 'Revoked',
      action: () => call('DELETE', `/v1/auth/keys/${id}`).then(reload)
    })
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
            {key.is_default && <Button label="Show" kind="quiet" onClick={() => readAndReveal('Default API key', readDefault)} />}
            <Button
              label={`Rename ${key.label}`}
              icon="edit"
              kind="quiet"
              iconOnly
              onClick={() => show(<RenameKey of={key} onDone={reload} />)}
            />
            {!isLast && <Button label={`Revoke ${key.label}`} icon="trash" kind="quiet" iconOnly onClick={() => revoke(key)} />}
          </div>
        ),
      'cell-actions'
    ]
  ]
}

const Secrets = () => (
  <Panel title="Secrets">
    <p>Webhooks and alerts are signed. Your receivers verify the signatures with these secrets.</p>
    <ul class="stack">
      {(Object.keys(secretTexts) as SecretKind[]).map(secret => (
        <li key={secret} class="split">
          <span>{secretTexts[secret].name}</span>
          <div class="row">
            <Button label="Show" onClick={() => readAndReveal(secretTexts[secret].name, () => readSecret(secret))} />
            <Button label="Rotate" icon="replay" onClick={() => show(<RotateSecret secret={secret} />)} />
          </div>
        </li>
      ))}
    </ul>
  </Panel>
)
