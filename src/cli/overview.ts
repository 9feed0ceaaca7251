/** `pgcue overview` */
import { command, none } from './command.ts'

const ms = (value: number | null) => (value === null ? null : `${value} ms`)

export const overview = command({
  summary: 'Show what needs attention, and how the last 24 hours went',
  run: async context => {
    none(context)
    const { out } = context
    const answer = await (await context.connect()).overview()
    const { failing, waiting, waiting_for_person: undecided, paused, alerts, upcoming } = answer
    /** Prints a table below its title, unless there are no rows. */
    const section = <T>(title: string, rows: T[], columns: Parameters<typeof out.table<T>>[1]) => {
      if (rows.length === 0) return
      out.line('')
      out.line(title, 'bold')
      out.table(rows, columns)
    }
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
      section('Failing cues', failing, [
        ['cue', one => one.cue_id],
        ['name', one => one.cue_name],
        ['failures', one => one.failures],
        ['since', one => one.since],
        ['error', one => one.error]
      ])
      section('Tasks without a live worker', unattended, [
        ['task', one => one.task],
        ['waiting', one => one.waiting],
        ['since', one => one.since]
      ])
      section('Outcomes to verify', undecided, [
        ['execution', one => one.execution_id],
        ['name', one => one.cue_name],
        ['since', one => one.since]
      ])
      section('Paused by the service', paused, [
        ['cue', one => one.cue_id],
        ['name', one => one.cue_name],
        ['by', one => one.paused_by],
        ['since', one => one.paused_at],
        ['reason', one => one.reason]
      ])
      section('Alerts', alerts, [
        ['id', one => one.id],
        ['severity', one => one.severity],
        ['created', one => one.created_at],
        ['message', one => one.message]
      ])
      if (failing.length + unattended.length + undecided.length + paused.length + alerts.length === 0) {
        out.line('')
        out.line('Nothing needs attention.')
      }
      section('Next hour', upcoming, [
        ['next run', one => one.next_run],
        ['cue', one => one.cue_id],
        ['name', one => one.cue_name]
      ])
    })
  }
})
