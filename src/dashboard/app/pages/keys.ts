/** API keys and the secrets that sign. */

import { useState } from 'preact/hooks'
import type { AlertWebhookSecret, CreatedKey, Key, RevealedKey, WebhookSecret } from '../../../client/types.ts'
import { call, get, post } from '../api.ts'
import { h } from '../h.ts'
import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { Badge, Button, type Children, Code, Loading, Panel, Problem, Tag } from '../ui/basics.ts'
import { act, Confirm, Dialog } from '../ui/dialog.ts'
import { CheckField, TextField } from '../ui/form.ts'
import { NotAllowed, Page } from '../ui/frame.ts'
import { When } from '../ui/when.ts'

type Open = { kind: 'create' } | { kind: 'revoke'; key: Key } | { kind: 'shown'; title: string; text: string }

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
        'div',
        { class: 'actions left' },
        h(Button, {
          label: 'Show the webhook secret',
          onClick: () => void show('Webhook secret', async () => (await get<WebhookSecret>('/v1/auth/webhook-secret')).webhook_secret)
        }),
        h(Button, {
          label: 'Show the alert secret',
          onClick: () =>
            void show(
              'Alert webhook secret',
              async () => (await get<AlertWebhookSecret>('/v1/auth/alert-webhook-secret')).alert_webhook_secret
            )
        })
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

const KeyRow = ({ of, onRevoke, onShow }: { of: Key; onRevoke: () => void; onShow: () => void }) =>
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
            h(Button, { key: 'revoke', label: `Revoke ${of.label}`, icon: 'trash', kind: 'quiet', iconOnly: true, onClick: onRevoke })
          ] as Children)
    )
  )

const scopeTexts = {
  read: 'see cues, executions, workers and alerts',
  write: 'create and change cues, fire, replay, verify',
  worker: 'claim executions and report outcomes',
  account: 'keys, secrets, settings and the plan'
} as const
type Scope = keyof typeof scopeTexts

const CreateKey = ({ onClose, onCreated }: { onClose: () => void; onCreated: (key: CreatedKey) => void }) => {
  const [label, setLabel] = useState('')
  const [scopes, setScopes] = useState<Scope[]>(['read', 'write', 'worker'])
  const create = async () => onCreated(await post<CreatedKey>('/v1/auth/keys', { label: label.trim(), scopes }))
  return h(
    Confirm,
    { title: 'Create a key', label: 'Create', onClose, action: create, staysOpen: true },
    h(TextField, { label: 'Name', value: label, onInput: setLabel, required: true, maxLength: 100, placeholder: 'report worker' }),
    h(
      'fieldset',
      {},
      h('legend', {}, 'What it may do'),
      (Object.keys(scopeTexts) as Scope[]).map(scope =>
        h(CheckField, {
          key: scope,
          label: scope,
          hint: scopeTexts[scope],
          checked: scopes.includes(scope),
          onInput: is => setScopes(is ? [...scopes, scope] : scopes.filter(one => one !== scope))
        })
      )
    )
  )
}
