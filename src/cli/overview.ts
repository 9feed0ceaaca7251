/** `pgcue overview` */
import { command } from './command.ts'

const ms = (value: number | null) => (value === null ? null : `${value} ms`)

export const overview = command({
  run: async context => {
    const { out } = context
    const answer = await (await context.connect()).overview()
    const { failing, waiting, waiting_for_person: undecided, paused, alerts, upcoming } = answer
    out.show(answer, () => {
      out.fields({
        since: answer.since,
        running: answer.running,
        succeeded: answer.succeeded,
        failed: answer.failed,
        'lateness p50': ms(answer.lateness_p50_ms),
        'lateness p99': ms(answer.lateness_p99_ms)
      })
      const unattended = waiting.filter(({ has_worker }) => !has_worker)
      out.section('Failing cues', failing, [['cue', 'cue_id'], ['name', 'cue_name'], 'failures', 'since', 'error'])
      out.section('Tasks without a live worker', unattended, ['task', 'waiting', 'since'])
      out.section('Outcomes to verify', undecided, [['execution', 'execution_id'], ['name', 'cue_name'], 'since'])
      out.section('Paused by the service', paused, [
        ['cue', 'cue_id'],
        ['name', 'cue_name'],
        ['by', 'paused_by'],
        ['since', 'paused_at'],
        'reason'
      ])
      out.section('Alerts', alerts, ['id', 'severity', 'created_at', 'message'])
      if (failing.length + unattended.length + undecided.length + paused.length + alerts.length === 0) {
        out.line('')
        out.line('Nothing needs attention.')
      }
      out.section('Next hour', upcoming, ['next_run', ['cue', 'cue_id'], ['name', 'cue_name']])
    })
  }
})
