/** Operations on many cues or executions: their progress, and what failed. */
import type { Operation, OperationDetail, Operations } from '../../../client/types.ts'
import { post } from '../api.ts'
import { h } from '../h.ts'
import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { serviceUrl } from '../root.ts'
import { to, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { Badge, Button, count, counted, Empty, Facts, Loading, Panel, Problem } from '../ui/basics.ts'
import { act } from '../ui/dialog.ts'
import { Above, Page } from '../ui/frame.ts'
import { FilterSelect, Filters, OffsetList, useOffset } from '../ui/list.ts'
import { When } from '../ui/when.ts'

const tones = { running: 'info', completed: 'good', aborted: 'warn' } as const

const Progress = ({ of }: { of: Operation }) =>
  h(
    'div',
    { class: 'progress' },
    h('meter', { min: 0, max: Math.max(of.total, 1), value: of.done, 'aria-label': `${of.done} of ${of.total} done` }),
    h('span', { class: 'soft' }, `${count(of.done)} of ${count(of.total)}`)
  )

const titleOf = ({ name, type, total }: Operation): string =>
  name ?? `${type[0]!.toUpperCase()}${type.slice(1)}: ${counted(total, 'target')}`

export const OperationsPage = () => {
  const { query } = usePlace()
  const read = useRead<Operations>('/v1/operations', {
    type: query.get('type') ?? undefined,
    status: query.get('status') ?? undefined,
    limit: 50,
    offset: useOffset()
  })
  useRows()
  const options = (values: string[]) => values.map(value => ({ value, label: value }))
  return h(
    Page,
    { title: 'Operations', read },
    h(
      Filters,
      {},
      h(FilterSelect, {
        label: 'Any type',
        name: 'type',
        options: options(['replay', 'cancel', 'dismiss', 'pause', 'resume', 'fire', 'delete', 'backfill'])
      }),
      h(FilterSelect, { label: 'Any status', name: 'status', options: options(['running', 'completed', 'aborted']) })
    ),
    h(OffsetList<Operations>, {
      read,
      caption: 'Operations',
      columns: ['Operation', 'Status', 'Progress', 'Failed', 'Started'],
      noun: 'operation',
      empty: h(Empty, {
        title: 'No operations',
        text: 'An operation acts on many cues or executions in the background. Start one from the rows selected in a list, or with a call:',
        calls: [
          {
            name: 'curl',
            code: `curl ${serviceUrl}/v1/operations -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\\n  -d '{"type": "replay", "filter": {"dead": true}, "dry_run": true}'`
          },
          { name: 'pgcue', code: 'pgcue replay --status failed --since 2h --dry-run' },
          {
            name: 'TypeScript',
            code: "await client.call('POST', '/v1/operations', { body: { type: 'replay', filter: { dead: true }, dry_run: true } })"
          }
        ]
      }),
      rows: ({ operations }) =>
        operations.map(of =>
          h(
            'tr',
            { key: of.id, 'data-row': true },
            h('td', { class: 'cell-main' }, h('a', { class: 'name', href: to(`/operations/${of.id}`) }, titleOf(of))),
            h('td', {}, h(Badge, { tone: tones[of.status] }, of.status)),
            h('td', {}, h(Progress, { of })),
            h('td', {}, count(of.failed), h('span', { class: 'phone-only' }, ' failed')),
            h('td', {}, h(When, { at: of.created_at }))
          )
        )
    })
  )
}

export const OperationPage = ({ id }: { id: string }) => {
  const every = ({ status }: OperationDetail) => (status === 'running' ? 2000 : undefined)
  const read = useRead<OperationDetail>(`/v1/operations/${encodeURIComponent(id)}`, {}, { every })
  const mayWrite = useMay('write')
  const { data } = read
  const above = h(Above, { path: '/operations', name: 'Operations' })
  if (!data) return h(Page, { title: 'Operation', above }, read.failure ? h(Problem, { failure: read.failure }) : h(Loading, {}))
  const abort = () => act(() => post(`/v1/operations/${id}/abort`), 'Aborted').then(read.reload)
  return h(
    Page,
    {
      title: titleOf(data),
      above,
      read,
      about: h(Badge, { tone: tones[data.status] }, data.status),
      actions:
        mayWrite && data.status === 'running' && h(Button, { label: 'Abort', icon: 'stop', kind: 'danger', onClick: () => void abort() })
    },
    h(Problem, { failure: read.failure }),
    h(
      'div',
      { class: 'stack' },
      h(
        Panel,
        { title: 'Progress' },
        h(Progress, { of: data }),
        h(Facts, {
          items: [
            ['Succeeded', count(data.succeeded)],
            ['Failed', count(data.failed)],
            ['Skipped', `${count(data.skipped)}${data.skipped ? ': changed or deleted since, or already in the wanted state' : ''}`],
            ['Started', h(When, { at: data.created_at })],
            ['Ended', data.ended_at && h(When, { at: data.ended_at })],
            ['By', h('span', { class: 'mono break' }, data.created_by)]
          ]
        })
      ),
      data.errors.length > 0 &&
        h(
          Panel,
          { title: data.errors.length === 100 ? 'The first 100 failures' : counted(data.errors.length, 'failure'), flush: true },
          h(
            'table',
            { class: 'table' },
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                ['Target', 'Why'].map(name => h('th', { key: name, scope: 'col' }, name))
              )
            ),
            h(
              'tbody',
              {},
              data.errors.map(({ target, message }) =>
                h(
                  'tr',
                  { key: target },
                  h(
                    'td',
                    { class: 'cell-main' },
                    h(
                      'a',
                      { class: 'mono name', href: to(target.startsWith('cue_') ? `/cues/${target}` : `/executions/${target}`) },
                      target
                    )
                  ),
                  h('td', {}, message)
                )
              )
            )
          )
        )
    )
  )
}
