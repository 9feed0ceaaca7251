/** How a cue has done in its latest 100 executions. */
import type { CueDetail, Executions } from '../../../client/types.ts'
import { useRead } from '../query.ts'
import { duration, relative, useNow } from '../time.ts'
import { count, Figure, Panel } from '../ui/basics.tsx'
import { Chart } from '../ui/chart.tsx'
import { resultOf } from '../ui/results.tsx'
import { durationsOf } from './executions.tsx'

export const useLatest = ({ id, executions, execution_total }: CueDetail): Executions | undefined => {
  const after = `${execution_total} ${executions[0]?.status}`
  return useRead<Executions>('/v1/executions', { cue_id: id, limit: 100, count_to: 0 }, { repeat: false, after }).data
}

const share = (sorted: number[], part: number) => sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)]

export const CueFigures = ({ cue, executions }: { cue: CueDetail } & Executions) => {
  const now = useNow()
  const results = executions.map(resultOf).filter(result => result !== 'running' && result !== 'waiting')
  const succeeded = results.filter(result => result === 'proven' || result === 'unproven').length
  const rate = succeeded / results.length
  const durations = executions.flatMap(execution => durationsOf(execution)?.last ?? []).sort((a, b) => a - b)
  const [p50, p95] = [share(durations, 0.5), share(durations, 0.95)]
  return (
    <dl class="figures">
      <Figure
        name="Success rate"
        value={results.length === 0 ? '–' : `${Math.floor(rate * 100)}%`}
        note={results.length === 0 ? 'no runs' : `${count(succeeded)} of the latest ${count(results.length)}`}
        tone={results.length === 0 ? undefined : rate > 0.99 ? 'good' : rate > 0.9 ? 'warn' : 'bad'}
      />
      <Figure
        name="Duration"
        value={p50 === undefined ? '–' : duration(p50)}
        note={p95 === undefined ? 'no runs' : `median; 95% within ${duration(p95)}`}
      />
      <Figure
        name="Next run"
        value={cue.status === 'active' && cue.next_run ? relative(cue.next_run, Math.min(now, Date.parse(cue.next_run))) : 'none'}
        note={cue.status !== 'active' ? cue.status : cue.schedule ? 'by its schedule' : 'after other cues'}
      />
    </dl>
  )
}

/** Each of the latest executions: its last attempt, and how late it began. */
export const Durations = ({ executions }: Executions) => {
  const points = executions.filter(({ started_at }) => started_at !== null).reverse()
  if (points.length < 2) return null
  const ms = (from: string, until: string | null) => (until === null ? null : Math.max(Date.parse(until) - Date.parse(from), 0))
  const lateness = points.map(({ triggered_by, due_at, started_at }) => (triggered_by === 'schedule' ? ms(due_at, started_at) : null))
  const durations = points.map(execution => durationsOf(execution)?.last ?? null)
  return (
    <Panel title="Duration and lateness">
      <Chart
        label="Duration and lateness of the latest executions"
        times={points.map(({ scheduled_for }) => Date.parse(scheduled_for))}
        unit={duration}
        series={[
          { name: 'Duration', tone: 'accent', values: durations },
          { name: 'Lateness', tone: 'warn', values: lateness }
        ]}
      />
    </Panel>
  )
}
