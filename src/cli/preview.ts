/** `pgcue preview` */
import { command, integer, only } from './command.ts'

const isInstant = /^\d{4}-\d\d-\d\d/

export const preview = command({
  args: 'CRON|TIME [options]',
  summary: 'Say when a schedule runs, without making anything',
  options: {
    timezone: { type: 'string', value: 'ZONE', help: 'an IANA name such as Europe/London; UTC by default' },
    count: { type: 'string', value: 'N', help: 'how many runs, 1 to 50; 5 by default' },
    from: { type: 'string', value: 'TIME', help: 'the runs after then; after now by default' }
  },
  names: { 'schedule.cron': 'CRON', 'schedule.at': 'TIME', 'schedule.timezone': '--timezone', from: '--from' },
  notes: `Example
  pgcue preview '30 1 * * *' --timezone America/New_York --from 2030-11-02T00:00:00Z`,
  run: async context => {
    const { options, out } = context
    const given = only(context, 'the schedule')
    const schedule = {
      ...(isInstant.test(given) ? { at: given } : { cron: given }),
      ...(options.timezone && { timezone: options.timezone })
    }
    const count = integer(options.count, 'count', 1, 50)
    const client = await context.connect()
    const answer = await client.cues.preview({ schedule, ...(count && { count }), ...(options.from && { from: options.from }) })
    out.show(answer, () => {
      out.line(answer.description)
      if (answer.next.length === 0) return out.line('It does not run any more.')
      out.line('')
      out.table(answer.next, [
        ['at', run => run.at],
        ['local', run => run.local],
        ['note', run => run.note]
      ])
    })
  }
})
