/** The list of cues. */
import type { Cue, Cues } from '../../../client/types.ts'
import { post } from '../api.ts'
import { useRowShortcuts, useShortcuts } from '../keys.ts'
import { labelOf, options, optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, ButtonLink, Empty, Tag } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { FilterChips, FilterSelect, NoMatch, Pager, SEARCH_TO, SearchBox, TagFilter, useFilters } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink, Dots, streakOf } from '../ui/results.tsx'
import { BulkBar, type BulkType, useSelection } from '../ui/select.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { createCueCalls } from './teach.ts'

type Listed = Cues['cues'][number]

export const CueStatus = ({ cue }: { cue: Pick<Cue, 'status' | 'paused_by'> }) => {
  if (cue.status === 'active') return <Badge tone="good">active</Badge>
  if (cue.status === 'paused') return <Badge tone={cue.paused_by && cue.paused_by !== 'user' ? 'bad' : 'warn'}>paused</Badge>
  return <Badge tone={cue.status === 'failed' ? 'bad' : 'quiet'}>{cue.status}</Badge>
}

/** Why it is paused, in a few words. */
export const pauseText = ({ paused_by, pause_reason }: Pick<Cue, 'paused_by' | 'pause_reason'>): string =>
  pause_reason || (paused_by ? labelOf('pauseCause', paused_by) : 'Paused')

export const zoneOf = (cue: Pick<Cue, 'schedule'>): string | undefined => cue.schedule?.timezone

/** In one line; all of it on hover. */
const Schedule = ({ cue }: { cue: Listed }) => {
  const text = cue.schedule?.type === 'once' ? 'Once' : (cue.summary?.schedule ?? '').replace(/, [^,]+$/, '')
  return (
    <span class="one-line" title={cue.summary?.schedule ?? undefined}>
      {text} <span class="soft">{zoneOf(cue)}</span>
    </span>
  )
}

const Streak = ({ of }: { of: number }) => {
  const text = `${of}${of === 20 ? '+' : ''}`
  return of > 1 ? (
    <Badge tone="bad" title={`${text} failures in a row`}>
      {`${text}×`}
    </Badge>
  ) : null
}

/** What a row's button and letter do. */
const rowActions = ({ status }: Pick<Cue, 'status'>) =>
  [
    { key: 'f', verb: 'fire', label: 'Fire', icon: 'cue' },
    ...(status === 'active' ? [{ key: 'p', verb: 'pause', label: 'Pause', icon: 'pause' } as const] : []),
    ...(status === 'paused' ? [{ key: 'p', verb: 'resume', label: 'Resume', icon: 'play' } as const] : [])
  ] as const
type RowAction = ReturnType<typeof rowActions>[number]
const run = ({ verb }: RowAction, { id, name }: Listed) =>
  act(() => post(`/v1/cues/${id}/${verb}`, {}, { 'idempotency-key': crypto.randomUUID() }), `${name}: ${verb}d`)

const Actions = ({ cue, reload }: { cue: Listed; reload: () => void }) => (
  <div class="row hovered">
    {rowActions(cue).map(action => (
      <Button
        key={action.verb}
        label={`${action.label} ${cue.name}`}
        icon={action.icon}
        kind="quiet"
        iconOnly
        onClick={() => void run(action, cue).then(reload)}
      />
    ))}
  </div>
)

const columns: Column<Listed>[] = [
  [
    'Name',
    cue => (
      <div class="one-line">
        <CueLink id={cue.id} name={cue.name} />
        {cue.tags.map(tag => (
          <Tag key={tag} label={tag} href={to('/cues', { tag })} />
        ))}
        {cue.key && <span class="mono soft">{cue.key}</span>}
      </div>
    ),
    'cell-main'
  ],
  ['Schedule', cue => <Schedule cue={cue} />, 'cell-schedule bare'],
  [
    'Next run',
    cue =>
      cue.status === 'active' ? (
        <When at={cue.next_run} zone={zoneOf(cue)} isNext />
      ) : (
        <span class="one-line" title={cue.status === 'paused' ? pauseText(cue) : undefined}>
          <CueStatus cue={cue} /> {cue.status === 'paused' && <span class="soft">{pauseText(cue)}</span>}
        </span>
      ),
    'cell-next bare'
  ],
  [
    'Latest results',
    ({ summary }) => (
      <div class="row results">
        <Dots latest={summary?.latest ?? []} />
        <Streak of={streakOf(summary?.latest ?? [])} />
      </div>
    ),
    'cell-dots bare'
  ]
]

const bulkTypes: BulkType[] = [
  { type: 'pause', label: 'Pause', icon: 'pause', does: 'will be paused', hasReason: true },
  { type: 'resume', label: 'Resume', icon: 'play', does: 'will run again' },
  { type: 'fire', label: 'Fire', icon: 'cue', does: 'will be fired once' },
  { type: 'delete', label: 'Delete', icon: 'trash', does: 'will be deleted with all history, which cannot be undone', isDangerous: true }
]

const orders = [
  { value: 'next_run', label: 'Next run first' },
  { value: 'name', label: 'By name' },
  { value: 'failures', label: 'Most failures first' }
]

export const CuesPage = () => {
  const { sort, ...filters } = useFilters('search status transport tag set calendar key cursor sort')
  const read = useRead<Cues>('/v1/cues', { ...filters, sort, summary: true, limit: 50, count_to: 1000, search_to: SEARCH_TO })
  const me = useMe()
  const mayWrite = useMay('write')
  const { go } = usePlace()
  const actOn = (key: string, text: string) => {
    const start = (cue: Listed) => rowActions(cue).forEach(action => void (action.key === key && run(action, cue).then(read.reload)))
    return { key, text, run: start }
  }
  useShortcuts(mayWrite ? [{ key: 'c', text: 'Create a cue', run: () => go(to('/cues/new')) }] : [])
  useRowShortcuts(read.data?.cues, mayWrite ? [actOn('f', 'Fire the row'), actOn('p', 'Pause or resume the row')] : [])
  const isFiltered = Object.values(filters).some(Boolean)
  const { cursor: _, key: __, ...filter } = filters
  const selection = useSelection(read.data?.cues.map(({ id }) => id) ?? [], JSON.stringify(filters))
  const create = mayWrite ? <ButtonLink label="Create a cue" href={to('/cues/new')} icon="plus" kind="main" /> : undefined
  const text = 'A cue is a scheduled task: when it runs, and where it is delivered. Create one here, or from your code:'
  const instead = ({ cues, next_cursor }: Cues) => {
    if (cues.length === 0 && isFiltered) return <NoMatch noun="cue" next_cursor={next_cursor} />
    return cues.length === 0 && <Empty title="No cues yet" text={text} action={create} calls={createCueCalls(me)} />
  }
  return (
    <Page
      title="Cues"
      read={read}
      actions={create}
      filters={
        (isFiltered || (read.data && read.data.total > 0)) && (
          <>
            <SearchBox label="Search name, key, task or tag" />
            <FilterSelect label="Any status" name="status" options={optionsOf('cueStatus')} />
            <FilterSelect label="Any transport" name="transport" options={options(['webhook', 'worker'])} />
            <TagFilter />
            <FilterSelect label="Newest first" name="sort" options={orders} />
            <FilterChips names={{ set: 'Set', calendar: 'Calendar' }} />
          </>
        )
      }
      instead={instead}
    >
      {data => (
        <>
          {mayWrite && <BulkBar selection={selection} total={data} noun="cue" types={bulkTypes} filter={filter} />}
          <div class="panel flush">
            <Table
              caption="Cues"
              kind="lines cues"
              columns={mayWrite ? [...columns, ['', cue => <Actions cue={cue} reload={read.reload} />, 'cell-actions']] : columns}
              rows={data.cues}
              id={({ id }) => id}
              select={mayWrite ? { selection, label: ({ name }) => name } : undefined}
            />
          </div>
          <Pager {...data} noun="cue" />
        </>
      )}
    </Page>
  )
}
