/** `pgcue overview` */
import { command } from './command.ts'
import type { Column } from './output.ts'

const ms = (value: number | null) => (value === null ? null : `${value} ms`)
type Cue = { cue_id: string; cue_name: string }
const cue: Column<Cue>[] = [
  ['cue', 'cue_id'],
  ['name', 'cue_name']
]

export const overview = command({
  run: async ({ connect }) => (await connect()).overview(),
  text: ({ failing, waiting, waiting_for_person: undecided, paused, alerts, upcoming, ...answer }, out) => {
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
})
