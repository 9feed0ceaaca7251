/** Lists: filters in the address, keyset pages, totals. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Cues } from '../../../client/types.ts'
import type { Option } from '../labels.ts'
import { useRead } from '../query.ts'
import { usePlace } from '../router.ts'
import { Button, count, counted, Empty, totalText } from './basics.tsx'
import { SelectField, TextField } from './form.tsx'
import { Icon } from './icon.tsx'
import { type Column, Table } from './table.tsx'

/** A filter by text, applied shortly after the last letter. */
export const SearchBox = ({ label, name = 'search' }: { label: string; name?: string }) => {
  const { query, setQuery } = usePlace()
  const applied = query[name] ?? ''
  const [text, setText] = useState(applied)
  useEffect(() => setText(applied), [applied])
  useEffect(() => {
    if (text === applied) return
    const timer = setTimeout(() => setQuery({ [name]: text || undefined }), 250)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div class="search">
      <Icon name="search" size={16} />
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
  const { query, setQuery } = usePlace()
  return (
    <SelectField
      label={label}
      hidden
      value={query[name] ?? ''}
      onInput={value => setQuery({ [name]: value || undefined })}
      options={[{ value: '', label }, ...options]}
    />
  )
}

/** A tag, with those of the newest cues as suggestions. */
export const TagFilter = () => {
  const { query, setQuery } = usePlace()
  const applied = query.tag ?? ''
  const [text, setText] = useState(applied)
  const [isUsed, use] = useState(false)
  useEffect(() => setText(applied), [applied])
  const cues = useRead<Cues>(isUsed ? '/v1/cues' : undefined, { limit: 100, count_to: 0 }, { repeat: false }).data?.cues ?? []
  const tags = [...new Set(cues.flatMap(({ tags }) => tags))].sort()
  const apply = () => setQuery({ tag: text.trim() || undefined })
  return (
    <TextField
      {...{ label: 'Tag', placeholder: 'Any tag', hidden: true, list: tags, value: text, onInput: setText, maxLength: 64 }}
      onFocus={() => use(true)}
      onChange={apply}
    />
  )
}

/** Filters that are set by links, such as a cue; they can be removed. */
export const FilterChips = ({ names }: { names: Record<string, string> }) => {
  const { query, setQuery } = usePlace()
  return Object.entries(names).map(
    ([name, label]) =>
      query[name] && (
        <button
          key={name}
          type="button"
          class="chip"
          onClick={() => setQuery({ [name]: undefined })}
          aria-label={`Remove the filter ${label} ${query[name]}`}
        >
          <span class="soft">{label}</span>
          {query[name]}
          <Icon name="close" size={15} />
        </button>
      )
  )
}

type PagerProps = { total: number; total_exact: boolean; next_cursor: string | null; noun: string }
/** Forward by cursor; back is the browser's. */
export const Pager = ({ total, total_exact, next_cursor, noun }: PagerProps) => {
  const { query, setQuery } = usePlace()
  const show = (cursor: string | undefined) => setQuery({ cursor }, { replace: false })
  return (
    <footer class="split pager">
      <p class="soft" role="status">{`${totalText({ total, total_exact })} ${noun}${total === 1 && total_exact ? '' : 's'}`}</p>
      <div class="row">
        {query.cursor && <Button label="First page" onClick={() => show(undefined)} />}
        {query.cursor && <Button label="Previous" icon="back" onClick={() => history.back()} />}
        {next_cursor && <Button label="Next" icon="right" onClick={() => show(next_cursor)} />}
      </div>
    </footer>
  )
}

type OffsetPage = { total: number; offset: number; limit: number }
type PagedProps<T> = {
  page: OffsetPage
  rows: readonly T[]
  columns: readonly Column<T>[]
  caption: string
  noun: string
  empty?: VNode
  id?: (row: T) => string
}
/** A table that is read by offset, newest first, with its pager. */
export const Paged = <T,>({ page: { total, offset, limit }, empty, noun, ...table }: PagedProps<T>) => {
  const { setQuery } = usePlace()
  const move = (by: number) => setQuery({ offset: String(Math.max(offset + by, 0)) }, { replace: false })
  if (total === 0 && empty) return empty
  return (
    <>
      <div class="panel flush">
        <Table {...table} />
      </div>
      <footer class="split pager">
        <p class="soft">{counted(total, noun)}</p>
        <div class="row">
          {offset > 0 && <Button label="Newer" icon="back" onClick={() => move(-limit)} />}
          {offset + limit < total && <Button label="Older" icon="right" onClick={() => move(limit)} />}
        </div>
      </footer>
    </>
  )
}

/** The offset of the address. */
export const useOffset = (): number => Math.max(Math.trunc(Number(usePlace().query.offset)) || 0, 0)

/** The filters of the address that a list takes. */
export const useFilters = (names: string): Record<string, string | undefined> => {
  const { query } = usePlace()
  return Object.fromEntries(names.split(' ').map(name => [name, query[name]]))
}

/** How many a page of a filtered list goes through at most. */
export const SEARCH_TO = 10_000

/** A filtered list without matches: older ones may be found by going on. */
export const NoMatch = ({ noun, next_cursor }: { noun: string; next_cursor: string | null }) => {
  const { setQuery } = usePlace()
  if (next_cursor === null) return <Empty title={`No ${noun} matches`} text="Remove a filter to see more." />
  const more = () => setQuery({ cursor: next_cursor }, { replace: false })
  return (
    <Empty
      title={`No match among ${count(SEARCH_TO)} ${noun}s`}
      text="Go on with older ones, or remove a filter."
      action={<Button label="Search older ones" kind="main" onClick={more} />}
    />
  )
}
