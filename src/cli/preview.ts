/** `pgcue preview` */
import { command, integer, only } from './command.ts'
import { cronsOf, membersOf, scheduleNames, scheduleOptions } from './schedule.ts'

const isInstant = /^\d{4}-\d\d-\d\d/

export const preview = command({
  args: '(CRON… | TIME | --every LENGTH) [options]',
  summary: 'Show when a schedule would run, without creating a cue',
  options: {
    ...scheduleOptions,
    count: { type: 'string', value: 'N', help: 'number of runs, 1 to 50 (default: 5)' },
    from: { type: 'string', value: 'TIME', help: 'show runs after this time (default: now)' }
  },
  names: { ...scheduleNames, 'schedule.cron': 'CRON', 'schedule.crons': 'CRON', 'schedule.at': 'TIME', from: '--from' },
  notes: `Examples
  pgcue preview '30 1 * * *' --timezone America/New_York --from 2030-11-02T00:00:00Z
  pgcue preview '0 9 * * MON-FRI' '0 12 * * SAT' --ends-at 2030-12-31T00:00:00Z
  pgcue preview --every 36h --anchor 2030-01-01T06:00:00Z`,
  run: async context => {
    const { args, options, out } = context
    const given = args.length > 1 || options.every !== undefined ? undefined : only(context, 'the schedule')
    const schedule = {
      ...(given !== undefined && isInstant.test(given) ? { at: given } : cronsOf(args)),
      ...membersOf(context)
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
