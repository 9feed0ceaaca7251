/** API keys and the secrets that sign. */

import { useState } from 'preact/hooks'
import type { Key, RevealedKey } from '../../../client/types.ts'
import { call, get } from '../api.ts'
import { h } from '../h.ts'
import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { Badge, Button, type Children, Code, Loading, Panel, Problem, Tag } from '../ui/basics.ts'
import { act, Confirm, Dialog } from '../ui/dialog.ts'
import { NotAllowed, Page } from '../ui/frame.ts'
import { When } from '../ui/when.ts'
import { CreateKey, RenameKey, RotateSecret, readSecret, type SecretKind, secretTexts } from './key-dialogs.ts'

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
  if (!mayManage) return h(NotAllowed, { title: 'Keys', what: 'Keys and secrets need', scope: 'account' })
  const show = (title: string, read: () => Promise<string>) => act(async () => setOpen({ kind: 'shown', title, text: await read() }))
  return h(
    Page,
    {
      title: 'Keys',
      read,
      actions: h(Button, { label: 'Create a key', icon: 'plus', kind: 'main', onClick: () => setOpen({ kind: 'create' }) })
    },
    h(Problem, { failure: read.failure }),
    !read.data
      ? !read.failure && h(Loading, {})
      : h(
          Panel,
          { title: 'API keys', flush: true },
          h(
            'table',
            { class: 'table' },
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                ['Key', 'Scopes', 'Last used', 'Created', ''].map(name =>
                  h('th', { key: name, scope: 'col' }, name || h('span', { class: 'unseen' }, 'Actions'))
                )
              )
            ),
            h(
              'tbody',
              {},
              read.data.keys.map(key =>
                h(KeyRow, {
                  key: key.id,
                  of: key,
                  isLast: read.data!.keys.filter(({ revoked_at }) => !revoked_at).length === 1,
                  onRename: () => setOpen({ kind: 'rename', key }),
                  onRevoke: () => setOpen({ kind: 'revoke', key }),
                  onShow: () => void show('Default API key', async () => (await get<RevealedKey>('/v1/auth/key')).api_key)
                })
              )
            )
          )
        ),
    h(
      Panel,
      { title: 'Secrets' },
      h('p', {}, 'Webhooks and alerts are signed. Your receivers verify the signatures with these secrets.'),
      h(
        'ul',
        { class: 'plain-list' },
        (Object.keys(secretTexts) as SecretKind[]).map(secret =>
          h(
            'li',
            { key: secret, class: 'secret' },
            h('span', {}, secretTexts[secret].name),
            h(
              'div',
              { class: 'actions' },
              h(Button, {
                label: 'Show',
                onClick: () => void show(secretTexts[secret].name, () => readSecret(secret))
              }),
              h(Button, { label: 'Rotate', icon: 'replay', onClick: () => setOpen({ kind: 'rotate', secret }) })
            )
          )
        )
      )
    ),
    open?.kind === 'create' &&
      h(CreateKey, {
        onClose: close,
        onCreated: ({ label, api_key }) => {
          setOpen({ kind: 'shown', title: `New key: ${label}`, text: api_key })
          read.reload()
        }
      }),
    open?.kind === 'shown' &&
      h(
        Dialog,
        { title: open.title, onClose: close },
        h(Code, { text: open.text, label: open.title, wrap: true }),
        h('p', { class: 'hint' }, 'Keep it in a safe place.')
      ),
    open?.kind === 'rename' && h(RenameKey, { of: open.key, onClose: close, onDone: read.reload }),
    open?.kind === 'rotate' &&
      h(RotateSecret, {
        secret: open.secret,
        onClose: close,
        onDone: text => setOpen({ kind: 'shown', title: `New ${secretTexts[open.secret].name.toLowerCase()}`, text })
      }),
    open?.kind === 'revoke' &&
      h(
        Confirm,
        {
          title: `Revoke ${open.key.label}`,
          label: 'Revoke',
          kind: 'danger',
          onClose: close,
          done: 'Revoked',
          action: () => call('DELETE', `/v1/auth/keys/${open.key.id}`).then(read.reload)
        },
        h('p', {}, 'Programs that use it are refused immediately, and browsers signed in with it are signed out.')
      )
  )
}

type RowProps = { of: Key; isLast: boolean; onRename: () => void; onRevoke: () => void; onShow: () => void }
const KeyRow = ({ of, isLast, onRename, onRevoke, onShow }: RowProps) =>
  h(
    'tr',
    { class: of.revoked_at ? 'faded' : undefined, 'data-row': true },
    h(
      'td',
      { class: 'cell-main' },
      h('span', { class: 'name' }, of.label),
      h('div', { class: 'under' }, h('span', { class: 'mono' }, `${of.prefix}…`), of.is_default && h(Badge, { tone: 'info' }, 'default'))
    ),
    h(
      'td',
      {},
      h(
        'div',
        { class: 'tags' },
        of.scopes.map(scope => h(Tag, { key: scope, label: scope }))
      )
    ),
    h('td', {}, h('span', { class: 'phone-only' }, 'used '), h(When, { at: of.last_used_at, only: 'relative', none: 'never' })),
    h('td', {}, h('span', { class: 'phone-only' }, 'created '), h(When, { at: of.created_at, only: 'absolute' })),
    h(
      'td',
      { class: 'cell-actions' },
      of.revoked_at
        ? h('span', { class: 'soft' }, 'revoked ', h(When, { at: of.revoked_at, only: 'relative' }))
        : ([
            of.is_default && h(Button, { key: 'show', label: 'Show', kind: 'quiet', onClick: onShow }),
            h(Button, { key: 'rename', label: `Rename ${of.label}`, icon: 'edit', kind: 'quiet', iconOnly: true, onClick: onRename }),
            // The API refuses to revoke the last one.
            !isLast &&
              h(Button, { key: 'revoke', label: `Revoke ${of.label}`, icon: 'trash', kind: 'quiet', iconOnly: true, onClick: onRevoke })
          ] as Children)
    )
  )
