/** Who changed the account, its keys, secrets and cues. */

import type { AuditEvents } from '../../../client/types.ts'

import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { NotAllowed, Page } from '../ui/frame.tsx'
import { OffsetList, useOffset } from '../ui/list.tsx'
import { When } from '../ui/when.tsx'

export const Audit = () => {
  const maySee = useMay('account')
  const offset = useOffset()
  const read = useRead<AuditEvents>(maySee ? '/v1/auth/audit' : undefined, { limit: 50, offset })
  if (!maySee) return <NotAllowed title="Audit log" what="The audit log needs" scope="account" />
  return (
    <Page title="Audit log" read={read}>
      <OffsetList<AuditEvents>
        read={read}
        caption="Audit log"
        columns={['When', 'Event', 'By', 'Details']}
        noun="event"
        rows={({ events }) =>
          events.map(({ id, event, actor, ip, detail, created_at }) => (
            <tr key={id}>
              <td>
                <When at={created_at} />
              </td>
              <td class="cell-main">
                <span class="mono">{event}</span>
              </td>
              <td>
                <span class="mono nowrap">{actor.replace(/^(\w+:[0-9a-f]{8})[0-9a-f-]+$/, '$1…')}</span>
                {ip && <div class="under">{ip}</div>}
              </td>
              <td>
                <span class="mono break small">
                  {Object.entries(detail)
                    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
                    .join(' ')}
                </span>
              </td>
            </tr>
          ))
        }
      />
    </Page>
  )
}
