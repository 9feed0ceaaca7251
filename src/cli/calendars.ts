/** `pgcue calendars …` */
import type { Calendar, PutCalendar } from '../client/index.ts'
import { acting, command, data, filtersOf, fromApi, listing } from './command.ts'
import type { Output } from './output.ts'
import { rangeOf } from './schedule.ts'

const show = ({ ranges, created_at: created, updated_at: updated, ...calendar }: Calendar, out: Output) =>
  out.fields({ ...calendar, ranges: ranges.map(({ from, to }) => `${from}/${to}`), created, updated })

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
  run: async ({ args: [name], ready }) => {
    const { client, body } = await ready<PutCalendar>()
    return client.calendars.put(name!, body)
  },
  text: show
})

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
