/** The list of executions. */
import { enums } from '../../../catalog.ts'
import type { Execution, Executions, Overview } from '../../../client/types.ts'
import { labelOf, optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { areDense, duration, localZone, serviceNow, shortTime, useZone } from '../time.ts'
import { Bars } from '../ui/bars.tsx'
import { count, Empty } from '../ui/basics.tsx'
import {
  CueFilter,
  FilterChips,
  FilterFold,
  FilterSelect,
  NoMatch,
  Pager,
  SEARCH_TO,
  SearchBox,
  startOf,
  TagFilter,
  useFilters,
  useWindow,
  windows
} from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink, OutcomeBadge, StatusBadge } from '../ui/results.tsx'
import { BulkBar, type BulkType, type Selection, useSelection } from '../ui/select.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { fireCalls } from './teach.ts'

const statuses = enums.executionStatus
const running = ['pending', 'delivering', 'retrying', 'retry_ready', 'pending_outcome']
export const isRunning = ({ status }: Pick<Execution, 'status'>): boolean => running.includes(status)

/** Milliseconds to the next read while an execution is about to change. One that waits for long changes later. */
export const whileMoving = (executions: Pick<Execution, 'status' | 'updated_at'>[]): number | undefined =>
  executions.some(execution => isRunning(execution) && serviceNow() - Date.parse(execution.updated_at) < 60_000) ? 2000 : undefined

/** Milliseconds of the last attempt, and in total from the first one on, with the waits between them. */
export const durationsOf = (execution: Brief): { last: number; total: number } | undefined => {
  const { status, started_at, last_attempt_at, claimed_at, delivered_at, updated_at } = execution
  const outcome = execution.outcome as { recorded_at?: string } | null
  const end = outcome?.recorded_at ?? delivered_at ?? (status === 'failed' || status === 'outcome_timeout' ? updated_at : null)
  if (!started_at || !end) return
  const since = (start: string) => Math.max(Date.parse(end) - Date.parse(start), 0)
  return { last: since(last_attempt_at ?? claimed_at ?? started_at), total: since(started_at) }
}
const Duration = ({ of }: { of: Execution }) => {
  const { last, total } = durationsOf(of) ?? {}
  if (last === undefined) return '–'
  if (of.attempts < 2) return duration(last)
  const text = `the last of ${of.attempts} attempts; ${duration(total!)} in total`
  return (
    <span title={text}>
      {duration(last)} <span aria-hidden="true">*</span>
      <span class="unseen">{`, ${text}`}</span>
    </span>
  )
}

const reasonOf = ({ error_message, outcome, triggered_by }: Execution) =>
  error_message ??
  outcome?.error ??
  outcome?.summary ??
  outcome?.result ??
  (triggered_by === 'schedule' ? 'on schedule' : labelOf('triggerKind', triggered_by))

const Outcome = ({ of }: { of: Execution }) =>
  of.outcome_state ? <OutcomeBadge state={of.outcome_state} /> : <span class="soft">{of.http_status ? `HTTP ${of.http_status}` : '–'}</span>

const Reason = ({ of, ofOneCue }: { of: Execution; ofOneCue?: boolean }) => (
  <div class="one-line" title={of.error_message ?? undefined}>
    {ofOneCue ? <Outcome of={of} /> : <CueLink id={of.cue_id} name={of.cue_name} />}
    <span class="soft">{reasonOf(of)}</span>
  </div>
)

const columnsFor = (withSeconds: boolean, ofOneCue?: boolean, zone?: string): (Column<Execution> | false)[] => [
  [
    'Status',
    of => (
      <a class="row-link" href={to(`/executions/${of.id}`)}>
        <StatusBadge of={of} />
        <span class="unseen">{` execution of ${of.cue_name}`}</span>
      </a>
    ),
    'cell-status bare'
  ],
  [ofOneCue ? 'Result' : 'Cue', of => <Reason of={of} ofOneCue={ofOneCue} />, 'cell-main'],
  ['Scheduled for', of => <When at={of.scheduled_for} zone={zone} withSeconds={withSeconds} />, 'cell-when bare'],
  !ofOneCue && ['Outcome', of => <Outcome of={of} />, 'cell-outcome minor bare'],
  !ofOneCue && ['Attempts', of => of.attempts, 'number minor'],
  ['Duration', of => <Duration of={of} />, 'number']
]

type Brief = Execution | (Omit<Execution, 'outcome'> & { outcome: unknown })
type TableProps = { executions: Brief[]; ofOneCue?: boolean; zone?: string; selection?: Selection }

/** Whether slots of a cue are less than a minute apart. */
const isDense = (executions: Brief[]) => {
  const slots = executions.filter(({ triggered_by }) => triggered_by === 'schedule')
  return [...Map.groupBy(slots, ({ cue_id }) => cue_id).values()].some(runs => areDense(runs.map(({ scheduled_for }) => scheduled_for)))
}

export const ExecutionTable = ({ executions, ofOneCue, zone, selection }: TableProps) => (
  <Table
    caption="Executions"
    kind="lines executions"
    columns={columnsFor(isDense(executions), ofOneCue, zone)}
    rows={executions as Execution[]}
    id={({ id }) => id}
    select={selection && { selection, label: ({ id }) => `the execution ${id}` }}
  />
)

const bulkTypes: BulkType[] = [
  { type: 'replay', label: 'Replay', icon: 'replay', does: 'will be replayed as new executions' },
  { type: 'cancel', label: 'Cancel', icon: 'stop', does: 'will be cancelled', isDangerous: true },
  { type: 'dismiss', label: 'Dismiss', icon: 'check', does: 'will no longer be listed as dead letters' }
]

const filterNames = 'cue_id status outcome_state triggered_by worker_id result_type tag error error_group dead from to within cursor sort'
const chips = { error_group: 'Error', worker_id: 'Worker', from: 'From', to: 'Until' }

/** Counts by status as tabs, and the volume, of a window: the last 24 hours unless another one is chosen. */
const States = () => {
  const { within, from } = useWindow('24h')
  const { query, setQuery } = usePlace()
  const { data } = useRead<Overview>('/v1/overview', { from })
  const counts: [string, number][] = Object.entries(data?.by_status ?? {})
  const sum = counts.reduce((sum, [, executions]) => sum + executions, 0)
  const shown = statuses.filter(status => status === query.status || counts.some(([name]) => name === status))
  return (
    <div class="split states">
      <nav class="tabs" aria-label="Status">
        {['', ...shown].map(status => (
          <button
            key={status}
            type="button"
            aria-pressed={(query.status ?? '') === status}
            onClick={() => setQuery({ status: status || undefined })}
          >
            {status ? labelOf('executionStatus', status as Execution['status']) : 'all'}{' '}
            <span class="soft">{`${count(status ? (data?.by_status[status] ?? 0) : sum)}${sum >= 2000 ? '+' : ''}`}</span>
          </button>
        ))}
      </nav>
      <span class="soft">{windows.find(({ value }) => value === within)!.label}</span>
      {data && data.volume.length > 0 && <Bars volume={data.volume} label={`Executions since ${shortTime(data.since, localZone())}`} />}
    </div>
  )
}

export const ExecutionsPage = () => {
  const { within, sort, ...filters } = useFilters(filterNames)
  const since = startOf(within)
  const query = { ...filters, since, sort, limit: 50, count_to: 1000, search_to: SEARCH_TO }
  const read = useRead<Executions>('/v1/executions', query, { every: ({ executions }) => whileMoving(executions) })
  const me = useMe()
  const isFiltered = Object.values(filters).some(Boolean) || Boolean(since)
  const { cursor: _, result_type, dead, from, ...rest } = filters
  // Operations have no filter by the kind of result. Without a start, they would take those of the last 7 days only.
  const filter = result_type ? {} : { ...rest, dead: dead === 'true' || undefined, from: since ?? from ?? '2000-01-01T00:00:00Z' }
  const rows = useSelection(read.data?.executions.map(({ id }) => id) ?? [], JSON.stringify(filters))
  const selection = useMay('write') ? rows : undefined
  const text = 'Each run of a cue is an execution. Fire a cue to see one now:'
  const instead = ({ executions, next_cursor }: Executions) => {
    if (executions.length === 0 && isFiltered) return <NoMatch noun="execution" next_cursor={next_cursor} />
    return executions.length === 0 && <Empty title="Nothing has run yet" text={text} calls={fireCalls(me)} />
  }
  return (
    <Page
      title="Executions"
      read={read}
      instead={instead}
      about={useZone() === 'cue' && `Times are in your zone, ${localZone()}.`}
      filters={
        <>
          <States />
          <FilterFold isSet={isFiltered || Boolean(sort)}>
            <FilterSelect label="Any outcome" name="outcome_state" options={optionsOf('outcomeState')} />
            <FilterSelect label="Any trigger" name="triggered_by" options={optionsOf('triggerKind')} />
            <FilterSelect label="Any time" name="within" options={windows} />
            <FilterSelect label="All executions" name="dead" options={[{ value: 'true', label: 'dead letters only' }]} />
            <CueFilter />
            <TagFilter />
            <FilterSelect label="Newest first" name="sort" options={[{ value: 'duration', label: 'Longest of the newest 1,000' }]} />
          </FilterFold>
          <SearchBox label="Search errors" name="error" />
          <FilterChips names={chips} />
        </>
      }
    >
      {data => (
        <>
          {selection && <BulkBar selection={selection} total={data} noun="execution" types={bulkTypes} filter={filter} />}
          <div class="panel flush">
            <ExecutionTable executions={data.executions} selection={selection} />
          </div>
          <Pager {...data} noun="execution" />
        </>
      )}
    </Page>
  )
}
