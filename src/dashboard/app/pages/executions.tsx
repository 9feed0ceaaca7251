/** The list of executions. */

import type { Execution, Executions } from '../../../client/types.ts'

import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { duration, localZone, serviceNow, useZone } from '../time.ts'
import { counted, Empty, Loading, Problem } from '../ui/basics.tsx'
import { Page } from '../ui/frame.tsx'
import { FilterChip, FilterSelect, Filters, NoMatch, Pager, SEARCH_TO, SearchBox, useFilters } from '../ui/list.tsx'
import { CueLink, OutcomeBadge, StatusBadge } from '../ui/results.tsx'
import { BulkBar, type BulkType, SelectBox, SelectHead, type Selection, useSelection } from '../ui/select.tsx'
import { When } from '../ui/when.tsx'
import { startOf, windows } from '../ui/window.tsx'
import { fireCalls } from './teach.ts'

const triggers: Record<string, string> = { schedule: 'schedule', manual_fire: 'fired', replay: 'replay' }

const running = ['pending', 'delivering', 'retrying', 'retry_ready', 'pending_outcome']
export const isRunning = ({ status }: Pick<Execution, 'status'>): boolean => running.includes(status)

/** Milliseconds to the next read while an execution is about to change. One that waits for long changes later. */
export const whileMoving = (executions: Pick<Execution, 'status' | 'updated_at'>[]): number | undefined =>
  executions.some(one => isRunning(one) && serviceNow() - Date.parse(one.updated_at) < 60_000) ? 2000 : undefined

/** The time from the first attempt to the result. */
export const durationOf = ({ started_at, delivered_at, outcome, last_attempt_at }: Execution): string => {
  const end = outcome?.recorded_at ?? delivered_at ?? last_attempt_at
  return started_at && end ? duration(Math.max(Date.parse(end) - Date.parse(started_at), 0)) : '–'
}

type Brief = Execution | (Omit<Execution, 'outcome'> & { outcome: unknown })

type RowProps = { of: Execution; ofOneCue?: boolean; zone?: string; selection?: Selection }

const Row = ({ of, ofOneCue, zone, selection }: RowProps) => {
  const reason = of.error_message ?? of.outcome?.error ?? of.outcome?.summary ?? of.outcome?.result
  const place = to(`/executions/${of.id}`)
  const outcome = of.outcome_state ? (
    <OutcomeBadge state={of.outcome_state} />
  ) : (
    of.http_status && <span class="soft nowrap">{`HTTP ${of.http_status}`}</span>
  )
  return (
    <tr data-row class={selection?.ids.has(of.id) ? 'selected' : undefined}>
      {selection && (
        <SelectBox label={`Select the execution ${of.id}`} checked={selection.ids.has(of.id)} onChange={() => selection.toggle(of.id)} />
      )}
      <td class="cell-status">
        <a class="row-link" href={place}>
          <StatusBadge of={of} />
          <span class="unseen">{` execution of ${of.cue_name}`}</span>
        </a>
      </td>
      <td class="cell-main">
        {!ofOneCue && <CueLink id={of.cue_id} name={of.cue_name} />}
        <div class={ofOneCue ? 'soft clip' : 'under clip'}>
          {reason || (of.triggered_by === 'schedule' ? 'on schedule' : triggers[of.triggered_by])}
        </div>
        {ofOneCue && (
          <div class="under">
            {outcome}
            {of.attempts > 1 && counted(of.attempts, 'attempt')}
          </div>
        )}
      </td>
      <td class="cell-when">
        <a href={place} tabIndex={-1}>
          <When at={of.scheduled_for} zone={zone} />
        </a>
      </td>
      {!ofOneCue && <td class="cell-outcome">{outcome || <span class="soft">–</span>}</td>}
      {!ofOneCue && <td class="number cell-attempts">{of.attempts}</td>}
      <td class="number cell-duration">{durationOf(of)}</td>
    </tr>
  )
}

const classes: Record<string, string> = { Outcome: 'cell-outcome', Attempts: 'number cell-attempts', Duration: 'number' }

type TableProps = { executions: Brief[]; ofOneCue?: boolean; zone?: string; selection?: Selection }

export const ExecutionTable = ({ executions, ofOneCue, zone, selection }: TableProps) => (
  <table class="table executions">
    <caption class="unseen">Executions</caption>
    <thead>
      <tr>
        {selection && <SelectHead checked={executions.every(({ id }) => selection.ids.has(id))} onChange={selection.togglePage} />}
        {(ofOneCue
          ? ['Status', 'Result', 'Scheduled for', 'Duration']
          : ['Status', 'Cue', 'Scheduled for', 'Outcome', 'Attempts', 'Duration']
        ).map(name => (
          <th key={name} scope="col" class={classes[name]}>
            {name}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {executions.map(of => (
        <Row key={of.id} of={of as Execution} ofOneCue={ofOneCue} zone={zone} selection={selection} />
      ))}
    </tbody>
  </table>
)

const options = (values: string[], texts: Record<string, string> = {}) =>
  values.map(value => ({ value, label: texts[value] ?? value.replaceAll('_', ' ') }))

const bulkTypes: BulkType[] = [
  { type: 'replay', label: 'Replay', icon: 'replay', does: 'will be replayed as new executions' },
  { type: 'cancel', label: 'Cancel', icon: 'stop', does: 'will be cancelled', isDangerous: true },
  { type: 'dismiss', label: 'Dismiss', icon: 'check', does: 'will no longer be listed as dead letters' }
]

export const ExecutionsPage = () => {
  const { within, ...filters } = useFilters([
    'cue_id',
    'status',
    'outcome_state',
    'triggered_by',
    'worker_id',
    'result_type',
    'tag',
    'error',
    'error_group',
    'dead',
    'from',
    'to',
    'within',
    'cursor'
  ])
  const since = startOf(within)
  const query = { ...filters, since, limit: 50, count_to: 1000, search_to: SEARCH_TO }
  const read = useRead<Executions>('/v1/executions', query, { every: ({ executions }) => whileMoving(executions) })
  const me = useMe()
  useRows()
  const { data } = read
  const isFiltered = Object.values(filters).some(Boolean) || Boolean(since)
  const { cursor: _, result_type, dead, from, ...rest } = filters
  // Without a start, an operation would take those of the last 7 days only.
  const filter = { ...rest, dead: dead === 'true' || undefined, from: since ?? from ?? '2000-01-01T00:00:00Z' }
  const rows = useSelection(data?.executions.map(({ id }) => id) ?? [], JSON.stringify(filters))
  const selection = useMay('write') ? rows : undefined
  return (
    <Page title="Executions" read={read} about={useZone() === 'cue' && `Times are in your zone, ${localZone()}.`}>
      <Filters>
        <FilterSelect
          label="Any status"
          name="status"
          options={options(['pending', 'delivering', 'success', 'failed', 'retrying', 'missed', 'pending_outcome', 'outcome_timeout'], {
            pending: 'waiting',
            delivering: 'running'
          })}
        />
        <FilterSelect
          label="Any outcome"
          name="outcome_state"
          options={options([
            'reported_success',
            'reported_failure',
            'verified_success',
            'verification_pending',
            'verification_failed',
            'unknown'
          ])}
        />
        <FilterSelect label="Any trigger" name="triggered_by" options={options(['schedule', 'manual_fire', 'replay'], triggers)} />
        <FilterSelect label="Any time" name="within" options={windows} />
        <FilterSelect label="All executions" name="dead" options={[{ value: 'true', label: 'dead letters only' }]} />
        <SearchBox label="Search errors" name="error" />
        <FilterChip label="Error" name="error_group" />
        <FilterChip label="Cue" name="cue_id" />
        <FilterChip label="Tag" name="tag" />
        <FilterChip label="Worker" name="worker_id" />
        <FilterChip label="From" name="from" />
        <FilterChip label="Until" name="to" />
      </Filters>
      <Problem failure={read.failure} />
      {!data ? (
        !read.failure && <Loading lines={8} />
      ) : data.executions.length === 0 ? (
        isFiltered ? (
          <NoMatch noun="execution" next_cursor={data.next_cursor} />
        ) : (
          <Empty title="Nothing has run yet" text="Each run of a cue is an execution. Fire a cue to see one now:" calls={fireCalls(me)} />
        )
      ) : (
        <>
          {/* Operations have no filter by the kind of result. */}
          {selection && (
            <BulkBar selection={selection} total={data} noun="execution" types={bulkTypes} filter={result_type ? {} : filter} />
          )}
          <div class="panel flush">
            <ExecutionTable executions={data.executions} selection={selection} />
          </div>
          <Pager {...data} noun="execution" />
        </>
      )}
    </Page>
  )
}
