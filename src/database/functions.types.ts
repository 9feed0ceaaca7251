/** The SQL functions, as the catalog has them. Made by `npm run generate`; do not edit. */
import type { AlertSeverity, AlertType, ApprovalDecision, ApprovalExpiry, ApprovalSource, AuditEvent, CallbackMethod, CatchUp, ChannelType, Completion, CueStatus, DeviceCodeStatus, EndpointStatus, EventType, ExecutionStatus, KeyScope, MissedReason, NoticeKind, NoticeState, OperationStatus, OperationType, OutcomeState, Overlap, PauseCause, Plan, ScheduleType, TicketSeverity, TicketType, Transport, TriggerKind, WebhookAuthorization } from '../db.types.ts'

/** How each function returns its result, its parameters without the prefix p_, and whether it changes nothing. */
export const functions = {
  abort_operation: ['row', 'account_id operation_id now'],
  acknowledge_alert: ['value', 'account_id alert_id now'],
  add_cue_limit_event: ['value', 'account_id now'],
  add_job: ['value', 'queue data id start_after singleton_key'],
  add_session_token: ['value', 'account_id token_hash now may_approve'],
  admit: ['rows', 'key_hashes session_ids execution_ids addresses scopes limited now'],
  admit_held: ['value', 'after limit now'],
  alert_notice: ['row', 'alert_id now'],
  alert_webhook_secret: ['value', 'account_id actor ip now'],
  allow: ['row', 'subject limit window now'],
  apply_cues: ['rows', 'account_id set cues keys prune take_over dry_run now actor gates may_approve'],
  apply_subscription: ['row', 'event_id type subscription_id customer_id account_id plan status at first version now'],
  approve_device: ['value', 'code_hash link_id account_id key_hash prefix ciphertext ip now'],
  attach_evidence: ['row', 'account_id execution_id external_id result_url result_ref result_type summary artifacts metadata claim_token now costs'],
  beat_engine: ['row', 'engine_id version lateness_ms open_deliveries missed_after now name full_accounts passed_over'],
  begin_attempts: ['rows', 'execution_ids lease now'],
  begin_channel_test: ['row', 'account_id name now'],
  begin_endpoint_test: ['row', 'account_id endpoint_id now'],
  begin_endpoint_turn: ['rows', 'endpoint_id limit answer_within now'],
  begin_idempotent: ['row', 'account_id route key request_hash now'],
  begin_issue: ['row', 'ticket_id now'],
  begin_notice: ['row', 'notice_id answer_within now'],
  begin_test: ['row', 'account_id cue_id url payload now may_approve'],
  billing_account: ['row', 'account_id', 'stable'],
  calendar_cues: ['rows', 'account_id name cue_ids', 'stable'],
  calendars_by_revision: ['rows', 'revisions', 'stable'],
  cancel_deletion: ['value', 'deletion_id ip now'],
  cancel_execution: ['row', 'account_id execution_id now running actor source'],
  catch_up_cues: ['value', 'cues now'],
  change_plan: ['values', 'account_id plan limits actor ip now'],
  check_secrets: ['values', 'encryption_key_ids session_secret changed now'],
  claim_address: ['value', 'email cell address now'],
  claim_executions: ['rows', 'account_id worker_id execution_id tasks limit lease now'],
  claim_next: ['rows', 'claims lease now tries'],
  claimable_page: ['rows', 'account_id task limit bytes now', 'stable'],
  confirm_address: ['value', 'address_id now'],
  confirm_email: ['value', 'account_id now'],
  count_accounts: ['value', '', 'stable'],
  create_cue: ['value', 'account_id cue next_run now next_slot actor'],
  create_device_code: ['value', 'code_hash address ip now'],
  create_each_cue: ['rows', 'account_ids cues next_runs now next_slots actors'],
  create_event_endpoint: ['row', 'account_id url types tag cue_ids description actor ip now'],
  create_key: ['value', 'account_id label key_hash prefix scopes actor ip now may_approve'],
  create_operation: ['row', 'account_id type targets missing name rate_per_minute settings states actor now may_approve'],
  create_ticket: ['value', 'account_id subject message severity type tracked now'],
  cue_detail_by_key: ['row', 'account_id key', 'stable'],
  cue_id_by_key: ['value', 'account_id key', 'stable'],
  database_time: ['value', ''],
  decide_approval: ['row', 'account_id execution_id decision reason source actor ip now'],
  delete_calendar: ['value', 'account_id name'],
  delete_channel: ['value', 'account_id name actor ip now'],
  delete_cue: ['value', 'account_id cue_id now version actor may_approve'],
  delete_cues: ['values', 'account_id cue_ids now actor may_approve'],
  delete_due_accounts: ['value', 'batch now'],
  delete_event_endpoint: ['value', 'account_id endpoint_id actor ip now'],
  delete_gate: ['value', 'account_id key actor ip now'],
  delete_old_executions: ['value', 'before batch'],
  delete_worker: ['value', 'account_id worker_id now'],
  deletion_status: ['row', 'deletion_id now', 'stable'],
  describe_session: ['value', 'account_id session_id user_agent ip'],
  destinations: ['rows', 'now', 'stable'],
  device_code_status: ['value', 'code_hash now', 'stable'],
  device_link: ['row', 'code_hash link_id now', 'stable'],
  disk_use: ['rows', 'now', 'stable'],
  dismiss_execution: ['row', 'account_id execution_id now'],
  disown_account: ['value', 'account_id ip now'],
  disownable_account: ['row', 'account_id now', 'stable'],
  disowned_until: ['value', 'account_id', 'stable'],
  drop_old_events: ['values', 'before now'],
  drop_old_executions: ['values', 'before now'],
  enable_event_endpoint: ['value', 'account_id endpoint_id skips actor ip now'],
  end_endpoint_turn: ['row', 'endpoint_id turn place http_status error retry_after_ms now'],
  end_flights: ['value', 'flight_ids'],
  end_idempotent: ['value', 'account_id route key request_hash status body now'],
  end_issue: ['value', 'ticket_id url'],
  end_memory_notice: ['value', 'subscription_id version url'],
  end_notice: ['value', 'notice_id tries http_status error is_final retry_after_ms now'],
  end_snoozes: ['value', 'limit now'],
  ended_executions: ['rows', '', 'stable'],
  ended_pauses: ['rows', 'limit now skip', 'stable'],
  exchange_session_token: ['row', 'token_hash client_id label key_hash prefix ip now'],
  executions_used: ['value', 'account_id now', 'stable'],
  expire_outcomes: ['value', 'limit now'],
  expire_signals: ['value', 'limit now'],
  extend_flights: ['values', 'flight_ids lease now'],
  failure_notice: ['row', 'execution_id now', 'stable'],
  failure_notice_retry_at: ['value', 'execution_id tries retry_after_ms now'],
  find_address: ['value', 'email', 'stable'],
  find_device_code: ['rows', 'code_hash now', 'stable'],
  finish_attempts: ['value', 'execution_ids attempts cue_ids started_at duration_ms http_status bodies now'],
  fire_cue: ['row', 'account_id cue_id payload task version send_at idempotency_key request_hash now overlap actor'],
  fire_tracked_cues: ['value', 'cue_ids versions expected next success_due missed_after now next_slots'],
  floods: ['rows', 'now', 'stable'],
  fold_usage: ['value', 'now'],
  forecast: ['rows', 'now', 'stable'],
  gate_state: ['row', 'account_id gate now', 'stable'],
  gate_states: ['row', 'account_id key now', 'stable'],
  gone_attempts: ['values', 'execution_ids attempts', 'stable'],
  hand_over_device_code: ['value', 'code_hash cell now'],
  has_live_worker: ['value', 'account_id now', 'stable'],
  heartbeat_execution: ['value', 'account_id execution_id worker_id claim_token lease now'],
  heartbeat_worker: ['value', 'account_id worker_id handlers now'],
  held_accounts: ['values', '', 'stable'],
  held_attempts: ['values', 'execution_ids cue_ids'],
  held_reason: ['value', 'account_id', 'stable'],
  held_seconds: ['rows', 'now', 'stable'],
  hold: ['row', 'reason account_id actor now'],
  is_email_confirmed: ['value', 'account_id', 'stable'],
  job_counts: ['rows', 'limit', 'stable'],
  last_taken_at: ['value', 'now', 'stable'],
  latest_place: ['value', '', 'stable'],
  latest_results: ['rows', 'cue_ids', 'stable'],
  linked_approval: ['row', 'execution_id', 'stable'],
  look_ahead_by_schedule: ['rows', 'until limit skip_accounts now', 'stable'],
  look_waiting: ['rows', 'after after_id limit now', 'stable'],
  lose_attempts: ['value', 'execution_ids flight_id error now'],
  mail_approval_requested: ['row', 'account_id execution_id counted now'],
  mail_channel_test: ['row', 'channel_id', 'stable'],
  mail_confirm_address: ['row', 'address_id', 'stable'],
  mail_cue_failed: ['row', 'account_id execution_id counted now'],
  mail_deletion_requested: ['row', 'deletion_id', 'stable'],
  mail_downgrade: ['row', 'account_id cue_ids', 'stable'],
  mail_endpoint_disabled: ['row', 'endpoint_id', 'stable'],
  mail_limit_reached: ['row', 'account_id now', 'stable'],
  mail_magic_link: ['row', 'link_id now', 'stable'],
  mail_payment_failed: ['row', 'account_id', 'stable'],
  mail_registered: ['row', 'account_id key_id', 'stable'],
  maintain_partitions: ['value', 'months now'],
  meet_approvals: ['value', 'limit now'],
  memory_notice: ['row', 'subscription_id release now'],
  miss_unclaimed: ['value', 'limit now'],
  move_calendar_cues: ['values', 'cue_ids versions expected next_runs next_slots excluded_at later_than now'],
  move_windows: ['value', 'cue_ids versions expected next missed now'],
  named_calendars: ['rows', 'account_id names', 'stable'],
  new_account_id: ['value', 'now'],
  next_claimable: ['value', 'account_id now', 'stable'],
  next_resumed: ['rows', 'operation_id', 'stable'],
  next_wakes: ['row', '', 'stable'],
  note_failed_payment: ['value', 'event_id type customer_id subscription_id next_attempt_at now'],
  note_memory_release: ['value', 'release'],
  note_unattended: ['value', 'now'],
  notice_events: ['value', ''],
  open_key_session: ['row', 'key_hash lifetime ip now'],
  open_limits: ['rows', 'account_ids', 'stable'],
  open_local_account: ['value', 'account_id email key_hash prefix ciphertext token_hash now'],
  open_session: ['row', 'token_hash lifetime ip now'],
  passed_exclusions: ['rows', 'limit now skip', 'stable'],
  passed_windows: ['rows', 'limit now skip', 'stable'],
  pause_gate: ['value', 'account_id key reason until actor ip now'],
  poll_device: ['row', 'code_hash token_hash limited now'],
  preview_values: ['value', 'account_id cue scheduled_for cue_id now', 'stable'],
  prune: ['value', 'now'],
  prune_dead_letters: ['value', 'batch'],
  prune_idempotency_keys: ['value', 'batch now'],
  prune_payloads: ['value', 'before batch now'],
  publish_events: ['value', 'limit most_per_day now'],
  purge_cue: ['value', 'cue_id batch'],
  put_calendar: ['value', 'account_id name description dates ranges revision now'],
  put_channel: ['value', 'account_id name type target types severity tags is_default enabled actor ip now may_approve'],
  put_device_code: ['value', 'code_hash ip created_at expires_at'],
  put_gate: ['value', 'account_id key gate actor ip now'],
  queue_operation: ['value', 'operation_id delay'],
  read_costs: ['rows', 'account_id by from to limit', 'stable'],
  read_cue_details: ['rows', 'account_ids cue_ids', 'stable'],
  read_cues: ['rows', 'account_ids cue_ids', 'stable'],
  read_declared_cues: ['rows', 'account_id keys', 'stable'],
  read_destinations: ['row', 'account_id from to now', 'stable'],
  read_echo: ['row', 'token now', 'stable'],
  read_errors: ['row', 'account_id from to now', 'stable'],
  read_events: ['rows', 'account_id after types cue_ids tags limit scan', 'stable'],
  read_execution_details: ['rows', 'account_ids execution_ids', 'stable'],
  read_history: ['rows', 'account_id cue_id bounds', 'stable'],
  read_memory: ['row', 'account_id release reader now'],
  read_notice: ['row', 'notice_id now'],
  read_operator: ['row', 'now', 'stable'],
  read_overview: ['row', 'account_id from now', 'stable'],
  read_usage: ['row', 'account_id actor now', 'stable'],
  record_exclusions: ['value', 'cues now'],
  recover_flights: ['value', 'limit asked_at now'],
  recover_leases: ['value', 'limit now'],
  recover_stuck: ['value', 'now'],
  refresh_session: ['row', 'account_id actor ip now'],
  refuse_due_cues: ['value', 'cue_ids versions expected next now next_slots'],
  regenerate_alert_webhook_secret: ['value', 'account_id overlap_seconds actor ip now'],
  regenerate_key: ['value', 'account_id key_hash prefix ciphertext actor ip now'],
  regenerate_webhook_secret: ['value', 'account_id overlap_seconds actor ip now'],
  register: ['row', 'account_id email key_hash prefix ciphertext address ip now'],
  release: ['value', 'account_id actor now'],
  release_execution: ['value', 'account_id execution_id claim_token now'],
  release_flight: ['value', 'flight_id execution_ids now'],
  release_gates: ['value', 'account_ids gates now'],
  rename_key: ['value', 'account_id key_id label actor ip now'],
  repair_queues: ['value', 'after limit now'],
  replay_execution: ['row', 'account_id execution_id now overlap actor'],
  replicas: ['rows', 'now', 'stable'],
  report_outcome: ['row', 'account_id execution_id success result error metadata external_id result_url result_type summary artifacts claim_token now result_ref costs'],
  request_deletion: ['value', 'account_id actor ip now'],
  requeue_attempts: ['value', 'limit now'],
  requeue_notices: ['value', 'limit now'],
  requeue_operations: ['value', 'now'],
  requeue_purges: ['value', 'now'],
  resume_cues: ['value', 'cue_ids versions next_runs now next_slots'],
  resume_gate: ['value', 'account_id key actor ip now'],
  reveal_key: ['row', 'account_id encryption_key_ids actor ip now'],
  revoke_key: ['value', 'account_id key_id actor ip now'],
  revoke_session: ['value', 'account_id session_id actor ip now'],
  revoke_sessions: ['value', 'account_id all actor ip now'],
  run_operation: ['row', 'operation_id resumed now'],
  send_device_link: ['value', 'code_hash email code_ciphertext now'],
  service_health: ['row', 'now', 'stable'],
  set_customer: ['value', 'account_id customer_id now'],
  set_plans: ['value', 'plans'],
  settle_attempts: ['value', 'execution_ids attempts cue_ids started_at duration_ms http_status bodies headers errors retry_after_ms gone reports omitted now'],
  signal_execution: ['row', 'account_id execution_id reason now actor'],
  slots_without_execution: ['values', 'cue_id slots', 'stable'],
  snooze_alert: ['value', 'account_id alert_id until now'],
  start_followers: ['row', 'after limit now'],
  stop_engine: ['value', 'engine_id now'],
  store_echo: ['value', 'token payload headers address now'],
  stored_response: ['row', 'account_id route key request_hash now', 'stable'],
  subscribe: ['value', 'account_id source subscribes'],
  subscribe_memory: ['value', 'account_id agent_id callback_url release now'],
  take_due_cues: ['rows', 'cue_ids versions expected next success_due missed_after lease now next_slots'],
  take_last_slots: ['rows', 'cue_ids versions expected missed_after lease now'],
  update_account: ['value', 'account_id changes actor ip now may_approve'],
  update_cue: ['value', 'account_id cue_id version changes next_run now next_slot actor may_approve'],
  verify_outcome: ['row', 'account_id execution_id state reason now'],
  webhook_secret: ['value', 'account_id', 'stable'],
  who_changed: ['rows', 'cue_id', 'stable'],
  why_late: ['rows', 'cue_id now', 'stable']
} as const

export type OperationsRow = {
  id: string
  account_id: string
  type: OperationType
  name: string | null
  status: OperationStatus
  settings: unknown
  rate_per_minute: number | null
  total: number
  succeeded: number
  failed: number
  skipped: number
  errors: unknown
  paced_at: Date
  worked_at: Date
  created_by: string
  may_approve: boolean
  created_at: Date
  ended_at: Date | null
}

export type AdmitRow = {
  error: string | null
  account_id: string | null
  actor: string | null
  scopes: string[] | null
  plan: Plan | null
  limits: unknown | null
  usage_warning: boolean
  rate_limit: number | null
  rate_remaining: number | null
  rate_reset: number
  retry_after: number | null
}

export type AlertNoticeRow = {
  url: string
  secrets: string[]
  alert_id: string
  alert_type: AlertType
  severity: AlertSeverity
  message: string
  cue_id: string
  execution_id: string | null
  created_at: Date
  metadata: object
}

export type AllowRow = {
  allowed: boolean
  remaining: number
  reset_at: Date
  retry_after: number | null
}

export type ApplyCuesRow = {
  key: string
  action: string
  before: unknown | null
  after: unknown | null
  error: string | null
  message: string | null
}

export type ApplySubscriptionRow = {
  result: string
  version: number | null
}

export type AttachEvidenceRow = {
  execution_id: string
  outcome_state: OutcomeState
  evidence_updated: boolean
}

export type BeatEngineRow = {
  database_now: Date
  outage_recorded: boolean
  engines: number
}

export type BegunAttempt = {
  execution_id: string
  flight_id: number
  attempt: number
  account_id: string
  cue_id: string
  scheduled_for: Date
  callback_url: string
  callback_method: CallbackMethod
  callback_headers: Record<string, string>
  payload: string
  timeout_seconds: number
  secrets: string[]
  api_key: string | null
  plain: boolean
  template_values: string | null
}

export type BeginChannelTestRow = {
  type: ChannelType
  target: string
  secrets: string[] | null
}

export type BeginEndpointTestRow = {
  url: string
  secret: string
}

export type BeginEndpointTurnRow = {
  url: string
  secret: string
  turn: number
  next_place: number
  truncated: boolean
  place: number
  id: string
  type: EventType
  at: Date
  cue_id: string | null
  cue_key: string | null
  execution_id: string | null
  data: string
}

export type BeginIdempotentRow = {
  status: number
  body: string
}

export type BeginIssueRow = {
  ticket_id: number
  account_id: string
  plan: Plan
  subject: string
  message: string
  severity: TicketSeverity
  type: TicketType
  created_at: Date
  tried: boolean
}

export type BeginNoticeRow = {
  kind: NoticeKind
  type: ChannelType
  target: string
  alert_id: string | null
  severity: AlertSeverity | null
  cue_name: string | null
  alert: unknown | null
  content: unknown | null
  tries: number
  created_at: Date
  secrets: string[] | null
  is_decider: boolean
}

export type BillingAccountRow = {
  email: string
  customer_id: string | null
  subscription_id: string | null
}

export type CalendarCuesRow = {
  cue_id: string
  version: number
  next_run: Date | null
  next_slot: Date | null
  last_slot: Date | null
  excluded_at: Date | null
  schedule_type: ScheduleType
  cron: string | null
  timezone: string
  schedule_rules: object | null
}

export type CalendarsByRevisionRow = {
  revision: number
  dates: string[]
  ranges: { from: string; to: string }[]
}

export type ExecutionsRow = {
  id: string
  account_id: string
  cue_id: string
  transport: Transport
  status: ExecutionStatus
  triggered_by: TriggerKind
  replayed_from: string | null
  scheduled_for: Date
  payload: string | null
  task: string | null
  attempts: number
  lost_attempts: number
  started_at: Date | null
  last_attempt_at: Date | null
  delivered_at: Date | null
  ended_at: Date | null
  attempt_due_at: Date | null
  claimable_at: Date | null
  flight_id: number | null
  http_status: number | null
  error_message: string | null
  response_body: string | null
  claimed_by_worker: string | null
  claimed_at: Date | null
  claim_token: string | null
  last_heartbeat_at: Date | null
  lease_expires_at: Date | null
  outcome_deadline_at: Date | null
  outcome_state: OutcomeState | null
  outcome_success: boolean | null
  outcome_recorded_at: Date | null
  result: string | null
  error: string | null
  metadata: unknown | null
  external_id: string | null
  result_url: string | null
  result_ref: string | null
  result_type: string | null
  summary: string | null
  artifacts: unknown | null
  created_at: Date
  updated_at: Date
  claim_deadline_at: Date | null
  rejected_at: Date | null
  verification_reason: string | null
  payload_id: number | null
  due_at: Date | null
  attempt_ms: number | null
  held_ms: number | null
  missed_reason: MissedReason | null
  lineage_id: string | null
  parents: unknown | null
  is_fixed: boolean | null
  template_truncated: boolean | null
}

export type ClaimExecutionsRow = {
  execution_id: string
  cue_id: string
  cue_name: string
  task: string
  scheduled_for: Date
  lease_expires_at: Date
  claim_token: string
  attempt: number
  payload: string
  template_values: string | null
}

export type ClaimNextRow = {
  claim: number
  execution_id: string | null
  cue_id: string | null
  cue_name: string | null
  task: string | null
  scheduled_for: Date | null
  lease_expires_at: Date | null
  claim_token: string | null
  attempt: number | null
  payload: string | null
  template_values: string | null
}

export type ClaimablePageRow = {
  id: string
  execution_id: string
  cue_id: string
  cue_name: string
  task: string | null
  scheduled_for: Date
  attempt: number
  payload: string
  template_values: string | null
  has_more: boolean
}

export type CreateEachCueRow = {
  is_locked: boolean
  taken_by: string | null
  message: string | null
  id: string | null
  account_id: string
  name: string
  description: string
  key: string
  tags: string[]
  managed_by: string
  status: CueStatus
  paused_at: Date
  paused_by: PauseCause
  pause_reason: string
  paused_until: Date
  completed_reason: Completion
  transport: Transport
  schedule: unknown
  callback: unknown
  payload: string
  retry: unknown
  on_failure: unknown
  delivery: unknown
  alerts: unknown
  catch_up: CatchUp
  overlap: Overlap
  gate: string
  after: unknown
  approval: unknown
  template: boolean
  verification: unknown
  next_run: Date
  next_slot: Date
  last_run: Date
  run_count: number
  fired_count: number
  created_at: Date
  updated_at: Date
  version: number
  revision: number
  last_slot: Date
  await_outcome_set: boolean
  failures: number
}

export type CreateEventEndpointRow = {
  id: string
  secret: string
}

export type CueDetailByKeyRow = {
  id: string
  account_id: string
  name: string
  description: string
  key: string
  tags: string[]
  managed_by: string
  status: CueStatus
  paused_at: Date
  paused_by: PauseCause
  pause_reason: string
  paused_until: Date
  completed_reason: Completion
  transport: Transport
  schedule: unknown
  callback: unknown
  payload: string
  retry: unknown
  on_failure: unknown
  delivery: unknown
  alerts: unknown
  catch_up: CatchUp
  overlap: Overlap
  gate: string
  after: unknown
  approval: unknown
  template: boolean
  verification: unknown
  next_run: Date
  next_slot: Date
  last_run: Date
  run_count: number
  fired_count: number
  created_at: Date
  updated_at: Date
  version: number
  revision: number
  last_slot: Date
  await_outcome_set: boolean
  failures: number
  executions: unknown
  execution_total: number
  missed: unknown
  followers: unknown
  pending_signals: unknown
}

export type DecideApprovalRow = {
  execution_id: string
  decision: ApprovalDecision
  decided_by: string
  decided_at: Date
}

export type DeletionStatusRow = {
  status: 'pending' | 'cancelled' | 'completed'
  due_at: Date | null
}

export type DestinationsRow = {
  host: string
  accounts: number
  attempts: number
  failures: number
  response_p50_ms: number
  response_p95_ms: number
  last_error: string
}

export type DeviceLinkRow = {
  status: DeviceCodeStatus | 'expired'
  email: string
  ip: string | null
  created_at: Date
  account_created_at: Date | null
  active_keys: number
}

export type DiskUseRow = {
  name: string
  size_bytes: number
  since: Date
  bytes_per_day: number
}

export type DisownableAccountRow = {
  email: string
  created_at: Date
  untouched: boolean
}

export type EndEndpointTurnRow = {
  tries: number
  status: EndpointStatus
}

export type EndedExecutionsRow = {
  status: ExecutionStatus
  count: number
}

export type EndedPausesRow = {
  cue_id: string
  account_id: string
  version: number
  paused_until: Date
  last_slot: Date | null
  schedule_type: ScheduleType
  cron: string | null
  at: Date | null
  timezone: string
  schedule_rules: object | null
  calendars: number[] | null
}

export type ExchangeSessionTokenRow = {
  account_id: string
  key_id: string
  scopes: KeyScope[]
}

export type FailureNoticeRow = {
  cue_id: string
  cue_name: string
  execution_id: string
  attempts: number
  last_http_status: number | null
  last_error: string | null
  secrets: string[]
}

export type FindDeviceCodeRow = {
  cell: number
  ip: string
  created_at: Date
  expires_at: Date
}

export type FloodsRow = {
  account_id: string
  email: string
  plan: Plan
  executions: number
  requests: number
}

export type ForecastRow = {
  minute: Date
  slots: number
}

export type GateStateRow = {
  running: number
  waiting: number
  oldest_waiting_seconds: number | null
  next_start_at: Date | null
  breaker_state: unknown | null
  spent: string | null
  reserved: string | null
  period_ends_at: Date | null
}

export type GateStatesRow = {
  running: number
  waiting: number
  oldest_waiting_seconds: number | null
  next_start_at: Date | null
  breaker_state: unknown | null
  spent: string | null
  reserved: string | null
  period_ends_at: Date | null
  parts: unknown
}

export type HeldSecondsRow = {
  reason: string
  seconds: number
}

export type HoldRow = {
  account_id: string | null
  reason: string
  by: string
  since: Date
}

export type JobCountsRow = {
  queue: string
  waiting: number
}

export type LatestResultsRow = {
  cue_id: string
  latest: unknown
}

export type LinkedApprovalRow = {
  account_id: string
  cue_name: string
  scheduled_for: Date
  payload: string
  template_values: string | null
  message: string | null
  expires_at: Date | null
  decision: ApprovalDecision | null
  by_link: boolean
}

export type LookAheadByScheduleRow = {
  cue_ids: string[]
  account_ids: string[]
  versions: number[]
  next_runs: number[]
  transport: Transport
  schedule_type: ScheduleType
  cron: string | null
  timezone: string
  schedule_rules: object | null
  next_slot: Date | null
  calendars: number[] | null
  runs_left: number | null
  catch_up: CatchUp
  outage_until: Date | null
  over_limit: boolean
  window_slots: number | null
  tracked: boolean
}

export type LookWaitingRow = {
  execution_id: string
  account_id: string
  due_at: number
  is_due: boolean
}

export type MailApprovalRequestedRow = {
  email: string
  cue_id: string
  cue_name: string
  execution_id: string
  scheduled_for: Date
  message: string | null
  expires_at: Date | null
  on_expiry: ApprovalExpiry
  reminders: number
  by_link: boolean
}

export type MailChannelTestRow = {
  email: string
  name: string
}

export type MailConfirmAddressRow = {
  email: string
  account_email: string
}

export type MailCueFailedRow = {
  email: string
  cue_id: string
  cue_name: string
  cue_status: CueStatus
  execution_id: string
  status: ExecutionStatus
  scheduled_for: Date
  ended_at: Date
  attempts: number
  http_status: number | null
  error_message: string | null
  quiet: boolean
}

export type MailDeletionRequestedRow = {
  email: string
  due_at: Date
}

export type MailDowngradeRow = {
  email: string
  plan: Plan
  cues: number | null
  paused: string[]
}

export type MailEndpointDisabledRow = {
  email: string
  url: string
  failing_since: Date
  tries: number
  http_status: number | null
  error: string | null
}

export type MailLimitReachedRow = {
  email: string
  plan: Plan
  executions_per_month: number
  grace_ends_at: Date
}

export type MailMagicLinkRow = {
  email: string
  code_hash: Buffer
  code_ciphertext: string
  ip: string | null
  expires_at: Date
}

export type MailPaymentFailedRow = {
  email: string
  plan: Plan
}

export type MailRegisteredRow = {
  email: string
  key_prefix: string
  ip: string | null
  created_at: Date
}

export type MemoryNoticeRow = {
  url: string
  secrets: string[]
  version: number
  changelog: { version: number; changes: string[]; updated_at: string }[]
  updated_at: Date
}

export type NamedCalendarsRow = {
  name: string
  revision: number
  dates: string[]
  ranges: { from: string; to: string }[]
}

export type NextResumedRow = {
  account_id: string
  cue_id: string
}

export type NextWakesRow = {
  waiting_at: Date | null
  deadline_at: Date | null
  due_at: Date | null
  window_at: Date | null
  job_queues: string[]
  job_waits_ms: number[]
  has_flights: boolean
}

export type OpenKeySessionRow = {
  session_id: string
  account_id: string
  email: string
  expires_at: Date
}

export type OpenLimitsRow = {
  account_id: string | null
  open_deliveries: number
}

export type OpenSessionRow = {
  session_id: string
  account_id: string
  email: string
  expires_at: Date
}

export type PassedExclusionsRow = {
  cue_id: string
  account_id: string
  version: number
  excluded_at: Date
  schedule_type: ScheduleType
  cron: string | null
  timezone: string
  schedule_rules: object | null
  calendars: number[] | null
}

export type PassedWindowsRow = {
  cue_id: string
  account_id: string
  version: number
  success_due_at: Date
  schedule_type: ScheduleType
  cron: string | null
  timezone: string
  schedule_rules: object | null
  calendars: number[] | null
  slots: number
  last_success_at: Date | null
}

export type PollDeviceRow = {
  status: DeviceCodeStatus | 'expired'
  email: string | null
  account_id: string | null
  key_ciphertext: string | null
}

export type ReadCostsRow = {
  name: string
  unit: string
  amount: string
}

export type ReadCueDetailsRow = {
  id: string
  account_id: string
  name: string
  description: string
  key: string
  tags: string[]
  managed_by: string
  status: CueStatus
  paused_at: Date
  paused_by: PauseCause
  pause_reason: string
  paused_until: Date
  completed_reason: Completion
  transport: Transport
  schedule: unknown
  callback: unknown
  payload: string
  retry: unknown
  on_failure: unknown
  delivery: unknown
  alerts: unknown
  catch_up: CatchUp
  overlap: Overlap
  gate: string
  after: unknown
  approval: unknown
  template: boolean
  verification: unknown
  next_run: Date
  next_slot: Date
  last_run: Date
  run_count: number
  fired_count: number
  created_at: Date
  updated_at: Date
  version: number
  revision: number
  last_slot: Date
  await_outcome_set: boolean
  failures: number
  executions: unknown
  execution_total: number
  missed: unknown
  followers: unknown
  pending_signals: unknown
}

export type ReadCuesRow = {
  id: string
  account_id: string
  name: string
  description: string
  key: string
  tags: string[]
  managed_by: string
  status: CueStatus
  paused_at: Date
  paused_by: PauseCause
  pause_reason: string
  paused_until: Date
  completed_reason: Completion
  transport: Transport
  schedule: unknown
  callback: unknown
  payload: string
  retry: unknown
  on_failure: unknown
  delivery: unknown
  alerts: unknown
  catch_up: CatchUp
  overlap: Overlap
  gate: string
  after: unknown
  approval: unknown
  template: boolean
  verification: unknown
  next_run: Date
  next_slot: Date
  last_run: Date
  run_count: number
  fired_count: number
  created_at: Date
  updated_at: Date
  version: number
  revision: number
  last_slot: Date
  await_outcome_set: boolean
  failures: number
}

export type ReadDeclaredCuesRow = {
  id: string
  key: string
  status: CueStatus
  transport: Transport
  schedule: unknown
  callback: unknown
  on_failure: unknown
  delivery: unknown | null
  next_run: Date | null
  next_slot: Date | null
  last_slot: Date | null
  version: number
}

export type ReadDestinationsRow = {
  since: Date
  until: Date
  hosts: number
  destinations: unknown
}

export type ReadEchoRow = {
  payload: string
  headers: Record<string, string>
  received_at: Date
}

export type ReadErrorsRow = {
  since: Date
  total: number
  groups: number
  errors: unknown
}

export type ReadEventsRow = {
  place: number | null
  id: string | null
  type: EventType | null
  at: Date | null
  cue_id: string | null
  cue_key: string | null
  execution_id: string | null
  data: string | null
  next_place: number
  has_more: boolean
  truncated: boolean
}

export type ReadExecutionDetailsRow = {
  id: string
  account_id: string
  cue_id: string
  cue_name: string
  transport: Transport
  task: string
  scheduled_for: Date
  due_at: Date
  status: ExecutionStatus
  outcome_state: OutcomeState
  outcome_success: boolean
  triggered_by: TriggerKind
  replayed_from: string
  attempts: number
  http_status: number
  error_message: string
  started_at: Date
  last_attempt_at: Date
  delivered_at: Date
  next_retry: Date
  claimed_by_worker: string
  claimed_at: Date
  last_heartbeat_at: Date
  lease_expires_at: Date
  ended_at: Date
  created_at: Date
  updated_at: Date
  outcome: unknown
  costs: unknown
  metadata: string
  artifacts: string
  result_type: string
  has_evidence: boolean
  payload: string
  response_body: string
  cue_tags: string[]
  reported_error: string
  error_group: string
  held: unknown
  held_ms: number
  missed_reason: MissedReason
  parents: unknown
  approval: unknown
  template_truncated: boolean
  template_values: string
  attempt_log: unknown
  followers: unknown
}

export type ReadHistoryRow = {
  complete_from: Date
  days: unknown
  gaps: unknown
}

export type ReadMemoryRow = {
  version: number
  plan: Plan
  cues: string[]
  key_prefix: string | null
  changelog: { version: number; changes: string[]; updated_at: string }[]
  updated_at: Date
}

export type ReadNoticeRow = {
  kind: NoticeKind
  type: ChannelType
  target: string
  alert_id: string | null
  severity: AlertSeverity | null
  cue_name: string | null
  alert: unknown | null
  content: unknown | null
  tries: number
  created_at: Date
  secrets: string[] | null
  is_decider: boolean
}

export type ReadOperatorRow = {
  postgres: string
  size_bytes: number
  release: number
  engines: unknown
  queues: unknown
  connections: unknown
  connection_limit: number
  partitions: unknown
  accounts: unknown
  migrations: unknown
  migration_count: number
}

export type ReadOverviewRow = {
  since: Date
  running: number
  succeeded: number
  failed: number
  by_status: unknown
  lateness_p50_ms: number | null
  lateness_p99_ms: number | null
  volume: unknown
  per_minute: unknown
  failing: unknown
  waiting: unknown
  waiting_for_person: unknown
  paused: unknown
  alerts: unknown
  upcoming: unknown
}

export type ReadUsageRow = {
  plan: Plan
  cues_used: number
  cues_active: number
  cue_limit: number | null
  executions_used: number
  execution_limit: number | null
  reported: number
  succeeded: number
  failed: number
  requests_used: number
  requests_per_minute: number | null
  schedules: unknown
}

export type RefreshSessionRow = {
  session_id: string
  account_id: string
  email: string
  expires_at: Date
}

export type AccountsRow = {
  id: string
  email: string
  plan: Plan
  limits: unknown
  webhook_secret: string
  previous_webhook_secret: string | null
  previous_webhook_secret_until: Date | null
  webhook_authorization: WebhookAuthorization
  memory_block_enabled: boolean
  alert_webhook_url: string | null
  alert_webhook_secret: string | null
  previous_alert_webhook_secret: string | null
  previous_alert_webhook_secret_until: Date | null
  limit_reached_at: Date | null
  created_at: Date
  updated_at: Date
  stripe_customer_id: string | null
  email_confirmed_at: Date | null
  approvals_by_link: boolean
}

export type ReplicasRow = {
  name: string
  is_alive: boolean
  version: string
  started_at: Date
  last_seen_at: Date
  stopped_at: Date
  lateness_ms: number
  open_deliveries: number
  engine_id: string
}

export type RevealKeyRow = {
  key_prefix: string
  ciphertext: string
}

export type RunOperationRow = {
  status: OperationStatus
  wait_ms: number
}

export type ServiceHealthRow = {
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

export type StartFollowersRow = {
  after: string | null
  is_behind: boolean
}

export type StoredResponseRow = {
  status: number
  body: string
}

export type WhoChangedRow = {
  at: Date
  event: AuditEvent
  actor: string
  detail: unknown
}

export type WhyLateRow = {
  cue_id: string
  account_id: string
  due_at: Date
  late_by: string
  held: string
  account_full: boolean
  locked_by: string
  passed_over: boolean
  over_limit: boolean
  paused: string
  no_engine: boolean
  previous_run: string
  no_worker: boolean
  gate: string
}

export type Functions = {
  abortOperation: (args: { account_id: string; operation_id: string }) => Promise<OperationsRow>
  acknowledgeAlert: (args: { account_id: string; alert_id: string }) => Promise<void>
  addCueLimitEvent: (args: { account_id: string }) => Promise<void>
  addJob: (args: { queue: string; data?: object | string | null; id?: string | null; start_after?: Date | null; singleton_key?: string | null }) => Promise<void>
  addSessionToken: (args: { account_id: string; token_hash: Buffer; may_approve?: boolean | null }) => Promise<Date>
  admit: (args: { key_hashes: (Buffer | null)[]; session_ids: (string | null)[]; execution_ids: (string | null)[]; addresses: string[]; scopes: (string | null)[]; limited?: boolean | null }) => Promise<AdmitRow[]>
  admitHeld: (args: { after?: string | null; limit?: number | null }) => Promise<string>
  alertNotice: (args: { alert_id: string }) => Promise<AlertNoticeRow | undefined>
  alertWebhookSecret: (args: { account_id: string; actor?: string | null; ip?: string | null }) => Promise<string>
  allow: (args: { subject: string; limit: number; window?: string | null }) => Promise<AllowRow>
  applyCues: (args: { account_id: string; set: string; cues: object | string; keys: string[]; prune?: boolean | null; take_over?: boolean | null; dry_run?: boolean | null; actor?: string | null; gates?: object | string | null; may_approve?: boolean | null }) => Promise<ApplyCuesRow[]>
  applySubscription: (args: { event_id: string; type: string; subscription_id: string; customer_id: string; account_id: string | null; plan: Plan; status: string; at: Date; first?: boolean | null; version?: number | null }) => Promise<ApplySubscriptionRow>
  approveDevice: (args: { code_hash: Buffer; link_id: string; account_id: string; key_hash: Buffer; prefix: string; ciphertext: string; ip?: string | null }) => Promise<boolean>
  attachEvidence: (args: { account_id: string; execution_id: string; external_id?: string | null; result_url?: string | null; result_ref?: string | null; result_type?: string | null; summary?: string | null; artifacts?: object | string | null; metadata?: object | string | null; claim_token?: string | null; costs?: object | string | null }) => Promise<AttachEvidenceRow>
  beatEngine: (args: { engine_id: string; version: string; lateness_ms?: number | null; open_deliveries?: number | null; missed_after?: string | null; name?: string | null; full_accounts?: string[] | null; passed_over?: string[] | null }) => Promise<BeatEngineRow>
  beginAttempts: (args: { execution_ids: string[]; lease?: string | null }) => Promise<BegunAttempt[]>
  beginChannelTest: (args: { account_id: string; name: string }) => Promise<BeginChannelTestRow>
  beginEndpointTest: (args: { account_id: string; endpoint_id: string }) => Promise<BeginEndpointTestRow>
  beginEndpointTurn: (args: { endpoint_id: string; limit?: number | null; answer_within?: string | null }) => Promise<BeginEndpointTurnRow[]>
  beginIdempotent: (args: { account_id: string; route: string; key: string; request_hash: Buffer }) => Promise<BeginIdempotentRow | undefined>
  beginIssue: (args: { ticket_id: number }) => Promise<BeginIssueRow | undefined>
  beginNotice: (args: { notice_id: string; answer_within?: string | null }) => Promise<BeginNoticeRow | undefined>
  beginTest: (args: { account_id: string; cue_id?: string | null; url?: string | null; payload?: string | null; may_approve?: boolean | null }) => Promise<BegunAttempt>
  billingAccount: (args: { account_id: string }) => Promise<BillingAccountRow | undefined>
  calendarCues: (args: { account_id: string; name: string; cue_ids?: string[] | null }) => Promise<CalendarCuesRow[]>
  calendarsByRevision: (args: { revisions: number[] }) => Promise<CalendarsByRevisionRow[]>
  cancelDeletion: (args: { deletion_id: string; ip?: string | null }) => Promise<void>
  cancelExecution: (args: { account_id: string; execution_id: string; running?: boolean | null; actor?: string | null; source?: ApprovalSource | null }) => Promise<ExecutionsRow>
  catchUpCues: (args: { cues: object | string }) => Promise<number>
  changePlan: (args: { account_id: string; plan?: Plan | null; limits?: object | string | null; actor?: string | null; ip?: string | null }) => Promise<string[]>
  checkSecrets: (args: { encryption_key_ids: string[]; session_secret: string; changed?: boolean | null }) => Promise<string[]>
  claimAddress: (args: { email: string; cell: number; address?: string | null }) => Promise<number>
  claimExecutions: (args: { account_id: string; worker_id: string; execution_id?: string | null; tasks?: string[] | null; limit?: number | null; lease?: string | null }) => Promise<ClaimExecutionsRow[]>
  claimNext: (args: { claims: object | string; lease?: string | null; tries?: number | null }) => Promise<ClaimNextRow[]>
  claimablePage: (args: { account_id: string; task?: string | null; limit?: number | null; bytes?: number | null }) => Promise<ClaimablePageRow[]>
  confirmAddress: (args: { address_id: string }) => Promise<void>
  confirmEmail: (args: { account_id: string }) => Promise<void>
  countAccounts: (args: object) => Promise<number>
  createCue: (args: { account_id: string; cue: object | string; next_run: Date | null; next_slot?: Date | null; actor?: string | null }) => Promise<string>
  createDeviceCode: (args: { code_hash: Buffer; address?: string | null; ip?: string | null }) => Promise<void>
  createEachCue: (args: { account_ids: string[]; cues: object | string; next_runs: (Date | null)[]; next_slots?: (Date | null)[] | null; actors?: (string | null)[] | null }) => Promise<CreateEachCueRow[]>
  createEventEndpoint: (args: { account_id: string; url: string; types: EventType[]; tag?: string | null; cue_ids?: string[] | null; description?: string | null; actor?: string | null; ip?: string | null }) => Promise<CreateEventEndpointRow>
  createKey: (args: { account_id: string; label: string; key_hash: Buffer; prefix: string; scopes?: KeyScope[] | null; actor?: string | null; ip?: string | null; may_approve?: boolean | null }) => Promise<string>
  createOperation: (args: { account_id: string; type: OperationType; targets: object | string; missing?: string[] | null; name?: string | null; rate_per_minute?: number | null; settings?: object | string | null; states?: object | string | null; actor?: string | null; may_approve?: boolean | null }) => Promise<OperationsRow>
  createTicket: (args: { account_id: string; subject: string; message: string; severity?: TicketSeverity | null; type?: TicketType | null; tracked?: boolean | null }) => Promise<number>
  cueDetailByKey: (args: { account_id: string; key: string }) => Promise<CueDetailByKeyRow | undefined>
  cueIdByKey: (args: { account_id: string; key: string }) => Promise<string | null>
  databaseTime: (args: object) => Promise<number>
  decideApproval: (args: { account_id: string; execution_id: string; decision: ApprovalDecision; reason?: string | null; source?: ApprovalSource | null; actor?: string | null; ip?: string | null }) => Promise<DecideApprovalRow>
  deleteCalendar: (args: { account_id: string; name: string }) => Promise<void>
  deleteChannel: (args: { account_id: string; name: string; actor?: string | null; ip?: string | null }) => Promise<void>
  deleteCue: (args: { account_id: string; cue_id: string; version?: number | null; actor?: string | null; may_approve?: boolean | null }) => Promise<void>
  deleteCues: (args: { account_id: string; cue_ids: string[]; actor?: string | null; may_approve?: boolean | null }) => Promise<string[]>
  deleteDueAccounts: (args: { batch?: number | null }) => Promise<number>
  deleteEventEndpoint: (args: { account_id: string; endpoint_id: string; actor?: string | null; ip?: string | null }) => Promise<void>
  deleteGate: (args: { account_id: string; key: string; actor?: string | null; ip?: string | null }) => Promise<void>
  deleteOldExecutions: (args: { before: Date; batch?: number | null }) => Promise<number>
  deleteWorker: (args: { account_id: string; worker_id: string }) => Promise<void>
  deletionStatus: (args: { deletion_id: string }) => Promise<DeletionStatusRow>
  describeSession: (args: { account_id: string; session_id: string; user_agent: string; ip?: string | null }) => Promise<void>
  destinations: (args: object) => Promise<DestinationsRow[]>
  deviceCodeStatus: (args: { code_hash: Buffer }) => Promise<DeviceCodeStatus | 'expired'>
  deviceLink: (args: { code_hash: Buffer; link_id: string }) => Promise<DeviceLinkRow | undefined>
  diskUse: (args: object) => Promise<DiskUseRow[]>
  dismissExecution: (args: { account_id: string; execution_id: string }) => Promise<ExecutionsRow>
  disownAccount: (args: { account_id: string; ip?: string | null }) => Promise<Date | null>
  disownableAccount: (args: { account_id: string }) => Promise<DisownableAccountRow | undefined>
  disownedUntil: (args: { account_id: string }) => Promise<Date>
  dropOldEvents: (args: { before: Date }) => Promise<string[]>
  dropOldExecutions: (args: { before: Date }) => Promise<string[]>
  enableEventEndpoint: (args: { account_id: string; endpoint_id: string; skips: boolean; actor?: string | null; ip?: string | null }) => Promise<boolean>
  endEndpointTurn: (args: { endpoint_id: string; turn: number; place?: number | null; http_status?: number | null; error?: string | null; retry_after_ms?: number | null }) => Promise<EndEndpointTurnRow | undefined>
  endFlights: (args: { flight_ids: number[] }) => Promise<void>
  endIdempotent: (args: { account_id: string; route: string; key: string; request_hash: Buffer; status: number; body: string }) => Promise<void>
  endIssue: (args: { ticket_id: number; url: string }) => Promise<void>
  endMemoryNotice: (args: { subscription_id: string; version: number | null; url?: string | null }) => Promise<void>
  endNotice: (args: { notice_id: string; tries: number; http_status?: number | null; error?: string | null; is_final?: boolean | null; retry_after_ms?: number | null }) => Promise<NoticeState | null>
  endSnoozes: (args: { limit?: number | null }) => Promise<number>
  endedExecutions: (args: object) => Promise<EndedExecutionsRow[]>
  endedPauses: (args: { limit?: number | null; skip?: string[] | null }) => Promise<EndedPausesRow[]>
  exchangeSessionToken: (args: { token_hash: Buffer; client_id: string; label: string; key_hash: Buffer; prefix: string; ip?: string | null }) => Promise<ExchangeSessionTokenRow>
  executionsUsed: (args: { account_id: string }) => Promise<number>
  expireOutcomes: (args: { limit?: number | null }) => Promise<number>
  expireSignals: (args: { limit?: number | null }) => Promise<number>
  extendFlights: (args: { flight_ids: number[]; lease?: string | null }) => Promise<number[]>
  failureNotice: (args: { execution_id: string }) => Promise<FailureNoticeRow | undefined>
  failureNoticeRetryAt: (args: { execution_id: string; tries: number; retry_after_ms?: number | null }) => Promise<Date>
  findAddress: (args: { email: string }) => Promise<number>
  findDeviceCode: (args: { code_hash: Buffer }) => Promise<FindDeviceCodeRow[]>
  finishAttempts: (args: { execution_ids: string[]; attempts: number[]; cue_ids: string[]; started_at: Date[]; duration_ms: number[]; http_status: (number | null)[]; bodies: (string | null)[] }) => Promise<number>
  fireCue: (args: { account_id: string; cue_id: string; payload?: string | null; task?: string | null; version?: number | null; send_at?: Date | null; idempotency_key?: string | null; request_hash?: string | null; overlap?: Overlap | null; actor?: string | null }) => Promise<ExecutionsRow>
  fireTrackedCues: (args: { cue_ids: string[]; versions: number[]; expected: Date[]; next: (Date | null)[]; success_due?: (Date | null)[] | null; missed_after?: string | null; next_slots?: (Date | null)[] | null }) => Promise<number>
  floods: (args: object) => Promise<FloodsRow[]>
  foldUsage: (args: object) => Promise<number>
  forecast: (args: object) => Promise<ForecastRow[]>
  gateState: (args: { account_id: string; gate: string }) => Promise<GateStateRow | undefined>
  gateStates: (args: { account_id: string; key: string }) => Promise<GateStatesRow | undefined>
  goneAttempts: (args: { execution_ids: string[]; attempts: number[] }) => Promise<string[]>
  handOverDeviceCode: (args: { code_hash: Buffer; cell: number }) => Promise<number>
  hasLiveWorker: (args: { account_id: string }) => Promise<boolean>
  heartbeatExecution: (args: { account_id: string; execution_id: string; worker_id?: string | null; claim_token?: string | null; lease?: string | null }) => Promise<Date>
  heartbeatWorker: (args: { account_id: string; worker_id: string; handlers: string[] }) => Promise<void>
  heldAccounts: (args: object) => Promise<(string | null)[]>
  heldAttempts: (args: { execution_ids: string[]; cue_ids: string[] }) => Promise<string[]>
  heldReason: (args: { account_id?: string | null }) => Promise<string | null>
  heldSeconds: (args: object) => Promise<HeldSecondsRow[]>
  hold: (args: { reason: string; account_id?: string | null; actor?: string | null }) => Promise<HoldRow>
  isEmailConfirmed: (args: { account_id: string }) => Promise<boolean>
  jobCounts: (args: { limit?: number | null }) => Promise<JobCountsRow[]>
  lastTakenAt: (args: object) => Promise<Date | null>
  latestPlace: (args: object) => Promise<number>
  latestResults: (args: { cue_ids: string[] }) => Promise<LatestResultsRow[]>
  linkedApproval: (args: { execution_id: string }) => Promise<LinkedApprovalRow | undefined>
  lookAheadBySchedule: (args: { until: Date; limit?: number | null; skip_accounts?: string[] | null }) => Promise<LookAheadByScheduleRow[]>
  lookWaiting: (args: { after: number; after_id: string; limit?: number | null }) => Promise<LookWaitingRow[]>
  loseAttempts: (args: { execution_ids: string[]; flight_id: number; error: string }) => Promise<number>
  mailApprovalRequested: (args: { account_id: string; execution_id: string; counted?: boolean | null }) => Promise<MailApprovalRequestedRow | undefined>
  mailChannelTest: (args: { channel_id: string }) => Promise<MailChannelTestRow | undefined>
  mailConfirmAddress: (args: { address_id: string }) => Promise<MailConfirmAddressRow | undefined>
  mailCueFailed: (args: { account_id: string; execution_id: string; counted?: boolean | null }) => Promise<MailCueFailedRow | undefined>
  mailDeletionRequested: (args: { deletion_id: string }) => Promise<MailDeletionRequestedRow | undefined>
  mailDowngrade: (args: { account_id: string; cue_ids: string[] }) => Promise<MailDowngradeRow | undefined>
  mailEndpointDisabled: (args: { endpoint_id: string }) => Promise<MailEndpointDisabledRow | undefined>
  mailLimitReached: (args: { account_id: string }) => Promise<MailLimitReachedRow | undefined>
  mailMagicLink: (args: { link_id: string }) => Promise<MailMagicLinkRow | undefined>
  mailPaymentFailed: (args: { account_id: string }) => Promise<MailPaymentFailedRow | undefined>
  mailRegistered: (args: { account_id: string; key_id: string }) => Promise<MailRegisteredRow | undefined>
  maintainPartitions: (args: { months?: number | null }) => Promise<number>
  meetApprovals: (args: { limit?: number | null }) => Promise<number>
  memoryNotice: (args: { subscription_id: string; release: string }) => Promise<MemoryNoticeRow | undefined>
  missUnclaimed: (args: { limit?: number | null }) => Promise<number>
  moveCalendarCues: (args: { cue_ids: string[]; versions: number[]; expected: (Date | null)[]; next_runs: (Date | null)[]; next_slots: (Date | null)[]; excluded_at: (Date | null)[]; later_than?: Date | null }) => Promise<string[]>
  moveWindows: (args: { cue_ids: string[]; versions: number[]; expected: Date[]; next: (Date | null)[]; missed: boolean[] }) => Promise<number>
  namedCalendars: (args: { account_id: string; names: string[] }) => Promise<NamedCalendarsRow[]>
  newAccountId: (args: object) => Promise<string>
  nextClaimable: (args: { account_id: string }) => Promise<Date | null>
  nextResumed: (args: { operation_id: string }) => Promise<NextResumedRow[]>
  nextWakes: (args: object) => Promise<NextWakesRow>
  noteFailedPayment: (args: { event_id: string; type: string; customer_id: string; subscription_id?: string | null; next_attempt_at?: Date | null }) => Promise<boolean>
  noteMemoryRelease: (args: { release: string }) => Promise<number>
  noteUnattended: (args: object) => Promise<number>
  noticeEvents: (args: object) => Promise<void>
  openKeySession: (args: { key_hash: Buffer; lifetime?: string | null; ip?: string | null }) => Promise<OpenKeySessionRow>
  openLimits: (args: { account_ids: string[] }) => Promise<OpenLimitsRow[]>
  openLocalAccount: (args: { account_id: string; email: string; key_hash: Buffer; prefix: string; ciphertext: string; token_hash: Buffer }) => Promise<boolean>
  openSession: (args: { token_hash: Buffer; lifetime?: string | null; ip?: string | null }) => Promise<OpenSessionRow>
  passedExclusions: (args: { limit?: number | null; skip?: string[] | null }) => Promise<PassedExclusionsRow[]>
  passedWindows: (args: { limit?: number | null; skip?: string[] | null }) => Promise<PassedWindowsRow[]>
  pauseGate: (args: { account_id: string; key: string; reason?: string | null; until?: Date | null; actor?: string | null; ip?: string | null }) => Promise<void>
  pollDevice: (args: { code_hash: Buffer; token_hash: Buffer; limited?: boolean | null }) => Promise<PollDeviceRow>
  previewValues: (args: { account_id: string; cue: object | string; scheduled_for: Date; cue_id?: string | null }) => Promise<string>
  prune: (args: object) => Promise<void>
  pruneDeadLetters: (args: { batch?: number | null }) => Promise<number>
  pruneIdempotencyKeys: (args: { batch?: number | null }) => Promise<number>
  prunePayloads: (args: { before: Date; batch?: number | null }) => Promise<number>
  publishEvents: (args: { limit?: number | null; most_per_day?: number | null }) => Promise<number>
  purgeCue: (args: { cue_id: string; batch?: number | null }) => Promise<number>
  putCalendar: (args: { account_id: string; name: string; description: string | null; dates: string[]; ranges: object | string; revision?: number | null }) => Promise<number>
  putChannel: (args: { account_id: string; name: string; type: ChannelType; target: string; types?: EventType[] | null; severity?: AlertSeverity | null; tags?: string[] | null; is_default?: boolean | null; enabled?: boolean | null; actor?: string | null; ip?: string | null; may_approve?: boolean | null }) => Promise<string>
  putDeviceCode: (args: { code_hash: Buffer; ip: string; created_at: Date; expires_at: Date }) => Promise<void>
  putGate: (args: { account_id: string; key: string; gate: object | string; actor?: string | null; ip?: string | null }) => Promise<string>
  queueOperation: (args: { operation_id: string; delay?: string | null }) => Promise<void>
  readCosts: (args: { account_id: string; by: string; from: Date; to: Date; limit?: number | null }) => Promise<ReadCostsRow[]>
  readCueDetails: (args: { account_ids: string[]; cue_ids: string[] }) => Promise<ReadCueDetailsRow[]>
  readCues: (args: { account_ids: string[]; cue_ids: string[] }) => Promise<ReadCuesRow[]>
  readDeclaredCues: (args: { account_id: string; keys: string[] }) => Promise<ReadDeclaredCuesRow[]>
  readDestinations: (args: { account_id: string; from?: Date | null; to?: Date | null }) => Promise<ReadDestinationsRow>
  readEcho: (args: { token: string }) => Promise<ReadEchoRow | undefined>
  readErrors: (args: { account_id: string; from?: Date | null; to?: Date | null }) => Promise<ReadErrorsRow>
  readEvents: (args: { account_id: string; after?: number | null; types?: EventType[] | null; cue_ids?: string[] | null; tags?: string[] | null; limit?: number | null; scan?: number | null }) => Promise<ReadEventsRow[]>
  readExecutionDetails: (args: { account_ids: string[]; execution_ids: string[] }) => Promise<ReadExecutionDetailsRow[]>
  readHistory: (args: { account_id: string; cue_id: string; bounds: Date[] }) => Promise<ReadHistoryRow[]>
  readMemory: (args: { account_id: string; release: string; reader?: string | null }) => Promise<ReadMemoryRow>
  readNotice: (args: { notice_id: string }) => Promise<ReadNoticeRow | undefined>
  readOperator: (args: object) => Promise<ReadOperatorRow>
  readOverview: (args: { account_id: string; from?: Date | null }) => Promise<ReadOverviewRow>
  readUsage: (args: { account_id: string; actor: string }) => Promise<ReadUsageRow | undefined>
  recordExclusions: (args: { cues: object | string }) => Promise<number>
  recoverFlights: (args: { limit?: number | null; asked_at?: Date | null }) => Promise<number>
  recoverLeases: (args: { limit?: number | null }) => Promise<number>
  recoverStuck: (args: object) => Promise<number>
  refreshSession: (args: { account_id: string; actor: string; ip?: string | null }) => Promise<RefreshSessionRow>
  refuseDueCues: (args: { cue_ids: string[]; versions: number[]; expected: Date[]; next: (Date | null)[]; next_slots?: (Date | null)[] | null }) => Promise<number>
  regenerateAlertWebhookSecret: (args: { account_id: string; overlap_seconds?: number | null; actor?: string | null; ip?: string | null }) => Promise<string>
  regenerateKey: (args: { account_id: string; key_hash: Buffer; prefix: string; ciphertext: string; actor?: string | null; ip?: string | null }) => Promise<string | null>
  regenerateWebhookSecret: (args: { account_id: string; overlap_seconds?: number | null; actor?: string | null; ip?: string | null }) => Promise<string>
  register: (args: { account_id: string; email: string; key_hash: Buffer; prefix: string; ciphertext: string; address?: string | null; ip?: string | null }) => Promise<AccountsRow | undefined>
  release: (args: { account_id?: string | null; actor?: string | null }) => Promise<boolean>
  releaseExecution: (args: { account_id: string; execution_id: string; claim_token: string }) => Promise<void>
  releaseFlight: (args: { flight_id: number; execution_ids: string[] }) => Promise<number>
  releaseGates: (args: { account_ids: string[]; gates: string[] }) => Promise<void>
  renameKey: (args: { account_id: string; key_id: string; label: string; actor?: string | null; ip?: string | null }) => Promise<void>
  repairQueues: (args: { after?: string | null; limit?: number | null }) => Promise<string | null>
  replayExecution: (args: { account_id: string; execution_id: string; overlap?: Overlap | null; actor?: string | null }) => Promise<ExecutionsRow>
  replicas: (args: object) => Promise<ReplicasRow[]>
  reportOutcome: (args: { account_id: string; execution_id: string; success: boolean; result?: string | null; error?: string | null; metadata?: object | string | null; external_id?: string | null; result_url?: string | null; result_type?: string | null; summary?: string | null; artifacts?: object | string | null; claim_token?: string | null; result_ref?: string | null; costs?: object | string | null }) => Promise<ExecutionsRow>
  requestDeletion: (args: { account_id: string; actor?: string | null; ip?: string | null }) => Promise<Date>
  requeueAttempts: (args: { limit?: number | null }) => Promise<number>
  requeueNotices: (args: { limit?: number | null }) => Promise<number>
  requeueOperations: (args: object) => Promise<number>
  requeuePurges: (args: object) => Promise<number>
  resumeCues: (args: { cue_ids: string[]; versions: number[]; next_runs: (Date | null)[]; next_slots?: (Date | null)[] | null }) => Promise<number>
  resumeGate: (args: { account_id: string; key: string; actor?: string | null; ip?: string | null }) => Promise<void>
  revealKey: (args: { account_id: string; encryption_key_ids: string[]; actor?: string | null; ip?: string | null }) => Promise<RevealKeyRow>
  revokeKey: (args: { account_id: string; key_id: string; actor?: string | null; ip?: string | null }) => Promise<Date>
  revokeSession: (args: { account_id: string; session_id: string; actor?: string | null; ip?: string | null }) => Promise<void>
  revokeSessions: (args: { account_id: string; all: boolean; actor?: string | null; ip?: string | null }) => Promise<number>
  runOperation: (args: { operation_id: string; resumed?: object | string | null }) => Promise<RunOperationRow | undefined>
  sendDeviceLink: (args: { code_hash: Buffer; email: string; code_ciphertext: string }) => Promise<void>
  serviceHealth: (args: object) => Promise<ServiceHealthRow>
  setCustomer: (args: { account_id: string; customer_id: string }) => Promise<string>
  setPlans: (args: { plans: object | string }) => Promise<void>
  settleAttempts: (args: { execution_ids: string[]; attempts: number[]; cue_ids: string[]; started_at: Date[]; duration_ms: number[]; http_status: (number | null)[]; bodies: (string | null)[]; headers: (unknown | null)[]; errors: (string | null)[]; retry_after_ms: (number | null)[]; gone: boolean[]; reports: (unknown | null)[]; omitted: (string | null)[] }) => Promise<number>
  signalExecution: (args: { account_id: string; execution_id: string; reason?: string | null; actor?: string | null }) => Promise<ExecutionsRow>
  slotsWithoutExecution: (args: { cue_id: string; slots: Date[] }) => Promise<Date[]>
  snoozeAlert: (args: { account_id: string; alert_id: string; until: Date }) => Promise<void>
  startFollowers: (args: { after?: string | null; limit?: number | null }) => Promise<StartFollowersRow>
  stopEngine: (args: { engine_id: string }) => Promise<void>
  storeEcho: (args: { token: string; payload: string; headers: object | string; address?: string | null }) => Promise<void>
  storedResponse: (args: { account_id: string; route: string; key: string; request_hash: Buffer }) => Promise<StoredResponseRow | undefined>
  subscribe: (args: { account_id: string; source: string; subscribes: boolean }) => Promise<void>
  subscribeMemory: (args: { account_id: string; agent_id: string; callback_url: string; release: string }) => Promise<void>
  takeDueCues: (args: { cue_ids: string[]; versions: number[]; expected: Date[]; next: (Date | null)[]; success_due?: (Date | null)[] | null; missed_after?: string | null; lease?: string | null; next_slots?: (Date | null)[] | null }) => Promise<BegunAttempt[]>
  takeLastSlots: (args: { cue_ids: string[]; versions: number[]; expected: Date[]; missed_after?: string | null; lease?: string | null }) => Promise<BegunAttempt[]>
  updateAccount: (args: { account_id: string; changes: object | string; actor?: string | null; ip?: string | null; may_approve?: boolean | null }) => Promise<void>
  updateCue: (args: { account_id: string; cue_id: string; version: number; changes: object | string; next_run?: Date | null; next_slot?: Date | null; actor?: string | null; may_approve?: boolean | null }) => Promise<boolean>
  verifyOutcome: (args: { account_id: string; execution_id: string; state: OutcomeState; reason?: string | null }) => Promise<ExecutionsRow>
  webhookSecret: (args: { account_id: string }) => Promise<string>
  whoChanged: (args: { cue_id: string }) => Promise<WhoChangedRow[]>
  whyLate: (args: { cue_id: string }) => Promise<WhyLateRow[]>
}
