/**
 * A model of an execution: the state machine of sql/README.md in TypeScript, small enough to be compared with it. `refusal` returns
 * whether a state refuses an operation, `move` how the operation changes the state. Instants are epoch milliseconds.
 */
import type { Overlap } from './overlap-model.ts'

export type State = {
  id: string
  transport: 'webhook' | 'worker'
  status: string
  attempts: number
  lost_attempts: number
  attempt_due_at: number | null
  flight_id: number | null
  claimable_at: number | null
  claim_deadline_at: number | null
  claim_token: string | null
  claimed_by_worker: string | null
  last_heartbeat_at: number | null
  lease_expires_at: number | null
  outcome_deadline_at: number | null
  outcome_state: string | null
  outcome_success: boolean | null
  rejected_at: number | null
  external_id: string | null
  ended_at: number | null
  /** Whether it is a worker's, and ended for the next run. */
  superseded: boolean
}

/** Settings of a cue that affect its executions. */
export type Rules = { maxAttempts: number; awaits: boolean; mode: string | null; backoffMs: number; retriesReports: boolean }

export type Operation =
  | { kind: 'fire'; at: number; overlap: Overlap }
  | { kind: 'slot' | 'resume' | 'endPause' }
  | { kind: 'pause'; until: number | null }
  | { kind: 'edit'; overlap: Overlap; max_runs: number | null }
  | {
      kind:
        | 'begin'
        | 'extend'
        | 'repair'
        | 'recoverFlights'
        | 'recoverStuck'
        | 'recoverLeases'
        | 'missUnclaimed'
        | 'expireOutcomes'
        | 'deleteCue'
        | 'showWorker'
    }
  | { kind: 'settle'; attempt: number; error: string | null; gone: boolean; reported: boolean | null }
  | { kind: 'lose' | 'giveBack'; flight: number }
  | { kind: 'claim' | 'claimNext'; worker: string }
  | { kind: 'heartbeat'; worker: string | undefined; token: string | undefined }
  | { kind: 'release'; token: string }
  | { kind: 'removeWorker'; worker: string }
  | { kind: 'report'; success: boolean; token: string | undefined; external_id: string | null }
  | { kind: 'attach'; external_id: string }
  | { kind: 'verify'; state: 'verified_success' | 'verification_failed' | 'verification_pending' }
  | { kind: 'cancel' }
  | { kind: 'replay'; overlap: Overlap }

const leaseMs = 900_000
export const claimMs = 900_000
const outcomeMs = 300_000
const silenceMs = 180_000

const ended = (state: State) => ['success', 'failed', 'missed', 'outcome_timeout'].includes(state.status)
const waits = (state: State) => ['pending', 'retrying', 'retry_ready'].includes(state.status) && state.transport === 'webhook'
const flies = (state: State) => state.status === 'delivering' && state.transport === 'webhook'
const isHeld = (state: State) => state.status === 'delivering' && state.transport === 'worker'
const isOpen = (state: State) => ['pending', 'retrying'].includes(state.status) && state.transport === 'worker'

/** The SQLSTATE with which this execution refuses an operation, or null; '' if the operation finds nothing to do. */
export const refusal = (operation: Operation, state: State, deleted: boolean, now: number): string | null => {
  switch (operation.kind) {
    case 'claim':
      return isOpen(state) && state.claimable_at! <= now && !deleted ? null : ''
    case 'settle':
      return flies(state) && state.attempts === operation.attempt ? null : ''
    case 'lose':
    case 'giveBack':
      return flies(state) && state.flight_id === operation.flight ? null : ''
    case 'heartbeat':
      if (deleted) return 'QU002'
      if (state.superseded) return 'QU016'
      if (operation.token && state.transport === 'worker' && state.claim_token !== operation.token) return 'QU016'
      if (!isHeld(state)) return 'QU018'
      return operation.worker && state.claimed_by_worker !== operation.worker ? 'QU017' : null
    case 'release':
      if (deleted) return 'QU002'
      if (state.superseded) return 'QU016'
      if (!isHeld(state)) return 'QU018'
      return state.claim_token !== operation.token ? 'QU016' : null
    case 'report':
      if (deleted) return 'QU002'
      if (state.superseded) return 'QU016'
      if (operation.token && state.claim_token !== operation.token) return 'QU016'
      if (state.outcome_success !== null && !isHeld(state)) return 'QU020'
      return state.status === 'pending' ? 'QU011' : null
    case 'attach':
      if (deleted) return 'QU002'
      if (state.superseded) return 'QU016'
      return state.outcome_success === null ? 'QU021' : null
    case 'verify':
      if (deleted) return 'QU002'
      if (state.outcome_success === null) return 'QU021'
      if (state.outcome_state === 'reported_success') return null
      return state.outcome_state === 'verification_pending' && operation.state !== 'verification_pending' ? null : 'QU011'
    case 'cancel':
      if (deleted) return 'QU002'
      return ['pending', 'retrying', 'retry_ready'].includes(state.status) ? null : 'QU011'
    case 'replay':
      if (deleted) return 'QU002'
      return ended(state) ? null : 'QU012'
    default:
      return null
  }
}

const judge = (mode: string | null, success: boolean, external_id: string | null) => {
  if (!success) return 'reported_failure'
  if (mode === 'manual') return 'verification_pending'
  if (mode === 'require_external_id') return external_id === null ? 'verification_failed' : 'verified_success'
  return 'reported_success'
}

const openAgain = (now: number) => ({
  status: 'pending',
  claimable_at: now,
  claim_deadline_at: now + claimMs,
  lease_expires_at: null,
  claim_token: null,
  claimed_by_worker: null,
  last_heartbeat_at: null
})

/** A change of a state: members with their new values; a function checks one that cannot be predicted. */
export type Change = { [K in keyof State]?: State[K] | ((value: State[K]) => boolean) }

type Context = { now: number; rules: Rules; state: State; deleted: boolean; workerHeardAt: (worker: string) => number }

/** The change of an execution by an operation, in one update of its row. Undefined: it must not change it. */
export const move = (operation: Operation, { now, rules, state, deleted, workerHeardAt }: Context): Change | undefined => {
  const again = state.attempts - state.lost_attempts < rules.maxAttempts
  switch (operation.kind) {
    case 'begin':
      if (!waits(state) || state.attempt_due_at! > now) return
      return { status: 'delivering', attempts: state.attempts + 1, attempt_due_at: null, flight_id: isSome }
    case 'settle': {
      if (!flies(state) || state.attempts !== operation.attempt) return
      const { error, gone, reported } = operation
      if (error !== null && again && !gone && !deleted) {
        const due = (at: number | null) => at! >= now + rules.backoffMs && at! <= now + 1.1 * rules.backoffMs + 1
        return { status: 'retrying', flight_id: null, attempt_due_at: due }
      }
      if (error !== null) return { status: 'failed', flight_id: null, ended_at: now }
      if (!rules.awaits || state.outcome_success !== null) return { status: 'success', flight_id: null, ended_at: now }
      if (reported === null) return { status: 'pending_outcome', flight_id: null, outcome_deadline_at: now + outcomeMs }
      const outcome = { outcome_success: reported, outcome_state: judge(rules.mode, reported, state.external_id) }
      return { status: 'success', flight_id: null, ended_at: now, ...outcome }
    }
    case 'lose':
    case 'recoverFlights':
      if (!flies(state) || (operation.kind === 'lose' && state.flight_id !== operation.flight)) return
      return state.lost_attempts < 4
        ? { status: 'retry_ready', flight_id: null, attempt_due_at: now, lost_attempts: state.lost_attempts + 1 }
        : { status: 'missed', flight_id: null, ended_at: now, lost_attempts: state.lost_attempts + 1 }
    case 'giveBack':
      if (!flies(state) || state.flight_id !== operation.flight) return
      return { status: 'retry_ready', flight_id: null, attempt_due_at: now, attempts: state.attempts - 1 }
    case 'recoverStuck':
      if (!flies(state)) return
      return again && !deleted
        ? { status: 'retrying', flight_id: null, attempt_due_at: now }
        : { status: 'missed', flight_id: null, ended_at: now }
    case 'claim':
    case 'claimNext':
      if (!isOpen(state) || state.claimable_at! > now) return
      return {
        status: 'delivering',
        attempts: state.attempts + 1,
        claimable_at: null,
        claim_deadline_at: null,
        claimed_by_worker: operation.worker,
        claim_token: isSome,
        last_heartbeat_at: now,
        lease_expires_at: now + leaseMs
      }
    case 'heartbeat':
      return isHeld(state) ? { last_heartbeat_at: now, lease_expires_at: now + leaseMs } : undefined
    case 'release':
      return isHeld(state) && state.claim_token === operation.token
        ? { ...openAgain(now), lost_attempts: state.lost_attempts + 1 }
        : undefined
    case 'removeWorker':
      return isHeld(state) && state.claimed_by_worker === operation.worker
        ? { ...openAgain(now), lost_attempts: state.lost_attempts + 1 }
        : undefined
    case 'recoverLeases': {
      if (!isHeld(state) || state.lease_expires_at! > now) return
      const heardAt = Math.max(state.last_heartbeat_at!, workerHeardAt(state.claimed_by_worker!))
      if (heardAt > now - silenceMs) return { lease_expires_at: heardAt + silenceMs }
      return again ? openAgain(now) : { status: 'missed', lease_expires_at: null, claim_token: null, ended_at: now }
    }
    case 'missUnclaimed':
      if (!isOpen(state) || state.claim_deadline_at! > now) return
      return { status: 'missed', claimable_at: null, claim_deadline_at: null, ended_at: now }
    case 'expireOutcomes':
      if (state.status !== 'pending_outcome' || state.outcome_deadline_at! > now) return
      return { status: 'outcome_timeout', outcome_deadline_at: null, outcome_state: 'unknown', ended_at: now }
    case 'report': {
      const { success, external_id } = operation
      if ((state.outcome_success !== null && !isHeld(state)) || state.status === 'pending') return
      const outcome = { outcome_success: success, outcome_state: judge(rules.mode, success, external_id), external_id }
      if (isHeld(state) && !success && rules.retriesReports && again) {
        const due = (at: number | null) => at! >= now + rules.backoffMs && at! <= now + 1.1 * rules.backoffMs + 1
        const claim_deadline_at = (at: number | null) => due(at! - claimMs)
        return { ...openAgain(now), ...outcome, status: 'retrying', claimable_at: due, claim_deadline_at }
      }
      if (isHeld(state)) return { ...outcome, status: success ? 'success' : 'failed', lease_expires_at: null, ended_at: now }
      return state.status === 'pending_outcome' ? { ...outcome, status: 'success', outcome_deadline_at: null, ended_at: now } : outcome
    }
    case 'attach': {
      if (state.outcome_success === null) return
      const lifts = rules.mode === 'require_external_id' && state.outcome_success && state.rejected_at === null
      const isLacking = ['verification_failed', 'reported_success'].includes(state.outcome_state!)
      return { external_id: operation.external_id, ...(lifts && isLacking && { outcome_state: 'verified_success' }) }
    }
    case 'verify':
      return { outcome_state: operation.state, rejected_at: operation.state === 'verification_failed' ? now : null }
    case 'cancel':
      return ['pending', 'retrying', 'retry_ready'].includes(state.status)
        ? { status: 'failed', attempt_due_at: null, claimable_at: null, claim_deadline_at: null, ended_at: now }
        : undefined
  }
}

const isSome = (value: unknown) => value !== null

/** The initial state of a new execution. */
export const begun = (transport: State['transport'], at: number): Change => ({
  transport,
  status: 'pending',
  attempts: 0,
  lost_attempts: 0,
  attempt_due_at: transport === 'webhook' ? at : null,
  claimable_at: transport === 'worker' ? at : null,
  claim_deadline_at: transport === 'worker' ? at + claimMs : null,
  flight_id: null,
  claim_token: null,
  outcome_state: null,
  outcome_success: null,
  ended_at: null,
  superseded: false
})

/** The initial state of a webhook's execution that its engine sends at once. */
export const sent: Change = { ...begun('webhook', 0), status: 'delivering', attempts: 1, attempt_due_at: null, flight_id: isSome }

/** Differences between the expected and the actual new state; empty if they agree. */
export const differences = (old: Partial<State>, change: Change, found: State): string[] =>
  (Object.keys(found) as (keyof State)[]).flatMap(name => {
    const wanted = name in change ? change[name] : old[name]
    if (wanted === undefined) return []
    const agrees = typeof wanted === 'function' ? (wanted as (value: unknown) => boolean)(found[name]) : wanted === found[name]
    return agrees ? [] : [`${name}: ${old[name]} became ${found[name]}, not ${typeof wanted === 'function' ? 'as it should' : wanted}`]
  })
