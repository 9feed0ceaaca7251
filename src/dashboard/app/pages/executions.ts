/** The list of executions. */

import type { Execution, Executions } from '../../../client/types.ts'
import { h } from '../h.ts'
import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { duration, localZone, serviceNow, useZone } from '../time.ts'
import { counted, Empty, Loading, Problem } from '../ui/basics.ts'
import { Page } from '../ui/frame.ts'
import { FilterChip, FilterSelect, Filters, NoMatch, Pager, SEARCH_TO, SearchBox, useFilters } from '../ui/list.ts'
import { CueLink, OutcomeBadge, StatusBadge } from '../ui/results.ts'
import { BulkBar, type BulkType, SelectBox, SelectHead, type Selection, useSelection } from '../ui/select.ts'
import { When } from '../ui/when.ts'
import { startOf, windows } from '../ui/window.ts'
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
  const outcome = of.outcome_state
    ? h(OutcomeBadge, { state: of.outcome_state })
    : of.http_status && h('span', { class: 'soft nowrap' }, `HTTP ${of.http_status}`)
  return h(
    'tr',
    { 'data-row': true, class: selection?.ids.has(of.id) ? 'selected' : undefined },
    selection &&
      h(SelectBox, { label: `Select the execution ${of.id}`, checked: selection.ids.has(of.id), onChange: () => selection.toggle(of.id) }),
    h(
      'td',
      { class: 'cell-status' },
      h('a', { class: 'row-link', href: place }, h(StatusBadge, { of }), h('span', { class: 'unseen' }, ` execution of ${of.cue_name}`))
    ),
    h(
      'td',
      { class: 'cell-main' },
      !ofOneCue && h(CueLink, { id: of.cue_id, name: of.cue_name }),
      h(
        'div',
        { class: ofOneCue ? 'soft clip' : 'under clip' },
        reason || (of.triggered_by === 'schedule' ? 'on schedule' : triggers[of.triggered_by])
      ),
      ofOneCue && h('div', { class: 'under' }, outcome, of.attempts > 1 && counted(of.attempts, 'attempt'))
    ),
    h('td', { class: 'cell-when' }, h('a', { href: place, tabIndex: -1 }, h(When, { at: of.scheduled_for, zone }))),
    !ofOneCue && h('td', { class: 'cell-outcome' }, outcome || h('span', { class: 'soft' }, '–')),
    !ofOneCue && h('td', { class: 'number cell-attempts' }, of.attempts),
    h('td', { class: 'number cell-duration' }, durationOf(of))
  )
}

const classes: Record<string, string> = { Outcome: 'cell-outcome', Attempts: 'number cell-attempts', Duration: 'number' }

type TableProps = { executions: Brief[]; ofOneCue?: boolean; zone?: string; selection?: Selection }

export const ExecutionTable = ({ executions, ofOneCue, zone, selection }: TableProps) =>
  h(
    'table',
    { class: 'table executions' },
    h('caption', { class: 'unseen' }, 'Executions'),
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        selection && h(SelectHead, { checked: executions.every(({ id }) => selection.ids.has(id)), onChange: selection.togglePage }),
        (ofOneCue
          ? ['Status', 'Result', 'Scheduled for', 'Duration']
          : ['Status', 'Cue', 'Scheduled for', 'Outcome', 'Attempts', 'Duration']
        ).map(name => h('th', { key: name, scope: 'col', class: classes[name] }, name))
      )
    ),
    h(
      'tbody',
      {},
      executions.map(of => h(Row, { key: of.id, of: of as Execution, ofOneCue, zone, selection }))
    )
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
  return h(
    Page,
    {
      title: 'Executions',
      read,
      about: useZone() === 'cue' && `Times are in your zone, ${localZone()}.`
    },
    h(
      Filters,
      {},
      h(FilterSelect, {
        label: 'Any status',
        name: 'status',
        options: options(['pending', 'delivering', 'success', 'failed', 'retrying', 'missed', 'pending_outcome', 'outcome_timeout'], {
          pending: 'waiting',
          delivering: 'running'
        })
      }),
      h(FilterSelect, {
        label: 'Any outcome',
        name: 'outcome_state',
        options: options([
          'reported_success',
          'reported_failure',
          'verified_success',
          'verification_pending',
          'verification_failed',
          'unknown'
        ])
      }),
      h(FilterSelect, { label: 'Any trigger', name: 'triggered_by', options: options(['schedule', 'manual_fire', 'replay'], triggers) }),
      h(FilterSelect, {
        label: 'Any time',
        name: 'within',
        options: windows
      }),
      h(FilterSelect, { label: 'All executions', name: 'dead', options: [{ value: 'true', label: 'dead letters only' }] }),
      h(SearchBox, { label: 'Search errors', name: 'error' }),
      h(FilterChip, { label: 'Error', name: 'error_group' }),
      h(FilterChip, { label: 'Cue', name: 'cue_id' }),
      h(FilterChip, { label: 'Tag', name: 'tag' }),
      h(FilterChip, { label: 'Worker', name: 'worker_id' }),
      h(FilterChip, { label: 'From', name: 'from' }),
      h(FilterChip, { label: 'Until', name: 'to' })
    ),
    h(Problem, { failure: read.failure }),
    !data
      ? !read.failure && h(Loading, { lines: 8 })
      : data.executions.length === 0
        ? isFiltered
          ? h(NoMatch, { noun: 'execution', next_cursor: data.next_cursor })
          : h(Empty, {
              title: 'Nothing has run yet',
              text: 'Each run of a cue is an execution. Fire a cue to see one now:',
              calls: fireCalls(me)
            })
        : [
            // Operations have no filter by the kind of result.
            selection && h(BulkBar, { selection, total: data, noun: 'execution', types: bulkTypes, filter: result_type ? {} : filter }),
            h('div', { class: 'panel flush' }, h(ExecutionTable, { executions: data.executions, selection })),
            h(Pager, { ...data, noun: 'execution' })
          ]
  )
}
