/** The hosts that webhooks go to: how often, how fast they respond, and what they said last. */
import type { Destinations as Answer } from '../../../client/types.ts'
import { h } from '../h.ts'
import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { to } from '../router.ts'
import { useMe } from '../session.ts'
import { duration } from '../time.ts'
import { Badge, count, counted, Empty, Loading, Panel, Problem, type Tone } from '../ui/basics.ts'
import { Page } from '../ui/frame.ts'
import { Filters } from '../ui/list.ts'
import { Table } from '../ui/table.ts'
import { When } from '../ui/when.ts'
import { useWindow, WindowSelect } from '../ui/window.ts'
import { createCueCalls } from './teach.ts'

type Destination = Answer['destinations'][number]

export const Destinations = () => {
  const { from } = useWindow('24h')
  const read = useRead<Answer>('/v1/destinations', { from })
  const me = useMe()
  const { data } = read
  useRows()
  return h(
    Page,
    { title: 'Destinations', read },
    h(Filters, {}, h(WindowSelect, { usual: '24h' })),
    h(Problem, { failure: read.failure }),
    !data
      ? !read.failure && h(Loading, {})
      : data.destinations.length === 0
        ? h(Empty, {
            title: 'No webhooks were sent',
            text: 'The hosts of callback URLs are shown here, with their rate, response times and failures. Create a cue with a webhook:',
            calls: createCueCalls(me)
          })
        : [
            h(
              Panel,
              { title: counted(data.hosts, 'host'), flush: true },
              h(
                Table,
                {
                  caption: 'Destinations',
                  columns: ['Host', 'Per minute', 'Failed', 'Median', 'p95', 'Last attempt'],
                  kind: 'destinations',
                  numbers: ['Per minute', 'Failed', 'Median', 'p95']
                },
                data.destinations.map(one => h(Row, { key: one.host, of: one }))
              )
            ),
            Date.parse(data.since) > Date.parse(from) &&
              h('p', { class: 'soft' }, 'From the newest 2,000 executions, since ', h(When, { at: data.since, only: 'absolute' }), '.')
          ]
  )
}

const Row = ({ of }: { of: Destination }) => {
  const { host, cues, attempts, per_minute, failures, response_p50_ms, response_p95_ms, last_attempt } = of
  const share = failures / attempts
  const tone: Tone = share === 0 ? 'good' : share < 0.05 ? 'warn' : 'bad'
  const figure = (name: string, value: unknown) =>
    h('td', { class: 'number' }, h('span', { class: 'phone-only' }, `${name} `), value as string)
  return h(
    'tr',
    { 'data-row': true },
    h(
      'td',
      { class: 'cell-main' },
      h('span', { class: 'mono' }, host),
      h('div', { class: 'under' }, `${counted(cues, 'cue')}, ${counted(attempts, 'attempt')}`)
    ),
    figure('per minute', count(per_minute)),
    h(
      'td',
      { class: 'number' },
      h(Badge, { tone }, failures === 0 ? 'none' : `${count(failures)} (${Math.ceil(share * 100)}%)`),
      h('span', { class: 'phone-only' }, ' failed')
    ),
    figure('median', response_p50_ms === null ? '–' : duration(response_p50_ms)),
    figure('p95', response_p95_ms === null ? '–' : duration(response_p95_ms)),
    h(
      'td',
      {},
      h(
        'a',
        { href: to(`/executions/${last_attempt.execution_id}`) },
        last_attempt.http_status === null ? (last_attempt.error ?? 'no response') : `HTTP ${last_attempt.http_status}`
      ),
      h('div', { class: 'under' }, h(When, { at: last_attempt.at, only: 'relative' }))
    )
  )
}
