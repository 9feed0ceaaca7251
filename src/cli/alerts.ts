/** `pgcue alerts …` */
import type { AlertFilter } from '../client/index.ts'
import { command, filtersOf } from './command.ts'
import { cueOption } from './reference.ts'

export const list = command({
  options: {
    ...filtersOf('listAlerts', {
      type: { member: 'alert_type', value: 'TYPE' },
      cue: cueOption,
      acknowledged: { member: 'acknowledged', help: 'only acknowledged alerts' }
    }),
    open: {
      type: 'boolean',
      help: 'only unacknowledged alerts',
      members: ['acknowledged'],
      part: () => ({ acknowledged: false })
    }
  },
  run: async context => {
    const { out } = context
    const { client, body } = await context.ready<AlertFilter>()
    const answer = await client.alerts.list(body)
    out.list(
      answer,
      answer.alerts,
      [
        ['id', alert => alert.id],
        ['severity', alert => alert.severity],
        ['type', alert => alert.alert_type],
        ['cue', alert => alert.cue_id],
        ['created', alert => alert.created_at],
        ['acknowledged', alert => alert.acknowledged_at],
        ['message', alert => alert.message]
      ],
      'No matching alerts.'
    )
  }
})

export const acknowledge = command({
  run: async ({ args, connect, out }) => {
    const alert = await (await connect()).alerts.acknowledge(args[0]!)
    out.show(alert, () => out.line(`Alert ${alert.id} acknowledged at ${alert.acknowledged_at}`))
  }
})
