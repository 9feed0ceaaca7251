/** `pgcue overview`, `alerts …` and `workers …` */
import { acting, filtersOf, listing } from './command.ts'
import type { Column } from './output.ts'
import { cueOption } from './reference.ts'

const ms = (value: number | null) => (value === null ? null : `${value} ms`)
type Cue = { cue_id: string; cue_name: string }
const cue: Column<Cue>[] = [
  ['cue', 'cue_id'],
  ['name', 'cue_name']
]

export const overview = acting(
  client => client.overview(),
  ({ failing, waiting, waiting_for_person: undecided, paused, alerts, upcoming, ...answer }, out) => {
    const { since, running, succeeded, failed, lateness_p50_ms, lateness_p99_ms } = answer
    out.fields({ since, running, succeeded, failed, 'lateness p50': ms(lateness_p50_ms), 'lateness p99': ms(lateness_p99_ms) })
    const unattended = waiting.filter(({ has_worker }) => !has_worker)
    out.section('Failing cues', failing, [...cue, 'failures', 'since', 'error'])
    out.section('Tasks without a live worker', unattended, ['task', 'waiting', 'since'])
    out.section('Outcomes to verify', undecided, [['execution', 'execution_id'], ['name', 'cue_name'], 'since'])
    out.section('Paused by the service', paused, [...cue, ['by', 'paused_by'], ['since', 'paused_at'], 'reason'])
    out.section('Alerts', alerts, ['id', 'severity', 'created_at', 'message'])
    if (failing.length + unattended.length + undecided.length + paused.length + alerts.length === 0) {
      out.line('')
      out.line('Nothing needs attention.')
    }
    out.section('Next hour', upcoming, ['next_run', ...cue])
  }
)

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

export const listWorkers = listing(
  ({ workers }, query) => workers.list(query),
  answer => answer.workers,
  [['id', 'worker_id'], ['status', 'heartbeat_status'], 'last_heartbeat', 'handlers'],
  { empty: 'No workers. Start one with: pgcue worker', options: filtersOf('listWorkers') }
)

export const removeWorker = acting(
  ({ workers }, worker_id) => workers.delete(worker_id).then(() => ({ worker_id, deleted: true })),
  ({ worker_id }) => `Removed ${worker_id}`
)
