/** `pgcue calendars …` */
import type { Calendar, PutCalendar } from '../client/index.ts'
import { acting, type Context, command, data, filtersOf, fromApi, listing } from './command.ts'
import { rangeOf } from './schedule.ts'

const showCalendar = ({ out }: Pick<Context, 'out'>, calendar: Calendar) =>
  out.show(calendar, () =>
    out.fields({
      name: calendar.name,
      description: calendar.description,
      dates: calendar.dates.join(', ') || null,
      ranges: calendar.ranges.map(({ from, to }) => `${from}/${to}`).join(', ') || null,
      created: calendar.created_at,
      updated: calendar.updated_at
    })
  )

export const put = command({
  options: {
    ...data,
    ...fromApi('putCalendar', {
      date: { member: 'dates', value: 'DATE', help: 'excluded date: YYYY-MM-DD, or MM-DD for every year' },
      range: {
        member: 'ranges',
        value: 'FROM/TO',
        help: 'excluded time, from FROM to before TO',
        read: (texts: string[]) => texts.map(text => rangeOf(text, '--range'))
      },
      description: 'description'
    })
  },
  names: { name: 'NAME' },
  notes: `The next runs of all cues that use the calendar change at once. What is not given is empty.

Example
  pgcue calendars put holidays --date 12-25 --date 2030-04-19 --range 2030-12-24T12:00/2030-12-27T00:00`,
  run: async context => {
    const { client, body } = await context.ready<PutCalendar>()
    showCalendar(context, await client.calendars.put(context.args[0]!, body))
  }
})

export const list = listing(
  ({ calendars }, query) => calendars.list(query),
  answer => answer.calendars,
  ['name', ['dates', ({ dates }) => dates.length], ['ranges', ({ ranges }) => ranges.length], 'updated_at', 'description'],
  { empty: 'No calendars.', options: filtersOf('listCalendars') }
)

export const get = command({
  run: async context => showCalendar(context, await (await context.connect()).calendars.get(context.args[0]!))
})

export const remove = acting(
  ({ calendars }, name) => calendars.delete(name).then(() => ({ name, deleted: true })),
  ({ name }) => `Calendar ${name} deleted`
)
