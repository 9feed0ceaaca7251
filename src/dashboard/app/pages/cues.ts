/** The list of cues. */

import type { Cue, Cues } from '../../../client/types.ts'
import { h } from '../h.ts'
import { useRows, useShortcuts } from '../keys.ts'
import { useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, ButtonLink, Empty, Loading, Problem, Tag } from '../ui/basics.ts'
import { Page } from '../ui/frame.ts'
import { FilterChip, FilterSelect, Filters, NoMatch, Pager, SEARCH_TO, SearchBox, useFilters } from '../ui/list.ts'
import { CueLink, Dots, streakOf } from '../ui/results.ts'
import { BulkBar, type BulkType, SelectBox, SelectHead, type Selection, useSelection } from '../ui/select.ts'
import { When } from '../ui/when.ts'
import { createCueCalls } from './teach.ts'

export type Listed = Cues['cues'][number]

export const CueStatus = ({ cue }: { cue: Pick<Cue, 'status' | 'paused_by'> }) => {
  if (cue.status === 'active') return h(Badge, { tone: 'good' }, 'active')
  if (cue.status === 'paused') return h(Badge, { tone: cue.paused_by && cue.paused_by !== 'user' ? 'bad' : 'warn' }, 'paused')
  return h(Badge, { tone: cue.status === 'failed' ? 'bad' : 'quiet' }, cue.status)
}

/** Why it is paused, in a few words. */
export const pauseText = ({ paused_by, pause_reason }: Pick<Cue, 'paused_by' | 'pause_reason'>): string => {
  const by = {
    plan: 'Over the limit of the plan',
    failures: 'Too many failures',
    deletion: 'The account was disowned',
    user: 'Paused by a request'
  }
  return pause_reason || (paused_by ? (by[paused_by] ?? paused_by) : 'Paused')
}

export const zoneOf = (cue: Pick<Cue, 'schedule'>): string | undefined => cue.schedule?.timezone

const Row = ({ cue, selection }: { cue: Listed; selection?: Selection }) => {
  const { latest = [], schedule = '' } = cue.summary ?? {}
  const streak = streakOf(latest)
  return h(
    'tr',
    { 'data-row': true, class: selection?.ids.has(cue.id) ? 'selected' : undefined },
    selection &&
      h(SelectBox, { label: `Select ${cue.name}`, checked: selection.ids.has(cue.id), onChange: () => selection.toggle(cue.id) }),
    h(
      'td',
      { class: 'cell-main' },
      h(CueLink, { id: cue.id, name: cue.name }),
      h(
        'div',
        { class: 'under' },
        cue.key && h('span', { class: 'mono' }, cue.key),
        cue.tags.map(tag => h(Tag, { key: tag, label: tag, href: to('/cues', { tag }) })),
        !cue.key && cue.tags.length === 0 && h('span', { class: 'soft' }, cue.transport === 'worker' ? 'for workers' : 'webhook')
      )
    ),
    h(
      'td',
      { class: 'cell-schedule' },
      h('span', {}, cue.schedule.type === 'once' ? 'Once' : schedule.replace(/, [^,]+$/, '')),
      h('div', { class: 'under soft' }, zoneOf(cue))
    ),
    h(
      'td',
      { class: 'cell-next' },
      cue.status === 'active'
        ? h(When, { at: cue.next_run, zone: zoneOf(cue), isNext: true })
        : h('div', {}, h(CueStatus, { cue }), cue.status === 'paused' && h('div', { class: 'under soft' }, pauseText(cue)))
    ),
    h(
      'td',
      { class: 'cell-dots' },
      h(Dots, { latest }),
      streak > 1 && h('div', { class: 'under streak' }, `${streak}${streak === 20 ? '+' : ''} failures in a row`)
    )
  )
}

const bulkTypes: BulkType[] = [
  { type: 'pause', label: 'Pause', icon: 'pause', does: 'will be paused', hasReason: true },
  { type: 'resume', label: 'Resume', icon: 'play', does: 'will run again' },
  { type: 'fire', label: 'Fire', icon: 'cue', does: 'will be fired once' },
  { type: 'delete', label: 'Delete', icon: 'trash', does: 'will be deleted with all history, which cannot be undone', isDangerous: true }
]

export const CuesPage = () => {
  const filters = useFilters(['search', 'status', 'transport', 'tag', 'set', 'calendar', 'key', 'cursor'])
  const read = useRead<Cues>('/v1/cues', { ...filters, summary: true, limit: 50, count_to: 1000, search_to: SEARCH_TO })
  const me = useMe()
  const mayWrite = useMay('write')
  useRows()
  useShortcuts(mayWrite ? [{ key: 'c', text: 'Create a cue', run: () => go(to('/cues/new')) }] : [])
  const { data } = read
  const isFiltered = Object.values(filters).some(Boolean)
  const { cursor: _, key: __, ...filter } = filters
  const page = data?.cues.map(({ id }) => id) ?? []
  const rows = useSelection(page, JSON.stringify(filters))
  const selection = mayWrite ? rows : undefined
  return h(
    Page,
    {
      title: 'Cues',
      read,
      actions: mayWrite && h(ButtonLink, { label: 'Create a cue', href: to('/cues/new'), icon: 'plus', kind: 'main' })
    },
    (isFiltered || (data && data.total > 0)) &&
      h(
        Filters,
        {},
        h(SearchBox, { label: 'Search name, key, task or tag' }),
        h(FilterSelect, {
          label: 'Any status',
          name: 'status',
          options: ['active', 'paused', 'completed', 'failed'].map(value => ({ value, label: value }))
        }),
        h(FilterSelect, {
          label: 'Any transport',
          name: 'transport',
          options: [
            { value: 'webhook', label: 'webhook' },
            { value: 'worker', label: 'worker' }
          ]
        }),
        h(FilterChip, { label: 'Tag', name: 'tag' }),
        h(FilterChip, { label: 'Set', name: 'set' }),
        h(FilterChip, { label: 'Calendar', name: 'calendar' })
      ),
    h(Problem, { failure: read.failure }),
    !data
      ? !read.failure && h(Loading, { lines: 8 })
      : data.cues.length === 0
        ? isFiltered
          ? h(NoMatch, { noun: 'cue', next_cursor: data.next_cursor })
          : h(Empty, {
              title: 'No cues yet',
              text: 'A cue is a scheduled task: when it runs, and where it is delivered. Create one here, or from your code:',
              action: mayWrite ? h(ButtonLink, { label: 'Create a cue', href: to('/cues/new'), icon: 'plus', kind: 'main' }) : undefined,
              calls: createCueCalls(me)
            })
        : [
            data && selection && h(BulkBar, { selection, total: data, noun: 'cue', types: bulkTypes, filter }),
            h(
              'div',
              { class: 'panel flush' },
              h(
                'table',
                { class: 'table cues' },
                h('caption', { class: 'unseen' }, 'Cues'),
                h(
                  'thead',
                  {},
                  h(
                    'tr',
                    {},
                    selection && h(SelectHead, { checked: page.every(id => selection.ids.has(id)), onChange: selection.togglePage }),
                    ['Name', 'Schedule', 'Next run', 'Latest results'].map(name => h('th', { key: name, scope: 'col' }, name))
                  )
                ),
                h(
                  'tbody',
                  {},
                  data.cues.map(cue => h(Row, { key: cue.id, cue, selection }))
                )
              )
            ),
            h(Pager, { ...data, noun: 'cue' })
          ]
  )
}
