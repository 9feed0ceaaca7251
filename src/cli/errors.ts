/** `pgcue errors` and `pgcue destinations` */
import type { Destinations, Errors, ListErrors } from '../client/index.ts'
import { command, filtersOf, pastOf } from './command.ts'
import type { Column } from './output.ts'

const window = (operation: string) =>
  filtersOf(operation, {
    since: { member: 'from', read: pastOf, help: 'executions created at or after this time, or in the last 30m, 2h or 3d' },
    until: { member: 'to', read: pastOf, help: 'executions created before this time, or before the last 30m, 2h or 3d' }
  })

const errorColumns: Column<Errors['errors'][number]>[] = [
  ['count', row => row.count],
  ['cues', row => row.cues],
  ['status', row => row.status],
  ['http', row => row.http_status],
  ['first', row => row.first_at],
  ['last', row => row.last_at],
  ['group', row => row.error_group],
  ['message', row => row.message]
]

export const errors = command({
  options: window('listErrors'),
  run: async context => {
    const { out } = context
    const { client, body } = await context.ready<ListErrors>()
    const answer = await client.errors(body)
    out.show(answer, () => {
      if (answer.errors.length === 0) return out.line(`No errors since ${answer.since}.`)
      out.table(answer.errors, errorColumns)
      out.line('')
      out.line(`${answer.total} executions since ${answer.since}; for those of a group: pgcue executions list --error-group GROUP`)
    })
  }
})

const destinationColumns: Column<Destinations['destinations'][number]>[] = [
  ['host', row => row.host],
  ['cues', row => row.cues],
  ['attempts', row => row.attempts],
  ['per minute', row => row.per_minute],
  ['failures', row => row.failures],
  ['p50 ms', row => row.response_p50_ms],
  ['p95 ms', row => row.response_p95_ms],
  ['last attempt', row => row.last_attempt.at],
  ['http', row => row.last_attempt.http_status],
  ['error', row => row.last_attempt.error]
]

export const destinations = command({
  options: window('listDestinations'),
  run: async context => {
    const { out } = context
    const { client, body } = await context.ready<ListErrors>()
    const answer = await client.destinations(body)
    out.show(answer, () => {
      if (answer.destinations.length === 0) return out.line(`No webhooks were sent since ${answer.since}.`)
      out.table(answer.destinations, destinationColumns)
      out.line('')
      out.line(`since ${answer.since}`)
    })
  }
})
