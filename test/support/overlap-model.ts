/** A model of overlap: what becomes of an execution that a cue is to run, and what ends and starts others of the cue. Pure. */
import type { Change, State } from './state-model.ts'

export type Overlap = 'allow' | 'skip' | 'queue_one' | 'queue_all' | 'cancel_previous'
export const overlaps: readonly Overlap[] = ['allow', 'skip', 'queue_one', 'queue_all', 'cancel_previous']

/** When queued executions are due: infinity, as the driver reads it. */
export const never = 1e300
/** Of the walk's database. */
export const queueLimit = 3

export const isQueued = ({ attempt_due_at, claimable_at }: Pick<State, 'attempt_due_at' | 'claimable_at'>) =>
  attempt_due_at === never || claimable_at === never

export type Place = 'run' | 'queue' | 'overlap' | 'queue_full'

/** What becomes of one more execution beside these, which have not ended. */
export const placeBeside = (overlap: Overlap, open: readonly State[]): Place => {
  if (overlap === 'allow' || overlap === 'cancel_previous' || open.length === 0) return 'run'
  const queued = open.filter(isQueued).length
  if (overlap === 'skip' || (overlap === 'queue_one' && queued > 0)) return 'overlap'
  return queued >= queueLimit ? 'queue_full' : 'queue'
}

/** The end of an execution for the next one. */
export const superseded = ({ transport }: State, now: number): Change => ({
  status: 'failed',
  attempt_due_at: null,
  claimable_at: null,
  claim_deadline_at: null,
  flight_id: null,
  lease_expires_at: null,
  claim_token: null,
  outcome_deadline_at: null,
  ended_at: now,
  superseded: transport === 'worker'
})

/** The start of a queued execution, which a fire may have deferred. */
export const started = ({ transport }: State, now: number, claimMs: number): Change => {
  const due = (at: number | null) => at! >= now && at! < now + 3_600_000
  return transport === 'webhook' ? { attempt_due_at: due } : { claimable_at: due, claim_deadline_at: at => due(at! - claimMs) }
}

/** What is wrong with an execution that was created beside these, if one of these rules applied; empty if nothing. */
export const creationFaults = (rules: readonly Overlap[], created: State, open: readonly State[]): string[] => {
  const place: Place = isQueued(created) ? 'queue' : 'run'
  const fits = rules.some(overlap => placeBeside(overlap, open) === place && (overlap !== 'cancel_previous' || open.length === 0))
  return fits ? [] : [`${place} beside ${open.length} open, ${open.filter(isQueued).length} of them queued, with ${rules.join(' or ')}`]
}
