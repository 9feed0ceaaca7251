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
  'count',
  'cues',
  'status',
  ['http', 'http_status'],
  'first_at',
  'last_at',
  ['group', 'error_group'],
  'message'
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
  'host',
  'cues',
  'attempts',
  'per_minute',
  'failures',
  ['p50 ms', 'response_p50_ms'],
  ['p95 ms', 'response_p95_ms'],
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
