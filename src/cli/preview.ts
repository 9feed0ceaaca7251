/** `pgcue preview` */
import type { PreviewRequest } from '../client/index.ts'
import { command, fromApi } from './command.ts'
import { UsageError } from './exit-codes.ts'
import { cronsOf, scheduleOptions } from './schedule.ts'

const isInstant = /^\d{4}-\d\d-\d\d/

export const preview = command({
  options: {
    ...scheduleOptions,
    ...fromApi('previewSchedule', { count: 'count', from: { member: 'from', help: 'show runs after this time (default: now)' } })
  },
  names: { 'schedule.cron': 'CRON', 'schedule.crons': 'CRON', 'schedule.at': 'TIME' },
  notes: `SCHEDULE is a time, or one or more cron expressions; none with --every.

Examples
  pgcue preview '30 1 * * *' --timezone America/New_York --from 2030-11-02T00:00:00Z
  pgcue preview '0 9 * * MON-FRI' '0 12 * * SAT' --ends-at 2030-12-31T00:00:00Z
  pgcue preview --every 36h --anchor 2030-01-01T06:00:00Z`,
  run: async ({ args, options, ready }) => {
    if (args.length === 0 && options.every === undefined) throw new UsageError("missing required argument 'SCHEDULE'")
    const { client, body } = await ready<Partial<PreviewRequest>>()
    const [first = ''] = args
    const when = args.length === 1 && isInstant.test(first) ? { at: first } : cronsOf(args)
    return client.cues.preview({ ...body, schedule: { ...when, ...body.schedule } })
  },
  text: ({ description, next }, out) => {
    out.line(description)
    if (next.length === 0) return 'No further runs.'
    out.line('')
    out.table(next, ['at', 'local', 'note'])
  }
})
