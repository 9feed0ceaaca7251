/** The story of an execution: its steps in order, with the response to each attempt. */
import type { ExecutionDetail } from '../../../client/types.ts'
import { labelOf } from '../labels.ts'
import { clockTime, duration, fullTime, shortTime } from '../time.ts'
import { Code, type Tone } from '../ui/basics.tsx'

type Step = { at: string | null; name: string; note?: string; tone?: Tone; headers?: object | null; body?: string | null }
type Attempt = ExecutionDetail['attempt_log'][number]

const tones = { success: 'good', failed: 'bad', lost: 'warn' } as const

const attemptStep = (e: ExecutionDetail, attempt: Attempt): Step => {
  const { started_at, result, http_status, error, duration_ms, worker_id, response_headers, response_body } = attempt
  const isLast = attempt === e.attempt_log.at(-1)
  return {
    at: started_at,
    name: `Attempt ${attempt.attempt}${worker_id ? ` by ${worker_id}` : ''}`,
    note: [error?.startsWith('answered') ? undefined : http_status ? `HTTP ${http_status}` : result, error, `took ${duration(duration_ms)}`]
      .filter(Boolean)
      .join(', ')
      .replace(/^answered/, 'HTTP'),
    tone: tones[result],
    headers: response_headers,
    body: response_body ?? (isLast && http_status !== null ? e.response_body : null)
  }
}

const scheduleSteps = (e: ExecutionDetail): Step[] => [
  {
    at: e.scheduled_for,
    name: 'Scheduled',
    note: e.triggered_by === 'schedule' ? 'by its schedule' : labelOf('triggerKind', e.triggered_by)
  },
  ...(e.due_at === e.scheduled_for ? [] : [{ at: e.due_at, name: 'Due', note: 'within its window' }]),
  ...(Date.parse(e.created_at) - Date.parse(e.scheduled_for) > 1000
    ? [{ at: e.created_at, name: 'Created', note: 'after its scheduled time' }]
    : [])
]

const decisionTones = { approved: 'good', rejected: 'bad', expired: 'warn', cancelled: 'warn' } as const

const approvalSteps = ({ approval }: ExecutionDetail): Step[] => {
  if (!approval) return []
  const { requested_at, decision, decided_at, decided_via, on_expiry, reason } = approval
  const requested = { at: requested_at, name: 'Approval requested' }
  if (!decision) return [requested, { at: null, name: 'Waiting for approval', tone: 'info' }]
  const note =
    decision === 'expired' ? labelOf('approvalExpiry', on_expiry) : [reason, decided_via && decided_via !== 'call' && `by ${decided_via}`]
  return [
    requested,
    {
      at: decided_at,
      name: labelOf('approvalDecision', decision),
      note: [note].flat().filter(Boolean).join(', '),
      tone: decisionTones[decision]
    }
  ]
}

const openSteps = (e: ExecutionDetail): Step[] => {
  const steps: Step[] = []
  const last = e.attempt_log.at(-1)
  if (e.claimed_at && !(last?.worker_id && Date.parse(last.started_at) >= Date.parse(e.claimed_at) - 1000))
    steps.push({ at: e.claimed_at, name: `Claimed by ${e.claimed_by_worker}`, tone: 'info' })
  else if (e.status === 'delivering' && !e.claimed_at) steps.push({ at: e.last_attempt_at ?? e.started_at, name: 'Sent', tone: 'info' })
  if (e.last_heartbeat_at && e.status === 'delivering') steps.push({ at: e.last_heartbeat_at, name: 'Heartbeat' })
  if (e.next_retry) steps.push({ at: e.next_retry, name: 'Next attempt', tone: 'warn' })
  if (e.status === 'pending_outcome') steps.push({ at: null, name: 'Waiting for its outcome', tone: 'info' })
  return steps
}

const verdicts: Record<string, [name: string, tone: Tone]> = {
  verified_success: ['Verified', 'good'],
  verification_pending: ['Waiting for verification', 'warn'],
  verification_failed: ['Rejected', 'bad']
}

const endSteps = ({ status, outcome, outcome_state, missed_reason, updated_at }: ExecutionDetail): Step[] => {
  const steps: Step[] = []
  const tone = outcome?.success ? 'good' : 'bad'
  if (outcome) {
    const note = outcome.summary ?? outcome.result ?? outcome.error
    steps.push({ at: outcome.recorded_at, name: outcome.success ? 'Success reported' : 'Failure reported', note, tone })
  }
  const verdict = verdicts[outcome_state ?? '']
  if (verdict) steps.push({ at: outcome?.rejected_at ?? null, name: verdict[0], note: outcome?.verification_reason, tone: verdict[1] })
  if (status === 'missed')
    steps.push({
      at: updated_at,
      name: 'Missed',
      note: missed_reason ? labelOf('missedReason', missed_reason) : 'not claimed in time',
      tone: 'warn'
    })
  if (status === 'outcome_timeout')
    steps.push({ at: updated_at, name: 'Outcome timeout', note: 'no outcome was reported in time', tone: 'bad' })
  return steps
}

const Response = ({ headers, body, isOpen }: Pick<Step, 'headers' | 'body'> & { isOpen: boolean }) => (
  <details class="step-note" open={isOpen}>
    <summary>Response</summary>
    <div class="stack">
      {headers && (
        <Code
          text={Object.entries(headers)
            .map(header => header.join(': '))
            .join('\n')}
          label="headers"
          wrap
        />
      )}
      {body !== null && body !== undefined && <Code text={body || '(empty)'} label="response" wrap />}
    </div>
  </details>
)

export const Steps = ({ execution, zone }: { execution: ExecutionDetail; zone: string }) => {
  const attempts = execution.attempt_log.map(attempt => attemptStep(execution, attempt))
  const steps = [...scheduleSteps(execution), ...approvalSteps(execution), ...attempts, ...openSteps(execution), ...endSteps(execution)]
  let before: number | undefined
  return (
    <ol class="steps">
      {steps.map(({ at, name, note, tone, headers, body }, n) => {
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
            {(headers || body) && <Response headers={headers} body={body} isOpen={name === attempts.at(-1)?.name} />}
          </li>
        )
      })}
    </ol>
  )
}
