/** `pgcue preview` and `pgcue calendars …` */
import type { Calendar, PreviewRequest, PutCalendar } from '../client/index.ts'
import { acting, command, data, filtersOf, fromApi, listing } from './command.ts'
import { UsageError } from './exit-codes.ts'
import type { Output } from './output.ts'
import { cronsOf, rangeOf, scheduleOptions } from './schedule.ts'

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

const show = ({ ranges, created_at: created, updated_at: updated, ...calendar }: Calendar, out: Output) =>
  out.fields({ ...calendar, ranges: ranges.map(({ from, to }) => `${from}/${to}`), created, updated })

export const put = acting(({ calendars }, name, body: PutCalendar) => calendars.put(name, body), show, {
  options: {
    ...data,
    ...fromApi('putCalendar', {
      date: { member: 'dates', value: 'DATE', help: 'excluded date: YYYY-MM-DD, or MM-DD for every year' },
      range: { member: 'ranges', value: 'FROM/TO', help: 'excluded time, from FROM to before TO', read: rangesOf },
      description: 'description'
    })
  },
  names: { name: 'NAME' },
  notes: `The next runs of all cues that use the calendar change at once. What is not given is empty.

Example
  pgcue calendars put holidays --date 12-25 --date 2030-04-19 --range 2030-12-24T12:00/2030-12-27T00:00`
})

function rangesOf(texts: string[]) {
  return texts.map(text => rangeOf(text, '--range'))
}

export const list = listing(
  ({ calendars }, query) => calendars.list(query),
  answer => answer.calendars,
  ['name', ['dates', ({ dates }) => dates.length], ['ranges', ({ ranges }) => ranges.length], 'updated_at', 'description'],
  { empty: 'No calendars.', options: filtersOf('listCalendars') }
)

export const get = acting(({ calendars }, name) => calendars.get(name), show)

export const remove = acting(
  ({ calendars }, name) => calendars.delete(name).then(() => ({ name, deleted: true })),
  ({ name }) => `Calendar ${name} deleted`
)
