/** Schedules in words, with the next runs. */
import { useEffect, useState } from 'preact/hooks'
import type { Preview } from '../../../client/types.ts'
import { type Failure, failureOf, post } from '../api.ts'
import { areDense, clockTime, dayName, hourTime, relative, useNow } from '../time.ts'
import { counted } from '../ui/basics.tsx'

type Schedule = Record<string, unknown>
type SchedulePreview = { data?: Preview; failure?: Failure }

/** Asks the service what a schedule means, shortly after its last change, and again when its next run is another one. */
export const useSchedulePreview = (schedule: Schedule | undefined, runs: number, nextRun?: string | null): SchedulePreview => {
  const [state, setState] = useState<SchedulePreview>({})
  const key = schedule && JSON.stringify(schedule)
  useEffect(() => {
    if (!key) return setState({})
    let stopped = false
    const timer = setTimeout(async () => {
      try {
        const data = await post<Preview>('/v1/schedules/preview', { schedule: JSON.parse(key), count: runs })
        if (!stopped) setState({ data })
      } catch (error) {
        if (!stopped) setState({ failure: failureOf(error) })
      }
    }, 200)
    return () => {
      stopped = true
      clearTimeout(timer)
    }
  }, [key, runs, nextRun])
  return state
}

/** The next runs, with notes on clock changes, and excluded slots struck through. */
export const NextRuns = ({ preview: { next, excluded }, zone }: { preview: Preview; zone: string }) => {
  const now = useNow()
  if (next.length === 0) return <p class="soft">No further runs.</p>
  const skipped = excluded.map(({ at }) => ({ at, note: null, isExcluded: true }))
  const all = [...next.map(run => ({ ...run, isExcluded: false })), ...skipped].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  const clock = areDense(all.map(({ at }) => at)) ? clockTime : hourTime
  const texts = (at: string) => (
    <>
      <span class="run-clock">{clock(at, zone)}</span>
      <span class="run-day">{dayName(at, zone)}</span>
    </>
  )
  return (
    <ol class="runs" aria-label={`Next ${counted(next.length, 'run')}`}>
      {all.map(({ at, note, isExcluded }, n) => (
        <li key={at} class={isExcluded ? 'excluded' : undefined}>
          {isExcluded ? <del dateTime={at}>{texts(at)}</del> : <time dateTime={at}>{texts(at)}</time>}
          <span class="soft">
            {isExcluded ? 'excluded' : n === 0 || n === all.length - 1 ? relative(at, Math.min(now, Date.parse(at))) : ''}
          </span>
          {note && <p class="note">{note}</p>}
        </li>
      ))}
    </ol>
  )
}
