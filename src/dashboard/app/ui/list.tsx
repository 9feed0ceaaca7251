/** Lists: filters in the address, keyset pages, totals. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Cues } from '../../../client/types.ts'
import { get } from '../api.ts'
import type { Option } from '../labels.ts'
import { useRead } from '../query.ts'
import { usePlace } from '../router.ts'
import { Button, type Children, count, counted, Empty, isNarrow, totalText } from './basics.tsx'
import { act } from './dialog.tsx'
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

type Listed = Cues['cues'][number]
type TypedProps = {
  name: string
  label: string
  suggest: (cue: Listed) => readonly string[]
  /** What the filter takes, and how it is shown; otherwise the text itself. */
  toValue?: (text: string, newest: Listed[]) => Promise<string | undefined>
  toText?: (value: string, newest: Listed[]) => string | undefined
}
/** A filter that is typed, with suggestions from the newest cues. */
const TypedFilter = ({ name, label, suggest, toValue, toText }: TypedProps) => {
  const { query, setQuery } = usePlace()
  const [isUsed, use] = useState(false)
  const newest = useRead<Cues>(isUsed ? '/v1/cues' : undefined, { limit: 100, count_to: 0 }, { repeat: false }).data?.cues ?? []
  const applied = query[name] ?? ''
  const shown = toText?.(applied, newest) ?? applied
  const [text, setText] = useState(shown)
  useEffect(() => setText(shown), [shown])
  const apply = () => act(async () => setQuery({ [name]: ((await toValue?.(text.trim(), newest)) ?? text.trim()) || undefined }))
  return (
    <TextField
      {...{ label, placeholder: `Any ${label.toLowerCase()}`, hidden: true, value: text, onInput: setText, maxLength: 255 }}
      list={[...new Set(newest.flatMap(suggest))].sort()}
      onFocus={() => use(true)}
      onChange={() => void apply()}
    />
  )
}
export const TagFilter = () => <TypedFilter name="tag" label="Tag" suggest={({ tags }) => tags} />

const cueOf = async (text: string, newest: Listed[]) =>
  newest.find(({ name }) => name === text)?.id ??
  (text && (await get<Cues>('/v1/cues', { search: text, limit: 1, count_to: 0 })).cues[0]?.id)
const nameOf = (value: string, newest: Listed[]) => newest.find(({ id }) => id === value)?.name
/** A cue by its name, or by what else finds it. */
export const CueFilter = () => <TypedFilter name="cue_id" label="Cue" suggest={({ name }) => [name]} toValue={cueOf} toText={nameOf} />

/** On a phone, filters behind a button; shown while one of them is set. */
export const FilterFold = ({ isSet, children }: { isSet: boolean; children: Children }) =>
  isNarrow() ? (
    <details class="filter-fold" open={isSet}>
      <summary>Filters</summary>
      <div class="row filters">{children}</div>
    </details>
  ) : (
    children
  )

/** Filters that are set by links, such as a worker; they can be removed. */
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

const Footer = ({ text, children }: { text: string; children: Children }) => (
  <footer class="split pager">
    <p class="soft" role="status">
      {text}
    </p>
    <div class="row">{children}</div>
  </footer>
)

type PagerProps = { total: number; total_exact: boolean; next_cursor: string | null; noun: string }
/** Forward by cursor; back is the browser's. */
export const Pager = ({ total, total_exact, next_cursor, noun }: PagerProps) => {
  const { query, setQuery } = usePlace()
  const show = (cursor: string | undefined) => setQuery({ cursor }, { replace: false })
  return (
    <Footer text={`${totalText({ total, total_exact })} ${noun}${total === 1 && total_exact ? '' : 's'}`}>
      {query.cursor && <Button label="First page" onClick={() => show(undefined)} />}
      {query.cursor && <Button label="Previous" icon="back" onClick={() => history.back()} />}
      {next_cursor && <Button label="Next" icon="right" onClick={() => show(next_cursor)} />}
    </Footer>
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
      <Footer text={counted(total, noun)}>
        {offset > 0 && <Button label="Newer" icon="back" onClick={() => move(-limit)} />}
        {offset + limit < total && <Button label="Older" icon="right" onClick={() => move(limit)} />}
      </Footer>
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

/** Time windows that end now, chosen in the address. */
const spans: Record<string, [label: string, ms: number]> = {
  '1h': ['Last hour', 3_600_000],
  '24h': ['Last 24 hours', 86_400_000],
  '7d': ['Last 7 days', 604_800_000],
  '30d': ['Last 30 days', 2_592_000_000]
}

export const windows = Object.entries(spans).map(([value, [label]]) => ({ value, label }))

/** The start of the window. To the minute, so that the address of the read stays the same. */
export const startOf = (within: string | undefined): string | undefined => {
  const span = spans[within ?? '']
  return span && new Date(Math.floor((Date.now() - span[1]) / 60_000) * 60_000).toISOString()
}

/** The window of the address, or the usual one. */
export const useWindow = (usual: string): { within: string; from: string } => {
  const { within: chosen = usual } = usePlace().query
  const within = spans[chosen] ? chosen : usual
  return { within, from: startOf(within)! }
}

export const WindowSelect = ({ usual }: { usual: string }) => (
  <FilterSelect label={spans[usual]![0]} name="within" options={windows.filter(({ value }) => value !== usual)} />
)
