/** Alerts, to acknowledge. */

import type { Alerts as Answer } from '../../../client/types.ts'
import { post } from '../api.ts'

import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay } from '../session.ts'
import { Badge, Button, Empty, Loading, Problem } from '../ui/basics.tsx'
import { act } from '../ui/dialog.tsx'
import { Page } from '../ui/frame.tsx'
import { FilterChip, FilterSelect, Filters, NoMatch, Pager, SEARCH_TO } from '../ui/list.tsx'
import { When } from '../ui/when.tsx'

const tones = { info: 'info', warning: 'warn', high: 'bad', critical: 'bad' } as const
const types = ['consecutive_failure', 'missed_window', 'outcome_timeout', 'cue_paused']

export const Alerts = () => {
  const { query } = usePlace()
  const shown = query.get('show') ?? 'open'
  const read = useRead<Answer>('/v1/alerts', {
    acknowledged: shown === 'all' ? undefined : shown === 'acknowledged',
    alert_type: query.get('alert_type') ?? undefined,
    cue_id: query.get('cue_id') ?? undefined,
    cursor: query.get('cursor') ?? undefined,
    limit: 50,
    count_to: 1000,
    search_to: SEARCH_TO
  })
  const mayWrite = useMay('write')
  useRows()
  const { data } = read
  const acknowledge = (id: string) => act(() => post(`/v1/alerts/${id}/acknowledge`), 'Acknowledged').then(read.reload)
  return (
    <Page title="Alerts" read={read}>
      <Filters>
        <FilterSelect
          label="Open"
          name="show"
          options={[
            { value: 'acknowledged', label: 'Acknowledged' },
            { value: 'all', label: 'All' }
          ]}
        />
        <FilterSelect label="Any type" name="alert_type" options={types.map(value => ({ value, label: value.replaceAll('_', ' ') }))} />
        <FilterChip label="Cue" name="cue_id" />
      </Filters>
      <Problem failure={read.failure} />
      {!data ? (
        !read.failure && <Loading />
      ) : data.alerts.length === 0 ? (
        data.next_cursor ? (
          <NoMatch noun="alert" next_cursor={data.next_cursor} />
        ) : (
          <Empty
            title={shown === 'open' ? 'No open alerts' : 'No alerts'}
            text="Alerts report failures in a row, missed windows, missing outcomes, and cues paused by the service. Each cue has its own thresholds."
          />
        )
      ) : (
        <>
          <ul class="items panel flush" aria-label="Alerts">
            {data.alerts.map(({ id, cue_id, execution_id, alert_type, severity, message, acknowledged_at, created_at }) => (
              <li key={id} class="item" data-row>
                <span class="item-badge">
                  <Badge tone={tones[severity]}>{severity}</Badge>
                </span>
                <div class="item-text">
                  <p class="item-title">
                    <a class="name" href={to(execution_id ? `/executions/${execution_id}` : `/cues/${cue_id}`)}>
                      {message}
                    </a>
                  </p>
                  <p class="under">
                    {alert_type.replaceAll('_', ' ')}
                    {' · '}
                    <When at={created_at} only="relative" />
                    {' · '}
                    <a href={to(`/cues/${cue_id}`)}>Open the cue</a>
                    {acknowledged_at && (
                      <>
                        {' · acknowledged '}
                        <When at={acknowledged_at} only="relative" />
                      </>
                    )}
                  </p>
                </div>
                {mayWrite && !acknowledged_at && (
                  <div class="actions">
                    <Button label="Acknowledge" icon="check" onClick={() => void acknowledge(id)} />
                  </div>
                )}
              </li>
            ))}
          </ul>
          <Pager {...data} noun="alert" />
        </>
      )}
    </Page>
  )
}
