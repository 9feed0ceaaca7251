/** Dates as calendars, one per month. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'
import { serviceNow } from '../time.ts'
import { Button, type Children, isNarrow, Panel } from './basics.tsx'

/** Months are 2030-01, dates 2030-01-15. */
const monthAt = (month: string, by = 0): Date => {
  const [year, number] = month.split('-').map(Number) as [number, number]
  return new Date(Date.UTC(year, number - 1 + by, 1))
}
const isoDate = (date: Date) => date.toISOString().slice(0, 10)
export const monthOf = (date: string): string => date.slice(0, 7)
export const addMonths = (month: string, by: number): string => monthOf(isoDate(monthAt(month, by)))
export const lastDay = (month: string): string => isoDate(new Date(+monthAt(month, 1) - 86_400_000))
/** The months up to one, oldest first. */
export const monthsUntil = (last: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => addMonths(last, n + 1 - count))

/** 15 January 2030 */
export const dateText = (date: string): string =>
  new Date(date).toLocaleDateString('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'long', year: 'numeric' })
const monthName = (month: string) => monthAt(month).toLocaleDateString('en-GB', { timeZone: 'UTC', month: 'long', year: 'numeric' })
const weekdays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

type Props = { months: string[]; day: (date: string) => VNode }

/** `day` draws a date: its number, and what it is about. */
export const Months = ({ months, day }: Props) => (
  <div class="months">
    {months.map(month => (
      <Month key={month} month={month} day={day} />
    ))}
  </div>
)

type PanelProps = { title: string; day: Props['day']; above?: Children; children?: Children }

/** Months from this one on, to go through. */
export const MonthsPanel = ({ title, day, above, children }: PanelProps) => {
  const count = isNarrow() ? 3 : 12 // as many as can be seen at once
  const [last, setLast] = useState(() => addMonths(monthOf(new Date(serviceNow()).toISOString()), count - 1))
  return (
    <Panel title={title} actions={<Turn back={() => setLast(addMonths(last, -count))} on={() => setLast(addMonths(last, count))} />}>
      {above}
      <Months months={monthsUntil(last, count)} day={day} />
      {children}
    </Panel>
  )
}

/** Buttons to earlier and later months. */
export const Turn = ({ back, on }: { back: () => void; on?: () => void }) => (
  <>
    <Button label="Earlier" icon="back" iconOnly onClick={back} />
    {on && <Button label="Later" icon="right" iconOnly onClick={on} />}
  </>
)

const Month = ({ month, day }: { month: string; day: Props['day'] }) => {
  const first = monthAt(month)
  const count = Number(lastDay(month).slice(8))
  const cells = [
    ...Array.from({ length: (first.getUTCDay() + 6) % 7 }, () => undefined),
    ...Array.from({ length: count }, (_, n) => `${month}-${String(n + 1).padStart(2, '0')}`)
  ]
  const weeks = Array.from({ length: Math.ceil(cells.length / 7) }, (_, n) => cells.slice(n * 7, n * 7 + 7))
  return (
    <table class="month">
      <caption>{monthName(month)}</caption>
      <thead>
        <tr>
          {weekdays.map(name => (
            <th key={name} scope="col" abbr={name}>
              {name.slice(0, 2)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeks.map((dates, week) => (
          <tr key={week}>
            {Array.from({ length: 7 }, (_, n) => (
              <td key={n}>{dates[n] && day(dates[n])}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
