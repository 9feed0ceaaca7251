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
      out.section('Failing cues', failing, [
        ['cue', row => row.cue_id],
        ['name', row => row.cue_name],
        ['failures', row => row.failures],
        ['since', row => row.since],
        ['error', row => row.error]
      ])
      out.section('Tasks without a live worker', unattended, [
        ['task', row => row.task],
        ['waiting', row => row.waiting],
        ['since', row => row.since]
      ])
      out.section('Outcomes to verify', undecided, [
        ['execution', row => row.execution_id],
        ['name', row => row.cue_name],
        ['since', row => row.since]
      ])
      out.section('Paused by the service', paused, [
        ['cue', row => row.cue_id],
        ['name', row => row.cue_name],
        ['by', row => row.paused_by],
        ['since', row => row.paused_at],
        ['reason', row => row.reason]
      ])
      out.section('Alerts', alerts, [
        ['id', row => row.id],
        ['severity', row => row.severity],
        ['created', row => row.created_at],
        ['message', row => row.message]
      ])
      if (failing.length + unattended.length + undecided.length + paused.length + alerts.length === 0) {
        out.line('')
        out.line('Nothing needs attention.')
      }
      out.section('Next hour', upcoming, [
        ['next run', row => row.next_run],
        ['cue', row => row.cue_id],
        ['name', row => row.cue_name]
      ])
    })
  }
})
