/** The hosts that webhooks go to: how often, how fast they respond, and what they said last. */
import type { Destinations as Answer } from '../../../client/types.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMe } from '../session.ts'
import { duration } from '../time.ts'
import { Bars } from '../ui/bars.tsx'
import { Badge, count, counted, Empty } from '../ui/basics.tsx'
import { useWindow, WindowSelect } from '../ui/list.tsx'
import { Page } from '../ui/page.tsx'
import { type Column, List } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { createCueCalls } from './teach.ts'

type Destination = Answer['destinations'][number]

const Failures = ({ of: { failures, attempts } }: { of: Destination }) => {
  const share = failures / attempts
  const text = failures === 0 ? 'none' : `${count(failures)} (${Math.ceil(share * 100)}%)`
  return <Badge tone={share === 0 ? 'good' : share < 0.05 ? 'warn' : 'bad'}>{text}</Badge>
}
const timeOr = (ms: number | null) => (ms === null ? '–' : duration(ms))

const Attempt = ({ of: { execution_id, http_status, error, at } }: { of: Destination['last_attempt'] }) => (
  <>
    <a href={to(`/executions/${execution_id}`)}>{error ?? `HTTP ${http_status}`}</a> <When at={at} only="relative" />
  </>
)

const columnsFor = ({ since, until }: Answer): Column<Destination>[] => [
  [
    'Host',
    ({ host, cues, attempts }) => (
      <>
        <span class="mono">{host}</span>
        <div class="under">{`${counted(cues, 'cue')}, ${counted(attempts, 'attempt')}`}</div>
      </>
    ),
    'cell-main'
  ],
  ['Attempts', ({ host, volume }) => <Bars {...{ volume, since, until }} label={`Attempts at ${host} over time`} />, 'bare'],
  ['Per minute', ({ per_minute }) => count(per_minute), 'number'],
  ['Failed', destination => <Failures of={destination} />, 'number'],
  ['Median', ({ response_p50_ms }) => timeOr(response_p50_ms), 'number'],
  ['p95', ({ response_p95_ms }) => timeOr(response_p95_ms), 'number'],
  [
    'Last attempt',
    ({ last_attempt, last_error }) => [
      <Attempt of={last_attempt} />,
      last_error && last_error.execution_id !== last_attempt.execution_id && (
        <div class="under">
          last error: <Attempt of={last_error} />
        </div>
      )
    ]
  ]
]

const text = 'The hosts of callback URLs are shown here, with their rate, response times and failures. Create a cue with a webhook:'

export const Destinations = () => {
  const { from } = useWindow('24h')
  const read = useRead<Answer>('/v1/destinations', { from })
  const me = useMe()
  const empty = ({ destinations }: Answer) =>
    destinations.length === 0 && <Empty title="No webhooks were sent" text={text} calls={createCueCalls(me)} />
  return (
    <Page title="Destinations" read={read} instead={empty} filters={<WindowSelect usual="24h" />}>
      {data => (
        <div class="stack">
          <List title={counted(data.hosts, 'host')} columns={columnsFor(data)} rows={data.destinations} id={({ host }) => host} />
          {Date.parse(data.since) > Date.parse(from) && (
            <p class="soft">
              From the newest 2,000 executions, since <When at={data.since} only="absolute" />.
            </p>
          )}
        </div>
      )}
    </Page>
  )
}
