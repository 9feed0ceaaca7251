-- Descriptions of every type, table and column, for readers of the catalog (\dT+, \d+). Reloaded by migrate, so that rewording needs no
-- migration: a new table or column gets its lines here. Functions and views have theirs beside them.

-- Types -----------------------------------------------------------------------------------------------------------------------------------

comment on type cue.plan is 'An account''s plan; the table plans has the limits.';
comment on type cue.webhook_authorization is
  'Bearer token of a webhook: a token for its execution only, or the account''s default key.';
comment on type cue.key_origin is 'Origin of an API key.';
comment on type cue.key_scope is 'Permission of an API key.';
comment on type cue.audit_event is 'Type of an audit log entry.';
comment on type cue.transport is 'How a run reaches its handler: posted to a callback, or claimed by a worker.';
comment on type cue.schedule_type is 'recurring has cron, once has at.';
comment on type cue.cue_status is 'active fires, paused does not; completed and failed are how one-time cues end, and final.';
comment on type cue.callback_method is 'The HTTP method of a webhook. GET carries no body.';
comment on type cue.catch_up is
  'Policy for slots that came due during an outage: run none, the latest, or each, up to 100.';
comment on type cue.verification_mode is 'Requirement for a reported success to count as verified.';
comment on type cue.execution_status is
  'Delivery status. sql/README.md has the diagram; constraints of the table tie each state to its columns.';
comment on type cue.outcome_state is 'The handler''s report and its verification. unknown: not reported in time.';
comment on type cue.trigger_kind is 'What triggered an execution.';
comment on type cue.attempt_result is 'Result of an attempt. lost: its engine or worker stopped responding.';
comment on type cue.missed_reason is 'Why slots did not run: no engine was alive, or the month''s executions were used up.';
comment on type cue.alert_type is 'Repeated failures, no success in time, or an outcome not reported in time.';
comment on type cue.alert_severity is 'Urgency of an alert, lowest first.';
comment on type cue.device_code_status is 'Status of a sign-in. It can expire in every status.';
comment on type cue.ticket_severity is 'Severity of a ticket, as its author sees it.';
comment on type cue.ticket_type is 'Kind of a ticket.';
comment on type cue.ticket_status is 'Status of a ticket, changed by hand with set_ticket_status.';
comment on type cue.begun_attempt is
  'Everything needed to send one webhook. secrets sign it; api_key is the account''s encrypted key if callbacks carry it; plain: a 2xx ends '
  'the execution and changes nothing else.';

-- Accounts --------------------------------------------------------------------------------------------------------------------------------

comment on table cue.plans is 'Limits of each plan. The service writes them at start from its PLANS setting.';
comment on column cue.plans.plan is 'The plan.';
comment on column cue.plans.requests_per_minute is 'Requests per API key in any 60 seconds.';
comment on column cue.plans.cues is 'Active and paused cues together.';
comment on column cue.plans.executions_per_month is 'Executions created in a UTC month; then a grace of a day, or until twice as many.';
comment on column cue.plans.open_deliveries is 'Webhook requests that an account may have open at once; replicas share it evenly.';
comment on column cue.plans.max_timeout_seconds is 'Maximum of delivery.timeout_seconds; null: 3600.';
comment on column cue.plans.min_interval_seconds is 'Minimum interval between two slots of a schedule; null: any.';
comment on column cue.plans.payload_bytes_per_day is 'Payload bytes of an account''s executions per UTC day, counted for each execution even if the payload is stored once; null: unlimited.';

comment on table cue.accounts is 'Owners of cues. Every tenant table has account_id.';
comment on column cue.accounts.id is 'UUIDv7 of the registration.';
comment on column cue.accounts.email is 'As registered. Unique, ignoring case.';
comment on column cue.accounts.plan is 'Plan whose limits apply.';
comment on column cue.accounts.webhook_secret is 'Signs callbacks: whsec_ and 64 hex digits, and the whole text is the key.';
comment on column cue.accounts.previous_webhook_secret is 'Also signs until previous_webhook_secret_until.';
comment on column cue.accounts.previous_webhook_secret_until is 'End of the overlap requested by the last regeneration.';
comment on column cue.accounts.webhook_authorization is 'Bearer token of callbacks.';
comment on column cue.accounts.memory_block_enabled is 'Consent to the memory block, off by default.';
comment on column cue.accounts.alert_webhook_url is 'URL that alerts are posted to; null: none.';
comment on column cue.accounts.alert_webhook_secret is 'Signs alert webhooks: 64 hex digits, created on first use.';
comment on column cue.accounts.previous_alert_webhook_secret is
  'Also signs until previous_alert_webhook_secret_until.';
comment on column cue.accounts.previous_alert_webhook_secret_until is 'End of the overlap requested by the last regeneration.';
comment on column cue.accounts.limit_reached_at is
  'When the monthly execution limit was reached. In that month, executions are refused from 24 h later on.';
comment on column cue.accounts.stripe_customer_id is 'The account''s customer at Stripe; null until it first goes to checkout.';
comment on column cue.accounts.email_confirmed_at is
  'When a link mailed to the address was first confirmed; null: never, or before this was recorded.';
comment on column cue.accounts.created_at is 'When it was registered.';
comment on column cue.accounts.updated_at is 'When a setting, a secret or the plan last changed.';

comment on table cue.api_keys is
  'API keys by SHA-256 hash. The default key''s text is also stored encrypted, so that it can be revealed.';
comment on column cue.api_keys.id is 'UUIDv7.';
comment on column cue.api_keys.account_id is 'The key''s account.';
comment on column cue.api_keys.key_hash is 'SHA-256 of the key''s text.';
comment on column cue.api_keys.prefix is 'The first 12 characters, to recognise it by.';
comment on column cue.api_keys.label is 'Name given by its owner.';
comment on column cue.api_keys.scopes is 'Permissions.';
comment on column cue.api_keys.created_by is 'Origin.';
comment on column cue.api_keys.is_default is 'The key that can be shown again. At most one per account is not revoked.';
comment on column cue.api_keys.ciphertext is
  'The default key''s text in AES-256-GCM: encryption key id, nonce, text and tag in base64, joined by dots. Null once revoked.';
comment on column cue.api_keys.created_at is 'When it was made.';
comment on column cue.api_keys.last_used_at is 'When it last authenticated a request, to the minute; null: never.';
comment on column cue.api_keys.revoked_at is 'When it was revoked; the row is removed 30 days later. Null: active.';

comment on table cue.audit_events is 'Changes to an account, its keys and its secrets, with their authors. Never contains a key or secret.';
comment on column cue.audit_events.id is 'UUIDv7.';
comment on column cue.audit_events.seq is 'Order of events, also within one millisecond.';
comment on column cue.audit_events.account_id is 'The account concerned.';
comment on column cue.audit_events.event is 'Type of change.';
comment on column cue.audit_events.actor is 'key:ID, anonymous, or the database user who acted by hand.';
comment on column cue.audit_events.ip is 'The address of the request; null at psql.';
comment on column cue.audit_events.detail is 'Details by event: the key''s id and prefix, the names of changed settings.';
comment on column cue.audit_events.created_at is 'When it happened. Entries are removed after 400 days.';

comment on table cue.usage_counters is
  'Executions created per account and UTC month: the sum over slots. A slot is a database backend, so that no two writers wait for one row; '
  'housekeeping folds them into slot 0.';
comment on column cue.usage_counters.account_id is 'The account.';
comment on column cue.usage_counters.month is 'The first day of the UTC month.';
comment on column cue.usage_counters.slot is 'The process id of the backend that counts here; 0 holds what was folded.';
comment on column cue.usage_counters.executions is 'Executions created, however they were triggered.';
comment on column cue.usage_counters.reported is 'Outcomes reported, successes and failures.';
comment on column cue.usage_counters.succeeded is 'Outcomes that were reported as a success.';
comment on column cue.usage_counters.failed is 'Reported failures, and executions that failed or were missed on the delivery side.';

-- Signing in and leaving ------------------------------------------------------------------------------------------------------------------

comment on table cue.sessions is 'Sessions by the jti of their JWT. One is good until it expires or its row goes.';
comment on column cue.sessions.id is 'The jti.';
comment on column cue.sessions.account_id is 'The session''s account.';
comment on column cue.sessions.created_at is 'When it was opened.';
comment on column cue.sessions.expires_at is 'A year later; a day after it was refreshed.';

comment on table cue.session_tokens is
  'One-time tokens, by SHA-256, that a session or a key is given for. Gone when used. Unlogged: after a crash people sign in again.';
comment on column cue.session_tokens.token_hash is 'SHA-256 of the token.';
comment on column cue.session_tokens.account_id is 'Whose session or key it is given for.';
comment on column cue.session_tokens.expires_at is 'A quarter of an hour after it was made.';

comment on table cue.device_codes is
  'Sign-ins under way, by the SHA-256 of the code that the device made. Unlogged: after a crash people sign in again.';
comment on column cue.device_codes.code_hash is 'SHA-256 of the code.';
comment on column cue.device_codes.status is 'Status, unless the sign-in has expired.';
comment on column cue.device_codes.ip is 'Where the device is, for the person who is asked to let it in.';
comment on column cue.device_codes.email is 'Address entered by the person.';
comment on column cue.device_codes.link_id is 'Id in the mailed link, signed.';
comment on column cue.device_codes.code_ciphertext is 'The code, encrypted like the default key, for the mail that repeats it.';
comment on column cue.device_codes.account_id is 'The account that the device was let in to.';
comment on column cue.device_codes.key_id is 'The key of an account that this sign-in made. Whoever polls is given it, once.';
comment on column cue.device_codes.created_at is 'When the device began.';
comment on column cue.device_codes.expires_at is 'A quarter of an hour later.';

comment on table cue.deletions is
  'Accounts that asked to be deleted. The link in the mail carries the id, signed: a genuine one without a row was carried out.';
comment on column cue.deletions.id is 'Known to the link only.';
comment on column cue.deletions.account_id is 'The account to delete.';
comment on column cue.deletions.requested_at is 'When its owner asked.';
comment on column cue.deletions.due_at is 'When the account is deleted: 24 hours later.';
comment on column cue.deletions.cancelled_at is 'When the deletion was cancelled; null: not.';

-- Billing and support ---------------------------------------------------------------------------------------------------------------------

comment on table cue.subscriptions is 'Stripe subscriptions, according to its events. An account''s plan is the largest of those that are paid.';
comment on column cue.subscriptions.id is 'Stripe''s.';
comment on column cue.subscriptions.account_id is 'Who subscribed.';
comment on column cue.subscriptions.plan is 'The plan that it pays for.';
comment on column cue.subscriptions.status is 'As Stripe has it; canceled is final.';
comment on column cue.subscriptions.state_at is 'When the event with this state was created. Older events change nothing.';
comment on column cue.subscriptions.version is 'Grows with every event applied.';
comment on column cue.subscriptions.created_at is 'When it was first seen.';
comment on column cue.subscriptions.updated_at is 'When an event last changed it.';

comment on table cue.stripe_events is 'Handled Stripe events, so that none is applied twice. Kept for 90 days, longer than Stripe repeats them.';
comment on column cue.stripe_events.id is 'Stripe''s.';
comment on column cue.stripe_events.type is 'Stripe''s event type.';
comment on column cue.stripe_events.received_at is 'When it was handled.';

comment on table cue.tickets is 'Support tickets.';
comment on column cue.tickets.id is 'Ticket number shown to users.';
comment on column cue.tickets.account_id is 'The author''s account.';
comment on column cue.tickets.subject is 'Subject line.';
comment on column cue.tickets.message is 'Full text.';
comment on column cue.tickets.severity is 'Severity, as its author sees it.';
comment on column cue.tickets.type is 'Kind of ticket.';
comment on column cue.tickets.status is 'Status.';
comment on column cue.tickets.issue_url is 'The issue made for it in the tracker; null: none, or not yet.';
comment on column cue.tickets.issue_tried_at is 'An issue may have been made since then: look for it before making another.';
comment on column cue.tickets.created_at is 'When it was opened.';
comment on column cue.tickets.updated_at is 'When its status was last moved.';

-- Memory block ----------------------------------------------------------------------------------------------------------------------------

comment on table cue.memory_versions is 'Each account''s memory block, version by version: the newest fifty.';
comment on column cue.memory_versions.account_id is 'The account.';
comment on column cue.memory_versions.version is 'From 1, for each account.';
comment on column cue.memory_versions.content is '{plan, release, cues: [{id, name}]}: what a version is made of.';
comment on column cue.memory_versions.changes is 'How it differs from the version before, a sentence for each difference.';
comment on column cue.memory_versions.created_at is 'When the difference was found.';

comment on table cue.memory_subscriptions is 'Agents notified when the memory block changes.';
comment on column cue.memory_subscriptions.id is 'UUIDv7.';
comment on column cue.memory_subscriptions.account_id is 'The account.';
comment on column cue.memory_subscriptions.agent_id is 'Id chosen by the agent.';
comment on column cue.memory_subscriptions.callback_url is 'URL that notifications are posted to.';
comment on column cue.memory_subscriptions.sent_version is 'Latest version the agent was notified of.';
comment on column cue.memory_subscriptions.created_at is 'When it subscribed.';

-- Cues ------------------------------------------------------------------------------------------------------------------------------------

comment on table cue.cues is
  'Cues as configured by users. Columns that change with every run are in cue_runs, so that firing never writes these wide rows.';
comment on column cue.cues.id is 'cue_ and twelve random characters.';
comment on column cue.cues.account_id is 'The cue''s account.';
comment on column cue.cues.name is 'Name, not necessarily unique.';
comment on column cue.cues.description is 'More about it, for people.';
comment on column cue.cues.status is 'Whether it fires. Read together with deleted_at.';
comment on column cue.cues.transport is 'Webhook or worker. Never changes.';
comment on column cue.cues.schedule_type is 'Whether cron or at holds the schedule.';
comment on column cue.cues.cron is 'Five fields, or six with seconds in front, in local time of timezone.';
comment on column cue.cues.at is 'The only slot of a one-time cue.';
comment on column cue.cues.timezone is 'The IANA zone, canonical, that cron is read in.';
comment on column cue.cues.callback_url is 'Where a webhook goes. A worker''s cue needs none.';
comment on column cue.cues.callback_method is 'The HTTP method of its webhooks.';
comment on column cue.cues.callback_headers is
  'Headers of the user''s own, sent with each webhook: name to value. May hold credentials: no view shows a value.';
comment on column cue.cues.payload is 'JSON in canonical form, the very bytes that a webhook sends; null where payload_id says which.';
comment on column cue.cues.payload_id is 'The row of payloads that holds one of more than 2 KB.';
comment on column cue.cues.task is 'The payload''s member task, if it is a string: what workers filter by.';
comment on column cue.cues.retry_max_attempts is 'Attempts of one execution, the first one counted; of a worker''s cue, claims.';
comment on column cue.cues.retry_backoff_minutes is 'Waits before the second attempt, the third, and so on; the last one repeats.';
comment on column cue.cues.on_failure_email is 'A mail when an execution is exhausted or missed.';
comment on column cue.cues.on_failure_webhook is 'URL that an exhausted or missed execution is posted to; null: none.';
comment on column cue.cues.on_failure_pause is 'An exhausted or missed execution pauses a recurring cue.';
comment on column cue.cues.timeout_seconds is
  'How long a callback may take to answer; null means 30. Null, with the three columns after it, where the user never set delivery.';
comment on column cue.cues.outcome_deadline_seconds is 'How long an awaited outcome may take after the delivery; null means 300.';
comment on column cue.cues.claim_timeout_seconds is 'How long a worker''s execution may wait for a claim; null means 900.';
comment on column cue.cues.await_outcome is
  'A 2xx ends nothing: the handler''s report does. Null, which means false, until the user sets it or an outcome deadline.';
comment on column cue.cues.alert_consecutive_failures is
  'Failures in a row that raise an alert. Null, which means 3, where the user never set alerts.';
comment on column cue.cues.alert_missed_window_multiplier is
  'Slots that may pass without a success. Null, which means 2, where the user never set alerts.';
comment on column cue.cues.catch_up is 'Policy for slots that came due during an outage.';
comment on column cue.cues.verification_mode is 'Requirement for a verified success. Null means none: the user never set it.';
comment on column cue.cues.memory_check is 'Marks the weekly memory block cue, which is not counted against the plan''s limit.';
comment on column cue.cues.created_at is 'When it was created.';
comment on column cue.cues.updated_at is 'When it was last edited, or its status moved.';
comment on column cue.cues.deleted_at is 'When it was deleted; the row is removed once its history is purged.';

comment on table cue.cue_runs is 'The moving parts of a cue: one narrow row that every run updates. Gone as soon as the cue is deleted.';
comment on column cue.cue_runs.cue_id is 'The cue.';
comment on column cue.cue_runs.account_id is 'The cue''s account, copied so that looking for due cues joins nothing.';
comment on column cue.cue_runs.transport is 'The cue''s transport, copied likewise.';
comment on column cue.cue_runs.version is 'Grows with every edit. A run prepared from an older version does not happen.';
comment on column cue.cue_runs.next_run is 'The slot that comes next. Null: none, since the cue is paused or has ended.';
comment on column cue.cue_runs.last_slot is 'The slot fired last. next_run lies after it, so that no clock and no edit fires a slot twice.';
comment on column cue.cue_runs.last_run is 'When an execution was last made, however it was triggered; a deferred one counts from its start, once it has ended.';
comment on column cue.cue_runs.run_count is 'Executions ever made, however they were triggered.';
comment on column cue.cue_runs.fired_count is 'Executions that the schedule made.';
comment on column cue.cue_runs.failed_deliveries is 'Executions that failed in a row on the delivery side.';
comment on column cue.cue_runs.failed_outcomes is 'Reports and waits for them that failed in a row.';
comment on column cue.cue_runs.deliveries_failing_since is 'The first of the failures that failed_deliveries counts.';
comment on column cue.cue_runs.outcomes_failing_since is 'The first of the failures that failed_outcomes counts.';
comment on column cue.cue_runs.success_due_at is
  'By then there must have been a success, or a missed_window alert is raised. Set when firing where none is set; a success writes nothing.';

comment on table cue.missed_slots is 'Slots that did not run, and why. Kept for 90 days.';
comment on column cue.missed_slots.id is 'The order in which they were recorded.';
comment on column cue.missed_slots.cue_id is 'The cue.';
comment on column cue.missed_slots.account_id is 'The cue''s account.';
comment on column cue.missed_slots.first is 'The first slot that was dropped.';
comment on column cue.missed_slots.last is 'The last one.';
comment on column cue.missed_slots.count is 'How many, exact to 10,000.';
comment on column cue.missed_slots.policy is 'The cue''s catch_up at that time.';
comment on column cue.missed_slots.reason is 'Why they did not run.';
comment on column cue.missed_slots.recorded_at is 'When this was written, or last grew.';

comment on table cue.fires is 'Manual fires of the last 24 h: the limit of ten an hour, and idempotency keys.';
comment on column cue.fires.id is 'UUIDv7.';
comment on column cue.fires.cue_id is 'The cue that was fired.';
comment on column cue.fires.account_id is 'The cue''s account.';
comment on column cue.fires.fired_at is 'When it was asked for. The row goes a day later.';
comment on column cue.fires.idempotency_key is 'The caller''s key for the request: repeating it returns the same execution.';
comment on column cue.fires.request_hash is 'Hash of the request with that key: a different request with the same key is refused.';
comment on column cue.fires.execution_id is 'The execution it created.';

comment on table cue.alerts is 'Alerts. At most one of a type is open per cue.';
comment on column cue.alerts.id is 'UUIDv7.';
comment on column cue.alerts.account_id is 'The cue''s account.';
comment on column cue.alerts.cue_id is 'The cue.';
comment on column cue.alerts.execution_id is 'The execution that raised it, if it was one.';
comment on column cue.alerts.alert_type is 'Why it was raised.';
comment on column cue.alerts.severity is 'How urgent it is.';
comment on column cue.alerts.message is 'The same for people, as it was when the alert last grew.';
comment on column cue.alerts.metadata is
  'By type: failure_count and first_failure_at, which grow while it is open, previous_acknowledged_at, and so on.';
comment on column cue.alerts.acknowledged_at is 'When it was acknowledged. Null: open.';
comment on column cue.alerts.created_at is 'When it was raised.';

-- Executions ------------------------------------------------------------------------------------------------------------------------------

comment on sequence cue.flight_ids is 'Numbers flights.';
comment on table cue.flights is
  'Webhook attempts that one engine has begun together. It extends the lease while it lives; what a lapsed flight holds is attempted again.';
comment on column cue.flights.id is 'Its number; executions name it while it holds them.';
comment on column cue.flights.execution_ids is 'What it was begun with. Those that have ended stay listed until all have.';
comment on column cue.flights.lease_expires_at is
  'Past this, and a moment for a holder that only lost its connection, any engine takes it over.';
comment on column cue.flights.created_at is 'When its attempts began.';

comment on table cue.executions is 'One run of a cue. Partitioned by month of its id, a UUIDv7: newest first is the key''s own order.';
comment on column cue.executions.id is 'UUIDv7 of the creation. Receivers use it to recognise repetitions.';
comment on column cue.executions.account_id is 'The cue''s account.';
comment on column cue.executions.cue_id is 'The cue. No foreign key: history outlives a deleted cue until it is purged.';
comment on column cue.executions.transport is 'The cue''s transport.';
comment on column cue.executions.status is 'Delivery status.';
comment on column cue.executions.triggered_by is 'What triggered it.';
comment on column cue.executions.replayed_from is 'The execution that a replay repeats.';
comment on column cue.executions.scheduled_for is 'The slot, or the instant that a fire asked for.';
comment on column cue.executions.payload is 'What is or was sent: the cue''s payload at that time, or the override of a fire; null where payload_id says which.';
comment on column cue.executions.payload_id is 'The row of payloads that holds one of more than 2 KB. It is there as long as the execution is.';
comment on column cue.executions.task is 'The payload''s member task, if it is a string: what workers filter by.';
comment on column cue.executions.attempts is 'Sends or claims begun. Numbers them, and fences results of an attempt that was taken over.';
comment on column cue.executions.lost_attempts is
  'Lost sends and released claims. They do not count towards retry_max_attempts.';
comment on column cue.executions.started_at is 'When the first attempt began.';
comment on column cue.executions.last_attempt_at is 'When the latest attempt began.';
comment on column cue.executions.delivered_at is 'When the callback answered 2xx, or the worker reported.';
comment on column cue.executions.ended_at is 'When it ended. Set exactly in success, failed, missed and outcome_timeout.';
comment on column cue.executions.attempt_due_at is 'When the waiting webhook attempt is due. Set exactly while one is waiting.';
comment on column cue.executions.claimable_at is 'When workers may claim it. Set exactly while it can be claimed.';
comment on column cue.executions.claim_deadline_at is 'Missed if not claimed by then.';
comment on column cue.executions.flight_id is 'The flight that holds the attempt now under way.';
comment on column cue.executions.http_status is 'HTTP status of the latest response; null without one.';
comment on column cue.executions.error_message is 'Why the latest attempt failed or the execution ended, as a sentence.';
comment on column cue.executions.response_body is 'Start of the latest response body, up to 2,000 characters.';
comment on column cue.executions.claimed_by_worker is 'Worker that holds or held the claim. Null again once released or lost.';
comment on column cue.executions.claimed_at is 'When it was claimed.';
comment on column cue.executions.claim_token is 'Token of the current claim: any other token is refused.';
comment on column cue.executions.last_heartbeat_at is 'When the claim was taken or last extended.';
comment on column cue.executions.lease_expires_at is
  'End of the claim, extended while its worker sends heartbeats. Set exactly while claimed.';
comment on column cue.executions.outcome_deadline_at is 'Deadline of the awaited outcome. Set exactly while it is awaited.';
comment on column cue.executions.outcome_state is 'The report and its verification; null before any report.';
comment on column cue.executions.outcome_success is 'The reported result; never changes.';
comment on column cue.executions.outcome_recorded_at is 'When it was reported.';
comment on column cue.executions.result is 'The report: what came out, in words.';
comment on column cue.executions.error is 'The report: what went wrong, in words.';
comment on column cue.executions.metadata is 'Evidence: an object of the handler''s own, 10 KB at most.';
comment on column cue.executions.external_id is 'Evidence: what the result is called elsewhere.';
comment on column cue.executions.result_url is 'Evidence: where the result is.';
comment on column cue.executions.result_ref is 'Evidence: a short reference to the result.';
comment on column cue.executions.result_type is 'Evidence: what kind of result it is, to filter by.';
comment on column cue.executions.summary is 'Evidence: the result in 500 characters.';
comment on column cue.executions.artifacts is 'Evidence: a list of what was made, 64 KB at most.';
comment on column cue.executions.rejected_at is 'When a person rejected the outcome: later evidence does not lift that.';
comment on column cue.executions.verification_reason is 'Why a person verified or rejected the outcome.';
comment on column cue.executions.created_at is 'When it was made.';
comment on column cue.executions.updated_at is 'When it last changed.';

comment on table cue.attempts is 'The attempt log: one row per attempt that ended, or was given up for lost. Partitioned like executions.';
comment on column cue.attempts.execution_id is 'The execution, whose id also chooses the partition.';
comment on column cue.attempts.attempt is 'Its number, from 1.';
comment on column cue.attempts.account_id is 'The execution''s account.';
comment on column cue.attempts.result is 'How it ended.';
comment on column cue.attempts.started_at is 'When the request was sent, or the execution claimed.';
comment on column cue.attempts.finished_at is 'When it ended or was given up.';
comment on column cue.attempts.duration_ms is 'Milliseconds between the two.';
comment on column cue.attempts.http_status is 'HTTP status of the response; null without one.';
comment on column cue.attempts.error is 'Why it failed, as a sentence.';
comment on column cue.attempts.worker_id is 'The worker that held the claim.';

comment on table cue.workers is 'Worker processes as they report themselves, with the tasks they handle.';
comment on column cue.workers.account_id is 'Whose worker it is.';
comment on column cue.workers.worker_id is 'Id chosen by the worker, such as a host name.';
comment on column cue.workers.handlers is 'The tasks that it handles.';
comment on column cue.workers.last_heartbeat is 'Latest heartbeat, of the worker or of one of its claims.';
comment on column cue.workers.registered_since is 'When it was first seen.';

-- The service -----------------------------------------------------------------------------------------------------------------------------

comment on table cue.engines is 'Replicas that fire and deliver. The latest last_seen_at is the service''s heartbeat.';
comment on column cue.engines.id is 'A replica''s own, new with each start.';
comment on column cue.engines.version is 'The release that it runs.';
comment on column cue.engines.started_at is 'First heartbeat.';
comment on column cue.engines.last_seen_at is 'Latest heartbeat.';
comment on column cue.engines.lateness_ms is 'How many milliseconds after its slot the engine''s latest scheduled delivery was taken.';
comment on column cue.engines.open_deliveries is 'Open requests.';
comment on column cue.engines.stopped_at is 'When it was shut down.';

comment on table cue.outages is 'Periods without a heartbeat of any engine. Slots that came due in one are handled by their cue''s catch_up.';
comment on column cue.outages.from_at is 'Last heartbeat before it.';
comment on column cue.outages.until_at is 'First heartbeat after it.';

comment on table cue.echoes is 'What was posted to an echo address, for five minutes. Unlogged: a crash may forget it.';
comment on column cue.echoes.token is 'The address, chosen by who posts; the latest post counts.';
comment on column cue.echoes.payload is 'The body as JSON text; a body that is not JSON as a string.';
comment on column cue.echoes.headers is 'The headers that are shown, under lower-case names.';
comment on column cue.echoes.received_at is 'When it was posted.';
comment on column cue.echoes.expires_at is 'When it expires.';

comment on table cue.cue_rooms is
  'Lower bound of the cues an account may still create, so that creating one does not count them all. Creating cues reduces it; when it is too low, the cues are counted again.';
comment on column cue.cue_rooms.account_id is 'The account.';
comment on column cue.cue_rooms.plan_cues is 'The plan''s limit when they were counted. If the limit has changed, the row is ignored.';
comment on column cue.cue_rooms.room is 'Cues that can be created, at least.';
comment on table cue.rate_windows is
  'Sliding windows of request limits. Unlogged: no request waits for a disk, and after a crash they start anew. Nothing but the key is '
  'indexed, so that every hit is a HOT update.';
comment on column cue.rate_windows.subject is 'What is counted, such as key:ID, address:IP or echo:IP.';
comment on column cue.rate_windows.started_at is 'What hits are counted from.';
comment on column cue.rate_windows.hits is
  'When, in milliseconds after started_at, ascending. Kept in the row, not beside it, and at most 500: a higher limit counts several '
  'hits as one entry.';
comment on column cue.rate_windows.newest is 'How many the newest entry stands for so far.';
comment on column cue.rate_windows.weight is 'How many hits an entry stands for: 1 for limits up to 500.';
comment on column cue.rate_windows.expires_at is 'When the last hit expires, and the row may be removed.';

comment on sequence cue.payload_ids is 'Numbers payloads.';
comment on table cue.payloads is 'Payloads of more than 2 KB, each stored once per cue and referenced by the cue and by executions.';
comment on column cue.payloads.id is 'What cues.payload_id and executions.payload_id name.';
comment on column cue.payloads.account_id is 'The account of its cue.';
comment on column cue.payloads.cue_id is 'The cue whose executions may refer to it.';
comment on column cue.payloads.hash is 'SHA-256 of the body.';
comment on column cue.payloads.body is 'JSON in canonical form, the very bytes that a webhook sends.';
comment on column cue.payloads.since_run is 'The cue''s run_count when this became its payload; null where executions may have carried it before.';
comment on column cue.payloads.last_used_at is 'When the latest execution with it was made, or later; null while it is its cue''s own.';
comment on column cue.payloads.created_at is 'When it was stored.';
comment on table cue.payload_counters is 'Payload bytes per account and UTC day, for plans that cap them, counted by each backend on its own row.';
comment on column cue.payload_counters.account_id is 'Whose executions.';
comment on column cue.payload_counters.day is 'The UTC day on which they were made.';
comment on column cue.payload_counters.slot is 'The process id of the backend that counts here.';
comment on column cue.payload_counters.bytes is 'The sum of their payloads.';
comment on table cue.known_secrets is 'Fingerprints of the replicas'' secrets. They cannot decrypt or sign anything.';
comment on column cue.known_secrets.name is 'ENCRYPTION_KEYS or SESSION_SECRET.';
comment on column cue.known_secrets.value is 'Id of a current or former encryption key; a slow hash of the session secret.';
comment on column cue.known_secrets.known_at is 'When a replica first started with it.';
