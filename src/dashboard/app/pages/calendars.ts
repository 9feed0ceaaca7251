/** Calendars: dates and times on which several cues do not run. */
import { useState } from 'preact/hooks'
import type { Calendars as Answer, Calendar, Cues } from '../../../client/types.ts'
import { call } from '../api.ts'
import { h } from '../h.ts'
import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { serviceNow } from '../time.ts'
import { Button, ButtonLink, count, counted, Empty, Facts, Loading, Panel, Problem, totalText } from '../ui/basics.ts'
import { Confirm } from '../ui/dialog.ts'
import { Above, Page } from '../ui/frame.ts'
import { OffsetList, useOffset } from '../ui/list.ts'
import { addMonths, dateText, Months, monthOf, monthsShown, monthsUntil } from '../ui/months.ts'
import { CueLink } from '../ui/results.ts'
import { When } from '../ui/when.ts'
import { excludes } from './calendar-draft.ts'
import { calendarPath } from './calendar-form.ts'
import { calendarCalls } from './teach.ts'

/** The first date from today on, of this year or the next one. */
const nextDate = ({ dates }: Calendar): string | undefined => {
  const today = new Date(serviceNow()).toISOString().slice(0, 10)
  const year = Number(today.slice(0, 4))
  const years = dates.flatMap(date => (date.length > 5 ? [date] : [`${year}-${date}`, `${year + 1}-${date}`]))
  return years.filter(date => date >= today).sort()[0]
}

export const CalendarsPage = () => {
  const read = useRead<Answer>('/v1/calendars', { limit: 50, offset: useOffset() })
  const mayWrite = useMay('write')
  const me = useMe()
  useRows()
  const create = mayWrite && h(ButtonLink, { label: 'Create a calendar', href: to('/calendars/new'), icon: 'plus', kind: 'main' })
  return h(
    Page,
    { title: 'Calendars', read, actions: create },
    h(OffsetList<Answer>, {
      read,
      caption: 'Calendars',
      columns: ['Calendar', 'Next date', 'Dates', 'Times', 'Changed'],
      noun: 'calendar',
      empty: h(Empty, {
        title: 'No calendars',
        text: 'A calendar is a set of dates, such as public holidays, on which any number of cues do not run. Create one, then name it in the schedule of a cue:',
        calls: calendarCalls(me)
      }),
      rows: ({ calendars }) =>
        calendars.map(one =>
          h(
            'tr',
            { key: one.name, 'data-row': true },
            h(
              'td',
              { class: 'cell-main' },
              h('a', { class: 'name', href: to(calendarPath(one.name)) }, one.name),
              one.description && h('div', { class: 'under' }, one.description)
            ),
            h('td', {}, dateOr(nextDate(one))),
            h('td', {}, count(one.dates.length), phoneNoun(one.dates, 'date')),
            h('td', {}, count(one.ranges.length), phoneNoun(one.ranges, 'time')),
            h('td', {}, h('span', { class: 'phone-only' }, 'changed '), h(When, { at: one.updated_at, only: 'relative' }))
          )
        )
    })
  )
}

const phoneNoun = ({ length }: readonly unknown[], noun: string) => h('span', { class: 'phone-only' }, ` ${noun}${length === 1 ? '' : 's'}`)
const dateOr = (date: string | undefined) => (date ? dateText(date) : h('span', { class: 'soft' }, '–'))

export const CalendarPage = ({ name }: { name: string }) => {
  const read = useRead<Calendar>(`/v1${calendarPath(name)}`)
  const cues = useRead<Cues>('/v1/cues', { calendar: name, limit: 20, count_to: 1000 }).data
  const mayWrite = useMay('write')
  const [asked, ask] = useState(false)
  const [last, setLast] = useState(() => addMonths(monthOf(new Date(serviceNow()).toISOString()), monthsShown() - 1))
  useRows()
  const { data } = read
  const above = h(Above, { path: '/calendars', name: 'Calendars' })
  if (!data) return h(Page, { title: name, above }, read.failure ? h(Problem, { failure: read.failure }) : h(Loading, {}))
  const isUsed = cues === undefined || cues.cues.length > 0
  const Day = (date: string) => {
    const kind = excludes(data.dates, date)
    const title = kind && `${dateText(date)}: ${kind === 'yearly' ? 'every year' : 'this year'}`
    return h(
      'span',
      { class: `day ${kind ?? ''}`, title },
      h('span', { 'aria-hidden': kind !== undefined }, Number(date.slice(8))),
      kind && h('span', { class: 'unseen' }, title)
    )
  }
  return h(
    Page,
    {
      title: data.name,
      above,
      read,
      actions: mayWrite && [
        h(ButtonLink, { key: 'edit', label: 'Edit', icon: 'edit', href: to(`${calendarPath(name)}/edit`) }),
        !isUsed && h(Button, { key: 'delete', label: 'Delete', icon: 'trash', kind: 'quiet', iconOnly: true, onClick: () => ask(true) })
      ]
    },
    h(Problem, { failure: read.failure }),
    data.description && h('p', { class: 'lead' }, data.description),
    h(
      'div',
      { class: 'stack' },
      h(
        Panel,
        {
          title: counted(data.dates.length, 'date'),
          actions: [
            h(Button, {
              key: 'back',
              label: 'Earlier',
              icon: 'back',
              iconOnly: true,
              onClick: () => setLast(addMonths(last, -monthsShown()))
            }),
            h(Button, { key: 'on', label: 'Later', icon: 'right', iconOnly: true, onClick: () => setLast(addMonths(last, monthsShown())) })
          ]
        },
        h(Months, { months: monthsUntil(last, monthsShown()), day: Day })
      ),
      data.ranges.length > 0 &&
        h(
          Panel,
          { title: 'Times' },
          h(Facts, {
            items: data.ranges.map(({ from, to: until }): [string, string] => [from.replace('T', ' '), `until ${until.replace('T', ' ')}`])
          })
        ),
      h(
        Panel,
        {
          title: cues ? `Used by ${totalText(cues)} ${cues.total === 1 ? 'cue' : 'cues'}` : 'Used by',
          actions: cues && cues.total > cues.cues.length && h('a', { href: to('/cues', { calendar: name }) }, 'All of them')
        },
        !cues
          ? h(Loading, { lines: 2 })
          : cues.cues.length === 0
            ? h('p', { class: 'soft' }, 'No cue uses it. Name it under “Excluded calendars” in the schedule of a cue.')
            : h(
                'ul',
                { class: 'plain-list' },
                cues.cues.map(one =>
                  h(
                    'li',
                    { key: one.id, 'data-row': true },
                    h(CueLink, one),
                    ' ',
                    h(When, { at: one.next_run, only: 'relative', isNext: true, none: '' })
                  )
                )
              )
      )
    ),
    asked &&
      h(
        Confirm,
        {
          title: `Delete ${data.name}`,
          label: 'Delete',
          kind: 'danger',
          onClose: () => ask(false),
          done: 'The calendar is deleted',
          action: () => call('DELETE', `/v1${calendarPath(name)}`).then(() => go(to('/calendars')))
        },
        h('p', {}, 'No cue uses it. This cannot be undone.')
      )
  )
}
