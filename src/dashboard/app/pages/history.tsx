/** A cue's past slots as a calendar: which days ran, failed or have gaps, and why. */
import type { CueDetail, History } from '../../../client/types.ts'
import { labelOf } from '../labels.ts'
import { useRead } from '../query.ts'
import { to, usePlace } from '../router.ts'
import { serviceNow } from '../time.ts'
import { count, counted, Loading, Panel, Problem } from '../ui/basics.tsx'
import { addMonths, dateText, lastDay, Months, monthOf, monthsUntil, Turn } from '../ui/months.tsx'
import { Dot, Legend, type Result, tones } from '../ui/results.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'

type Day = History['days'][number]
type Gap = History['gaps'][number]

const resultOf = ({ failed, missed, running }: Day): Result =>
  failed > 0 ? 'failed' : missed > 0 ? 'missed' : running > 0 ? 'running' : 'proven'

const countNames = ['succeeded', 'failed', 'missed', 'running'] as const
type Counts = Pick<Day, (typeof countNames)[number]>

/** 3 succeeded, 1 failed */
const countsText = (counts: Counts): string =>
  countNames
    .filter(name => counts[name] > 0)
    .map(name => `${count(counts[name])} ${name}`)
    .join(', ')

const shown = 3

/** Months from before it was created are shown for what was filled in later only. */
const hasSlots = ({ days, gaps }: History, month: string) =>
  days.some(({ date }) => monthOf(date) === month) || gaps.some(({ first, last }) => monthOf(first) <= month && month <= monthOf(last))

export const HistoryPanel = ({ cue }: { cue: CueDetail }) => {
  const { query, setQuery } = usePlace()
  const begun = monthOf(cue.created_at)
  const today = new Date(serviceNow()).toISOString().slice(0, 10)
  const thisMonth = monthOf(today)
  const chosenMonth = query.until ?? ''
  const last = /^2[01]\d\d-(0[1-9]|1[0-2])$/.test(chosenMonth) && chosenMonth < thisMonth ? chosenMonth : thisMonth
  const first = addMonths(last, 1 - shown)
  const until = last === thisMonth ? undefined : lastDay(last)
  const days = Math.round((Date.parse(until ?? today) - Date.parse(first)) / 86_400_000) + 1
  const after = `${cue.execution_total} ${cue.missed[0]?.recorded_at}`
  const { data, failure } = useRead<History>(`/v1/cues/${cue.id}/history`, { days, until }, { repeat: false, after })
  const show = (month: string) => setQuery({ until: month === thisMonth ? undefined : month }, { replace: false })
  const on = last < thisMonth ? () => show(addMonths(last, shown)) : undefined
  return (
    <Panel title="Past slots" actions={<Turn back={() => show(addMonths(last, -shown))} on={on} />}>
      <Problem failure={failure} />
      {data ? (
        <Slots data={data} cueId={cue.id} months={monthsUntil(last, shown).filter(month => month >= begun || hasSlots(data, month))} />
      ) : (
        !failure && <Loading lines={4} />
      )}
    </Panel>
  )
}

const gapColumns = (zone: string): Column<Gap>[] => [
  [
    'Did not run',
    ({ first, last, count }) => (
      <>
        <When at={first} zone={zone} only="absolute" />
        {count > 1 && ' to '}
        {count > 1 && <When at={last} zone={zone} only="absolute" />}
      </>
    ),
    'bare'
  ],
  ['Slots', ({ count }) => counted(count, 'slot'), 'number bare'],
  ['Why', ({ reason }) => labelOf('missedReason', reason), 'bare']
]

const Slots = ({ data, cueId, months }: { data: History; cueId: string; months: string[] }) => {
  const byDate = new Map(data.days.map(day => [day.date, day]))
  const dayIn = new Intl.DateTimeFormat('en-CA', { timeZone: data.timezone })
  const gaps = data.gaps.map(gap => ({ ...gap, from: dayIn.format(new Date(gap.first)), to: dayIn.format(new Date(gap.last)) }))
  const sum: Counts = { succeeded: 0, failed: 0, missed: 0, running: 0 }
  for (const day of data.days) for (const name of countNames) sum[name] += day[name]
  const Cell = (date: string) => {
    const day = byDate.get(date)
    const gap = gaps.find(({ from, to: last }) => from <= date && date <= last)
    const number = Number(date.slice(8))
    const isUncounted = data.complete_from !== null && date < data.complete_from && date >= data.from
    if (!day && !gap) return <span class={`day${isUncounted ? ' uncounted' : ''}`}>{number}</span>
    const parts = [dateText(date), day && countsText(day), gap && `slots did not run: ${labelOf('missedReason', gap.reason)}`]
    const title = parts.filter(Boolean).join(': ')
    if (!day)
      return (
        <span class="day gap" title={title}>
          <span aria-hidden="true">{number}</span>
          <span class="unseen">{title}</span>
        </span>
      )
    const href = to('/executions', { cue_id: cueId, from: day.starts_at, to: day.ends_at })
    return (
      <a class={`day has ${tones[resultOf(day)]}${gap ? ' gap' : ''}`} href={href} title={title} aria-label={title}>
        {number}
        <span aria-hidden="true">
          <Dot result={resultOf(day)} />
        </span>
      </a>
    )
  }
  return (
    <div class="stack">
      <p>{`${countsText(sum) || 'No executions in these months'}, by day in ${data.timezone}.`}</p>
      <Months months={months} day={Cell} />
      <Legend>dashed: slots did not run</Legend>
      {data.complete_from !== null && (
        <p class="hint">{`Only the newest 5,000 executions are counted: complete from ${dateText(data.complete_from)}.`}</p>
      )}
      {gaps.length > 0 && <Table caption="Slots that did not run" columns={gapColumns(data.timezone)} rows={gaps.slice(0, 10)} />}
      {gaps.length > 10 && <p class="hint">{`${counted(gaps.length - 10, 'more gap')} in these months.`}</p>}
    </div>
  )
}
