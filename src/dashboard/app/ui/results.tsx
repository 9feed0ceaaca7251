/** What happened, by shape and colour: proven, unproven, failed, missed, running, waiting. */
import type { Execution } from '../../../client/types.ts'
import { labelOf } from '../labels.ts'
import { to } from '../router.ts'
import { Badge, type Children, PageLink, type Tone } from './basics.tsx'

type Ended = Pick<Execution, 'status' | 'outcome_state'>
export type Result = 'proven' | 'unproven' | 'failed' | 'missed' | 'running' | 'waiting'

export const resultOf = ({ status, outcome_state }: Ended): Result => {
  if (status === 'missed') return 'missed'
  if (status === 'failed' || status === 'outcome_timeout') return 'failed'
  if (outcome_state === 'reported_failure' || outcome_state === 'verification_failed') return 'failed'
  if (status === 'success') return outcome_state === 'verified_success' || outcome_state === 'reported_success' ? 'proven' : 'unproven'
  return status === 'delivering' || status === 'pending_outcome' ? 'running' : 'waiting'
}

const names: Record<Result, string> = {
  proven: 'succeeded, reported',
  unproven: 'succeeded, not reported',
  failed: 'failed',
  missed: 'missed',
  running: 'running',
  waiting: 'waiting'
}

const shapes: Record<Result, string> = {
  proven: 'M5 0.8a4.2 4.2 0 1 0 0 8.4a4.2 4.2 0 0 0 0-8.4',
  unproven: 'M5 1.6a3.4 3.4 0 1 0 0 6.8a3.4 3.4 0 0 0 0-6.8',
  failed: 'M1.6 1.6h6.8v6.8H1.6z',
  missed: 'M5 1 9.2 8.6H0.8z',
  running: 'M5 2.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 0 0 0-5.6',
  waiting: 'M1.5 5h7'
}

/** The latest results, oldest first. */
export const Dots = ({ latest }: { latest: Ended[] }) => {
  if (latest.length === 0) return <span class="soft">No runs yet</span>
  const results = latest.map(resultOf).reverse()
  const counts = new Map<Result, number>()
  for (const result of results) counts.set(result, (counts.get(result) ?? 0) + 1)
  const label = `Last ${latest.length}: ${[...counts].map(([result, n]) => `${n} ${names[result]}`).join(', ')}`
  return (
    <svg class="dots" role="img" aria-label={label} width={20 * 11} height={12} viewBox="0 0 220 10">
      <title>{label}</title>
      {results.map((result, n) => (
        <path
          key={n}
          class={`dot ${result} ${tones[result]}`}
          d={shapes[result]}
          transform={`translate(${(20 - results.length + n) * 11} 0)`}
        />
      ))}
    </svg>
  )
}

export const Dot = ({ result }: { result: Result }) => (
  <svg class="dots" width={11} height={11} viewBox="0 0 10 10" role="img" aria-label={names[result]}>
    <path class={`dot ${result} ${tones[result]}`} d={shapes[result]} />
  </svg>
)

/** The number of failures in a row, from the latest results. */
export const streakOf = (latest: Ended[]): number => {
  const ended = latest.map(resultOf).filter(result => result !== 'running' && result !== 'waiting')
  const success = ended.findIndex(result => result === 'proven' || result === 'unproven')
  return success === -1 ? ended.length : success
}

export const tones: Record<Result, Tone> = {
  proven: 'good',
  unproven: 'good',
  failed: 'bad',
  missed: 'warn',
  running: 'info',
  waiting: 'quiet'
}

export const StatusBadge = ({ of }: { of: Ended }) => {
  const result = resultOf(of)
  const tone = of.status === 'retrying' || of.status === 'retry_ready' ? 'warn' : tones[result]
  return (
    <Badge tone={tone} title={of.status}>
      <Dot result={result} />
      {labelOf('executionStatus', of.status)}
    </Badge>
  )
}

const outcomeTones: Record<string, Tone> = {
  reported_success: 'good',
  reported_failure: 'bad',
  verified_success: 'good',
  verification_pending: 'warn',
  verification_failed: 'bad'
}
export const OutcomeBadge = ({ state }: { state: string | null }) =>
  state ? <Badge tone={outcomeTones[state] ?? 'quiet'}>{labelOf('outcomeState', state)}</Badge> : null

export const Legend = ({ children }: { children?: Children }) => (
  <p class="hint row">
    {(['proven', 'failed', 'missed', 'running'] as const).map(result => (
      <span key={result} class="row">
        <Dot result={result} /> {result === 'proven' ? 'succeeded' : result}
      </span>
    ))}
    <span>{children}</span>
  </p>
)

export const CueLink = ({ id, name }: { id: string; name: string }) => <PageLink href={to(`/cues/${id}`)} text={name} />
