/** Calendars: dates and times on which several cues do not run. */
import { useState } from 'preact/hooks'
import type { Calendars as Answer, Calendar, Cues } from '../../../client/types.ts'
import { call } from '../api.ts'

import { useRows } from '../keys.ts'
import { useRead } from '../query.ts'
import { go, to } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { serviceNow } from '../time.ts'
import { Button, ButtonLink, count, counted, Empty, Facts, Loading, Panel, Problem, totalText } from '../ui/basics.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Above, Page } from '../ui/frame.tsx'
import { OffsetList, useOffset } from '../ui/list.tsx'
import { addMonths, dateText, Months, monthOf, monthsShown, monthsUntil } from '../ui/months.tsx'
import { CueLink } from '../ui/results.tsx'
import { When } from '../ui/when.tsx'
import { excludes } from './calendar-draft.ts'
import { calendarPath } from './calendar-form.tsx'
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
  const create = mayWrite && <ButtonLink label="Create a calendar" href={to('/calendars/new')} icon="plus" kind="main" />
  return (
    <Page title="Calendars" read={read} actions={create}>
      <OffsetList<Answer>
        read={read}
        caption="Calendars"
        columns={['Calendar', 'Next date', 'Dates', 'Times', 'Changed']}
        noun="calendar"
        empty={
          <Empty
            title="No calendars"
            text="A calendar is a set of dates, such as public holidays, on which any number of cues do not run. Create one, then name it in the schedule of a cue:"
            calls={calendarCalls(me)}
          />
        }
        rows={({ calendars }) =>
          calendars.map(one => (
            <tr key={one.name} data-row>
              <td class="cell-main">
                <a class="name" href={to(calendarPath(one.name))}>
                  {one.name}
                </a>
                {one.description && <div class="under">{one.description}</div>}
              </td>
              <td>{dateOr(nextDate(one))}</td>
              <td>
                {count(one.dates.length)}
                {phoneNoun(one.dates, 'date')}
              </td>
              <td>
                {count(one.ranges.length)}
                {phoneNoun(one.ranges, 'time')}
              </td>
              <td>
                <span class="phone-only">{'changed '}</span>
                <When at={one.updated_at} only="relative" />
              </td>
            </tr>
          ))
        }
      />
    </Page>
  )
}

const phoneNoun = ({ length }: readonly unknown[], noun: string) => <span class="phone-only">{` ${noun}${length === 1 ? '' : 's'}`}</span>
const dateOr = (date: string | undefined) => (date ? dateText(date) : <span class="soft">–</span>)

export const CalendarPage = ({ name }: { name: string }) => {
  const read = useRead<Calendar>(`/v1${calendarPath(name)}`)
  const cues = useRead<Cues>('/v1/cues', { calendar: name, limit: 20, count_to: 1000 }).data
  const mayWrite = useMay('write')
  const [asked, ask] = useState(false)
  const [last, setLast] = useState(() => addMonths(monthOf(new Date(serviceNow()).toISOString()), monthsShown() - 1))
  useRows()
  const { data } = read
  const above = <Above path="/calendars" name="Calendars" />
  if (!data)
    return (
      <Page title={name} above={above}>
        {read.failure ? <Problem failure={read.failure} /> : <Loading />}
      </Page>
    )
  const isUsed = cues === undefined || cues.cues.length > 0
  const Day = (date: string) => {
    const kind = excludes(data.dates, date)
    const title = kind && `${dateText(date)}: ${kind === 'yearly' ? 'every year' : 'this year'}`
    return (
      <span class={`day ${kind ?? ''}`} title={title}>
        <span aria-hidden={kind !== undefined}>{Number(date.slice(8))}</span>
        {kind && <span class="unseen">{title}</span>}
      </span>
    )
  }
  return (
    <Page
      title={data.name}
      above={above}
      read={read}
      actions={
        mayWrite && (
          <>
            <ButtonLink label="Edit" icon="edit" href={to(`${calendarPath(name)}/edit`)} />
            {!isUsed && <Button label="Delete" icon="trash" kind="quiet" iconOnly onClick={() => ask(true)} />}
          </>
        )
      }
    >
      <Problem failure={read.failure} />
      {data.description && <p class="lead">{data.description}</p>}
      <div class="stack">
        <Panel
          title={counted(data.dates.length, 'date')}
          actions={
            <>
              <Button label="Earlier" icon="back" iconOnly onClick={() => setLast(addMonths(last, -monthsShown()))} />
              <Button label="Later" icon="right" iconOnly onClick={() => setLast(addMonths(last, monthsShown()))} />
            </>
          }
        >
          <Months months={monthsUntil(last, monthsShown())} day={Day} />
        </Panel>
        {data.ranges.length > 0 && (
          <Panel title="Times">
            <Facts
              items={data.ranges.map(({ from, to: until }): [string, string] => [
                from.replace('T', ' '),
                `until ${until.replace('T', ' ')}`
              ])}
            />
          </Panel>
        )}
        <Panel
          title={cues ? `Used by ${totalText(cues)} ${cues.total === 1 ? 'cue' : 'cues'}` : 'Used by'}
          actions={cues && cues.total > cues.cues.length && <a href={to('/cues', { calendar: name })}>All of them</a>}
        >
          {!cues ? (
            <Loading lines={2} />
          ) : cues.cues.length === 0 ? (
            <p class="soft">No cue uses it. Name it under “Excluded calendars” in the schedule of a cue.</p>
          ) : (
            <ul class="plain-list">
              {cues.cues.map(one => (
                <li key={one.id} data-row>
                  <CueLink {...one} /> <When at={one.next_run} only="relative" isNext none="" />
                </li>
              ))}
            </ul>
          )}
        </Panel>
      </div>
      {asked && (
        <Confirm
          title={`Delete ${data.name}`}
          label="Delete"
          kind="danger"
          onClose={() => ask(false)}
          done="The calendar is deleted"
          action={() => call('DELETE', `/v1${calendarPath(name)}`).then(() => go(to('/calendars')))}
        >
          <p>No cue uses it. This cannot be undone.</p>
        </Confirm>
      )}
    </Page>
  )
}
