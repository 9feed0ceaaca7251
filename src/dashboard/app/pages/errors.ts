/** Failures grouped by error: what is broken, how often, since when, and for which cues. */
import { useState } from 'preact/hooks'
import type { Errors as Answer } from '../../../client/types.ts'
import { h } from '../h.ts'
import { useRows, useShortcuts } from '../keys.ts'
import { useHold, useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, count, counted, Empty, Loading, Panel, Problem } from '../ui/basics.ts'
import { Page } from '../ui/frame.ts'
import { Filters } from '../ui/list.ts'
import { CueLink, StatusBadge } from '../ui/results.ts'
import { BulkDialog, type BulkType } from '../ui/select.ts'
import { Table } from '../ui/table.ts'
import { When } from '../ui/when.ts'
import { useWindow, WindowSelect } from '../ui/window.ts'
import { errorCalls } from './teach.ts'

type Group = Answer['errors'][number]
const actions: (BulkType & { key: string })[] = [
  { key: 'r', type: 'replay', label: 'Replay', icon: 'replay', does: 'will be replayed as new executions' },
  { key: 'd', type: 'dismiss', label: 'Dismiss', icon: 'check', does: 'will no longer be listed as dead letters' }
]
type Chosen = { of: BulkType; group: Group }

export const Errors = () => {
  const { within, from } = useWindow('7d')
  const read = useRead<Answer>('/v1/errors', { from })
  const me = useMe()
  const mayWrite = useMay('write')
  const [chosen, choose] = useState<Chosen>()
  const { data } = read
  useRows()
  useHold(chosen !== undefined)
  useShortcuts(
    (mayWrite ? actions : []).map(of => ({
      key: of.key,
      text: `${of.label} the row`,
      run: () => {
        const rows = [...document.querySelectorAll('[data-row]')]
        const group = data?.errors[rows.findIndex(row => row.contains(document.activeElement))]
        if (group) choose({ of, group })
      }
    }))
  )
  return h(
    Page,
    {
      title: 'Errors',
      read,
      about: 'Executions that failed, were missed or timed out, until somebody replays or dismisses them.'
    },
    h(Filters, {}, h(WindowSelect, { usual: '7d' })),
    h(Problem, { failure: read.failure }),
    !data
      ? !read.failure && h(Loading, {})
      : data.errors.length === 0
        ? h(Empty, {
            title: 'No errors',
            text: 'Failures with the same status and message are shown here as one, to replay or dismiss all at once. To read them elsewhere:',
            calls: errorCalls(me)
          })
        : [
            h(
              Panel,
              { title: `${counted(data.groups, 'error')} in ${counted(data.total, 'execution')}`, flush: true },
              h(
                Table,
                {
                  caption: 'Errors',
                  columns: ['Error', 'Count', 'Cues', 'Last', ...(mayWrite ? [''] : [])],
                  kind: 'errors',
                  numbers: ['Count', 'Cues']
                },
                data.errors.map(group => h(Row, { key: group.error_group, group, within, choose: mayWrite ? choose : undefined }))
              )
            ),
            (Date.parse(data.since) > Date.parse(from) || data.groups > data.errors.length) &&
              h(
                'p',
                { class: 'soft' },
                `The ${counted(data.errors.length, 'error')} with the most executions, since `,
                h(When, { at: data.since, only: 'absolute' }),
                '.'
              )
          ],
    chosen &&
      h(BulkDialog, {
        of: chosen.of,
        target: { filter: { error_group: chosen.group.error_group, from } },
        noun: 'execution',
        onClose: () => choose(undefined)
      })
  )
}

type RowProps = { group: Group; within: string; choose?: (chosen: Chosen) => void }

const Row = ({ group, within, choose }: RowProps) => {
  const { error_group, status, http_status, message, cues, first_at, last_at, latest } = group
  return h(
    'tr',
    { 'data-row': true },
    h(
      'td',
      { class: 'cell-main' },
      h(
        'a',
        { class: 'name', href: to('/executions', { error_group, within }), title: latest.error_message ?? undefined },
        message || 'no message'
      ),
      h(
        'div',
        { class: 'under' },
        h(StatusBadge, { of: { status, outcome_state: null } }),
        http_status !== null && h(Badge, { tone: 'quiet' }, `HTTP ${http_status}`),
        h(
          'span',
          {},
          h('a', { href: to(`/executions/${latest.execution_id}`) }, 'latest'),
          ' of ',
          h(CueLink, { id: latest.cue_id, name: latest.cue_name })
        )
      )
    ),
    h('td', { class: 'number' }, count(group.count), h('span', { class: 'phone-only' }, group.count === 1 ? ' time' : ' times')),
    h('td', { class: 'number' }, count(cues), h('span', { class: 'phone-only' }, cues === 1 ? ' cue' : ' cues')),
    h(
      'td',
      { class: 'cell-when' },
      h('span', { class: 'phone-only' }, 'last '),
      h(When, { at: last_at, only: 'relative' }),
      group.count > 1 && h('div', { class: 'under' }, h('span', {}, 'first ', h(When, { at: first_at, only: 'relative' })))
    ),
    choose &&
      h(
        'td',
        { class: 'cell-actions' },
        h(
          'div',
          { class: 'actions' },
          actions.map(of =>
            h(Button, {
              key: of.type,
              label: of.label,
              icon: of.icon,
              kind: 'quiet',
              shortcut: of.key,
              onClick: () => choose({ of, group })
            })
          )
        )
      )
  )
}
