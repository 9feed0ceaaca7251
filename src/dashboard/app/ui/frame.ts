/** What surrounds every page: menu, account, zone and theme. */

import { useState } from 'preact/hooks'
import { h } from '../h.ts'
import { active, useShortcuts } from '../keys.ts'
import { groupsFor, itemsFor } from '../nav.ts'
import type { Read } from '../query.ts'
import { serviceRoot } from '../root.ts'
import { to, usePlace } from '../router.ts'
import { type Scope, signOut, useMe } from '../session.ts'
import { toggleTheme, useDark } from '../theme.ts'
import { duration, setZone, useNow, useZone, type ZoneChoice } from '../time.ts'
import { Button, type Children, Empty, useTitle } from './basics.ts'
import { act, Dialog } from './dialog.ts'
import { SelectField } from './form.ts'
import { Icon, Logo } from './icon.ts'
import { Palette } from './palette.ts'

const isHere = (path: string, here: string) => (path === '/' ? here === '/' : here === path || here.startsWith(`${path}/`))

const Menu = ({ onSignedOut }: { onSignedOut: () => void }) => {
  const { path: here } = usePlace()
  const me = useMe()
  const isDark = useDark()
  const zone = useZone()
  return h(
    'div',
    { class: 'menu' },
    h('a', { class: 'brand', href: to('/') }, h(Logo, {}), h('span', {}, 'pgcue')),
    h(
      'nav',
      { 'aria-label': 'Pages' },
      groupsFor(me).map(({ name, items }) =>
        h(
          'div',
          { key: name, class: 'menu-group' },
          h('h2', {}, name),
          h(
            'ul',
            {},
            items.map(({ path, name, icon }) =>
              h(
                'li',
                { key: path },
                h(
                  'a',
                  { href: to(path), 'aria-current': isHere(path, here) ? 'page' : undefined },
                  h(Icon, { name: icon, size: 19 }),
                  h('span', {}, name)
                )
              )
            )
          )
        )
      ),
      h(
        'div',
        { class: 'menu-group' },
        h(
          'ul',
          {},
          h('li', {}, h('a', { href: `${serviceRoot}/docs/guide` }, h(Icon, { name: 'external', size: 19 }), h('span', {}, 'Guide'))),
          h('li', {}, h('a', { href: `${serviceRoot}/docs` }, h(Icon, { name: 'external', size: 19 }), h('span', {}, 'API reference')))
        )
      )
    ),
    h(
      'div',
      { class: 'menu-foot' },
      h(SelectField, {
        label: 'Time zone',
        hidden: true,
        value: zone,
        onInput: value => setZone(value as ZoneChoice),
        options: [
          { value: 'cue', label: "Times: the cue's zone" },
          { value: 'local', label: 'Times: my zone' },
          { value: 'utc', label: 'Times: UTC' }
        ]
      }),
      h('p', { class: 'who', title: me.email }, me.email),
      h(
        'div',
        { class: 'menu-buttons' },
        h(Button, {
          label: isDark ? 'Light' : 'Dark',
          icon: isDark ? 'sun' : 'moon',
          kind: 'quiet',
          onClick: toggleTheme
        }),
        h(Button, { label: 'Sign out', icon: 'out', kind: 'quiet', onClick: () => void act(() => signOut().then(onSignedOut)) })
      )
    )
  )
}

export const Frame = ({ children, onSignedOut }: { children: Children; onSignedOut: () => void }) => {
  const [open, setOpen] = useState<'menu' | 'palette' | 'help'>()
  const { path: here } = usePlace()
  useShortcuts([
    { key: 'Ctrl+K', text: 'Command palette', run: () => setOpen('palette') },
    { key: '?', text: 'Keyboard shortcuts', run: () => setOpen('help') },
    {
      key: '/',
      text: 'Search',
      run: () =>
        document.querySelector<HTMLElement>('[data-search]')
          ? document.querySelector<HTMLElement>('[data-search]')!.focus()
          : setOpen('palette')
    }
  ])
  // A dialog reports late that it was closed, when another may be open.
  const close = (which: typeof open) => () => setOpen(now => (now === which ? undefined : now))
  const tabs = itemsFor(useMe()).filter(({ path }) => ['/', '/cues', '/executions', '/alerts'].includes(path))
  return h(
    'div',
    { class: 'frame' },
    h('a', { class: 'skip', href: '#main' }, 'Skip to content'),
    h('aside', { class: 'side' }, h(Menu, { onSignedOut })),
    h('main', { id: 'main', tabIndex: -1 }, children),
    h(
      'nav',
      { class: 'bottom', 'aria-label': 'Main pages' },
      tabs.map(({ path, name, icon }) =>
        h(
          'a',
          { key: path, href: to(path), 'aria-current': isHere(path, here) ? 'page' : undefined },
          h(Icon, { name: icon, size: 22 }),
          h('span', {}, path === '/' ? 'Attention' : name)
        )
      ),
      h(
        'button',
        { type: 'button', 'aria-current': !tabs.some(({ path }) => isHere(path, here)) || undefined, onClick: () => setOpen('menu') },
        h(Icon, { name: 'menu', size: 22 }),
        h('span', {}, 'More')
      )
    ),
    open === 'menu' &&
      h(
        Dialog,
        { title: 'Menu', onClose: close('menu') },
        h('div', { onClick: event => (event.target as Element).closest('a') && close('menu')() }, h(Menu, { onSignedOut }))
      ),
    open === 'palette' && h(Palette, { onClose: close('palette') }),
    open === 'help' && h(Help, { onClose: close('help') })
  )
}

const Help = ({ onClose }: { onClose: () => void }) =>
  h(
    Dialog,
    { title: 'Keyboard shortcuts', onClose },
    h(
      'dl',
      { class: 'shortcuts' },
      [...active, { key: 'Enter', text: 'Open the row', run: () => {} }].map(({ key, text }) =>
        h('div', { key: key + text }, h('dt', {}, h('kbd', {}, key)), h('dd', {}, text))
      )
    )
  )

type PageProps = {
  title: string
  heading?: Children
  above?: Children
  about?: Children
  actions?: Children
  read?: Read<unknown>
  children: Children
}

/** A page's heading, when it was last read, and its content. */
export const Page = ({ title, heading, above, about, actions, read, children }: PageProps) => {
  useTitle(title)
  return h(
    'div',
    { class: 'page' },
    h(
      'header',
      { class: 'page-head' },
      h('div', { class: 'page-title' }, above, h('h1', {}, heading ?? title), about && h('div', { class: 'about' }, about)),
      h('div', { class: 'actions' }, read && h(Freshness, { read }), actions)
    ),
    children
  )
}

const Freshness = ({ read }: { read: Read<unknown> }) => {
  useNow()
  const { at, isPaused, failure, reload } = read
  const age = Math.max(Date.now() - at, 0)
  const text = failure
    ? 'Not up to date'
    : at === 0
      ? 'Loading'
      : isPaused
        ? `Paused, ${duration(age)} old`
        : age < 15_000
          ? 'Live'
          : `${duration(age)} ago`
  return h(
    'button',
    {
      type: 'button',
      class: `fresh${failure ? ' stale' : isPaused ? ' held' : ''}`,
      onClick: reload,
      title: at ? `Last read ${new Date(at).toTimeString().slice(0, 8)}. Click to read again.` : undefined
    },
    h('span', { class: 'pulse', 'aria-hidden': 'true' }),
    text
  )
}

/** A page that the scopes of this session don't allow. */
export const NotAllowed = ({ title, what, scope }: { title: string; what: string; scope: Scope }) =>
  h(
    Page,
    { title },
    h(Empty, {
      title: 'Not allowed in this session',
      text: `${what} the ${scope} scope. Sign in with a key that has it, or with an email link.`
    })
  )

/** A link back to the list that a page belongs to. */
export const Above = ({ path, name }: { path: string; name: string }) =>
  h('a', { class: 'above', href: to(path) }, h(Icon, { name: 'back', size: 16 }), name)

export const NotFound = () =>
  h(Page, { title: 'Page not found' }, h('p', {}, 'Check the address, or go to ', h('a', { href: to('/') }, 'Needs attention'), '.'))
