/** A page: its heading, when it was last read, and what was read. */
import { useState } from 'preact/hooks'
import { isLive } from '../feed.ts'
import { isPausedNow, type Read, useRead } from '../query.ts'
import { to } from '../router.ts'
import { type Scope, useMay } from '../session.ts'
import { duration, useNow } from '../time.ts'
import { type Children, Empty, Loading, Problem, useTitle } from './basics.tsx'
import { Icon } from './icon.tsx'

type PageProps<T> = {
  title: string
  heading?: Children
  /** The list that the page belongs to. */
  above?: { path: string; name: string }
  about?: Children
  actions?: Children
  filters?: Children
  read?: Read<T>
  /** What is allowed with which scope. */
  needs?: { what: string; scope: Scope }
  /** Shown instead of the content, such as where there is nothing yet. */
  instead?: (data: T) => Children
  /** With a read, what is shown once there is data. */
  children: Children | ((data: T) => Children)
}

export const Page = <T,>(props: PageProps<T>) => {
  const { title, heading, above, about, actions, filters, read, needs, instead, children } = props
  useTitle(title)
  const isRefused = !useMay(needs?.scope ?? 'read') && needs !== undefined
  return (
    <div class="page">
      <header class="split page-head">
        <div>
          {above && (
            <a class="above" href={to(above.path)}>
              <Icon name="back" size={14} />
              {above.name}
            </a>
          )}
          <h1>{heading ?? title}</h1>
          {about && <div class="row about">{about}</div>}
        </div>
        {!isRefused && (
          <div class="row">
            {read && <Freshness read={read} />}
            {actions}
          </div>
        )}
      </header>
      {isRefused ? (
        <Empty
          title="Not allowed in this session"
          text={`${needs.what} the ${needs.scope} scope. Sign in with a key that has it, or with an email link.`}
        />
      ) : (
        <>
          {filters && <search class="row filters">{filters}</search>}
          <Problem failure={read?.failure} />
          {typeof children !== 'function'
            ? children
            : read?.data !== undefined
              ? instead?.(read.data) || children(read.data)
              : !read?.failure && <Loading />}
        </>
      )}
    </div>
  )
}

type EditProps<T> = Pick<Required<PageProps<T>>, 'above' | 'needs'> & { path: string; children: (data: T) => Children }
/** Edits the first fresh answer; later ones would overwrite it. */
export const EditPage = <T extends { name: string }>({ path, above, needs, children }: EditProps<T>) => {
  const read = useRead<T>(useMay(needs.scope) ? `/v1${path}` : undefined, {}, { repeat: false })
  const [first, setFirst] = useState<T>()
  if (read.data && !first && read.at > Date.now() - 60_000) setFirst(read.data)
  return (
    <Page
      title={first ? `Edit ${first.name}` : 'Edit'}
      above={first ? { path, name: first.name } : above}
      needs={needs}
      read={first ? undefined : read}
    >
      {first ? children(first) : !read.failure && <Loading />}
    </Page>
  )
}

const Freshness = ({ read: { at, failure, reload } }: { read: Read<unknown> }) => {
  useNow()
  const age = Math.max(Date.now() - at, 0)
  const isPaused = isPausedNow() && age > 15_000
  let text = age < 15_000 || isLive(at) ? 'Live' : `${duration(age)} ago`
  if (failure) text = 'Not up to date'
  else if (at === 0) text = 'Loading'
  else if (isPaused) text = `Paused, ${duration(age)} old`
  return (
    <button
      type="button"
      class={`button quiet fresh ${failure ? 'bad' : isPaused ? '' : 'good'}`}
      onClick={reload}
      title={at ? `Last read ${new Date(at).toTimeString().slice(0, 8)}. Click to read again.` : undefined}
    >
      {text}
    </button>
  )
}

export const NotFound = () => (
  <Page title="Page not found">
    <p>
      Check the address, or go to <a href={to('/')}>Needs attention</a>.
    </p>
  </Page>
)
