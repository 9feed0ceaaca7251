/** Lists: filters in the address, keyset pages, totals. */

import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { h } from '../h.ts'
import type { Read } from '../query.ts'
import { setQuery, usePlace } from '../router.ts'
import { Button, type Children, count, counted, Empty, Loading, Problem, totalText } from './basics.ts'
import { type Option, SelectField } from './form.ts'
import { Icon } from './icon.ts'
import { Table } from './table.ts'

/** A filter by text, applied shortly after the last letter. */
export const SearchBox = ({ label, name = 'search' }: { label: string; name?: string }) => {
  const { query } = usePlace()
  const given = query.get(name) ?? ''
  const [text, setText] = useState(given)
  useEffect(() => setText(given), [given])
  useEffect(() => {
    if (text === given) return
    const timer = setTimeout(() => setQuery({ [name]: text || undefined }), 250)
    return () => clearTimeout(timer)
  }, [text])
  return h(
    'div',
    { class: 'search' },
    h(Icon, { name: 'search', size: 18 }),
    h('input', {
      type: 'search',
      'aria-label': label,
      placeholder: label,
      value: text,
      'data-search': true,
      onInput: event => setText(event.currentTarget.value),
      onKeyDown: event => event.key === 'Escape' && event.currentTarget.blur()
    }),
    h('kbd', { 'aria-hidden': 'true' }, '/')
  )
}

export const FilterSelect = ({ label, name, options }: { label: string; name: string; options: Option[] }) => {
  const { query } = usePlace()
  return h(SelectField, {
    label,
    hidden: true,
    value: query.get(name) ?? '',
    onInput: value => setQuery({ [name]: value || undefined }),
    options: [{ value: '', label }, ...options]
  })
}

/** A filter that is set by links, such as a tag; it can be removed. */
export const FilterChip = ({ label, name }: { label: string; name: string }) => {
  const value = usePlace().query.get(name)
  if (!value) return null
  return h(
    'button',
    { type: 'button', class: 'chip', onClick: () => setQuery({ [name]: undefined }), 'aria-label': `Remove the filter ${label} ${value}` },
    h('span', { class: 'soft' }, `${label} `),
    value,
    h(Icon, { name: 'close', size: 15 })
  )
}

export const Filters = ({ children }: { children: Children }) => h('div', { class: 'filters', role: 'search' }, children)

type PagerProps = { total: number; total_exact: boolean; next_cursor: string | null; noun: string }
/** Forward by cursor; back is the browser's. */
export const Pager = ({ total, total_exact, next_cursor, noun }: PagerProps) => {
  const cursor = usePlace().query.get('cursor')
  return h(
    'footer',
    { class: 'pager' },
    h('p', { class: 'soft', role: 'status' }, `${totalText({ total, total_exact })} ${noun}${total === 1 && total_exact ? '' : 's'}`),
    h(
      'div',
      { class: 'actions' },
      cursor && h(Button, { label: 'First page', onClick: () => setQuery({ cursor: undefined }, { replace: false }) }),
      cursor && h(Button, { label: 'Previous', icon: 'back', onClick: () => history.back() }),
      next_cursor && h(Button, { label: 'Next', icon: 'right', onClick: () => setQuery({ cursor: next_cursor }, { replace: false }) })
    )
  )
}

/** Newest first, by offset. */
export const OffsetPager = ({ total, offset, limit, noun }: { total: number; offset: number; limit: number; noun: string }) => {
  const move = (by: number) => setQuery({ offset: String(Math.max(offset + by, 0)) }, { replace: false })
  return h(
    'footer',
    { class: 'pager' },
    h('p', { class: 'soft' }, counted(total, noun)),
    h(
      'div',
      { class: 'actions' },
      offset > 0 && h(Button, { label: 'Newer', icon: 'back', onClick: () => move(-limit) }),
      offset + limit < total && h(Button, { label: 'Older', icon: 'right', onClick: () => move(limit) })
    )
  )
}

type ListProps<T> = {
  read: Read<T>
  caption: string
  columns: string[]
  noun: string
  /** What an empty list shows. */
  empty?: VNode
  rows: (data: T) => Children
}
/** A table that is read by offset, with its pager. */
export const OffsetList = <T extends { total: number; offset: number; limit: number }>(props: ListProps<T>) => {
  const { read, caption, columns, noun, empty, rows } = props
  const { data, failure } = read
  return [
    h(Problem, { key: 'problem', failure }),
    !data
      ? !failure && h(Loading, { key: 'loading' })
      : data.total === 0 && empty
        ? empty
        : [
            h('div', { key: 'list', class: 'panel flush' }, h(Table, { caption, columns }, rows(data))),
            h(OffsetPager, { key: 'pager', ...data, noun })
          ]
  ]
}

/** The offset of the address. */
export const useOffset = (): number => Math.max(Math.trunc(Number(usePlace().query.get('offset'))) || 0, 0)

/** The filters of the address that a list takes. */
export const useFilters = (names: readonly string[]): Record<string, string | undefined> => {
  const { query } = usePlace()
  return Object.fromEntries(names.map(name => [name, query.get(name) ?? undefined]))
}

/** How many a page of a filtered list goes through at most. */
export const SEARCH_TO = 10_000

/** A filtered list without matches: older ones may be found by going on. */
export const NoMatch = ({ noun, next_cursor }: { noun: string; next_cursor: string | null }) =>
  next_cursor === null
    ? h(Empty, { title: `No ${noun} matches`, text: 'Remove a filter to see more.' })
    : h(Empty, {
        title: `No match among ${count(SEARCH_TO)} ${noun}s`,
        text: 'Go on with older ones, or remove a filter.',
        action: h(Button, {
          label: 'Search older ones',
          kind: 'main',
          onClick: () => setQuery({ cursor: next_cursor }, { replace: false })
        })
      })
