/** `pgcue alerts …` */
import type { Alert, AlertFilter } from '../client/index.ts'
import { command, none, only } from './command.ts'
import { UsageError } from './exit-codes.ts'
import { longPage, longPageNames, longPageOf } from './page.ts'

export const alertsList = command({
  summary: 'List alerts, newest first',
  options: {
    type: { type: 'string', value: 'TYPE', help: 'consecutive_failure, missed_window, outcome_timeout or cue_paused' },
    cue: { type: 'string', value: 'ID', help: 'only for this cue' },
    open: { type: 'boolean', help: 'only unacknowledged alerts' },
    acknowledged: { type: 'boolean', help: 'only acknowledged alerts' },
    ...longPage
  },
  names: { alert_type: '--type', cue_id: '--cue', ...longPageNames },
  run: async context => {
    none(context)
    const { options: o, out } = context
    if (o.open && o.acknowledged) throw new UsageError('give either --open or --acknowledged, not both')
    const filter = {
      alert_type: o.type,
      cue_id: o.cue,
      acknowledged: o.open ? false : o.acknowledged,
      ...longPageOf(o)
    }
    const answer = await (await context.connect()).alerts.list(filter as AlertFilter)
    const columns: Parameters<typeof out.list<Alert>>[2] = [
      ['id', alert => alert.id],
      ['severity', alert => alert.severity],
      ['type', alert => alert.alert_type],
      ['cue', alert => alert.cue_id],
      ['created', alert => alert.created_at],
      ['acknowledged', alert => alert.acknowledged_at],
      ['message', alert => alert.message]
    ]
    out.list(answer, answer.alerts, columns, 'No matching alerts.')
  }
})

export const alertsAck = command({
  args: 'ID',
  summary: 'Acknowledge an alert, so that another failure raises a new one',
  run: async context => {
    const { out } = context
    const id = only(context, 'ID')
    const alert = await (await context.connect()).alerts.acknowledge(id)
    out.show(alert, () => out.line(`Alert ${alert.id} acknowledged at ${alert.acknowledged_at}`))
  }
})
