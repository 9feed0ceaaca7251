/** `pgcue alerts …` */
import { acting, filtersOf, listing } from './command.ts'
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
