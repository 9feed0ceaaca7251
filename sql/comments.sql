-- Descriptions of all types, tables and columns, as shown by \dT+ and \d+. Loaded by every migrate, so that rewording needs no migration.
-- A new table or column gets its lines here; functions and views are described in their own files.

-- Types -----------------------------------------------------------------------------------------------------------------------------------

comment on type cue.plan is 'Plan of an account. Its limits are in the table plans.';
comment on type cue.webhook_authorization is
  'Bearer token sent with callbacks: a token for the execution only, or the account''s default key.';
comment on type cue.key_origin is 'How an API key was created.';
comment on type cue.key_scope is 'Permission of an API key.';
comment on type cue.audit_event is 'Type of an audit log entry.';
comment on type cue.transport is 'How an execution reaches its handler: sent to a callback (webhook), or claimed by a worker.';
comment on type cue.schedule_type is 'recurring has cron expressions or a regular interval; once has a single instant, at.';
comment on type cue.cue_status is 'Only active cues fire on schedule. completed: no further run, see completed_reason; failed: a one-time cue whose execution failed.';
comment on type cue.completion is 'Why a cue has completed: its last slot has passed, it has taken max_runs runs, or it runs only once.';
comment on type cue.callback_method is 'HTTP method of a webhook. GET sends no body.';
comment on type cue.catch_up is 'Policy for slots that came due during an outage: run none of them, only the latest, or the newest 100.';
comment on type cue.verification_mode is 'Requirement for a reported success to count as verified.';
comment on type cue.execution_status is
  'Delivery status. sql/README.md has the state diagram; constraints on executions tie each status to its columns.';
comment on type cue.outcome_state is 'The handler''s report and its verification. unknown: no report in time.';
comment on type cue.trigger_kind is 'What triggered an execution.';
comment on type cue.attempt_result is 'Result of an attempt. lost: its engine or worker stopped responding.';
comment on type cue.missed_reason is
  'Why slots did not run: no engine was alive (service_away), the operator held the service or the account (held), a limit of the plan was reached '
  '(execution_limit), or the cue was running (overlap; queue_full: with a full queue).';
comment on type cue.overlap is
  'What becomes of an execution while another one of the cue has not ended: it runs as well, is skipped, is queued (queue_one: unless one is '
  'queued already; queue_all: behind up to 99 others), or the others are cancelled.';
comment on type cue.pause_cause is 'What paused a cue: its user, a smaller plan, on_failure, or the deletion of its account.';
comment on type cue.alert_type is 'Reason for an alert: consecutive failures, no success in time, no outcome in time, or a cue paused after failures.';
comment on type cue.alert_severity is 'Urgency of an alert, lowest first.';
comment on type cue.device_code_status is 'Status of a sign-in. Expiry is not a status: see device_codes.expires_at.';
comment on type cue.ticket_severity is 'Severity of a ticket, chosen by its author.';
comment on type cue.ticket_type is 'Type of a ticket.';
comment on type cue.ticket_status is 'Status of a ticket. set_ticket_status changes it, by hand.';
comment on type cue.begun_attempt is
  'Everything an engine needs to send one webhook. secrets sign it; api_key is the account''s encrypted key, if callbacks carry it; '
  'plain: a 2xx ends the execution and has no other effect.';

-- Accounts --------------------------------------------------------------------------------------------------------------------------------

comment on table cue.overridden_limits is 'Limits that accounts have, or had, of their own.';
comment on column cue.overridden_limits.name is 'Name of a column of cue.plans.';
comment on column cue.overridden_limits.least is 'Smallest value of any account so far.';
comment on table cue.plans is 'Limits of each plan. The service writes them at start from its PLANS setting.';
comment on column cue.plans.plan is 'The plan.';
comment on column cue.plans.requests_per_minute is 'Requests per API key in any 60 seconds.';
comment on column cue.plans.cues is 'Active and paused cues together.';
comment on column cue.plans.executions_per_month is
  'Executions created per UTC month. Once reached, a grace period of 24 hours begins, which ends early at twice the limit.';
comment on column cue.plans.fires_per_hour is 'Manual fires of a cue in any hour.';
comment on column cue.plans.open_deliveries is 'Webhook requests an account may have open at once, shared equally among replicas.';
comment on column cue.plans.max_timeout_seconds is 'Maximum of delivery.timeout_seconds; null: 3600.';
comment on column cue.plans.min_interval_seconds is 'Minimum time between two slots of a schedule; null: no minimum.';
comment on column cue.plans.payload_bytes_per_day is
  'Total payload bytes of an account''s executions per UTC day, counted per execution even if the payload is stored once; null: '
  'unlimited.';

comment on table cue.accounts is 'Owners of cues. Every table with data of an account has account_id.';
comment on column cue.accounts.id is 'UUIDv7, created at registration.';
comment on column cue.accounts.email is 'Email address as registered. Unique, ignoring case.';
comment on column cue.accounts.plan is 'Plan, which sets the account''s limits.';
comment on column cue.accounts.limits is 'Limits of its own, by names of cue.plans, instead of those of the plan; JSON null: no limit.';
comment on column cue.accounts.webhook_secret is
  'Signs callbacks: whsec_ and 64 hex digits. The key of X-Service-Signature is the whole text.';
comment on column cue.accounts.previous_webhook_secret is 'Also signs until previous_webhook_secret_until.';
comment on column cue.accounts.previous_webhook_secret_until is 'End of the overlap requested by the last regeneration.';
comment on column cue.accounts.webhook_authorization is 'Bearer token of callbacks.';
comment on column cue.accounts.memory_block_enabled is 'Whether the account has agreed to the memory block.';
comment on column cue.accounts.alert_webhook_url is 'URL that alerts are posted to; null: none.';
comment on column cue.accounts.alert_webhook_secret is 'Signs alert webhooks: 64 hex digits, created on first use.';
comment on column cue.accounts.previous_alert_webhook_secret is
  'Also signs until previous_alert_webhook_secret_until.';
comment on column cue.accounts.previous_alert_webhook_secret_until is 'End of the overlap requested by the last regeneration.';
comment on column cue.accounts.limit_reached_at is
  'When the monthly execution limit was reached; the grace period ends 24 hours later. Applies to that month only.';
comment on column cue.accounts.stripe_customer_id is 'The account''s customer at Stripe; null before its first checkout.';
comment on column cue.accounts.email_confirmed_at is
  'When a mailed link was first confirmed; null: never, or before this column existed.';
comment on column cue.accounts.created_at is 'Time of registration.';
comment on column cue.accounts.updated_at is 'When a setting, a secret or the plan last changed.';

comment on table cue.api_keys is
  'API keys by SHA-256 hash. The default key''s text is also stored encrypted, so that it can be revealed.';
comment on column cue.api_keys.id is 'UUIDv7.';
comment on column cue.api_keys.account_id is 'The key''s account.';
comment on column cue.api_keys.key_hash is 'SHA-256 of the key''s text.';
comment on column cue.api_keys.prefix is 'First 12 characters, so that people recognise the key.';
comment on column cue.api_keys.label is 'Name given by the owner.';
comment on column cue.api_keys.scopes is 'Permissions.';
comment on column cue.api_keys.created_by is 'How the key was created.';
comment on column cue.api_keys.is_default is 'Whether the key can be shown again. At most one unrevoked key per account can.';
comment on column cue.api_keys.ciphertext is
  'The default key''s text in AES-256-GCM: encryption key id, nonce, text and tag in base64, joined by dots. It can be decrypted only as a key '
  'of this account. Null once revoked.';
comment on column cue.api_keys.created_at is 'Time of creation.';
comment on column cue.api_keys.last_used_at is 'When it last authenticated a request, to the minute; null: never.';
comment on column cue.api_keys.revoked_at is 'When it was revoked; the row is removed 30 days later. Null: active.';

comment on table cue.audit_events is 'Changes to an account, its keys, secrets and cues, with their authors. Never contains a key or secret.';
comment on column cue.audit_events.id is 'UUIDv7.';
comment on column cue.audit_events.seq is 'Order of the events, including those of one millisecond.';
comment on column cue.audit_events.account_id is 'The account that was changed.';
comment on column cue.audit_events.event is 'Type of change.';
comment on column cue.audit_events.actor is
  'The author: key:ID, session:ID, client:ID, stripe, service or anonymous; in psql the database user.';
comment on column cue.audit_events.ip is 'Address of the request; null in psql, and for changes of cues.';
comment on column cue.audit_events.detail is 'Details, depending on the event: the id of a key or cue, the names of changed settings, counts.';
comment on column cue.audit_events.created_at is 'Time of the change. Entries are removed after 400 days.';

comment on table cue.usage_counters is
  'Executions created per account and UTC month: the sum over all slots. Each database backend counts in its own slot, so that writers '
  'never wait for each other; housekeeping sums them up in slot 0.';
comment on column cue.usage_counters.account_id is 'The account.';
comment on column cue.usage_counters.month is 'First day of the UTC month.';
comment on column cue.usage_counters.slot is
  'Process id of the backend that counts here; 0: the sum so far; negative: a backend that found a row of its first slot locked.';
comment on column cue.usage_counters.executions is 'Executions created, whatever triggered them.';
comment on column cue.usage_counters.reported is 'Outcomes reported.';
comment on column cue.usage_counters.succeeded is 'Outcomes reported as success.';
comment on column cue.usage_counters.failed is 'Outcomes reported as failure, plus executions whose delivery failed or was missed.';

-- Sign-in and account deletion ----------------------------------------------------------------------------------------------------------

comment on table cue.sessions is 'Sessions, by the jti of their JWT. A session is valid until it expires or its row is deleted.';
comment on column cue.sessions.id is 'The jti claim of the JWT.';
comment on column cue.sessions.account_id is 'The session''s account.';
comment on column cue.sessions.created_at is 'Time of sign-in or refresh.';
comment on column cue.sessions.expires_at is 'A year after creation, or a day after the session was refreshed.';
comment on column cue.sessions.scopes is 'The scopes of the key that opened it; null means all.';
comment on column cue.sessions.key_id is 'The key that opened it, and whose revocation ends it; null after a sign-in by link.';
comment on column cue.sessions.ip is 'The address that opened it; null if unknown.';
comment on column cue.sessions.user_agent is 'The program that opened it, in its own words, up to 300 characters; null if unknown.';

comment on table cue.session_tokens is
  'One-time tokens, by SHA-256, that are exchanged for a session or a key. Deleted on use. Unlogged: after a crash, people sign in '
  'again.';
comment on column cue.session_tokens.token_hash is 'SHA-256 of the token.';
comment on column cue.session_tokens.account_id is 'Account that the session or key will belong to.';
comment on column cue.session_tokens.expires_at is '15 minutes after creation.';

comment on table cue.device_codes is
  'Sign-ins in progress, by the SHA-256 of the code the device generated. Unlogged: after a crash, people sign in again.';
comment on column cue.device_codes.code_hash is 'SHA-256 of the code.';
comment on column cue.device_codes.status is 'Status. Ignored after expires_at.';
comment on column cue.device_codes.ip is 'Address of the device, shown to the person who confirms.';
comment on column cue.device_codes.email is 'Email address the person entered.';
comment on column cue.device_codes.link_id is 'Id contained, signed, in the mailed link.';
comment on column cue.device_codes.code_ciphertext is 'The code, encrypted like the default key, for the mail of this sign-in that shows it.';
comment on column cue.device_codes.account_id is 'Account that the device was signed in to.';
comment on column cue.device_codes.key_id is 'Key of the account, if this sign-in created it. The device gets it once, when it polls.';
comment on column cue.device_codes.cell is 'Cell of the email address, in which the sign-in continues; null if that is this one.';
comment on column cue.device_codes.created_at is 'Time the sign-in started.';
comment on column cue.device_codes.expires_at is '15 minutes later.';

comment on table cue.deletions is
  'Requested account deletions. The mailed link contains the id, signed: if a genuine link has no row here, its account has been '
  'deleted.';
comment on column cue.deletions.id is 'Random; known only to the mailed link.';
comment on column cue.deletions.account_id is 'The account to delete.';
comment on column cue.deletions.requested_at is 'Time of the request.';
comment on column cue.deletions.due_at is 'When the account is deleted: 24 hours after the request.';
comment on column cue.deletions.cancelled_at is 'When the deletion was cancelled; null: not cancelled.';

-- Billing and support ---------------------------------------------------------------------------------------------------------------------

comment on table cue.subscriptions is
  'Stripe subscriptions, as reported by Stripe''s events. An account gets the largest plan among those paid for.';
comment on column cue.subscriptions.id is 'Stripe''s id.';
comment on column cue.subscriptions.account_id is 'The subscriber''s account.';
comment on column cue.subscriptions.plan is 'Plan it pays for.';
comment on column cue.subscriptions.status is 'Stripe''s status; canceled is final.';
comment on column cue.subscriptions.state_at is 'Creation time of the event that reported this state. Older events change nothing.';
comment on column cue.subscriptions.version is 'Increases with every event applied.';
comment on column cue.subscriptions.created_at is 'Time of the first event.';
comment on column cue.subscriptions.updated_at is 'Time of the latest change.';

comment on table cue.stripe_events is
  'Stripe events already handled, so that none is applied twice. Kept for 90 days, longer than Stripe resends them.';
comment on column cue.stripe_events.id is 'Stripe''s id.';
comment on column cue.stripe_events.type is 'Stripe''s event type.';
comment on column cue.stripe_events.received_at is 'When it was handled.';

comment on table cue.tickets is 'Support tickets.';
comment on column cue.tickets.id is 'Ticket number shown to users.';
comment on column cue.tickets.account_id is 'The author''s account.';
comment on column cue.tickets.subject is 'Subject line.';
comment on column cue.tickets.message is 'Full text.';
comment on column cue.tickets.severity is 'Severity, chosen by the author.';
comment on column cue.tickets.type is 'Type.';
comment on column cue.tickets.status is 'Status.';
comment on column cue.tickets.issue_url is 'Issue in the tracker; null: none yet, or no tracker is configured.';
comment on column cue.tickets.issue_tried_at is 'When the creation of an issue last started: one may exist although issue_url is null.';
comment on column cue.tickets.created_at is 'Time of creation.';
comment on column cue.tickets.updated_at is 'Time of the latest status change.';

-- Memory block ----------------------------------------------------------------------------------------------------------------------------

comment on table cue.memory_versions is 'Versions of each account''s memory block; the newest 50 are kept.';
comment on column cue.memory_versions.account_id is 'The account.';
comment on column cue.memory_versions.version is 'Counts from 1 per account.';
comment on column cue.memory_versions.content is 'What the version was made from: {plan, release, cues: [{id, name}]}.';
comment on column cue.memory_versions.changes is 'Differences from the previous version, as sentences.';
comment on column cue.memory_versions.created_at is 'When the change was noticed.';

comment on table cue.memory_subscriptions is 'Agents notified when the memory block changes.';
comment on column cue.memory_subscriptions.id is 'UUIDv7.';
comment on column cue.memory_subscriptions.account_id is 'The account.';
comment on column cue.memory_subscriptions.agent_id is 'Id chosen by the agent.';
comment on column cue.memory_subscriptions.callback_url is 'URL that notifications are posted to.';
comment on column cue.memory_subscriptions.sent_version is 'Latest version the agent was notified of.';
comment on column cue.memory_subscriptions.created_at is 'Time of subscription.';

-- Cues ------------------------------------------------------------------------------------------------------------------------------------

comment on table cue.cues is
  'Cues as their users configured them. Columns that change with every execution are in cue_runs, so that firing never writes these wide '
  'rows.';
comment on column cue.cues.id is 'cue_ and twelve random characters.';
comment on column cue.cues.account_id is 'The cue''s account.';
comment on column cue.cues.key is 'The user''s own name for the cue, unique among the account''s cues that are not deleted.';
comment on column cue.cues.managed_by is 'The set of declared cues that the cue belongs to, see apply_cues; null: none.';
comment on column cue.cues.name is 'Name, not necessarily unique.';
comment on column cue.cues.description is 'Description for people.';
comment on column cue.cues.tags is 'Labels to filter by, each at most 64 characters.';
comment on column cue.cues.status is 'Whether it fires. Meaningful only while deleted_at is null.';
comment on column cue.cues.paused_at is 'Since when it is paused; null if active, or paused by a release before pauses were recorded.';
comment on column cue.cues.paused_by is 'What paused it; null like paused_at.';
comment on column cue.cues.pause_reason is 'Reason that was given for the pause, or the error that caused it.';
comment on column cue.cues.paused_until is 'When it resumes by itself; null: never.';
comment on column cue.cues.completed_reason is 'Why it has completed, while status is completed; null means once.';
comment on column cue.cues.transport is 'webhook or worker. Never changes.';
comment on column cue.cues.schedule_type is 'Whether it runs repeatedly, by cron or schedule_rules, or once, at at.';
comment on column cue.cues.cron is 'Cron expression of five fields, or six with a leading seconds field, in timezone.';
comment on column cue.cues.at is 'The only slot of a one-time cue.';
comment on column cue.cues.schedule_rules is
  'What few schedules have: the members crons, every, anchor, starts_at, ends_at, max_runs, exclude, exclude_calendars and window of schedule, as the API shows them. Null without any.';
comment on column cue.cues.timezone is 'IANA time zone of cron, in canonical form.';
comment on column cue.cues.callback_url is 'URL that webhooks are sent to. Not needed by a worker cue.';
comment on column cue.cues.callback_method is 'HTTP method of webhooks.';
comment on column cue.cues.callback_headers is
  'The user''s own headers, sent with each webhook: names and values. Values may be credentials, so no view shows them.';
comment on column cue.cues.payload is 'Payload as canonical JSON, exactly the bytes that webhooks send; null if it is in payloads.';
comment on column cue.cues.payload_id is 'Row of payloads that holds a payload over 2 KB.';
comment on column cue.cues.payload_ref is
  'By this id, executions refer to the payload in this row; once it changes, the former one is in payloads. Null: they copy it.';
comment on column cue.cues.payload_since_run is 'The cue''s run_count when payload_ref was set.';
comment on column cue.cues.task is 'The payload''s member task, if it is a string; workers filter by it.';
comment on column cue.cues.retry_max_attempts is 'Maximum attempts per execution, including the first; for worker cues, maximum claims.';
comment on column cue.cues.retry_backoff_minutes is
  'Wait before the second attempt, before the third, and so on; the last value repeats.';
comment on column cue.cues.retry_on_worker_failure is 'Whether a failure that a worker reports is retried; null means false.';
comment on column cue.cues.on_failure_email is 'Whether a mail is sent when an execution exhausts its attempts or is missed.';
comment on column cue.cues.on_failure_webhook is 'URL notified when an execution exhausts its attempts or is missed; null: none.';
comment on column cue.cues.on_failure_pause is 'Whether a recurring cue is paused when an execution exhausts its attempts or is missed.';
comment on column cue.cues.on_failure_pause_after is 'Number of failed runs in a row that pause a recurring cue; null: any.';
comment on column cue.cues.timeout_seconds is
  'Time limit for the callback''s response; null means 30. Null, like the next three columns, if delivery was never set.';
comment on column cue.cues.outcome_deadline_seconds is 'Time limit for the awaited outcome, counted from the delivery; null means 300.';
comment on column cue.cues.claim_timeout_seconds is 'Time limit for a worker to claim an execution; null means 900.';
comment on column cue.cues.await_outcome is
  'Whether the execution ends only with the handler''s report rather than with a 2xx. Null, which means false, until it or an outcome '
  'deadline is set.';
comment on column cue.cues.alert_consecutive_failures is
  'Consecutive failures that raise an alert. Null, which means 3, if alerts was never set.';
comment on column cue.cues.alert_missed_window_multiplier is
  'Slots without a success that raise an alert. Null, which means 2, if alerts was never set.';
comment on column cue.cues.catch_up is 'Policy for slots that came due during an outage.';
comment on column cue.cues.overlap is 'What becomes of a slot while an execution of the cue has not ended.';
comment on column cue.cues.tracked is
  'Whether its executions that have not ended are in open_executions: if overlap is not allow, or a fire or replay specified one.';
comment on column cue.cues.verification_mode is 'Requirement for a verified success. Null, which means none, if never set.';
comment on column cue.cues.memory_check is 'Marks the weekly memory block cue, which does not count against the plan''s limit.';
comment on column cue.cues.created_at is 'Time of creation.';
comment on column cue.cues.updated_at is 'Time of the latest edit or status change.';
comment on column cue.cues.deleted_at is 'When it was deleted; the row is removed once its history is.';

comment on table cue.cue_runs is
  'The frequently changing part of a cue: one narrow row that every execution updates. Removed when the cue is deleted.';
comment on column cue.cue_runs.cue_id is 'The cue.';
comment on column cue.cue_runs.account_id is 'The cue''s account, copied so that finding due cues needs no join.';
comment on column cue.cue_runs.transport is 'The cue''s transport, copied for the same reason.';
comment on column cue.cue_runs.tracked is 'Like tracked of the cue, for the functions that fire and finish plain executions.';
comment on column cue.cue_runs.version is
  'Increases with every change of the definition or status, not when the cue runs. A slot computed from an older version does not fire.';
comment on column cue.cue_runs.next_run is 'Next slot. Null: none, because the cue is paused or has ended.';
comment on column cue.cue_runs.last_slot is
  'Last slot fired. next_run is always later, so neither a clock nor an edit can fire a slot twice.';
comment on column cue.cue_runs.last_run is 'When an execution last started, whatever triggered it.';
comment on column cue.cue_runs.run_count is 'Executions created, whatever triggered them.';
comment on column cue.cue_runs.fired_count is 'Executions created by the schedule.';
comment on column cue.cue_runs.skipped_count is 'Those of fired_count that record a slot which did not run; null means none.';
comment on column cue.cue_runs.next_slot is 'Nominal time of the next slot, if it fires later, at next_run; null: it fires at once.';
comment on column cue.cue_runs.refused_from is
  'First slot that was refused because the account is over its monthly limit, and is not recorded yet: that is done at next_run, once an hour. Null: none.';
comment on column cue.cue_runs.excluded_at is 'Up to when excluded slots are recorded: at or before the next one. Null: none is excluded.';
comment on column cue.cue_runs.recomputed is 'Those changes of version that only moved next_run, after a change of a calendar. The API does not count them. Null: none.';
comment on column cue.cue_runs.failed_deliveries is 'Consecutive executions whose delivery failed.';
comment on column cue.cue_runs.failed_runs is
  'Scheduled executions in a row that failed, were missed or timed out, while on_failure_pause_after is set; 0 after a resumption.';
comment on column cue.cue_runs.failed_outcomes is 'Consecutive outcomes that were failures or missing.';
comment on column cue.cue_runs.deliveries_failing_since is 'First of the failures in failed_deliveries.';
comment on column cue.cue_runs.outcomes_failing_since is 'First of the failures in failed_outcomes.';
comment on column cue.cue_runs.schedule_key is 'Shared by cues with the same schedule. Null: the cue has not fired since keys were introduced.';
comment on column cue.cue_runs.success_due_at is
  'Deadline for the next success, after which a missed_window alert is raised. Set on firing if null; a success does not write it.';

comment on table cue.open_executions is
  'Executions of tracked cues that have not ended. An entry may outlive its execution until the cue runs again.';
comment on column cue.open_executions.execution_id is 'The execution.';
comment on column cue.open_executions.cue_id is 'Its cue.';
comment on column cue.open_executions.account_id is 'The cue''s account.';
comment on column cue.open_executions.place is 'Order of creation, and thereby of the queue.';
comment on column cue.open_executions.is_queued is 'Whether it waits for others of the cue to end, due at infinity until then.';

comment on table cue.missed_slots is 'Slots that did not run, and why. Kept for 90 days.';
comment on column cue.missed_slots.id is 'Order of recording.';
comment on column cue.missed_slots.cue_id is 'The cue.';
comment on column cue.missed_slots.account_id is 'The cue''s account.';
comment on column cue.missed_slots.first is 'First slot that did not run.';
comment on column cue.missed_slots.last is 'Last slot that did not run.';
comment on column cue.missed_slots.count is 'Number of slots, exact up to 10,000.';
comment on column cue.missed_slots.policy is 'The cue''s catch_up at that time.';
comment on column cue.missed_slots.reason is 'Why they did not run.';
comment on column cue.missed_slots.recorded_at is 'When the row was added or last extended.';

comment on table cue.fires is 'Manual fires of the last 24 hours, for the limit of ten per hour and for idempotency keys.';
comment on column cue.fires.id is 'UUIDv7.';
comment on column cue.fires.cue_id is 'The cue that was fired.';
comment on column cue.fires.account_id is 'The cue''s account.';
comment on column cue.fires.fired_at is 'Time of the request. The row is removed 24 hours later.';
comment on column cue.fires.idempotency_key is 'The caller''s idempotency key: repeating the request returns the same execution.';
comment on column cue.fires.request_hash is 'Hash of the request, to refuse a different request with the same key.';
comment on column cue.fires.execution_id is 'The execution it created.';

comment on table cue.alerts is 'Alerts. At most one of each type is open per cue.';
comment on column cue.alerts.id is 'UUIDv7.';
comment on column cue.alerts.account_id is 'The cue''s account.';
comment on column cue.alerts.cue_id is 'The cue.';
comment on column cue.alerts.execution_id is 'Execution that raised it, if any.';
comment on column cue.alerts.alert_type is 'Reason.';
comment on column cue.alerts.severity is 'Urgency.';
comment on column cue.alerts.message is 'Description for people, as of the latest update.';
comment on column cue.alerts.metadata is
  'Depends on the type, such as failure_count and first_failure_at (updated while the alert is open) or previous_acknowledged_at.';
comment on column cue.alerts.acknowledged_at is 'When it was acknowledged. Null: open.';
comment on column cue.alerts.created_at is 'When it was raised.';

-- Executions ------------------------------------------------------------------------------------------------------------------------------

comment on sequence cue.flight_ids is 'Numbers flights.';
comment on sequence cue.ended_success is 'Counts executions that ended as success; rolled back statements count, too.';
comment on sequence cue.ended_failed is 'Counts executions that ended as failed.';
comment on sequence cue.ended_missed is 'Counts executions that ended as missed.';
comment on sequence cue.ended_outcome_timeout is 'Counts executions that ended as outcome_timeout.';
comment on table cue.flights is
  'Groups of webhook attempts begun together by one engine, which extends the lease while it is alive. When the lease expires, any '
  'engine takes over the unfinished attempts.';
comment on column cue.flights.id is 'Id; executions refer to it while they are in the flight.';
comment on column cue.flights.execution_ids is 'Executions the flight began with. Ended ones stay listed until all have ended.';
comment on column cue.flights.lease_expires_at is 'End of the lease, after which any engine may take the flight over.';
comment on column cue.flights.created_at is 'When its attempts began.';

comment on table cue.executions is 'Runs of cues. Partitioned by the month of id, a UUIDv7, so that ordering by id is ordering by age.';
comment on column cue.executions.id is 'UUIDv7 of the creation time. Receivers use it to recognise repeated deliveries.';
comment on column cue.executions.account_id is 'The cue''s account.';
comment on column cue.executions.cue_id is 'The cue. No foreign key: after a cue is deleted, its executions are removed in batches.';
comment on column cue.executions.transport is 'The cue''s transport.';
comment on column cue.executions.status is 'Delivery status.';
comment on column cue.executions.triggered_by is 'Trigger.';
comment on column cue.executions.replayed_from is 'Execution that this one replays.';
comment on column cue.executions.scheduled_for is 'The slot, or the time requested by a fire.';
comment on column cue.executions.due_at is 'When it was meant to start, if that is later than scheduled_for: within its window.';
comment on column cue.executions.attempt_ms is 'Duration of the first attempt, begun at last_attempt_at, if it succeeded and has no row in attempts.';
comment on column cue.executions.payload is
  'The override of a fire that was sent, up to 2 KB, or a payload copied from the cue; null if it is in stored_payloads.';
comment on column cue.executions.payload_id is 'Its payload in stored_payloads, which is kept as long as the execution.';
comment on column cue.executions.task is 'The payload''s member task, if it is a string; workers filter by it.';
comment on column cue.executions.attempts is
  'Attempts begun: sends or claims. Numbers the attempts, so that results of an attempt taken over by another are ignored.';
comment on column cue.executions.lost_attempts is 'Lost sends and released claims, which do not count towards retry_max_attempts.';
comment on column cue.executions.started_at is 'When the first attempt began.';
comment on column cue.executions.last_attempt_at is 'When the latest attempt began.';
comment on column cue.executions.delivered_at is 'When the callback returned a 2xx, or the worker reported.';
comment on column cue.executions.ended_at is 'When it ended. Set exactly in success, failed, missed and outcome_timeout.';
comment on column cue.executions.attempt_due_at is
  'When the waiting webhook attempt is due; infinity: behind others of its cue. Set exactly while one is waiting.';
comment on column cue.executions.claimable_at is
  'From when workers may claim it; infinity: behind others of its cue. Set exactly while it can be claimed.';
comment on column cue.executions.claim_deadline_at is 'Deadline for a claim, after which the execution is missed.';
comment on column cue.executions.flight_id is 'Flight of the attempt in progress.';
comment on column cue.executions.http_status is 'HTTP status of the latest response; null: no response.';
comment on column cue.executions.error_message is 'Why the latest attempt failed or the execution ended, as a sentence.';
comment on column cue.executions.response_body is 'Start of the latest response body, up to 2,000 characters.';
comment on column cue.executions.claimed_by_worker is 'Worker with the current or last claim. Null again after a release or loss.';
comment on column cue.executions.claimed_at is 'Time of the claim.';
comment on column cue.executions.claim_token is 'Token of the current claim; any other token is refused.';
comment on column cue.executions.last_heartbeat_at is 'When the claim was made or last extended.';
comment on column cue.executions.lease_expires_at is 'End of the claim, extended by the worker''s heartbeats. Set exactly while claimed.';
comment on column cue.executions.outcome_deadline_at is 'Deadline for the awaited outcome. Set exactly while one is awaited.';
comment on column cue.executions.outcome_state is 'State of the outcome; null before any report.';
comment on column cue.executions.outcome_success is
  'Reported success or failure; never changes, except by the report of a later claim after a failure that is retried.';
comment on column cue.executions.outcome_recorded_at is 'Time of the report.';
comment on column cue.executions.result is 'Reported result, in words.';
comment on column cue.executions.error is 'Reported error, in words.';
comment on column cue.executions.metadata is 'Evidence: an object with any members, up to 10 KB.';
comment on column cue.executions.external_id is 'Evidence: id of the result in another system.';
comment on column cue.executions.result_url is 'Evidence: URL of the result.';
comment on column cue.executions.result_ref is 'Evidence: short reference to the result.';
comment on column cue.executions.result_type is 'Evidence: type of the result, for filtering.';
comment on column cue.executions.summary is 'Evidence: summary of the result, up to 500 characters.';
comment on column cue.executions.artifacts is 'Evidence: list of created resources, up to 64 KB.';
comment on column cue.executions.rejected_at is 'When a person rejected the outcome; later evidence does not change that.';
comment on column cue.executions.verification_reason is 'Reason a person gave for verifying or rejecting the outcome.';
comment on column cue.executions.created_at is 'Time of creation.';
comment on column cue.executions.updated_at is 'Time of the latest change.';

comment on table cue.attempts is 'The attempt log: one row per attempt that ended or was lost, except first attempts that succeeded: see executions.attempt_ms. Partitioned like executions.';
comment on column cue.attempts.execution_id is 'The execution. Determines the partition.';
comment on column cue.attempts.attempt is 'Number of the attempt, from 1.';
comment on column cue.attempts.account_id is 'The execution''s account.';
comment on column cue.attempts.result is 'Result.';
comment on column cue.attempts.started_at is 'When the request was sent or the execution claimed.';
comment on column cue.attempts.finished_at is 'When it ended or was declared lost.';
comment on column cue.attempts.duration_ms is 'Milliseconds from started_at to finished_at.';
comment on column cue.attempts.http_status is 'HTTP status of the response; null: no response.';
comment on column cue.attempts.error is 'Why it failed, as a sentence.';
comment on column cue.attempts.worker_id is 'Worker that held the claim.';

comment on table cue.workers is 'Worker processes as reported by their heartbeats, and the tasks they handle.';
comment on column cue.workers.account_id is 'The worker''s account.';
comment on column cue.workers.worker_id is 'Id chosen by the worker, such as a host name.';
comment on column cue.workers.handlers is 'Tasks it handles.';
comment on column cue.workers.last_heartbeat is 'Latest heartbeat of the worker or of one of its claims.';
comment on column cue.workers.registered_since is 'First heartbeat.';

-- The service -----------------------------------------------------------------------------------------------------------------------------

comment on table cue.cell is 'One row: the number of this database among those of the service, encoded in ids and keys. Never changes.';
comment on column cue.cell.id is 'The n-th URL of CELLS is cell n.';
comment on column cue.cell.created_at is 'When the database took its number.';

comment on table cue.moved is 'One row if the cell goes on at another server: nothing here can be changed, and replicas go there.';
comment on column cue.moved.to_url is 'The other server, as replicas connect to it.';
comment on column cue.moved.at is 'When it took over.';

comment on table cue.directory is 'The cell of each email address, so that an address has one account across all cells. Used in the home cell only.';
comment on column cue.directory.email_hash is 'SHA-256 of the address in lower case.';
comment on column cue.directory.cell is 'Cell in which its account is created.';
comment on column cue.directory.created_at is 'When the cell claimed it.';

comment on table cue.engines is 'Replicas that fire and deliver. The latest last_seen_at shows when the service was last alive.';
comment on column cue.engines.id is 'Random id, new at each start.';
comment on column cue.engines.name is 'Its replica''s name: REPLICA_NAME, or host and process.';
comment on column cue.engines.version is 'Release it runs.';
comment on column cue.engines.started_at is 'First heartbeat.';
comment on column cue.engines.last_seen_at is 'Latest heartbeat.';
comment on column cue.engines.lateness_ms is 'Milliseconds from the slot until the engine''s latest scheduled delivery was taken.';
comment on column cue.engines.open_deliveries is 'Webhook requests open at the latest heartbeat.';
comment on column cue.engines.full_accounts is
  'Accounts that had as many open deliveries as they may at the latest heartbeat, so that their due webhooks wait.';
comment on column cue.engines.passed_over is 'Due cues that it could not fire, and leaves for a minute.';
comment on column cue.engines.missed_after is 'Length of an outage from which catch_up applies: MISSED_AFTER_SECONDS.';
comment on column cue.engines.stopped_at is 'Time of shutdown.';

comment on table cue.outages is 'Periods in which no engine was alive. Each cue''s catch_up decides about slots that came due in one.';
comment on column cue.outages.from_at is 'Last heartbeat before the outage.';
comment on column cue.outages.until_at is 'First heartbeat after the outage.';

comment on table cue.holds is 'Periods in which the operator held the service or an account. Kept for 90 days.';
comment on column cue.holds.id is 'Random.';
comment on column cue.holds.account_id is 'The account; null for the service.';
comment on column cue.holds.reason is 'Why, for whoever asks: /status shows it, and so do refused claims.';
comment on column cue.holds.held_by is 'Who held it last: the operator''s token, a session or key, or a database user.';
comment on column cue.holds.from_at is 'Begin of the hold.';
comment on column cue.holds.until_at is 'End of the hold; infinity while it lasts.';
comment on column cue.holds.catches_up is 'Whether slots that came due meanwhile follow catch_up. After a short hold they run late.';

comment on table cue.echoes is 'Requests posted to the echo buffer, kept for five minutes. Unlogged: lost in a crash.';
comment on column cue.echoes.token is 'Token in the URL, chosen by the caller; only the latest request to it is kept.';
comment on column cue.echoes.payload is 'The body as JSON text; a body that is not JSON is stored as a JSON string.';
comment on column cue.echoes.headers is 'The captured headers, with lower-case names.';
comment on column cue.echoes.received_at is 'Time of the request.';
comment on column cue.echoes.expires_at is 'Five minutes later.';

comment on table cue.calendars is 'Exclusions that several cues share.';
comment on column cue.calendars.account_id is 'The account.';
comment on column cue.calendars.name is 'Name, as in schedule.exclude_calendars.';
comment on column cue.calendars.description is 'Description.';
comment on column cue.calendars.dates is 'Excluded dates in the time zone of each cue: YYYY-MM-DD, or MM-DD for every year.';
comment on column cue.calendars.ranges is 'Excluded stretches: an array of {from, to}, instants or local times in the time zone of each cue.';
comment on column cue.calendars.revision is 'Changes with every change of the calendar. No other calendar ever has the same.';
comment on column cue.calendars.created_at is 'Creation time.';
comment on column cue.calendars.updated_at is 'Time of the last change.';

comment on table cue.idempotency_keys is 'Responses of the last 24 hours to requests with an Idempotency-Key.';
comment on column cue.idempotency_keys.account_id is 'The account.';
comment on column cue.idempotency_keys.route is 'Method and path of the request, with its ids.';
comment on column cue.idempotency_keys.key is 'The key that the caller chose.';
comment on column cue.idempotency_keys.request_hash is 'SHA-256 of the body, to refuse a different request with the same key.';
comment on column cue.idempotency_keys.status is 'HTTP status of the response.';
comment on column cue.idempotency_keys.body is 'Body of the response.';
comment on column cue.idempotency_keys.place is 'Number within the account, in the order of created_at.';
comment on column cue.idempotency_keys.bytes_before is 'Sum of bytes of all earlier rows of the account, expired ones included.';
comment on column cue.idempotency_keys.bytes is 'Approximate size of the row with its index entries.';
comment on column cue.idempotency_keys.created_at is 'Time of the request. The row expires 24 hours later.';

comment on table cue.dead_letters is 'Executions that failed, were missed or timed out, and were neither replayed nor dismissed.';
comment on column cue.dead_letters.execution_id is 'The execution.';
comment on column cue.dead_letters.account_id is 'Its account.';
comment on column cue.dead_letters.cue_id is 'Its cue.';
comment on column cue.dead_letters.error_group is 'What it has in common with others that failed in the same way; null until group_dead_letters finds it.';

comment on table cue.backfilled_slots is 'Slots that a backfill has run, so that none runs twice.';
comment on column cue.backfilled_slots.cue_id is 'The cue.';
comment on column cue.backfilled_slots.slot is 'Its nominal time.';
comment on column cue.backfilled_slots.execution_id is 'Its execution.';
comment on type cue.operation_type is 'What an operation does to its targets.';
comment on type cue.operation_status is 'Whether an operation is running, has dealt with all targets, or was aborted.';
comment on table cue.operations is 'Bulk operations, kept for 90 days after their end.';
comment on column cue.operations.id is 'op_ and twelve random characters.';
comment on column cue.operations.account_id is 'The account.';
comment on column cue.operations.type is 'What it does to its targets.';
comment on column cue.operations.name is 'A name given by the caller.';
comment on column cue.operations.status is 'Whether it is running.';
comment on column cue.operations.settings is 'What its targets get: for pauses, the columns pause_reason and paused_until; overlap; for a backfill, its cue_id.';
comment on column cue.operations.rate_per_minute is 'Maximum number of targets acted on per minute; null: no limit.';
comment on column cue.operations.total is 'Number of targets, including those not found.';
comment on column cue.operations.succeeded is 'Number of targets acted on.';
comment on column cue.operations.failed is 'Number of targets for which a single call would have been refused.';
comment on column cue.operations.skipped is 'Number of targets that had changed, were gone, or were as wanted already.';
comment on column cue.operations.errors is 'The first 100 failures: target, code (a SQLSTATE, or a code of the API) and message.';
comment on column cue.operations.paced_at is 'With a rate: when the next target may be acted on.';
comment on column cue.operations.worked_at is 'Time given to the latest target; if that is long ago, its job is missing.';
comment on column cue.operations.created_by is 'The key or session that created it.';
comment on column cue.operations.created_at is 'Time of creation.';
comment on column cue.operations.ended_at is 'When it was completed or aborted.';
comment on table cue.operation_targets is 'Targets of running operations that have not been acted on, up to twenty per row.';
comment on column cue.operation_targets.operation_id is 'The operation.';
comment on column cue.operation_targets.place is 'Order of the rows.';
comment on column cue.operation_targets.targets is 'Ids of executions or cues, or slots of a backfill, in order.';
comment on column cue.operation_targets.states is 'Their target_state when they were chosen; empty for slots.';

comment on table cue.cue_rooms is
  'Lower bound of the number of cues an account may still create, so that creating one does not count them all. Creating cues reduces '
  'it; when it is too low, the cues are counted again.';
comment on column cue.cue_rooms.account_id is 'The account.';
comment on column cue.cue_rooms.plan_cues is
  'The plan''s limit when the cues were counted. If the limit has changed since, the row is ignored.';
comment on column cue.cue_rooms.room is 'Number of cues that can certainly be created.';
comment on table cue.rate_windows is
  'Sliding windows of rate limits. Unlogged: requests never wait for the disk, and after a crash all windows are empty. Only the key is '
  'indexed, so that every hit is a HOT update.';
comment on column cue.rate_windows.subject is 'What is limited, such as key:ID, address:IP or echo:IP.';
comment on column cue.rate_windows.started_at is 'Start of the time scale of hits.';
comment on column cue.rate_windows.hits is
  'Times of the hits in milliseconds after started_at, ascending. At most 500 entries, so that they stay in the row: above a limit of '
  '500, an entry counts several hits.';
comment on column cue.rate_windows.newest is 'Hits counted by the newest entry so far.';
comment on column cue.rate_windows.weight is 'Hits per entry: 1 for limits up to 500.';
comment on column cue.rate_windows.recent is 'Hits of the latest five minutes, newest minute first, whatever the window''s length.';
comment on column cue.rate_windows.recent_minute is 'The newest of these minutes, since the epoch.';
comment on column cue.rate_windows.expires_at is 'When the last hit leaves the window and the row may be removed.';

comment on sequence cue.payload_ids is 'Ids of payloads.';
comment on sequence cue.calendar_revisions is 'Revisions of calendars.';
comment on table cue.payloads is 'Payloads over 2 KB, and former payloads of cues, each stored once per cue and referenced by the cue or its executions.';
comment on column cue.payloads.id is 'Referenced by payload_id of cues and executions; formerly payload_ref of its cue, if it was stored there.';
comment on column cue.payloads.account_id is 'The account of its cue.';
comment on column cue.payloads.cue_id is 'Cue whose executions may reference it.';
comment on column cue.payloads.hash is 'SHA-256 of the body.';
comment on column cue.payloads.body is 'Canonical JSON, exactly the bytes that webhooks send.';
comment on column cue.payloads.since_run is
  'The cue''s run_count when this became its payload; null if executions may have used it before.';
comment on column cue.payloads.last_used_at is
  'Latest time at which an execution may have been created with it; null while it is the cue''s current payload.';
comment on column cue.payloads.created_at is 'Time of creation.';
comment on table cue.payload_counters is
  'Payload bytes per account and UTC day, for plans that limit them. Each database backend counts in its own row.';
comment on column cue.payload_counters.account_id is 'The account.';
comment on column cue.payload_counters.day is 'UTC day on which the executions were created.';
comment on column cue.payload_counters.slot is 'Process id of the backend that counts here.';
comment on column cue.payload_counters.bytes is 'Total size of the executions'' payloads.';
comment on table cue.known_secrets is 'Fingerprints of the replicas'' secrets, which can neither decrypt nor sign anything.';
comment on column cue.known_secrets.name is 'ENCRYPTION_KEYS or SESSION_SECRET.';
comment on column cue.known_secrets.value is 'Id of an encryption key that is or was the first, or a slow hash of the session secret.';
comment on column cue.known_secrets.known_at is 'When a replica first started with it.';
