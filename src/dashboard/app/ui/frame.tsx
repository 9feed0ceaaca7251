/** What surrounds every page: menu, account, zone and theme. */

import { useState } from 'preact/hooks'

import { active, useShortcuts } from '../keys.ts'
import { groupsFor, itemsFor } from '../nav.ts'
import type { Read } from '../query.ts'
import { serviceRoot } from '../root.ts'
import { to, usePlace } from '../router.ts'
import { type Scope, signOut, useMe } from '../session.ts'
import { toggleTheme, useDark } from '../theme.ts'
import { duration, setZone, useNow, useZone, type ZoneChoice } from '../time.ts'
import { Button, type Children, Empty, useTitle } from './basics.tsx'
import { act, Dialog } from './dialog.tsx'
import { SelectField } from './form.tsx'
import { Icon, Logo } from './icon.tsx'
import { Palette } from './palette.tsx'

const isHere = (path: string, here: string) => (path === '/' ? here === '/' : here === path || here.startsWith(`${path}/`))

const Menu = ({ onSignedOut }: { onSignedOut: () => void }) => {
  const { path: here } = usePlace()
  const me = useMe()
  const isDark = useDark()
  const zone = useZone()
  return (
    <div class="menu">
      <a class="brand" href={to('/')}>
        <Logo />
        <span>pgcue</span>
      </a>
      <nav aria-label="Pages">
        {groupsFor(me).map(({ name, items }) => (
          <div key={name} class="menu-group">
            <h2>{name}</h2>
            <ul>
              {items.map(({ path, name, icon }) => (
                <li key={path}>
                  <a href={to(path)} aria-current={isHere(path, here) ? 'page' : undefined}>
                    <Icon name={icon} size={19} />
                    <span>{name}</span>
                  </a>
                </li>
              ))}
            </ul>
          </div>
        ))}
        <div class="menu-group">
          <ul>
            <li>
              <a href={`${serviceRoot}/docs/guide`}>
                <Icon name="external" size={19} />
                <span>Guide</span>
              </a>
            </li>
            <li>
              <a href={`${serviceRoot}/docs`}>
                <Icon name="external" size={19} />
                <span>API reference</span>
              </a>
            </li>
          </ul>
        </div>
      </nav>
      <div class="menu-foot">
        <SelectField
          label="Time zone"
          hidden
          value={zone}
          onInput={value => setZone(value as ZoneChoice)}
          options={[
            { value: 'cue', label: "Times: the cue's zone" },
            { value: 'local', label: 'Times: my zone' },
            { value: 'utc', label: 'Times: UTC' }
          ]}
        />
        <p class="who" title={me.email}>
          {me.email}
        </p>
        <div class="menu-buttons">
          <Button label={isDark ? 'Light' : 'Dark'} icon={isDark ? 'sun' : 'moon'} kind="quiet" onClick={toggleTheme} />
          <Button label="Sign out" icon="out" kind="quiet" onClick={() => void act(() => signOut().then(onSignedOut))} />
        </div>
      </div>
    </div>
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
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <aside class="side">
        <Menu onSignedOut={onSignedOut} />
      </aside>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <nav class="bottom" aria-label="Main pages">
        {tabs.map(({ path, name, icon }) => (
          <a key={path} href={to(path)} aria-current={isHere(path, here) ? 'page' : undefined}>
            <Icon name={icon} size={22} />
            <span>{path === '/' ? 'Attention' : name}</span>
          </a>
        ))}
        <button type="button" aria-current={!tabs.some(({ path }) => isHere(path, here)) || undefined} onClick={() => setOpen('menu')}>
          <Icon name="menu" size={22} />
          <span>More</span>
        </button>
      </nav>
      {open === 'menu' && (
        <Dialog title="Menu" onClose={close('menu')}>
          <div onClick={event => (event.target as Element).closest('a') && close('menu')()}>
            <Menu onSignedOut={onSignedOut} />
          </div>
        </Dialog>
      )}
      {open === 'palette' && <Palette onClose={close('palette')} />}
      {open === 'help' && <Help onClose={close('help')} />}
    </div>
  )
}

const Help = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keyboard shortcuts" onClose={onClose}>
    <dl class="shortcuts">
      {[...active, { key: 'Enter', text: 'Open the row', run: () => {} }].map(({ key, text }) => (
        <div key={key + text}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  </Dialog>
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
  return (
    <div class="page">
      <header class="page-head">
        <div class="page-title">
          {above}
          <h1>{heading ?? title}</h1>
          {about && <div class="about">{about}</div>}
        </div>
        <div class="actions">
          {read && <Freshness read={read} />}
          {actions}
        </div>
      </header>
      {children}
    </div>
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
  return (
    <button
      type="button"
      class={`fresh${failure ? ' stale' : isPaused ? ' held' : ''}`}
      onClick={reload}
      title={at ? `Last read ${new Date(at).toTimeString().slice(0, 8)}. Click to read again.` : undefined}
    >
      <span class="pulse" aria-hidden="true" />
      {text}
    </button>
  )
}

/** A page that the scopes of this session don't allow. */
export const NotAllowed = ({ title, what, scope }: { title: string; what: string; scope: Scope }) => (
  <Page title={title}>
    <Empty
      title="Not allowed in this session"
      text={`${what} the ${scope} scope. Sign in with a key that has it, or with an email link.`}
    />
  </Page>
)

/** A link back to the list that a page belongs to. */
export const Above = ({ path, name }: { path: string; name: string }) => (
  <a class="above" href={to(path)}>
    <Icon name="back" size={16} />
    {name}
  </a>
)

export const NotFound = () => (
  <Page title="Page not found">
    <p>
      {'Check the address, or go to '}
      <a href={to('/')}>Needs attention</a>.
    </p>
  </Page>
)
