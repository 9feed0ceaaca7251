/** `pgcue calendars …` */
import type { Calendar, PutCalendar } from '../client/index.ts'
import { type Context, command, none, only } from './command.ts'
import { UsageError } from './exit-codes.ts'
import { isObject, readJson } from './json.ts'
import { page, pageOf } from './page.ts'
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

export const calendarsPut = command({
  args: 'NAME [--date DATE]… [--range FROM/TO]…',
  summary: 'Create or replace a calendar of dates that cues leave out',
  options: {
    date: { type: 'string', multiple: true, value: 'DATE', help: 'excluded date: YYYY-MM-DD, or MM-DD for every year' },
    range: { type: 'string', multiple: true, value: 'FROM/TO', help: 'excluded time, from FROM to before TO' },
    description: { type: 'string', value: 'TEXT', help: 'description of the calendar' },
    data: { type: 'string', value: 'JSON', help: 'the body of the API request, as a JSON object, @FILE or -' }
  },
  names: { name: 'NAME', dates: '--date', ranges: '--range', description: '--description' },
  notes: `The next runs of all cues that use the calendar change at once. What is not given is empty.

Example
  pgcue calendars put holidays --date 12-25 --date 2030-04-19 --range 2030-12-24T12:00/2030-12-27T00:00`,
  run: async context => {
    const { options: o, io } = context
    const name = only(context, 'NAME')
    const data = o.data === undefined ? {} : await readJson(o.data, 'data', io)
    if (!isObject(data)) throw new UsageError('--data must be a JSON object')
    const body = {
      ...data,
      ...(o.date && { dates: o.date }),
      ...(o.range && { ranges: o.range.map(range => rangeOf(range, '--range')) }),
      ...(o.description !== undefined && { description: o.description })
    }
    showCalendar(context, await (await context.connect()).calendars.put(name, body as PutCalendar))
  }
})

export const calendarsList = command({
  summary: 'List calendars by name',
  options: page,
  run: async context => {
    none(context)
    const { options, out } = context
    const answer = await (await context.connect()).calendars.list(pageOf(options))
    const columns: Parameters<typeof out.list<Calendar>>[2] = [
      ['name', calendar => calendar.name],
      ['dates', calendar => calendar.dates.length],
      ['ranges', calendar => calendar.ranges.length],
      ['updated', calendar => calendar.updated_at],
      ['description', calendar => calendar.description]
    ]
    out.list(answer, answer.calendars, columns, 'No calendars.')
  }
})

export const calendarsGet = command({
  args: 'NAME',
  summary: 'Show a calendar',
  run: async context => {
    const name = only(context, 'NAME')
    showCalendar(context, await (await context.connect()).calendars.get(name))
  }
})

export const calendarsDelete = command({
  args: 'NAME',
  summary: 'Delete a calendar that no cue uses',
  run: async context => {
    const { out } = context
    const name = only(context, 'NAME')
    await (await context.connect()).calendars.delete(name)
    out.show({ name, deleted: true }, () => out.line(`Calendar ${name} deleted`))
  }
})
