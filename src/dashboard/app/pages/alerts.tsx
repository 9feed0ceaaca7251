/** Alerts, to acknowledge or to snooze, and the messages about them. */
import type { Alerts as Answer } from '../../../client/types.ts'
import { post } from '../api.ts'
import { labelOf, optionsOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { duration, localZone, serviceNow, useZone } from '../time.ts'
import { Badge, Button, Empty, PageLink } from '../ui/basics.tsx'
import { act, Confirm, show } from '../ui/dialog.tsx'
import { Choice, TextField, useText } from '../ui/form.tsx'
import { FilterChips, FilterSelect, NoMatch, Pager, SEARCH_TO } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'

type Alert = Answer['alerts'][number]
const tones = { info: 'info', warning: 'warn', high: 'bad', critical: 'bad' } as const
const shownOptions = [
  { value: 'acknowledged', label: 'Acknowledged' },
  { value: 'all', label: 'All' }
]

const about =
  'Alerts report failures in a row, missed windows, missing outcomes, and cues paused by the service. Each cue has its own thresholds.'

export const Alerts = () => {
  const { show: shown = 'open', ...filters } = usePlace().query
  const read = useRead<Answer>('/v1/alerts', {
    acknowledged: shown === 'all' ? undefined : shown === 'acknowledged',
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
      instead={({ alerts, next_cursor }) =>
        alerts.length === 0 &&
        (next_cursor ? (
          <NoMatch noun="alert" next_cursor={next_cursor} />
        ) : (
          <Empty title={`No ${shown === 'open' ? 'open ' : ''}alerts`} text={about} />
        ))
      }
      filters={
        <>
          <FilterSelect label="Open" name="show" options={shownOptions} />
          <FilterSelect label="Any type" name="alert_type" options={optionsOf('alertType')} />
          <FilterChips names={{ cue_id: 'Cue' }} />
        </>
      }
    >
      {data => (
        <>
          <ul class="panel flush" aria-label="Alerts">
            {data.alerts.map(alert => (
              <Item key={alert.id} alert={alert} reload={read.reload} />
            ))}
          </ul>
          <Pager {...data} noun="alert" />
        </>
      )}
    </Page>
  )
}

const noticeTones = { waiting: 'quiet', sent: 'good', failed: 'bad' } as const
const Notice = ({ of: { channel, kind, state, tries, error, sent_at } }: { of: Alert['notices'][number] }) => (
  <>
    <Badge tone={noticeTones[state]}>
      {`${channel}: ${labelOf('noticeKind', kind)} ${state === 'waiting' && tries > 0 ? `tried ${tries}×` : state}`}
      {sent_at && <When at={sent_at} only="relative" />}
    </Badge>
    {error}
  </>
)

const Item = ({ alert, reload }: { alert: Alert; reload: () => void }) => {
  const { id, cue_id, execution_id, alert_type, severity, message, acknowledged_at, resolved_at, resolution, snoozed_until } = alert
  const mayChange = useMay('write') && !acknowledged_at
  const acknowledge = () => act(() => post(`/v1/alerts/${id}/acknowledge`), 'Acknowledged').then(reload)
  return (
    <li class="item" data-row>
      <Badge tone={acknowledged_at || resolved_at || snoozed_until ? 'quiet' : tones[severity]}>{severity}</Badge>
      <div>
        <PageLink href={to(execution_id ? `/executions/${execution_id}` : `/cues/${cue_id}`)} text={message} />
        <div class="under">
          {labelOf('alertType', alert_type)}
          <When at={alert.created_at} only="relative" />
          <a href={to(`/cues/${cue_id}`)}>Open the cue</a>
          {resolution && <span>succeeded again after {duration(resolution.after_seconds * 1000)}</span>}
          {acknowledged_at && ['acknowledged', <When at={acknowledged_at} only="relative" />]}
          {snoozed_until && ['snoozed until', <When at={snoozed_until} only="absolute" />]}
          {alert.notices.map((notice, n) => (
            <Notice key={n} of={notice} />
          ))}
        </div>
      </div>
      {mayChange && (
        <span class="row">
          <Button label="Snooze" icon="bell" kind="quiet" onClick={() => show(<Snooze id={id} onDone={reload} />)} />
          <Button label="Acknowledge" icon="check" onClick={() => void acknowledge()} />
        </span>
      )}
    </li>
  )
}

/** Tomorrow at 9:00, in UTC or in the zone of this computer. */
const tomorrow = (isUtc: boolean): Date => {
  const at = new Date(serviceNow())
  if (isUtc) at.setUTCHours(24 + 9, 0, 0, 0)
  else at.setHours(24 + 9, 0, 0, 0)
  return at
}

const Snooze = ({ id, onDone }: { id: string; onDone: () => void }) => {
  const isUtc = useZone() === 'utc'
  const [choice, time] = [useText('hour'), useText()]
  const options = [
    { value: 'hour', label: 'for an hour' },
    { value: 'tomorrow', label: `until tomorrow 9:00, ${isUtc ? 'UTC' : localZone()}` },
    { value: 'time', label: 'until another time' }
  ]
  const until = () => (choice.value === 'hour' ? serviceNow() + 3_600_000 : choice.value === 'time' ? time.value : tomorrow(isUtc))
  const snooze = () => post(`/v1/alerts/${id}/snooze`, { until: new Date(until()).toISOString() })
  return (
    <Confirm title="Snooze the alert" label="Snooze" done="Snoozed" action={snooze} onDone={onDone}>
      <p>Its channels get nothing before then, and afterwards one message, if anything has happened meanwhile.</p>
      <Choice label="How long" options={options} {...choice} />
      {choice.value === 'time' && <TextField label="Until" type="datetime-local" required {...time} hint="In your time zone." />}
    </Confirm>
  )
}
