/** The sessions of the account: browsers and programs that are signed in. */
import { useState } from 'preact/hooks'
import type { Sessions } from '../../../client/types.ts'
import { call } from '../api.ts'
import { h } from '../h.ts'
import { useRead } from '../query.ts'
import { signOut, useMay } from '../session.ts'
import { Badge, Button, Tag } from '../ui/basics.ts'
import { Confirm } from '../ui/dialog.ts'
import { NotAllowed, Page } from '../ui/frame.ts'
import { OffsetList, useOffset } from '../ui/list.ts'
import { When } from '../ui/when.ts'

type Session = Sessions['sessions'][number]
type Asked = 'everywhere' | Session

const programs: [RegExp, string][] = [
  [/Edg\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari']
]
const systems: [RegExp, string][] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux']
]
/** Firefox on Linux; what is not a browser, in its own words. */
export const programOf = (agent: string | null): string => {
  if (!agent) return 'Unknown program'
  const named = (names: [RegExp, string][]) => names.find(([pattern]) => pattern.test(agent))?.[1]
  const [program, system] = [named(programs), named(systems)]
  return program ? (system ? `${program} on ${system}` : program) : agent
}

export const SessionsPage = () => {
  const mayManage = useMay('account')
  const read = useRead<Sessions>(mayManage ? '/v1/auth/sessions' : undefined, { limit: 50, offset: useOffset() })
  const [asked, ask] = useState<Asked>()
  if (!mayManage) return h(NotAllowed, { title: 'Sessions', what: 'Listing and ending sessions needs', scope: 'account' })
  const close = () => ask(undefined)
  return h(
    Page,
    {
      title: 'Sessions',
      read,
      actions: h(Button, { label: 'Sign out everywhere', icon: 'out', onClick: () => ask('everywhere') })
    },
    h('p', { class: 'lead' }, 'A browser or program that signed in has a session for a year. API keys are separate: they stay valid.'),
    h(OffsetList<Sessions>, {
      read,
      caption: 'Sessions',
      columns: ['Signed in with', 'Scopes', 'Since', 'Until', ''],
      noun: 'session',
      rows: ({ sessions }) => sessions.map(one => h(Row, { key: one.id, one, onEnd: () => ask(one) }))
    }),
    asked === 'everywhere' &&
      h(
        Confirm,
        {
          title: 'Sign out everywhere',
          label: 'Sign out everywhere',
          kind: 'danger',
          onClose: close,
          action: () => signOut({ everywhere: true }).then(() => location.reload())
        },
        h('p', {}, 'All sessions of the account end immediately, this one included.')
      ),
    asked !== undefined &&
      asked !== 'everywhere' &&
      h(
        Confirm,
        {
          title: 'End the session',
          label: 'End the session',
          kind: 'danger',
          onClose: close,
          done: 'The session has ended',
          action: () => call('DELETE', `/v1/auth/sessions/${asked.id}`).then(read.reload)
        },
        h('p', {}, `${programOf(asked.user_agent)}${asked.ip ? ` at ${asked.ip}` : ''} is signed out immediately.`)
      )
  )
}

const Row = ({ one, onEnd }: { one: Session; onEnd: () => void }) =>
  h(
    'tr',
    { 'data-row': true },
    h(
      'td',
      { class: 'cell-main' },
      h('span', { class: 'name', title: one.user_agent ?? undefined }, programOf(one.user_agent)),
      h(
        'div',
        { class: 'under' },
        one.key_id ? `key ${one.key_label ?? 'deleted'}` : 'email link',
        one.ip && h('span', { class: 'mono' }, one.ip),
        one.is_current && h(Badge, { tone: 'info' }, 'this browser')
      )
    ),
    h(
      'td',
      {},
      h(
        'div',
        { class: 'tags' },
        one.scopes.map(scope => h(Tag, { key: scope, label: scope }))
      )
    ),
    h('td', {}, h('span', { class: 'phone-only' }, 'since '), h(When, { at: one.created_at, only: 'relative' })),
    h('td', {}, h('span', { class: 'phone-only' }, 'until '), h(When, { at: one.expires_at, only: 'absolute' })),
    h(
      'td',
      { class: 'cell-actions' },
      !one.is_current && h(Button, { label: 'End the session', icon: 'close', kind: 'quiet', iconOnly: true, onClick: onEnd })
    )
  )
