/** `pgcue errors` and `pgcue destinations` */
import type { Destinations, Errors } from '../client/index.ts'
import { command, none } from './command.ts'
import { timeOf } from './filters.ts'
import type { Column } from './output.ts'

const window = {
  since: { type: 'string', value: 'TIME', help: 'executions created at or after this time, or in the last 30m, 2h or 3d' },
  until: { type: 'string', value: 'TIME', help: 'executions created before this time, or before the last 30m, 2h or 3d' }
} as const
const names = { from: '--since', to: '--until' }

const errorColumns: Column<Errors['errors'][number]>[] = [
  ['count', one => one.count],
  ['cues', one => one.cues],
  ['status', one => one.status],
  ['http', one => one.http_status],
  ['first', one => one.first_at],
  ['last', one => one.last_at],
  ['group', one => one.error_group],
  ['message', one => one.message]
]

export const errors = command({
  summary: 'List failures of the last 7 days that nobody has replayed or dismissed, grouped by error',
  options: window,
  names,
  run: async context => {
    none(context)
    const { options: o, out } = context
    const answer = await (await context.connect()).errors({ from: timeOf(o.since), to: timeOf(o.until) })
    out.show(answer, () => {
      if (answer.errors.length === 0) return out.line(`No errors since ${answer.since}.`)
      out.table(answer.errors, errorColumns)
      out.line('')
      out.line(`${answer.total} executions since ${answer.since}; for those of a group: pgcue executions list --error-group GROUP`)
    })
  }
})

const destinationColumns: Column<Destinations['destinations'][number]>[] = [
  ['host', one => one.host],
  ['cues', one => one.cues],
  ['attempts', one => one.attempts],
  ['per minute', one => one.per_minute],
  ['failures', one => one.failures],
  ['p50 ms', one => one.response_p50_ms],
  ['p95 ms', one => one.response_p95_ms],
  ['last attempt', one => one.last_attempt.at],
  ['http', one => one.last_attempt.http_status],
  ['error', one => one.last_attempt.error]
]

export const destinations = command({
  summary: 'List the hosts that webhooks went to in the last 24 hours',
  options: window,
  names,
  run: async context => {
    none(context)
    const { options: o, out } = context
    const answer = await (await context.connect()).destinations({ from: timeOf(o.since), to: timeOf(o.until) })
    out.show(answer, () => {
      if (answer.destinations.length === 0) return out.line(`No webhooks were sent since ${answer.since}.`)
      out.table(answer.destinations, destinationColumns)
      out.line('')
      out.line(`since ${answer.since}`)
    })
  }
})
