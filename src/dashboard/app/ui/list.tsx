/** Lists: filters in the address, keyset pages, totals. */

import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import type { Read } from '../query.ts'
import { setQuery, usePlace } from '../router.ts'
import { Button, type Children, count, counted, Empty, Loading, Problem, totalText } from './basics.tsx'
import { type Option, SelectField } from './form.tsx'
import { Icon } from './icon.tsx'
import { Table } from './table.tsx'

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
  return (
    <div class="search">
      <Icon name="search" size={18} />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={text}
        data-search
        onInput={event => setText(event.currentTarget.value)}
        onKeyDown={event => event.key === 'Escape' && event.currentTarget.blur()}
      />
      <kbd aria-hidden="true">/</kbd>
    </div>
  )
}

export const FilterSelect = ({ label, name, options }: { label: string; name: string; options: Option[] }) => {
  const { query } = usePlace()
  return (
    <SelectField
      label={label}
      hidden
      value={query.get(name) ?? ''}
      onInput={value => setQuery({ [name]: value || undefined })}
      options={[{ value: '', label }, ...options]}
    />
  )
}

/** A filter that is set by links, such as a tag; it can be removed. */
export const FilterChip = ({ label, name }: { label: string; name: string }) => {
  const value = usePlace().query.get(name)
  if (!value) return null
  return (
    <button type="button" class="chip" onClick={() => setQuery({ [name]: undefined })} aria-label={`Remove the filter ${label} ${value}`}>
      <span class="soft">{`${label} `}</span>
      {value}
      <Icon name="close" size={15} />
    </button>
  )
}

export const Filters = ({ children }: { children: Children }) => <search class="filters">{children}</search>

type PagerProps = { total: number; total_exact: boolean; next_cursor: string | null; noun: string }
/** Forward by cursor; back is the browser's. */
export const Pager = ({ total, total_exact, next_cursor, noun }: PagerProps) => {
  const cursor = usePlace().query.get('cursor')
  return (
    <footer class="pager">
      <p class="soft" role="status">{`${totalText({ total, total_exact })} ${noun}${total === 1 && total_exact ? '' : 's'}`}</p>
      <div class="actions">
        {cursor && <Button label="First page" onClick={() => setQuery({ cursor: undefined }, { replace: false })} />}
        {cursor && <Button label="Previous" icon="back" onClick={() => history.back()} />}
        {next_cursor && <Button label="Next" icon="right" onClick={() => setQuery({ cursor: next_cursor }, { replace: false })} />}
      </div>
    </footer>
  )
}

/** Newest first, by offset. */
export const OffsetPager = ({ total, offset, limit, noun }: { total: number; offset: number; limit: number; noun: string }) => {
  const move = (by: number) => setQuery({ offset: String(Math.max(offset + by, 0)) }, { replace: false })
  return (
    <footer class="pager">
      <p class="soft">{counted(total, noun)}</p>
      <div class="actions">
        {offset > 0 && <Button label="Newer" icon="back" onClick={() => move(-limit)} />}
        {offset + limit < total && <Button label="Older" icon="right" onClick={() => move(limit)} />}
      </div>
    </footer>
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
  return (
    <>
      <Problem failure={failure} />
      {!data ? (
        !failure && <Loading key="loading" />
      ) : data.total === 0 && empty ? (
        empty
      ) : (
        <>
          <div class="panel flush">
            <Table caption={caption} columns={columns}>
              {rows(data)}
            </Table>
          </div>
          <OffsetPager {...data} noun={noun} />
        </>
      )}
    </>
  )
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
  next_cursor === null ? (
    <Empty title={`No ${noun} matches`} text="Remove a filter to see more." />
  ) : (
    <Empty
      title={`No match among ${count(SEARCH_TO)} ${noun}s`}
      text="Go on with older ones, or remove a filter."
      action={<Button label="Search older ones" kind="main" onClick={() => setQuery({ cursor: next_cursor }, { replace: false })} />}
    />
  )
