/** `pgcue alerts …` */
import { acting, command, filtersOf, fromApi, listing } from './command.ts'
import { cueOption } from './reference.ts'

export const list = listing(
  ({ alerts }, query) => alerts.list(query),
  answer => answer.alerts,
  ['id', 'severity', ['type', 'alert_type'], ['cue', 'cue_id'], 'created_at', 'acknowledged_at', 'message'],
  {
    empty: 'No matching alerts.',
    options: filtersOf('listAlerts', {
      type: 'alert_type',
      cue: cueOption,
      acknowledged: { member: 'acknowledged', help: 'only acknowledged alerts' },
      open: { member: 'acknowledged', help: 'only unacknowledged alerts', read: () => false }
    })
  }
)

export const acknowledge = acting(
  ({ alerts }, id) => alerts.acknowledge(id),
  ({ id, acknowledged_at }) => `Alert ${id} acknowledged at ${acknowledged_at}`
)

export const snooze = command({
  options: fromApi('snoozeAlert', {
    until: { member: 'until', help: 'when its channels hear of it again: ISO 8601, or so long from now: +2h' }
  }),
  run: async ({ args: [id], ready }) => {
    const { client, body } = await ready<{ until: string }>()
    return client.alerts.snooze(id!, body.until)
  },
  text: ({ id, snoozed_until }) => `Alert ${id} snoozed until ${snoozed_until}`
})
