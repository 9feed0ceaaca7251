/** `pgcue errors` and `pgcue destinations` */
import type { ListErrors } from '../client/index.ts'
import { command, filtersOf } from './command.ts'
import { since, until } from './executions.ts'

const window = (operation: string) =>
  filtersOf(operation, {
    since: { member: 'from', ...since },
    until: { member: 'to', ...until }
  })

export const errors = command({
  options: window('listErrors'),
  notes: 'Without --since: those of the last 7 days.',
  run: async ({ ready }) => {
    const { client, body } = await ready<ListErrors>()
    return client.errors(body)
  },
  text: ({ errors, since, total }, out) => {
    if (errors.length === 0) return `No errors since ${since}.`
    out.table(errors, ['count', 'cues', 'status', ['http', 'http_status'], 'first_at', 'last_at', ['group', 'error_group'], 'message'])
    out.line('')
    return `${total} executions since ${since}; for those of a group: pgcue executions list --error-group GROUP`
  }
})

export const destinations = command({
  options: window('listDestinations'),
  notes: 'Without --since: those of the last 24 hours.',
  run: async ({ ready }) => {
    const { client, body } = await ready<ListErrors>()
    return client.destinations(body)
  },
  text: ({ destinations, since }, out) => {
    if (destinations.length === 0) return `No webhooks were sent since ${since}.`
    out.table(destinations, [
      ...(['host', 'cues', 'attempts', 'per_minute', 'failures', ['p50 ms', 'response_p50_ms'], ['p95 ms', 'response_p95_ms']] as const),
      ['last attempt', ({ last_attempt }) => last_attempt.at],
      ['http', ({ last_attempt }) => last_attempt.http_status],
      ['error', ({ last_attempt }) => last_attempt.error]
    ])
    out.line('')
    return `since ${since}`
  }
})
