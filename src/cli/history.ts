/** `pgcue cues history` */
import type { HistoryQuery } from '../client/index.ts'
import { command, integer, only } from './command.ts'

export const cuesHistory = command({
  args: 'ID [options]',
  summary: "Show what became of a cue's slots, by day in its time zone",
  options: {
    days: { type: 'string', value: 'N', help: 'number of days, 1 to 366 (default: 92)' },
    until: { type: 'string', value: 'DATE', help: 'the last day: YYYY-MM-DD (default: today)' }
  },
  names: { days: '--days', until: '--until', cue_id: 'ID' },
  run: async context => {
    const { options, out } = context
    const id = only(context, 'ID')
    const days = integer(options.days, 'days', 1, 366)
    const query: HistoryQuery = { ...(days && { days }), ...(options.until !== undefined && { until: options.until }) }
    const answer = await (await context.connect()).cues.history(id, query)
    out.show(answer, () => {
      out.line(`${answer.from} to ${answer.until}, ${answer.timezone}`)
      if (answer.complete_from) out.line(`Only the newest 5,000 executions are counted: complete from ${answer.complete_from}.`)
      out.line('')
      if (answer.days.length === 0) out.line('No executions.')
      else
        out.table(answer.days, [
          ['date', day => day.date],
          ['succeeded', day => day.succeeded],
          ['failed', day => day.failed],
          ['missed', day => day.missed],
          ['running', day => day.running]
        ])
      if (answer.gaps.length === 0) return
      out.line('')
      out.line('Slots that did not run')
      out.table(answer.gaps, [
        ['first', gap => gap.first],
        ['last', gap => gap.last],
        ['slots', gap => gap.count],
        ['why', gap => gap.reason]
      ])
    })
  }
})
