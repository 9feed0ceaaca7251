/**
 * What the catalog doesn't know about the results of functions. Everything else about their types is read from it; a name in this file that
 * no function has fails `npm run generate`.
 */

/** Functions that return exactly one row, or raise an error. */
export const single = new Set(
  `abort_operation allow apply_subscription attach_evidence beat_engine begin_channel_test begin_endpoint_test begin_test cancel_execution create_event_endpoint create_operation decide_approval deletion_status
   dismiss_execution exchange_session_token fire_cue hold next_wakes open_key_session open_session poll_device read_destinations
   read_errors read_memory read_operator read_overview refresh_session replay_execution report_outcome reveal_key
   service_health signal_execution start_followers verify_outcome`.split(/\s+/)
)

/** Columns that may be null. `row`: the function returns one row or none. `value`: its value may be null. */
export const nullable: Record<string, string> = {
  admit: 'error account_id actor scopes plan limits rate_limit rate_remaining retry_after',
  alert_notice: 'row execution_id',
  allow: 'retry_after',
  apply_subscription: 'version',
  apply_cues: 'before after error message',
  begin_idempotent: 'row',
  begin_issue: 'row',
  begin_endpoint_turn: 'cue_id cue_key execution_id',
  begin_notice: 'row alert_id severity cue_name alert content secrets',
  begin_channel_test: 'secrets',
  billing_account: 'row customer_id subscription_id',
  create_each_cue: 'id taken_by message',
  cue_detail_by_key: 'row',
  cue_id_by_key: 'value',
  deletion_status: 'due_at',
  device_link: 'row ip account_created_at',
  disown_account: 'value',
  disownable_account: 'row',
  end_endpoint_turn: 'row',
  end_notice: 'value',
  ended_pauses: 'last_slot cron at schedule_rules calendars',
  failure_notice: 'row last_http_status last_error',
  claim_next: 'execution_id cue_id cue_name task scheduled_for lease_expires_at claim_token attempt payload template_values',
  claimable_page: 'task template_values',
  look_ahead_by_schedule: 'cron schedule_rules next_slot calendars runs_left outage_until window_slots',
  linked_approval: 'row template_values message expires_at decision',
  mail_approval_requested: 'row message expires_at',
  mail_channel_test: 'row',
  mail_confirm_address: 'row',
  mail_cue_failed: 'row http_status error_message',
  mail_deletion_requested: 'row',
  mail_downgrade: 'row cues',
  mail_endpoint_disabled: 'row http_status error',
  mail_limit_reached: 'row',
  mail_magic_link: 'row ip',
  mail_payment_failed: 'row',
  mail_registered: 'row ip',
  memory_notice: 'row',
  gate_state: 'row oldest_waiting_seconds next_start_at breaker_state spent reserved period_ends_at',
  gate_states: 'row oldest_waiting_seconds next_start_at breaker_state spent reserved period_ends_at',
  held_accounts: 'value',
  held_reason: 'value',
  hold: 'account_id',
  last_taken_at: 'value',
  next_claimable: 'value',
  next_wakes: 'waiting_at deadline_at due_at window_at',
  open_limits: 'account_id',
  passed_windows: 'cron schedule_rules calendars last_success_at',
  passed_exclusions: 'cron schedule_rules calendars',
  calendar_cues: 'next_run next_slot last_slot excluded_at cron schedule_rules',
  poll_device: 'email account_id key_ciphertext',
  read_notice: 'row alert_id severity cue_name alert content secrets',
  read_events: 'place id type at cue_id cue_key execution_id data',
  read_declared_cues: 'next_run next_slot last_slot delivery',
  read_echo: 'row',
  read_usage: 'row cue_limit execution_limit requests_per_minute',
  read_memory: 'key_prefix',
  read_overview: 'lateness_p50_ms lateness_p99_ms',
  regenerate_key: 'value',
  register: 'row',
  repair_queues: 'value',
  start_followers: 'after',
  stored_response: 'row',
  'cue.begun_attempt': 'api_key template_values',
  claim_executions: 'template_values',
  run_operation: 'row',
  service_health: 'last_seen_at lateness_ms oldest_pending_at last_heartbeat'
}

/** Arguments without a default that may be null; for an array, its elements. */
export const nullableArguments: Record<string, string> = {
  admit: 'key_hashes session_ids execution_ids scopes',
  apply_subscription: 'account_id',
  create_cue: 'next_run',
  create_each_cue: 'next_runs next_slots actors',
  end_memory_notice: 'version',
  finish_attempts: 'http_status bodies',
  fire_tracked_cues: 'next next_slots success_due',
  move_calendar_cues: 'expected next_runs next_slots excluded_at',
  move_windows: 'next',
  put_calendar: 'description',
  refuse_due_cues: 'next next_slots',
  resume_cues: 'next_runs next_slots',
  settle_attempts: 'http_status bodies headers errors retry_after_ms reports omitted',
  take_due_cues: 'next success_due next_slots'
}

/** Types of JSON and text values, by column or by function and column. */
export const shapes: Record<string, string> = {
  schedule_rules: 'object',
  'named_calendars.ranges': '{ from: string; to: string }[]',
  'calendars_by_revision.ranges': '{ from: string; to: string }[]',
  callback_headers: 'Record<string, string>',
  changelog: '{ version: number; changes: string[]; updated_at: string }[]',
  'read_echo.headers': 'Record<string, string>',
  'alert_notice.metadata': 'object',
  device_code_status: "DeviceCodeStatus | 'expired'",
  'device_link.status': "DeviceCodeStatus | 'expired'",
  'poll_device.status': "DeviceCodeStatus | 'expired'",
  'deletion_status.status': "'pending' | 'cancelled' | 'completed'",
  'exchange_session_token.scopes': 'KeyScope[]'
}
