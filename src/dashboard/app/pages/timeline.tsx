/** The path of an execution: as a diagram of its states, and as steps with their times. */
import type { ExecutionDetail } from '../../../client/types.ts'

import { labelOf } from '../labels.ts'
import { clockTime, duration, fullTime, shortTime } from '../time.ts'
import type { Tone } from '../ui/basics.tsx'

type Node = { name: string; isTaken: boolean; isNow?: boolean; tone?: Tone }

/** The states in order; those that this execution did not take are pale. */
const nodesOf = (e: ExecutionDetail, transport: string | undefined): Node[] => {
  const isWorker = transport === 'worker' || e.claimed_by_worker !== null
  const failedBefore = e.attempt_log.some(({ result }) => result !== 'success') && e.attempts > 1
  const ended = ['success', 'failed', 'missed', 'outcome_timeout'].includes(e.status)
  const state = e.outcome_state
  const nodes: Node[] = [
    { name: 'scheduled', isTaken: true },
    { name: isWorker ? 'claimable' : 'due', isTaken: e.status !== 'pending' || e.attempts > 0, isNow: e.status === 'pending' },
    { name: isWorker ? 'claimed' : 'sent', isTaken: e.attempts > 0, isNow: e.status === 'delivering' },
    { name: 'retry', isTaken: failedBefore || e.status.startsWith('retr'), isNow: e.status.startsWith('retr'), tone: 'warn' }
  ]
  if (!isWorker) nodes.push({ name: 'answered', isTaken: e.delivered_at !== null })
  nodes.push({ name: 'outcome', isTaken: e.outcome !== null, isNow: e.status === 'pending_outcome' })
  if (state === 'verification_pending' || state === 'verification_failed' || state === 'verified_success')
    nodes.push({
      name: 'verified',
      isTaken: state !== 'verification_pending',
      isNow: state === 'verification_pending',
      tone: state === 'verification_failed' ? 'bad' : undefined
    })
  const result = e.status === 'success' && e.outcome_success === false ? 'failed' : e.status.replace('_', ' ')
  nodes.push(
    ended
      ? { name: result, isTaken: true, isNow: true, tone: result === 'success' ? 'good' : result === 'missed' ? 'warn' : 'bad' }
      : { name: 'success', isTaken: false }
  )
  return nodes
}

export const StateDiagram = ({ execution, transport }: { execution: ExecutionDetail; transport: string | undefined }) => (
  <ol class="states" aria-label="Path through the states">
    {nodesOf(execution, transport).map(({ name, isTaken, isNow, tone = '' }) => (
      <li key={name} class={`${isTaken ? 'taken' : ''} ${isNow ? 'now' : ''} ${tone}`} aria-current={isNow ? 'step' : undefined}>
        <span>{name}</span>
        {!isTaken && <span class="unseen">, not reached</span>}
      </li>
    ))}
  </ol>
)

type Step = { at: string | null; name: string; note?: string; tone?: Tone }

const stepsOf = (e: ExecutionDetail): Step[] => {
  const steps: Step[] = [
    {
      at: e.scheduled_for,
      name: 'Scheduled',
      note: e.triggered_by === 'schedule' ? 'by its schedule' : labelOf('triggerKind', e.triggered_by)
    }
  ]
  const due = e.due_at
  if (due !== e.scheduled_for) steps.push({ at: due, name: 'Due', note: 'within its window' })
  if (Date.parse(e.created_at) - Date.parse(e.scheduled_for) > 1000)
    steps.push({ at: e.created_at, name: 'Created', note: 'after its scheduled time' })
  for (const { attempt, started_at, finished_at, result, http_status, error, worker_id } of e.attempt_log) {
    steps.push({ at: started_at, name: worker_id ? `Claimed by ${worker_id}` : e.attempts > 1 ? `Sent, attempt ${attempt}` : 'Sent' })
    const answer = http_status === null ? (error ?? result) : `HTTP ${http_status}${error && result !== 'success' ? `, ${error}` : ''}`
    steps.push({
      at: finished_at,
      name: result === 'success' ? (worker_id ? 'Ended' : 'Answered') : result === 'lost' ? 'Lost' : 'Failed',
      note: answer,
      tone: result === 'success' ? 'good' : result === 'lost' ? 'warn' : 'bad'
    })
  }
  const last = e.attempt_log.at(-1)
  if (e.claimed_at && !(last?.worker_id && Date.parse(last.started_at) >= Date.parse(e.claimed_at) - 1000))
    steps.push({ at: e.claimed_at, name: `Claimed by ${e.claimed_by_worker}` })
  else if (!last && e.started_at && !e.claimed_at) steps.push({ at: e.started_at, name: 'Sent' })
  if (e.last_heartbeat_at && e.status === 'delivering') steps.push({ at: e.last_heartbeat_at, name: 'Heartbeat' })
  if (e.next_retry) steps.push({ at: e.next_retry, name: 'Next attempt', tone: 'warn' })
  if (e.outcome) {
    steps.push({
      at: e.outcome.recorded_at,
      name: e.outcome.success ? 'Success reported' : 'Failure reported',
      note: e.outcome.summary ?? e.outcome.result ?? e.outcome.error,
      tone: e.outcome.success ? 'good' : 'bad'
    })
    if (e.outcome_state === 'verified_success')
      steps.push({ at: null, name: 'Verified', note: e.outcome.verification_reason, tone: 'good' })
    if (e.outcome_state === 'verification_pending') steps.push({ at: null, name: 'Waiting for verification', tone: 'warn' })
    if (e.outcome_state === 'verification_failed')
      steps.push({ at: e.outcome.rejected_at ?? null, name: 'Rejected', note: e.outcome.verification_reason, tone: 'bad' })
  } else if (e.status === 'pending_outcome') steps.push({ at: null, name: 'Waiting for its outcome', tone: 'info' })
  if (e.status === 'missed') steps.push({ at: e.updated_at, name: 'Missed', note: 'not claimed in time', tone: 'warn' })
  if (e.status === 'outcome_timeout')
    steps.push({ at: e.updated_at, name: 'Outcome timeout', note: 'no outcome was reported in time', tone: 'bad' })
  return steps
}

export const Steps = ({ execution, zone }: { execution: ExecutionDetail; zone: string }) => {
  const steps = stepsOf(execution)
  let before: number | undefined
  return (
    <ol class="steps">
      {steps.map(({ at, name, note, tone }, n) => {
        const ms = at ? Date.parse(at) : undefined
        const gap = ms !== undefined && before !== undefined ? ms - before : undefined
        before = ms ?? before
        return (
          <li key={n} class={`step ${tone ?? ''}`}>
            <span class="step-name">{name}</span>
            {note && <span class="step-note">{note}</span>}
            {at && (
              <time dateTime={at} class="step-time" title={fullTime(at, zone)}>
                {n === 0 ? shortTime(at, zone).replace(/, [\d:]+$/, ', ') : ''}
                {clockTime(at, zone)}
              </time>
            )}
            {gap !== undefined && gap >= 0 && <span class="step-gap">{`+${duration(gap)}`}</span>}
          </li>
        )
      })}
    </ol>
  )
}
