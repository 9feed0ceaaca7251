/** The hosts that webhooks go to: how often, how fast they respond, and what they said last. */
import type { Destinations as Answer } from '../../../client/types.ts'

import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMe } from '../session.ts'
import { duration } from '../time.ts'
import { Badge, count, counted, Empty, Loading, Panel, Problem, type Tone } from '../ui/basics.tsx'
import { Page } from '../ui/frame.tsx'
import { Filters } from '../ui/list.tsx'
import { Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { useWindow, WindowSelect } from '../ui/window.tsx'
import { createCueCalls } from './teach.ts'

type Destination = Answer['destinations'][number]

export const Destinations = () => {
  const { from } = useWindow('24h')
  const read = useRead<Answer>('/v1/destinations', { from })
  const me = useMe()
  const { data } = read
  useRows()
  return (
    <Page title="Destinations" read={read}>
      <Filters>
        <WindowSelect usual="24h" />
      </Filters>
      <Problem failure={read.failure} />
      {!data ? (
        !read.failure && <Loading />
      ) : data.destinations.length === 0 ? (
        <Empty
          title="No webhooks were sent"
          text="The hosts of callback URLs are shown here, with their rate, response times and failures. Create a cue with a webhook:"
          calls={createCueCalls(me)}
        />
      ) : (
        <>
          <Panel title={counted(data.hosts, 'host')} flush>
            <Table
              caption="Destinations"
              columns={['Host', 'Per minute', 'Failed', 'Median', 'p95', 'Last attempt']}
              kind="destinations"
              numbers={['Per minute', 'Failed', 'Median', 'p95']}
            >
              {data.destinations.map(one => (
                <Row key={one.host} of={one} />
              ))}
            </Table>
          </Panel>
          {Date.parse(data.since) > Date.parse(from) && (
            <p class="soft">
              {'From the newest 2,000 executions, since '}
              <When at={data.since} only="absolute" />.
            </p>
          )}
        </>
      )}
    </Page>
  )
}

const Row = ({ of }: { of: Destination }) => {
  const { host, cues, attempts, per_minute, failures, response_p50_ms, response_p95_ms, last_attempt } = of
  const share = failures / attempts
  const tone: Tone = share === 0 ? 'good' : share < 0.05 ? 'warn' : 'bad'
  const figure = (name: string, value: unknown) => (
    <td class="number">
      <span class="phone-only">{`${name} `}</span>
      {value as string}
    </td>
  )
  return (
    <tr data-row>
      <td class="cell-main">
        <span class="mono">{host}</span>
        <div class="under">{`${counted(cues, 'cue')}, ${counted(attempts, 'attempt')}`}</div>
      </td>
      {figure('per minute', count(per_minute))}
      <td class="number">
        <Badge tone={tone}>{failures === 0 ? 'none' : `${count(failures)} (${Math.ceil(share * 100)}%)`}</Badge>
        <span class="phone-only">{' failed'}</span>
      </td>
      {figure('median', response_p50_ms === null ? '–' : duration(response_p50_ms))}
      {figure('p95', response_p95_ms === null ? '–' : duration(response_p95_ms))}
      <td>
        <a href={to(`/executions/${last_attempt.execution_id}`)}>
          {last_attempt.http_status === null ? (last_attempt.error ?? 'no response') : `HTTP ${last_attempt.http_status}`}
        </a>
        <div class="under">
          <When at={last_attempt.at} only="relative" />
        </div>
      </td>
    </tr>
  )
}
