/** Small pieces of every page. */
import { signal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Failure } from '../api.ts'
import { Icon, type IconName } from './icon.tsx'
import { say } from './toast.tsx'

export type Children = ComponentChildren

type ButtonProps = {
  label: string
  icon?: IconName
  onClick?: () => void
  kind?: 'plain' | 'main' | 'danger' | 'quiet'
  disabled?: boolean
  /** Shows the icon only; the label is for screen readers and as a tooltip. */
  iconOnly?: boolean
  type?: 'button' | 'submit'
  /** The letter that does the same. */
  shortcut?: string
  busy?: boolean
}
export const Button = ({ label, icon, onClick, kind = 'plain', disabled, iconOnly, type = 'button', shortcut, busy }: ButtonProps) => (
  <button
    type={type}
    class={`button ${kind}${iconOnly ? ' icon-only' : ''}`}
    onClick={onClick}
    disabled={disabled || busy}
    aria-busy={busy}
    aria-keyshortcuts={shortcut}
    {...(iconOnly ? { 'aria-label': label, title: label } : shortcut ? { title: `${label} (${shortcut})` } : {})}
  >
    {icon && <Icon name={icon} size={16} />}
    {!iconOnly && <span>{label}</span>}
  </button>
)

/** A link that looks like a button. */
export const ButtonLink = ({ label, href, icon, kind = 'plain' }: { label: string; href: string; icon?: IconName; kind?: string }) => (
  <a class={`button ${kind}`} href={href}>
    {icon && <Icon name={icon} size={16} />}
    <span>{label}</span>
  </a>
)

/** A link by which people find something: its name. */
export const PageLink = ({ href, text, kind = 'name' }: { href: string; text: Children; kind?: string }) => (
  <a class={kind} href={href}>
    {text}
  </a>
)

export type Tone = 'good' | 'bad' | 'warn' | 'info' | 'quiet'
export const Badge = ({ tone, children, title }: { tone: Tone; children: Children; title?: string }) => (
  <span class={`badge ${tone}`} title={title}>
    {children}
  </span>
)

export const Tag = ({ label, href }: { label: string; href?: string }) => {
  const Name = href ? 'a' : 'span'
  return (
    <Name class="tag" href={href}>
      {label}
    </Name>
  )
}
export const Tags = ({ labels }: { labels: readonly string[] }) => (
  <div class="row tags">
    {labels.map(label => (
      <Tag key={label} label={label} />
    ))}
  </div>
)

type PanelProps = { title?: Children; actions?: Children; children: Children; flush?: boolean }
/** A box with a title. */
export const Panel = ({ title, actions, children, flush }: PanelProps) => (
  <section class={`panel${flush ? ' flush' : ''}`}>
    {title && (
      <header class="split">
        <h2>{title}</h2>
        {actions && <div class="row">{actions}</div>}
      </header>
    )}
    {children}
  </section>
)

type FigureProps = { name: string; value: string; note: Children; tone?: Tone; children?: Children }
/** A number that is looked for. */
export const Figure = ({ name, value, note, tone, children }: FigureProps) => (
  <div class={`panel figure ${tone ?? ''}`}>
    <dt>{name}</dt>
    <dd>
      <strong>{value}</strong>
      {children}
      <span class="soft small">{note}</span>
    </dd>
  </div>
)

/** Names and values in two columns, without entries that have no value. */
export const Facts = ({ items }: { items: [string, Children][] }) => (
  <dl class="facts">
    {items
      .filter(([, value]) => String(value ?? '') !== '')
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

/** Reports a failed read: beside what was read before, if anything. */
export const Problem = ({ failure }: { failure: Failure | undefined }) => {
  if (!failure) return null
  let text = failure.message
  if (failure.status === 0) text = 'The service is not responding. Retrying every few seconds.'
  else if (failure.status === 429) text = 'Your plan’s rate limit is reached. This page resumes by itself.'
  else if (failure.code === 'unavailable') text = 'The service is busy, or its database is slow. Retrying.'
  return (
    <p class={`problem ${failure.status === 429 || failure.status === 0 ? 'warn' : 'bad'}`} role="status">
      <Icon name="alert" size={16} />
      <span>{text}</span>
    </p>
  )
}

/** An error that appears may be out of sight, or under an editor's bar. */
const reveal = (shown: Element | null) => shown?.scrollIntoView({ block: 'nearest' })
/** Why something was refused. */
export const Refusal = ({ text, id }: { text: string | undefined; id?: string }) =>
  text ? (
    <p id={id} class="field-error message" role="alert" ref={reveal}>
      {text}
    </p>
  ) : null

export const Loading = ({ lines = 5 }: { lines?: number }) => (
  <div class="panel loading" role="status" aria-label="Loading">
    {Array.from({ length: lines }, (_, n) => (
      <div key={n} />
    ))}
  </div>
)

export const Copy = ({ text, label = 'Copy' }: { text: string; label?: string }) => {
  const copy = () =>
    void navigator.clipboard.writeText(text).then(
      () => say('Copied'),
      () => say('The browser does not allow copying.', 'bad')
    )
  return <Button label={label} icon="copy" kind="quiet" iconOnly onClick={copy} />
}

/** An id or key, to copy. */
export const Id = ({ text }: { text: string }) => (
  <span class="row mono soft">
    {text}
    <Copy text={text} label="Copy the id" />
  </span>
)

/** Code in one or several languages, to copy. */
export const Code = ({ text, label, wrap }: { text: string; label?: string; wrap?: boolean }) => (
  <div class={`code${wrap ? ' wrap' : ''}`}>
    <pre tabIndex={0} aria-label={label ?? 'Code'}>
      <code>{text}</code>
    </pre>
    <Copy text={text} label={label ? `Copy ${label}` : 'Copy'} />
  </div>
)

export const Tabs = ({ tabs, label }: { tabs: { name: string; body: () => Children }[]; label: string }) => {
  const [chosen, choose] = useState(0)
  const tab = tabs[chosen] ?? tabs[0]!
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    const next = (chosen + step + tabs.length) % tabs.length
    choose(next)
    ;((event.currentTarget as Element).children[next] as HTMLElement).focus()
  }
  return (
    <div>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(({ name }, n) => (
          <button
            key={name}
            type="button"
            role="tab"
            aria-selected={n === chosen}
            tabIndex={n === chosen ? 0 : -1}
            onClick={() => choose(n)}
          >
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" aria-label={tab.name}>
        {tab.body()}
      </div>
    </div>
  )
}

type EmptyProps = { title: string; text: string; calls?: { name: string; code: string }[]; action?: VNode }
/** A list without entries: what belongs here, and the call that adds the first. */
export const Empty = ({ title, text, calls, action }: EmptyProps) => (
  <div class="empty stack">
    <h2>{title}</h2>
    <p>{text}</p>
    {action && <div class="row">{action}</div>}
    {calls && (
      <Tabs label="Ways to do it" tabs={calls.map(({ name, code }) => ({ name, body: () => <Code text={code} label={name} /> }))} />
    )}
  </div>
)

/** Whether the screen is a phone's, as in the style sheets. */
export const isNarrow = (): boolean => matchMedia('(max-width: 760px)').matches

/** The number of approvals that wait, in words; empty without any. */
export const waitingApprovals = signal('')

export const useTitle = (title: string): void => {
  const { value: waiting } = waitingApprovals
  useEffect(() => {
    document.title = `${waiting && `(${waiting}) `}${title} – pgcue`
  }, [title, waiting])
}

export const count = (n: number): string => String(n).replace(/^-?\d+/, whole => whole.replace(/\B(?=(\d{3})+$)/g, ','))
export const counted = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? '' : 's'}`
/** 1,000+ where there are more than were counted. */
export const totalText = ({ total, total_exact }: { total: number; total_exact: boolean }): string =>
  count(total) + (total_exact ? '' : '+')

/** 8 KB, 1.5 GB */
export const bytes = (size: number): string => {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  const at = Math.min(Math.floor(Math.log2(Math.max(size, 1)) / 10), units.length - 1)
  const value = size / 1024 ** at
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`
}
