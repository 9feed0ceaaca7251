/** The page of each path, and filters in the query. Links are ordinary links, so they can be copied, shared and opened in other tabs. */
import { serviceRoot } from './root.ts'
import { createStore } from './store.ts'

export const base = `${serviceRoot}/dashboard`

const href = createStore('')
const changed = () => href.set(location.pathname + location.search)
addEventListener('popstate', changed)

/** The address of a page: `/cues`, with filters. */
export const to = (path: string, query: Record<string, string | undefined> = {}): string => {
  const set = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const text = new URLSearchParams(set).toString()
  return `${base}${path === '/' ? '' : path}${text && `?${text}`}`
}

export const go = (target: string, { replace = false } = {}): void => {
  if (target === location.pathname + location.search + location.hash) return
  history[replace ? 'replaceState' : 'pushState'](null, '', target)
  changed()
  if (!replace) scrollTo(0, 0)
}

/** Follows links within the dashboard without loading the page again. */
export const followLinks = (): void => {
  document.addEventListener('click', event => {
    const link = (event.target as Element).closest?.('a')
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.target || link.hasAttribute('download') || link.origin !== location.origin) return
    if (link.pathname !== base && !link.pathname.startsWith(`${base}/`)) return
    event.preventDefault()
    go(link.pathname + link.search + link.hash)
  })
}

export type Place = { path: string; query: URLSearchParams }
let known = { href: '', place: { path: '', query: new URLSearchParams() } }

const placeNow = (): Place => {
  const { pathname, search } = location
  const address = pathname + search
  if (known.href !== address) {
    const path = pathname.slice(base.length).replace(/\/+$/, '') || '/'
    known = { href: address, place: { path, query: new URLSearchParams(search) } }
  }
  return known.place
}

export const usePlace = (): Place => {
  href.use()
  return placeNow()
}

/** Changes filters of this page's address. Any change begins the list again. */
export const setQuery = (changes: Record<string, string | undefined>, { replace = true } = {}): void => {
  const { path, query } = placeNow()
  const next = { ...Object.fromEntries(query), cursor: undefined, offset: undefined, back: undefined, ...changes }
  go(to(path, next), { replace })
}
