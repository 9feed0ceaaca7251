/** API keys and the secrets that sign. */

import { useState } from 'preact/hooks'
import type { Key, RevealedKey } from '../../../client/types.ts'
import { call, get } from '../api.ts'

import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { Badge, Button, type Children, Code, Loading, Panel, Problem, Tag } from '../ui/basics.tsx'
import { act, Confirm, Dialog } from '../ui/dialog.tsx'
import { NotAllowed, Page } from '../ui/frame.tsx'
import { When } from '../ui/when.tsx'
import { CreateKey, RenameKey, RotateSecret, readSecret, type SecretKind, secretTexts } from './key-dialogs.tsx'

type Open =
  | { kind: 'create' }
  | { kind: 'revoke' | 'rename'; key: Key }
  | { kind: 'rotate'; secret: SecretKind }
  | { kind: 'shown'; title: string; text: string }

export const Keys = () => {
  const mayManage = useMay('account')
  const read = useRead<{ keys: Key[] }>(mayManage ? '/v1/auth/keys' : undefined)
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)
  if (!mayManage) return <NotAllowed title="Keys" what="Keys and secrets need" scope="account" />
  const show = (title: string, read: () => Promise<string>) => act(async () => setOpen({ kind: 'shown', title, text: await read() }))
  return (
    <Page
      title="Keys"
      read={read}
      actions={<Button label="Create a key" icon="plus" kind="main" onClick={() => setOpen({ kind: 'create' })} />}
    >
      <Problem failure={read.failure} />
      {!read.data ? (
        !read.failure && <Loading />
      ) : (
        <Panel title="API keys" flush>
          <table class="table">
            <thead>
              <tr>
                {['Key', 'Scopes', 'Last used', 'Created', ''].map(name => (
                  <th key={name} scope="col">
                    {name || <span class="unseen">Actions</span>}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {read.data.keys.map(key => (
                <KeyRow
                  key={key.id}
                  of={key}
                  isLast={read.data!.keys.filter(({ revoked_at }) => !revoked_at).length === 1}
                  onRename={() => setOpen({ kind: 'rename', key })}
                  onRevoke={() => setOpen({ kind: 'revoke', key })}
                  onShow={() => void show('Default API key', async () => (await get<RevealedKey>('/v1/auth/key')).api_key)}
                />
              ))}
            </tbody>
          </table>
        </Panel>
      )}
      <Panel title="Secrets">
        <p>Webhooks and alerts are signed. Your receivers verify the signatures with these secrets.</p>
        <ul class="plain-list">
          {(Object.keys(secretTexts) as SecretKind[]).map(secret => (
            <li key={secret} class="secret">
              <span>{secretTexts[secret].name}</span>
              <div class="actions">
                <Button label="Show" onClick={() => void show(secretTexts[secret].name, () => readSecret(secret))} />
                <Button label="Rotate" icon="replay" onClick={() => setOpen({ kind: 'rotate', secret })} />
              </div>
            </li>
          ))}
        </ul>
      </Panel>
      {open?.kind === 'create' && (
        <CreateKey
          onClose={close}
          onCreated={({ label, api_key }) => {
            setOpen({ kind: 'shown', title: `New key: ${label}`, text: api_key })
            read.reload()
          }}
        />
      )}
      {open?.kind === 'shown' && (
        <Dialog title={open.title} onClose={close}>
          <Code text={open.text} label={open.title} wrap />
          <p class="hint">Keep it in a safe place.</p>
        </Dialog>
      )}
      {open?.kind === 'rename' && <RenameKey of={open.key} onClose={close} onDone={read.reload} />}
      {open?.kind === 'rotate' && (
        <RotateSecret
          secret={open.secret}
          onClose={close}
          onDone={text => setOpen({ kind: 'shown', title: `New ${secretTexts[open.secret].name.toLowerCase()}`, text })}
        />
      )}
      {open?.kind === 'revoke' && (
        <Confirm
          title={`Revoke ${open.key.label}`}
          label="Revoke"
          kind="danger"
          onClose={close}
          done="Revoked"
          action={() => call('DELETE', `/v1/auth/keys/${open.key.id}`).then(read.reload)}
        >
          <p>Programs that use it are refused immediately, and browsers signed in with it are signed out.</p>
        </Confirm>
      )}
    </Page>
  )
}

type RowProps = { of: Key; isLast: boolean; onRename: () => void; onRevoke: () => void; onShow: () => void }
const KeyRow = ({ of, isLast, onRename, onRevoke, onShow }: RowProps) => (
  <tr class={of.revoked_at ? 'faded' : undefined} data-row>
    <td class="cell-main">
      <span class="name">{of.label}</span>
      <div class="under">
        <span class="mono">{`${of.prefix}…`}</span>
        {of.is_default && <Badge tone="info">default</Badge>}
      </div>
    </td>
    <td>
      <div class="tags">
        {of.scopes.map(scope => (
          <Tag key={scope} label={scope} />
        ))}
      </div>
    </td>
    <td>
      <span class="phone-only">{'used '}</span>
      <When at={of.last_used_at} only="relative" none="never" />
    </td>
    <td>
      <span class="phone-only">{'created '}</span>
      <When at={of.created_at} only="absolute" />
    </td>
    <td class="cell-actions">
      {of.revoked_at ? (
        <span class="soft">
          {'revoked '}
          <When at={of.revoked_at} only="relative" />
        </span>
      ) : (
        ((
          <>
            {of.is_default && <Button label="Show" kind="quiet" onClick={onShow} />}
            <Button label={`Rename ${of.label}`} icon="edit" kind="quiet" iconOnly onClick={onRename} />
            {/* The API refuses to revoke the last one. */}
            {!isLast && <Button label={`Revoke ${of.label}`} icon="trash" kind="quiet" iconOnly onClick={onRevoke} />}
          </>
        ) as Children)
      )}
    </td>
  </tr>
)
