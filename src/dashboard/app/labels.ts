/** Labels of the enums of the catalog. */
import { enums } from '../../catalog.ts'

type Enum = keyof typeof enums
export type Option = { value: string; label: string }

/** Where the value itself does not say it. */
const texts: { [Name in Enum]?: Partial<Record<(typeof enums)[Name][number], string>> } = {
  executionStatus: { pending: 'waiting', delivering: 'running', retry_ready: 'retry due', pending_outcome: 'awaiting outcome' },
  outcomeState: {
    verified_success: 'verified',
    verification_pending: 'waiting for a person',
    verification_failed: 'rejected',
    unknown: 'not reported'
  },
  triggerKind: { manual_fire: 'fired', chain: 'after other cues' },
  verificationMode: {
    none: 'none',
    require_external_id: 'requires an external id',
    require_result_url: 'requires a result URL',
    require_artifacts: 'requires artifacts',
    manual: 'a person decides'
  },
  catchUp: {
    skip_missed: 'skip missed slots',
    run_once_if_missed: 'run the latest missed slot',
    replay_all_missed: 'run all missed slots'
  },
  overlap: {
    allow: 'run alongside it',
    skip: 'skip the slot',
    queue_one: 'queue one run',
    queue_all: 'queue all runs',
    cancel_previous: 'cancel the previous run'
  },
  approvalDecision: { approved: 'Approved', rejected: 'Rejected', expired: 'Expired', cancelled: 'Cancelled' },
  approvalSource: { call: 'API', link: 'link in a message', operation: 'bulk operation' },
  approvalExpiry: { skip: 'the run is missed', run: 'it runs' },
  gateOnFailure: { continue: 'the next one runs', pause: 'the gate pauses' },
  transport: { webhook: 'Webhook: pgcue calls you', worker: 'Worker: you claim it' },
  missedReason: {
    service_away: 'the service was away',
    execution_limit: 'over the limit of the plan',
    excluded: 'excluded by the schedule',
    overlap: 'the previous run had not ended',
    queue_full: 'too many runs were queued',
    held: 'held by the operator',
    gate: 'it waited too long at its gate',
    after: 'the cues that it follows had not run in time',
    approval_expired: 'nobody decided in time'
  },
  noticeKind: { raised: 'alert', resolved: 'resolution', summary: 'summary of the snooze' },
  pauseCause: {
    user: 'Paused by a request',
    plan: 'Over the limit of the plan',
    failures: 'Too many failures',
    deletion: 'The account was disowned'
  }
}

export const plain = (value: string): string => value.replaceAll(/[_-]/g, ' ')
export const labelOf = (name: Enum, value: string): string => (texts[name] as Record<string, string> | undefined)?.[value] ?? plain(value)
export const optionsOf = (name: Enum) => enums[name].map(value => ({ value, label: labelOf(name, value) }))
/** Options whose labels are their values. */
export const options = (values: readonly string[]) => values.map(value => ({ value, label: plain(value) }))
