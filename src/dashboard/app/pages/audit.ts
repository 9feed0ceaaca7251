/** Who changed the account, its keys, secrets and cues. */

import type { AuditEvents } from '../../../client/types.ts'
import { h } from '../h.ts'
import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { NotAllowed, Page } from '../ui/frame.ts'
import { OffsetList, useOffset } from '../ui/list.ts'
import { When } from '../ui/when.ts'

export const Audit = () => {
  const maySee = useMay('account')
  const offset = useOffset()
  const read = useRead<AuditEvents>(maySee ? '/v1/auth/audit' : undefined, { limit: 50, offset })
  if (!maySee) return h(NotAllowed, { title: 'Audit log', what: 'The audit log needs', scope: 'account' })
  return h(
    Page,
    { title: 'Audit log', read },
    h(OffsetList<AuditEvents>, {
      read,
      caption: 'Audit log',
      columns: ['When', 'Event', 'By', 'Details'],
      noun: 'event',
      rows: ({ events }) =>
        events.map(({ id, event, actor, ip, detail, created_at }) =>
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
    })
  )
}
