/** Who changed the account, its keys and secrets. */

import type { AuditEvents } from '../../../client/types.ts'
import { h } from '../h.ts'
import { useRead } from '../query.ts'
import { setQuery, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { Button, counted, Empty, Loading, Problem } from '../ui/basics.ts'
import { Page } from '../ui/frame.ts'
import { When } from '../ui/when.ts'

const size = 50

export const Audit = () => {
  const maySee = useMay('account')
  const offset = Math.max(Number(usePlace().query.get('offset') ?? 0) || 0, 0)
  const read = useRead<AuditEvents>(maySee ? '/v1/auth/audit' : undefined, { limit: size, offset })
  const { data } = read
  if (!maySee)
    return h(Page, { title: 'Audit log' }, h(Empty, { title: 'Not with this session', text: 'The audit log needs the scope account.' }))
  const move = (by: number) => setQuery({ offset: String(Math.max(offset + by, 0)) }, { replace: false })
  return h(
    Page,
    { title: 'Audit log', read },
    h(Problem, { failure: read.failure }),
    !data
      ? !read.failure && h(Loading, {})
      : [
          h(
            'div',
            { key: 'list', class: 'panel flush' },
            h(
              'table',
              { class: 'table' },
              h('caption', { class: 'unseen' }, 'Audit log'),
              h(
                'thead',
                {},
                h(
                  'tr',
                  {},
                  ['When', 'Event', 'By', 'Details'].map(name => h('th', { key: name, scope: 'col' }, name))
                )
              ),
              h(
                'tbody',
                {},
                data.events.map(({ id, event, actor, ip, detail, created_at }) =>
                  h(
                    'tr',
                    { key: id },
                    h('td', {}, h(When, { at: created_at })),
                    h('td', { class: 'cell-main' }, h('span', { class: 'mono' }, event)),
                    h(
                      'td',
                      {},
                      h('span', { class: 'mono nowrap' }, actor.replace(/^(\w+:[0-9a-f]{8})[0-9a-f-]+$/, '$1…')),
                      ip && h('div', { class: 'under' }, ip)
                    ),
                    h(
                      'td',
                      {},
                      h(
                        'span',
                        { class: 'mono break small' },
                        Object.entries(detail)
                          .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
                          .join(' ')
                      )
                    )
                  )
                )
              )
            )
          ),
          h(
            'footer',
            { key: 'pager', class: 'pager' },
            h('p', { class: 'soft' }, counted(data.total, 'event')),
            h(
              'div',
              { class: 'actions' },
              offset > 0 && h(Button, { label: 'Newer', icon: 'back', onClick: () => move(-size) }),
              offset + data.events.length < data.total && h(Button, { label: 'Older', icon: 'right', onClick: () => move(size) })
            )
          )
        ]
  )
}
