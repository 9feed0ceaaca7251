/** What surrounds every page: the menu and the account. */
import { useEffect } from 'preact/hooks'
import type { Executions } from '../../../client/types.ts'
import { active, useShortcuts } from '../keys.ts'
import { accountItems, groupsFor, itemsFor, type NavItem } from '../nav.ts'
import { useFeed, useRead } from '../query.ts'
import { serviceRoot } from '../root.ts'
import { to, usePlace } from '../router.ts'
import { signOut, useMe } from '../session.ts'
import { isDark, toggleTheme } from '../theme.ts'
import { Button, type Children, totalText, waitingApprovals } from './basics.tsx'
import { act, Dialog, Shown, show, useClose } from './dialog.tsx'
import { Icon, Logo } from './icon.tsx'
import { Palette } from './palette.tsx'

const useIsHere = () => {
  const { path: here } = usePlace()
  return (path: string) => (path === '/' ? here === '/' : here === path || here.startsWith(`${path}/`))
}

/** The number of approvals that wait, beside the name of their page. */
const Waiting = () => {
  const { value } = waitingApprovals
  return value ? (
    <span class="badge warn" title={`${value} wait for approval`}>
      {value}
    </span>
  ) : null
}

/** Counts the approvals that wait. */
const useWaiting = () => {
  const { data } = useRead<Executions>('/v1/executions', { held: 'approval', limit: 1, count_to: 100 }, { least: 60_000 })
  const text = data?.total ? totalText(data) : ''
  useEffect(() => {
    waitingApprovals.value = text
  }, [text])
}

const Links = ({ items }: { items: (Omit<NavItem, 'path'> & { path?: string; href?: string })[] }) => {
  const isHere = useIsHere()
  return (
    <ul>
      {items.map(({ path, href, name, icon }) => (
        <li key={name}>
          <a href={href ?? to(path!)} aria-current={path && isHere(path) ? 'page' : undefined}>
            <Icon name={icon} size={18} />
            <span>{name}</span>
            {path === '/approvals' && <Waiting />}
          </a>
        </li>
      ))}
    </ul>
  )
}

const guides = [
  { href: `${serviceRoot}/docs/guide`, name: 'Guide', icon: 'book' as const },
  { href: `${serviceRoot}/docs`, name: 'API reference', icon: 'external' as const }
]

type Props = { onSignedOut: () => void }

const Pages = () => (
  <nav class="menu" aria-label="Pages">
    {groupsFor(useMe()).map(({ name, items }) => (
      <div key={name}>
        <h2>{name}</h2>
        <Links items={items} />
      </div>
    ))}
    <Links items={guides} />
  </nav>
)

const Account = ({ onSignedOut }: Props) => (
  <div class="menu">
    <nav aria-label="Account">
      <Links items={accountItems} />
    </nav>
    <div class="split">
      <Button label={isDark() ? 'Light' : 'Dark'} icon={isDark() ? 'sun' : 'moon'} kind="quiet" onClick={toggleTheme} />
      <Button label="Sign out" icon="out" kind="quiet" onClick={() => void act(() => signOut().then(onSignedOut))} />
    </div>
  </div>
)

/** Its menu opens above the page, and closes with a click elsewhere or Escape. */
const AccountButton = ({ onSignedOut }: Props) => {
  const { email } = useMe()
  const close = (event: Event) => {
    if ((event.target as Element).closest('a')) (event.currentTarget as HTMLElement).hidePopover()
  }
  return (
    <>
      <button type="button" class="button quiet account" popovertarget="account" title={email}>
        <Icon name="user" size={18} />
        <span>{email}</span>
      </button>
      <div id="account" popover="auto" onClick={close}>
        <Account onSignedOut={onSignedOut} />
      </div>
    </>
  )
}

export const Frame = ({ children, onSignedOut }: Props & { children: Children }) => {
  const isHere = useIsHere()
  const me = useMe()
  useFeed()
  useWaiting()
  useShortcuts([
    { key: 'Ctrl+K', text: 'Command palette', run: () => show(<Palette />) },
    { key: '?', text: 'Keyboard shortcuts', run: () => show(<Help />) },
    {
      key: '/',
      text: 'Search',
      run: () => {
        const search = document.querySelector<HTMLElement>('[data-search]')
        if (search) search.focus()
        else show(<Palette />)
      }
    }
  ])
  const tabs = itemsFor(me).filter(({ path }) => ['/', '/cues', '/executions', '/alerts'].includes(path))
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <aside class="side">
        <a class="brand" href={to('/')}>
          <Logo />
          <span>pgcue</span>
        </a>
        <Pages />
        <AccountButton onSignedOut={onSignedOut} />
      </aside>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <nav class="bottom" aria-label="Main pages">
        {tabs.map(({ path, name, icon }) => (
          <a key={path} href={to(path)} aria-current={isHere(path) ? 'page' : undefined}>
            <Icon name={icon} size={22} />
            <span>{path === '/' ? 'Attention' : name}</span>
          </a>
        ))}
        <button
          type="button"
          aria-current={!tabs.some(({ path }) => isHere(path)) || undefined}
          onClick={() => show(<Menu onSignedOut={onSignedOut} />)}
        >
          <Icon name="menu" size={22} />
          <span>More</span>
        </button>
      </nav>
      <Shown />
    </div>
  )
}

const Menu = ({ onSignedOut }: Props) => {
  const close = useClose()
  return (
    <Dialog title="Menu">
      <div onClick={event => (event.target as Element).closest('a') && close()}>
        <Pages />
        <p class="soft">{useMe().email}</p>
        <Account onSignedOut={onSignedOut} />
      </div>
    </Dialog>
  )
}

const Help = () => (
  <Dialog title="Keyboard shortcuts">
    <dl class="facts">
      {[...active, { key: 'Enter', text: 'Open the row' }].map(({ key, text }) => (
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
