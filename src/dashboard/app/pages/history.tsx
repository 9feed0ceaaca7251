/** A cue's past slots as a calendar: which days ran, failed or have gaps, and why. */
import { useEffect } from 'preact/hooks'
import type { CueDetail, History } from '../../../client/types.ts'

import { useRead } from '../query.ts'
import { setQuery, to, usePlace } from '../router.ts'
import { serviceNow } from '../time.ts'
import { Button, counted, Loading, Panel, Problem } from '../ui/basics.tsx'
import { addMonths, dateText, lastDay, Months, monthOf, monthsUntil } from '../ui/months.tsx'
import { Dot, type Result } from '../ui/results.tsx'
import { Table } from '../ui/table.tsx'
import { When } from '../ui/when.tsx'

type Day = History['days'][number]
type Gap = History['gaps'][number]

const reasons: Record<Gap['reason'], string> = {
  service_away: 'the service was away',
  held: 'held by the operator',
  execution_limit: 'over the limit of the plan',
  excluded: 'excluded by the schedule',
  overlap: 'the previous run had not ended',
  queue_full: 'too many runs were queued'
}

const resultOf = ({ failed, missed, running }: Day): Result =>
  failed > 0 ? 'failed' : missed > 0 ? 'missed' : running > 0 ? 'running' : 'proven'

/** 3 succeeded, 1 failed */
const countsText = (counts: Pick<Day, 'succeeded' | 'failed' | 'missed' | 'running'>): string =>
  (['succeeded', 'failed', 'missed', 'running'] as const)
    .filter(name => counts[name] > 0)
    .map(name => `${counts[name].toLocaleString('en')} ${name}`)
    .join(', ')

const shown = 3

export const HistoryPanel = ({ cue }: { cue: CueDetail }) => {
  const thisMonth = monthOf(new Date(serviceNow()).toISOString())
  const given = usePlace().query.get('until') ?? ''
  const last = /^2[01]\d\d-(0[1-9]|1[0-2])$/.test(given) && given < thisMonth ? given : thisMonth
  const first = addMonths(last, 1 - shown)
  const until = last === thisMonth ? undefined : lastDay(last)
  const days = Math.round((Date.parse(until ?? new Date(serviceNow()).toISOString().slice(0, 10)) - Date.parse(first)) / 86_400_000) + 1
  const { data, failure, reload } = useRead<History>(`/v1/cues/${cue.id}/history`, { days, until }, { repeat: false })
  useEffect(reload, [cue.execution_total, cue.missed[0]?.recorded_at])
  const show = (month: string) => setQuery({ until: month === thisMonth ? undefined : month }, { replace: false })
  return (
    <Panel
      title="Past slots"
      actions={
        <>
          <Button label="Earlier" icon="back" iconOnly onClick={() => show(addMonths(last, -shown))} />
          {last < thisMonth && <Button label="Later" icon="right" iconOnly onClick={() => show(addMonths(last, shown))} />}
        </>
      }
    >
      <Problem failure={failure} />
      {data ? <Shown data={data} cueId={cue.id} months={monthsUntil(last, shown)} /> : !failure && <Loading lines={4} />}
    </Panel>
  )
}

const Shown = ({ data, cueId, months }: { data: History; cueId: string; months: string[] }) => {
  const byDate = new Map(data.days.map(day => [day.date, day]))
  const dayIn = new Intl.DateTimeFormat('en-CA', { timeZone: data.timezone })
  const gaps = data.gaps.map(gap => ({ ...gap, from: dayIn.format(new Date(gap.first)), to: dayIn.format(new Date(gap.last)) }))
  const sum = { succeeded: 0, failed: 0, missed: 0, running: 0 }
  for (const day of data.days) for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += day[name]
  const Cell = (date: string) => {
    const day = byDate.get(date)
    const gap = gaps.find(({ from, to: last }) => from <= date && date <= last)
    const number = Number(date.slice(8))
    const isUncounted = data.complete_from !== null && date < data.complete_from && date >= data.from
    if (!day && !gap) return <span class={`day${isUncounted ? ' uncounted' : ''}`}>{number}</span>
    const title = [dateText(date), day && countsText(day), gap && `slots did not run: ${reasons[gap.reason] ?? gap.reason}`]
      .filter(Boolean)
      .join(': ')
    if (!day)
      return (
        <span class="day gap" title={title}>
          <span aria-hidden="true">{number}</span>
          <span class="unseen">{title}</span>
        </span>
      )
    return (
      <a
        class={`day has ${resultOf(day)}${gap ? ' gap' : ''}`}
        href={to('/executions', { cue_id: cueId, from: day.starts_at, to: day.ends_at })}
        title={title}
        aria-label={title}
      >
        {number}
        <span aria-hidden="true">
          <Dot result={resultOf(day)} />
        </span>
      </a>
    )
  }
  return (
    <div class="stack">
      <p>
        {countsText(sum) || 'No executions in these months'}
        {`, by day in ${data.timezone}.`}
      </p>
      <Months months={months} day={Cell} />
      <p class="hint legend">
        {(['proven', 'failed', 'missed', 'running'] as const).map(result => (
          <span key={result}>
            <Dot result={result} />
            {` ${result === 'proven' ? 'succeeded' : result}`}
          </span>
        ))}
        <span>
          <span class="day gap" aria-hidden="true" />
          {' slots did not run'}
        </span>
      </p>
      {data.complete_from !== null && (
        <p class="hint">{`Only the newest 5,000 executions are counted: complete from ${dateText(data.complete_from)}.`}</p>
      )}
      {gaps.length > 0 && (
        <Table caption="Slots that did not run" columns={['Did not run', 'Slots', 'Why']}>
          {gaps.slice(0, 10).map(gap => (
            <tr key={gap.first}>
              <td>
                <When at={gap.first} zone={data.timezone} only="absolute" />
                {gap.count > 1 && (
                  <>
                    {' to '}
                    <When at={gap.last} zone={data.timezone} only="absolute" />
                  </>
                )}
              </td>
              <td class="number">{counted(gap.count, 'slot')}</td>
              <td>{reasons[gap.reason] ?? gap.reason}</td>
            </tr>
          ))}
        </Table>
      )}
      {gaps.length > 10 && <p class="hint">{`${counted(gaps.length - 10, 'more gap')} in these months.`}</p>}
    </div>
  )
}
