/** The page of each path, and filters in the query. Links are ordinary links, so they can be copied, shared and opened in other tabs. */
import { useLocation } from 'preact-iso/router'
import { serviceRoot } from './root.ts'

export const base = `${serviceRoot}/dashboard`

type Query = Record<string, string | undefined>

/** The address of a page: `/cues`, with filters. */
export const to = (path: string, query: Query = {}): string => {
  const set = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const text = new URLSearchParams(set).toString()
  return `${base}${path === '/' ? '' : path}${text && `?${text}`}`
}

type Place = {
  path: string
  query: Query
  go: (target: string, options?: { replace?: boolean }) => void
  /** Changes filters of this page's address. Any change begins the list again. */
  setQuery: (changes: Query, options?: { replace?: boolean }) => void
}

export const usePlace = (): Place => {
  const { path, query, route } = useLocation()
  const go: Place['go'] = (target, { replace = false } = {}) => {
    if (target !== location.pathname + location.search) route(target, replace)
  }
  const setQuery: Place['setQuery'] = (changes, { replace = true } = {}) => {
    const now = Object.fromEntries(new URLSearchParams(location.search))
    go(to(location.pathname.slice(base.length), { ...now, cursor: undefined, offset: undefined, ...changes }), { replace })
  }
  return { path: path.slice(base.length) || '/', query, go, setQuery }
}
