/** `pgcue preview` */
import { command, integer, only } from './command.ts'

const isInstant = /^\d{4}-\d\d-\d\d/

export const preview = command({
  args: 'CRON|TIME [options]',
  summary: 'Show when a schedule would run, without creating a cue',
  options: {
    timezone: { type: 'string', value: 'ZONE', help: 'IANA time zone such as Europe/London (default: UTC)' },
    count: { type: 'string', value: 'N', help: 'number of runs, 1 to 50 (default: 5)' },
    from: { type: 'string', value: 'TIME', help: 'show runs after this time (default: now)' }
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
      if (answer.next.length === 0) return out.line('No further runs.')
      out.line('')
      out.table(answer.next, [
        ['at', run => run.at],
        ['local', run => run.local],
        ['note', run => run.note]
      ])
    })
  }
})
