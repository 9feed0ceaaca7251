/** Calendars: dates and times on which several cues do not run. */
import type { Calendars as Answer, Calendar, Cues } from '../../../client/types.ts'
import { call } from '../api.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { useMay, useMe } from '../session.ts'
import { serviceNow } from '../time.ts'
import { Button, ButtonLink, count, counted, Empty, Facts, Loading, PageLink, Panel, totalText } from '../ui/basics.tsx'
import { askToRemove } from '../ui/dialog.tsx'
import { Paged, useOffset } from '../ui/list.tsx'
import { dateText, MonthsPanel } from '../ui/months.tsx'
import { Page } from '../ui/page.tsx'
import { CueLink } from '../ui/results.tsx'
import type { Column } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'
import { excludes } from './calendar-draft.ts'
import { calendarPath } from './calendar-form.tsx'
import { calendarCalls } from './teach.ts'

/** The first date from today on, of this year or the next one. */
const nextDate = ({ dates }: Calendar): string | undefined => {
  const today = new Date(serviceNow()).toISOString().slice(0, 10)
  const year = Number(today.slice(0, 4))
  const years = dates.flatMap(date => (date.length > 5 ? [date] : [`${year}-${date}`, `${year + 1}-${date}`]))
  const next = years.filter(date => date >= today).sort()[0]
  return next && dateText(next)
}

const columns: Column<Calendar>[] = [
  [
    'Calendar',
    ({ name, description }) => (
      <>
        <PageLink href={to(calendarPath(name))} text={name} />
        {description && <div class="under">{description}</div>}
      </>
    ),
    'cell-main'
  ],
  ['Next date', calendar => nextDate(calendar) ?? '–'],
  ['Dates', ({ dates }) => count(dates.length), 'number'],
  ['Times', ({ ranges }) => count(ranges.length), 'number'],
  ['Changed', ({ updated_at }) => <When at={updated_at} only="relative" />]
]

const text =
  'A calendar is a set of dates, such as public holidays, on which any number of cues do not run. Create one, then name it in the schedule of a cue:'

export const CalendarsPage = () => {
  const read = useRead<Answer>('/v1/calendars', { limit: 50, offset: useOffset() })
  const mayWrite = useMay('write')
  const me = useMe()
  const create = mayWrite && <ButtonLink label="Create a calendar" href={to('/calendars/new')} icon="plus" kind="main" />
  const empty = <Empty title="No calendars" text={text} calls={calendarCalls(me)} />
  return (
    <Page title="Calendars" read={read} actions={create}>
      {data => <Paged page={data} rows={data.calendars} columns={columns} caption="Calendars" noun="calendar" empty={empty} />}
    </Page>
  )
}

export const CalendarPage = ({ name }: { name: string }) => {
  const path = calendarPath(name)
  const read = useRead<Calendar>(`/v1${path}`)
  const cues = useRead<Cues>('/v1/cues', { calendar: name, limit: 20, count_to: 1000 }).data
  const mayWrite = useMay('write')
  const { go } = usePlace()
  const remove = () =>
    askToRemove({
      title: `Delete ${name}`,
      text: 'No cue uses it. This cannot be undone.',
      done: 'The calendar is deleted',
      action: () => call('DELETE', `/v1${path}`).then(() => go(to('/calendars')))
    })
  // The API refuses to delete one that is used.
  const isUnused = cues?.cues.length === 0
  const actions = mayWrite && read.data && (
    <>
      <ButtonLink label="Edit" icon="edit" href={to(`${path}/edit`)} />
      {isUnused && <Button label="Delete" icon="trash" kind="quiet" iconOnly onClick={remove} />}
    </>
  )
  return (
    <Page title={name} above={{ path: '/calendars', name: 'Calendars' }} read={read} actions={actions}>
      {data => (
        <div class="stack">
          {data.description && <p class="lead">{data.description}</p>}
          <Dates dates={data.dates} />
          {data.ranges.length > 0 && (
            <Panel title="Times">
              <Facts items={data.ranges.map(({ from, to: until }) => [from.replace('T', ' '), `until ${until.replace('T', ' ')}`])} />
            </Panel>
          )}
          <Usage name={name} cues={cues} />
        </div>
      )}
    </Page>
  )
}

const Dates = ({ dates }: Pick<Calendar, 'dates'>) => {
  const Day = (date: string) => {
    const kind = excludes(dates, date)
    const title = kind && `${dateText(date)}: ${kind === 'yearly' ? 'every year' : 'this year'}`
    return (
      <span class={`day ${kind ?? ''}`} title={title}>
        <span aria-hidden={kind !== undefined}>{Number(date.slice(8))}</span>
        {kind && <span class="unseen">{title}</span>}
      </span>
    )
  }
  return <MonthsPanel title={counted(dates.length, 'date')} day={Day} />
}

const Usage = ({ name, cues }: { name: string; cues: Cues | undefined }) => (
  <Panel
    title={cues ? `Used by ${totalText(cues)} ${cues.total === 1 ? 'cue' : 'cues'}` : 'Used by'}
    actions={cues && cues.total > cues.cues.length && <a href={to('/cues', { calendar: name })}>All of them</a>}
  >
    {!cues && <Loading lines={2} />}
    {cues?.cues.length === 0 && <p class="soft">No cue uses it. Name it under “Excluded calendars” in the schedule of a cue.</p>}
    <ul class="stack">
      {cues?.cues.map(cue => (
        <li key={cue.id} class="split" data-row>
          <CueLink {...cue} />
          <When at={cue.next_run} only="relative" isNext none="" />
        </li>
      ))}
    </ul>
  </Panel>
)
