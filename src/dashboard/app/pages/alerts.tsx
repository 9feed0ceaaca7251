/** Alerts, to acknowledge. */
import type { Alerts as Answer } from '../../../client/types.ts'
import { post } from '../api.ts'
import { labelOf, optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { duration } from '../time.ts'
import { Badge, Button, Empty } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { FilterChips, FilterSelect, NoMatch, Pager, SEARCH_TO } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'

type Alert = Answer['alerts'][number]
const tones = { info: 'info', warning: 'warn', high: 'bad', critical: 'bad' } as const
const shownOptions = [
  { value: 'acknowledged', label: 'Acknowledged' },
  { value: 'all', label: 'All' }
]

export const Alerts = () => {
  const { show = 'open', ...filters } = usePlace().query
  const read = useRead<Answer>('/v1/alerts', {
    acknowledged: show === 'all' ? undefined : show === 'acknowledged',
    alert_type: filters.alert_type,
    cue_id: filters.cue_id,
    cursor: filters.cursor,
    limit: 50,
    count_to: 1000,
    search_to: SEARCH_TO
  })
  return (
    <Page
      title="Alerts"
      read={read}
      filters={
        <>
          <FilterSelect label="Open" name="show" options={shownOptions} />
          <FilterSelect label="Any type" name="alert_type" options={optionsOf('alertType')} />
          <FilterChips names={{ cue_id: 'Cue' }} />
        </>
      }
    >
      {data =>
        data.alerts.length > 0 ? (
          <>
            <ul class="panel flush" aria-label="Alerts">
              {data.alerts.map(alert => (
                <Item key={alert.id} alert={alert} reload={read.reload} />
              ))}
            </ul>
            <Pager {...data} noun="alert" />
          </>
        ) : data.next_cursor ? (
          <NoMatch noun="alert" next_cursor={data.next_cursor} />
        ) : (
          <Empty
            title={show === 'open' ? 'No open alerts' : 'No alerts'}
            text="Alerts report failures in a row, missed windows, missing outcomes, and cues paused by the service. Each cue has its own thresholds."
          />
        )
      }
    </Page>
  )
}

const Item = ({ alert, reload }: { alert: Alert; reload: () => void }) => {
  const { id, cue_id, execution_id, alert_type, severity, message, acknowledged_at, resolved_at, resolution, created_at } = alert
  const mayAcknowledge = useMay('write') && !acknowledged_at
  const acknowledge = () => act(() => post(`/v1/alerts/${id}/acknowledge`), 'Acknowledged').then(reload)
  return (
    <li class="item" data-row>
      <Badge tone={acknowledged_at || resolved_at ? 'quiet' : tones[severity]}>{severity}</Badge>
      <div>
        <a class="name" href={to(execution_id ? `/executions/${execution_id}` : `/cues/${cue_id}`)}>
          {message}
        </a>
        <p class="under">
          {labelOf('alertType', alert_type)}
          <When at={created_at} only="relative" />
          <a href={to(`/cues/${cue_id}`)}>Open the cue</a>
          {resolution && <span>succeeded again after {duration(resolution.after_seconds * 1000)}</span>}
          {acknowledged_at && <span>acknowledged</span>}
          {acknowledged_at && <When at={acknowledged_at} only="relative" />}
        </p>
      </div>
      {mayAcknowledge && <Button label="Acknowledge" icon="check" onClick={() => void acknowledge()} />}
    </li>
  )
}
