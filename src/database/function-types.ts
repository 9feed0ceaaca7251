/** What the SQL functions take and return: rows in SQL's words, times as Dates. */
import type { Scope } from '../accounts/admission.ts'
import type { Plan } from '../config.ts'

export type Trigger = 'schedule' | 'manual_fire' | 'replay'

/** What one webhook request needs. `secrets` sign it; `api_key` is encrypted; `plain` says that a 2xx touches nothing but the execution. */
export type BegunAttempt = {
  execution_id: string
  flight_id: number
  attempt: number
  account_id: string
  cue_id: string
  scheduled_for: Date
  callback_url: string
  callback_method: 'POST' | 'PUT' | 'PATCH' | 'GET'
  callback_headers: Record<string, string>
  payload: string
  timeout_seconds: number
  secrets: string[]
  api_key: string | null
  plain: boolean
}

/** An attempt that waits, with its instant in epoch microseconds. */
export type WaitingAttempt = { execution_id: string; account_id: string; due_at: number; is_due: boolean }

/** A cue that comes due soon, as look_ahead sees it. `outage_until` is set when it came due while the service was away. */
export type AheadCue = {
  cue_id: string
  account_id: string
  version: number
  next_run: Date
  transport: 'webhook' | 'worker'
  schedule_type: 'recurring' | 'once'
  cron: string | null
  timezone: string
  catch_up: 'skip_missed' | 'run_once_if_missed' | 'replay_all_missed'
  outage_until: Date | null
  over_limit: boolean
  /** How many slots a success may take, where no window for it is open yet. */
  window_slots: number | null
}

/**
 * A cue just created, as `cue_view` has it. Without an id it was not: `description` says why, unless account_id is null, too; then somebody
 * holds the account.
 */
export type CreatedCue = { id: string | null; account_id: string | null; description: string | null }

/** An execution just made or moved. */
export type MovedExecution = {
  id: string
  cue_id: string
  scheduled_for: Date
  status: string
  triggered_by: Trigger
  replayed_from: string | null
  error_message: string | null
}

/** A claim, as the worker is told of it. */
export type Claim = {
  execution_id: string
  cue_id: string
  cue_name: string
  task: string | null
  scheduled_for: Date
  lease_expires_at: Date
  claim_token: string
  attempt: number
  payload: string
}

/** A cue that should have had a success by `success_due_at`. */
export type PassedWindow = {
  cue_id: string
  version: number
  success_due_at: Date
  cron: string
  timezone: string
  slots: number
  last_success_at: Date | null
}

export type OutcomeState =
  | 'reported_success'
  | 'reported_failure'
  | 'verified_success'
  | 'verification_pending'
  | 'verification_failed'
  | 'unknown'

/** Metadata and artifacts are JSON texts. */
export type Evidence = {
  external_id?: string | null
  result_url?: string | null
  result_ref?: string | null
  result_type?: string | null
  summary?: string | null
  artifacts?: string | null
  metadata?: string | null
  claim_token?: string
}

export type Requests = {
  key_hashes: (Buffer | null)[]
  session_ids: (string | null)[]
  execution_ids: (string | null)[]
  addresses: string[]
  scopes: (Scope | 'any' | null)[]
  limited?: boolean
}
export type DueCues = { cue_ids: string[]; versions: number[]; expected: Date[]; next: (Date | null)[] }
export type Results = {
  execution_ids: string[]
  attempts: number[]
  cue_ids: string[]
  started_at: Date[]
  duration_ms: number[]
  http_status: (number | null)[]
  bodies: (string | null)[]
  ended_flights?: number[]
}
/** How the service fares; counts stop at 10,000. */
export type ServiceHealth = {
  last_seen_at: Date | null
  lateness_ms: number | null
  replicas: number
  pending: number
  retrying: number
  delivering: number
  pending_worker: number
  oldest_pending_at: Date | null
  active_workers: number
  last_heartbeat: Date | null
}

/** An account's use of its plan, in the current UTC month and the current minute. */
export type Usage = {
  plan: Plan
  cues_used: number
  cues_active: number
  cue_limit: number
  executions_used: number
  execution_limit: number
  reported: number
  succeeded: number
  failed: number
  requests_used: number
  requests_per_minute: number
}

/** What an event of Stripe says of a subscription; see the function. */
export type SubscriptionEvent = {
  event_id: string
  type: string
  subscription_id: string
  customer_id: string
  account_id: string | null
  plan: Plan
  status: string
  at: Date
  first?: boolean
  version?: number
}

/** What an issue in the tracker is made of. */
export type Ticket = {
  ticket_id: number
  account_id: string
  plan: Plan
  subject: string
  message: string
  severity: string
  type: string
  created_at: Date
  tried: boolean
}

/** What is new in one version of the memory block. */
export type MemoryChange = { version: number; changes: string[]; updated_at: string }
export type DeviceStatus = 'pending' | 'email_sent' | 'approved' | 'claimed' | 'expired'
/** A sign-in as the holder of its link sees it. `account_created_at` is null where the address has no account yet. */
export type DeviceLink = {
  status: DeviceStatus
  email: string
  ip: string | null
  created_at: Date
  account_created_at: Date | null
  active_keys: number
}
export type OpenedSession = { session_id: string; account_id: string; email: string; expires_at: Date }

export type CueFailedMail = {
  email: string
  cue_id: string
  cue_name: string
  cue_status: 'active' | 'paused' | 'completed' | 'failed'
  execution_id: string
  status: 'failed' | 'missed'
  scheduled_for: Date
  ended_at: Date
  attempts: number
  http_status: number | null
  error_message: string | null
  /** No more such mails for this account for a while. */
  quiet: boolean
}

export type Account = { account_id: string }
/** Who does something to an account, for its audit log. */
export type Actor = Account & { actor: string; ip: string }
export type NewKey = { key_hash: Buffer; prefix: string }
