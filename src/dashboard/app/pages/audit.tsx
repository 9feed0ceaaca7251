/** Who changed the account, its keys, secrets and cues. */
import type { AuditEvents } from '../../../client/types.ts'
import { useRead } from '../query.ts'
import { useMay } from '../session.ts'
import { Paged, useOffset } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import type { Column } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'

type Event = AuditEvents['events'][number]
const detailText = ({ detail }: Event) =>
  Object.entries(detail)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')

const columns: Column<Event>[] = [
  ['When', ({ created_at }) => <When at={created_at} />],
  ['Event', ({ event }) => <span class="mono">{event}</span>, 'cell-main'],
  ['By', ({ actor }) => <span class="mono">{actor.replace(/^(\w+:[0-9a-f]{8})[0-9a-f-]+$/, '$1…')}</span>],
  ['Address', ({ ip }) => ip],
  ['Details', event => <span class="mono break small">{detailText(event)}</span>, 'bare']
]

export const Audit = () => {
  const offset = useOffset()
  const read = useRead<AuditEvents>(useMay('account') ? '/v1/auth/audit' : undefined, { limit: 50, offset })
  return (
    <Page title="Audit log" read={read} needs={{ what: 'The audit log needs', scope: 'account' }}>
      {data => <Paged page={data} rows={data.events} columns={columns} caption="Audit log" noun="event" id={({ id }) => String(id)} />}
    </Page>
  )
}
