/** Workers and the tasks that they handle. */

import { useState } from 'preact/hooks'
import type { Workers as Answer, Overview } from '../../../client/types.ts'
import { call } from '../api.ts'
import { h } from '../h.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { Badge, Button, counted, Empty, Loading, Panel, Problem, Tag } from '../ui/basics.ts'
import { Confirm } from '../ui/dialog.ts'
import { Page } from '../ui/frame.ts'
import { When } from '../ui/when.ts'
import { workerCalls } from './teach.ts'

const tones = { active: 'good', stale: 'warn', dead: 'bad' } as const

export const Workers = () => {
  const read = useRead<Answer>('/v1/workers', { limit: 100 })
  const waiting = useRead<Overview>('/v1/overview').data?.waiting ?? []
  const me = useMe()
  const mayRemove = useMay('worker')
  const [removing, remove] = useState<string>()
  const { data } = read
  return h(
    Page,
    { title: 'Workers', read },
    h(Problem, { failure: read.failure }),
    waiting.length > 0 &&
      h(
        Panel,
        { title: 'Waiting tasks', flush: true },
        h(
          'table',
          { class: 'table' },
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              ['Task', 'Waiting', 'Since', 'Worker'].map(name => h('th', { key: name, scope: 'col' }, name))
            )
          ),
          h(
            'tbody',
            {},
            waiting.map(one =>
              h(
                'tr',
                { key: one.task },
                h(
                  'td',
                  { class: 'cell-main' },
                  h('a', { class: 'mono name', href: to(`/executions/${one.execution_id}`) }, one.task ?? 'no task')
                ),
                h('td', {}, counted(one.waiting, 'execution')),
                h('td', {}, h(When, { at: one.since, only: 'relative' })),
                h('td', {}, h(Badge, { tone: one.has_worker ? 'good' : 'bad' }, one.has_worker ? 'handled' : 'no live worker'))
              )
            )
          )
        )
      ),
    !data
      ? !read.failure && h(Loading, {})
      : data.workers.length === 0
        ? h(Empty, {
            title: 'No workers',
            text: 'A worker claims the executions of cues with the worker transport. It needs no public address. Start one:',
            calls: workerCalls(me, waiting[0]?.task ?? 'report')
          })
        : h(
            Panel,
            { title: counted(data.total, 'worker'), flush: true },
            h(
              'table',
              { class: 'table' },
              h(
                'thead',
                {},
                h(
                  'tr',
                  {},
                  ['Worker', 'Tasks', 'Last heartbeat', 'Since', ''].map(name =>
                    h('th', { key: name, scope: 'col' }, name || h('span', { class: 'unseen' }, 'Actions'))
                  )
                )
              ),
              h(
                'tbody',
                {},
                data.workers.map(({ worker_id, handlers, heartbeat_status, last_heartbeat, registered_since }) =>
                  h(
                    'tr',
                    { key: worker_id, 'data-row': true },
                    h('td', { class: 'cell-main' }, h('a', { class: 'name', href: to('/executions', { worker_id }) }, worker_id)),
                    h(
                      'td',
                      {},
                      h(
                        'div',
                        { class: 'tags' },
                        handlers.length === 0
                          ? h('span', { class: 'soft' }, 'any')
                          : handlers.map(task => h(Tag, { key: task, label: task }))
                      )
                    ),
                    h(
                      'td',
                      {},
                      h(Badge, { tone: tones[heartbeat_status] }, heartbeat_status),
                      ' ',
                      h(When, { at: last_heartbeat, only: 'relative' })
                    ),
                    h('td', {}, h('span', { class: 'phone-only' }, 'since '), h(When, { at: registered_since, only: 'absolute' })),
                    h(
                      'td',
                      { class: 'cell-actions' },
                      mayRemove &&
                        h(Button, {
                          label: `Remove ${worker_id}`,
                          icon: 'trash',
                          kind: 'quiet',
                          iconOnly: true,
                          onClick: () => remove(worker_id)
                        })
                    )
                  )
                )
              )
            )
          ),
    removing !== undefined &&
      h(
        Confirm,
        {
          title: 'Remove the worker',
          label: 'Remove',
          kind: 'danger',
          onClose: () => remove(undefined),
          done: 'Removed',
          action: () => call('DELETE', `/v1/workers/${encodeURIComponent(removing)}`).then(read.reload)
        },
        h('p', {}, 'Its claims are released, so that other workers can take them. A live worker reappears with its next heartbeat.')
      )
  )
}
