-- 0001_init.sql: all types, tables and indexes. Functions live in sql/functions and are reloaded by every migrate; nothing here calls one, so
-- that they may change freely. What follows `---` is the description of a type, sequence, table or column, as \dT+ and \d+ show it. Until 1.0.0
-- this file is edited in place; from then on, changes are new files.

create type cue.plan as enum ('free', 'pro', 'scale'); --- Plan of an account. Its limits are in the table plans.
--- Bearer token sent with callbacks: a token for the execution only, or the account's default key.
create type cue.webhook_authorization as enum ('execution_token', 'api_key');
create type cue.key_origin as enum ('user', 'register', 'migration', 'mcp-exchange'); --- How an API key was created.
create type cue.key_scope as enum ('read', 'write', 'worker', 'account', 'approve'); --- Permission of an API key.
create type cue.audit_event as enum --- Type of an audit log entry.
  ('account.registered', 'account.updated', 'key.created', 'key.renamed', 'key.revoked', 'key.regenerated', 'key.revealed',
   'webhook_secret.regenerated', 'alert_webhook_secret.created', 'alert_webhook_secret.regenerated', 'session.created', 'session.refreshed',
   'session.revoked', 'account.deletion_requested', 'account.deletion_cancelled', 'account.disowned', 'plan.changed', 'cue.created',
   'cue.updated', 'cue.paused', 'cue.resumed', 'cue.deleted', 'cues.applied', 'operation.created', 'account.held', 'account.released',
   'channel.set', 'channel.deleted', 'event_endpoint.created', 'event_endpoint.deleted', 'event_endpoint.enabled', 'event_endpoint.disabled',
   'gate.set', 'gate.deleted', 'gate.paused', 'gate.resumed', 'execution.signalled', 'approval.decided');
--- Status of a sign-in. Expiry is not a status: see device_codes.expires_at.
create type cue.device_code_status as enum ('pending', 'email_sent', 'approved', 'claimed');
--- How an execution reaches its handler: sent to a callback (webhook), or claimed by a worker.
create type cue.transport as enum ('webhook', 'worker');
--- recurring has cron expressions or a regular interval; once has a single instant, at.
create type cue.schedule_type as enum ('recurring', 'once');
--- Only active cues fire on schedule. completed: no further run, see completed_reason; failed: a one-time cue whose
--- execution failed.
create type cue.cue_status as enum ('active', 'paused', 'completed', 'failed');
--- Why a cue has completed: its last slot has passed, it has taken max_runs runs, or it runs only once.
create type cue.completion as enum ('ended', 'max_runs', 'once');
--- What paused a cue: its user, a smaller plan, on_failure, or the deletion of its account.
create type cue.pause_cause as enum ('user', 'plan', 'failures', 'deletion');
--- HTTP method of a webhook. GET sends no body.
create type cue.callback_method as enum ('POST', 'PUT', 'PATCH', 'GET');
--- Policy for slots that came due during an outage: run none of them, only the latest, or the newest 100.
create type cue.catch_up as enum ('skip_missed', 'run_once_if_missed', 'replay_all_missed');
--- What becomes of an execution while another one of the cue has not ended: it runs as well, is skipped, is queued
--- (queue_one: unless one is queued already; queue_all: behind up to 99 others), or the others are cancelled.
create type cue.overlap as enum ('allow', 'skip', 'queue_one', 'queue_all', 'cancel_previous');
--- What an ordered gate does when an execution fails: goes on with the next one, or pauses.
create type cue.gate_on_failure as enum ('continue', 'pause');
create type cue.budget_period as enum ('day', 'week', 'month'); --- Period of a gate's budget. Weeks begin on Monday.
--- Requirement for a reported success to count as verified.
create type cue.verification_mode as enum ('none', 'require_external_id', 'require_result_url', 'require_artifacts', 'manual');
--- Delivery status. sql/README.md has the state diagram; constraints on executions tie each status to its columns.
create type cue.execution_status as enum
  ('pending', 'delivering', 'success', 'failed', 'retrying', 'retry_ready', 'missed', 'pending_outcome', 'outcome_timeout');
create type cue.outcome_state as enum --- The handler's report and its verification. unknown: no report in time.
  ('reported_success', 'reported_failure', 'verified_success', 'verification_pending', 'verification_failed', 'unknown');
--- What triggered an execution. chain: the executions that its cue follows.
create type cue.trigger_kind as enum ('schedule', 'manual_fire', 'replay', 'backfill', 'chain');
--- Result of an attempt. lost: its engine or worker stopped responding.
create type cue.attempt_result as enum ('success', 'failed', 'lost');
--- Why slots did not run: no engine was alive (service_away), the operator held the service or the account (held), a
--- limit of the plan was reached (execution_limit), or the cue was running (overlap; queue_full: with a full queue).
--- gate: an execution waited at its cue's gate for longer than max_wait. after: the cues that it follows did not signal in time. approval_expired:
--- nobody decided about it in time.
create type cue.missed_reason as enum ('service_away', 'execution_limit', 'excluded', 'overlap', 'queue_full', 'held', 'gate', 'after', 'approval_expired');
--- What an execution waits for, in the order in which that is checked: other executions to end, a person's approval, others of its cue, its cue's gate.
create type cue.held_by as enum ('after', 'approval', 'overlap', 'gate');
--- Why it waits: the cues that it follows have not signalled; for a person's approval; others of its cue run; the gate's limits on running executions or
--- starts are reached, others come first, or the gate is paused, its breaker is open or its budget is spent.
create type cue.held_reason as enum ('after', 'approval', 'overlap', 'parallel', 'rate', 'order', 'paused', 'breaker', 'budget');
--- Whether an execution whose approval expires is missed, or runs.
create type cue.approval_expiry as enum ('skip', 'run');
--- Decision about an execution that waited for approval. expired: nobody decided in time; cancelled: it was cancelled, or superseded, before that.
create type cue.approval_decision as enum ('approved', 'rejected', 'expired', 'cancelled');
--- How a decision came: by a call, a bulk operation, or the link in a message.
create type cue.approval_source as enum ('call', 'operation', 'link');
--- Reason for an alert: consecutive failures, no success in time, no outcome in time, a cue paused after failures, or a
--- gate whose breaker has been open for five minutes.
create type cue.alert_type as enum ('consecutive_failure', 'missed_window', 'outcome_timeout', 'cue_paused', 'gate_open');
create type cue.alert_severity as enum ('info', 'warning', 'high', 'critical'); --- Urgency of an alert, lowest first.
--- What an operation does to its targets.
create type cue.operation_type as enum ('replay', 'cancel', 'dismiss', 'pause', 'resume', 'delete', 'fire', 'backfill', 'approve', 'reject');
--- Whether an operation is running, has dealt with all targets, or was aborted.
create type cue.operation_status as enum ('running', 'completed', 'aborted');
--- Type of an event. succeeded: delivered, and no failure reported; rejected: the verification failed, by a rule or a
--- person; cancelled: also superseded by the next run. unattended: work waits, and no worker that handles it is alive.
create type cue.event_type as enum
  ('cue.created', 'cue.updated', 'cue.deleted', 'cue.paused', 'cue.resumed', 'cue.completed', 'execution.succeeded', 'execution.failed',
   'execution.missed', 'execution.outcome_timeout', 'execution.retrying', 'execution.verified', 'execution.rejected', 'execution.cancelled',
   'alert.raised', 'alert.acknowledged', 'alert.resolved', 'operation.finished', 'task.unattended', 'task.attended', 'key.created', 'key.revoked',
   'secret.regenerated', 'limit.reached', 'endpoint.disabled', 'gate.opened', 'gate.closed', 'gate.paused', 'gate.resumed', 'gate.budget_warning', 'gate.budget_reached',
   'approval.requested', 'approval.decided');
--- Service that a channel sends to; webhook: a signed request to any address.
create type cue.channel_type as enum ('email', 'slack', 'discord', 'teams', 'ntfy', 'pagerduty', 'webhook');
--- What a notice says: an alert was raised or resolved, what happened while it was snoozed (summary), an event, or that an execution waits for approval.
create type cue.notice_kind as enum ('raised', 'resolved', 'summary', 'event', 'approval');
create type cue.notice_state as enum ('waiting', 'sent', 'failed'); --- failed: no try is left.
--- Whether events are sent to an endpoint. disabled: it failed for three days.
create type cue.endpoint_status as enum ('enabled', 'disabled');
create type cue.ticket_severity as enum ('low', 'medium', 'high'); --- Severity of a ticket, chosen by its author.
create type cue.ticket_type as enum ('bug', 'feature-request'); --- Type of a ticket.
--- Status of a ticket. set_ticket_status changes it, by hand.
create type cue.ticket_status as enum ('open', 'in_progress', 'resolved', 'closed');

-- The cell ------------------------------------------------------------------------------------------------------------------------

-- The number of this database among those of the service, which the migrating session sets.
--- One row: the number of this database among those of the service, encoded in ids and keys. Never changes.
create table cue.cell (
  id smallint not null check (id between 1 and 61), --- The n-th URL of CELLS is cell n.
  created_at timestamptz not null default now() --- When the database took its number.
);
create unique index cell_is_one on cue.cell ((true));
insert into cue.cell (id) values (coalesce(nullif(current_setting('pgcue.cell', true), ''), '1')::smallint);
-- Ids and keys contain the number. Conditional rules, so that the statement's rights are still checked.
create rule cell_stays as on delete to cue.cell where true do instead nothing;
create rule cell_stays_the_same as on update to cue.cell where true do instead nothing;

--- One row if the cell goes on at another server: nothing here can be changed, and replicas go there.
create table cue.moved (
  to_url text not null, --- The other server, as replicas connect to it.
  at timestamptz not null default now() --- When it took over.
);
create unique index moved_is_one on cue.moved ((true));

--- The cell of each email address, so that an address has one account across all cells. Used in the home cell only.
create table cue.directory (
  email_hash bytea primary key, --- SHA-256 of the address in lower case.
  cell smallint not null, --- Cell in which its account is created.
  created_at timestamptz not null --- When the cell claimed it.
);

create table cue.known_secrets ( --- Fingerprints of the replicas' secrets, which can neither decrypt nor sign anything.
  name text not null, --- ENCRYPTION_KEYS or SESSION_SECRET.
  value text not null, --- Id of an encryption key that is or was the first, or a slow hash of the session secret.
  known_at timestamptz not null default now(), --- When a replica first started with it.
  primary key (name, value)
);

-- Accounts ------------------------------------------------------------------------------------------------------------------------

create table cue.plans ( --- Limits of each plan. The service writes them at start from its PLANS setting.
  plan cue.plan primary key, --- The plan.
  requests_per_minute int not null check (requests_per_minute > 0), --- Requests per API key in any 60 seconds.
  cues int not null check (cues >= 0), --- Active and paused cues together.
  --- Executions created per UTC month. Once reached, a grace period of 24 hours begins, which ends early at twice the
  --- limit.
  executions_per_month int not null check (executions_per_month >= 0),
  fires_per_hour int not null default 10 check (fires_per_hour > 0), --- Manual fires of a cue in any hour.
  --- Webhook requests an account may have open at once, shared equally among replicas.
  open_deliveries int not null default 1000 check (open_deliveries > 0),
  --- Maximum of delivery.timeout_seconds; null: 3600.
  max_timeout_seconds int check (max_timeout_seconds between 1 and 3600),
  --- Minimum time between two slots of a schedule; null: no minimum.
  min_interval_seconds int check (min_interval_seconds > 0),
  --- Total payload bytes of an account's executions per UTC day, counted per execution even if the payload is stored
  --- once; null: unlimited.
  payload_bytes_per_day bigint check (payload_bytes_per_day > 0)
);
insert into cue.plans (plan, requests_per_minute, cues, executions_per_month, open_deliveries)
values ('free', 60, 10, 300, 50), ('pro', 200, 100, 5000, 250), ('scale', 500, 500, 50000, 1000);

create table cue.overridden_limits ( --- Limits that accounts have, or had, of their own.
  name text primary key, --- Name of a column of cue.plans.
  least bigint not null --- Smallest value of any account so far.
);

create table cue.accounts ( --- Owners of cues. Every table with data of an account has account_id.
  id uuid primary key, --- UUIDv7, created at registration.
  email text not null check (length(email) <= 254), --- Email address as registered. Unique, ignoring case.
  plan cue.plan not null default 'free' references cue.plans, --- Plan, which sets the account's limits.
  --- Overrides of the plan's limits, by names of cue.plans; JSON null: no limit.
  limits jsonb not null default '{}',
  --- Signs callbacks: whsec_ and 64 hex digits. The key of X-Service-Signature is the whole text.
  webhook_secret text not null check (webhook_secret ~ '^whsec_[0-9a-f]{64}$'),
  previous_webhook_secret text, --- Also signs until previous_webhook_secret_until.
  previous_webhook_secret_until timestamptz, --- End of the overlap requested by the last regeneration.
  webhook_authorization cue.webhook_authorization not null default 'execution_token', --- Bearer token of callbacks.
  memory_block_enabled boolean not null default false, --- Whether the account has agreed to the memory block.
  alert_webhook_url text, --- URL that alerts are posted to; null: none.
  --- Signs alert webhooks: 64 hex digits, created on first use.
  alert_webhook_secret text check (alert_webhook_secret ~ '^[0-9a-f]{64}$'),
  previous_alert_webhook_secret text, --- Also signs until previous_alert_webhook_secret_until.
  previous_alert_webhook_secret_until timestamptz, --- End of the overlap requested by the last regeneration.
  --- When the monthly execution limit was reached; the grace period ends 24 hours later. Applies to that month only.
  limit_reached_at timestamptz,
  created_at timestamptz not null default now(), --- Time of registration.
  updated_at timestamptz not null default now(), --- When a setting, a secret or the plan last changed.
  stripe_customer_id text, --- The account's customer at Stripe; null before its first checkout.
  --- When a mailed link was first confirmed; null: never.
  email_confirmed_at timestamptz,
  approvals_by_link boolean not null default true, --- Whether the link in a message can approve and reject, or only a signed-in person.
  check ((previous_webhook_secret is null) = (previous_webhook_secret_until is null)),
  check ((previous_alert_webhook_secret is null) = (previous_alert_webhook_secret_until is null))
);
create unique index accounts_email on cue.accounts (lower(email));
create unique index accounts_stripe_customer_id on cue.accounts (stripe_customer_id) where stripe_customer_id is not null;

--- API keys by SHA-256 hash. The default key's text is also stored encrypted, so that it can be revealed.
create table cue.api_keys (
  id uuid primary key, --- UUIDv7.
  account_id uuid not null references cue.accounts on delete cascade, --- The key's account.
  key_hash bytea not null unique, --- SHA-256 of the key's text.
  prefix text not null, --- First 12 characters, so that people recognise the key.
  label text not null check (length(label) between 1 and 100), --- Name given by the owner.
  --- Permissions. Those of new keys leave out approve, which only a caller with it can give.
  scopes cue.key_scope[] not null default '{read,write,worker,account}' check (cardinality(scopes) > 0),
  created_by cue.key_origin not null, --- How the key was created.
  --- Whether the key can be shown again. At most one unrevoked key per account can.
  is_default boolean not null default false,
  --- The default key's text in AES-256-GCM: encryption key id, nonce, text and tag in base64, joined by dots. It can be
  --- decrypted only as a key of this account. Null once revoked.
  ciphertext text,
  created_at timestamptz not null default now(), --- Time of creation.
  last_used_at timestamptz, --- When it last authenticated a request, to the minute; null: never.
  revoked_at timestamptz, --- When it was revoked; the row is removed 30 days later. Null: active.
  check (ciphertext is null or is_default and revoked_at is null),
  -- It can be revealed to other keys, and callbacks may carry it.
  constraint default_key_cannot_approve check (not is_default or 'approve' <> all (scopes))
);
create index api_keys_account on cue.api_keys (account_id, created_at desc);
create index api_keys_revoked_at on cue.api_keys (revoked_at) where revoked_at is not null;
create unique index api_keys_default on cue.api_keys (account_id) where is_default and revoked_at is null;

--- Sessions, by the jti of their JWT. A session is valid until it expires or its row is deleted.
create table cue.sessions (
  id uuid primary key, --- The jti claim of the JWT.
  account_id uuid not null references cue.accounts on delete cascade, --- The session's account.
  created_at timestamptz not null, --- Time of sign-in or refresh.
  expires_at timestamptz not null, --- A year after creation, or a day after the session was refreshed.
  scopes cue.key_scope[], --- The scopes of the key that opened it; null means all.
  key_id uuid, --- The key that opened it, and whose revocation ends it; null after a sign-in by link.
  ip text, --- The address that opened it; null if unknown.
  user_agent text --- The program that opened it, in its own words, up to 300 characters; null if unknown.
);
create index sessions_account on cue.sessions (account_id);
create index sessions_expires_at on cue.sessions (expires_at);

--- One-time tokens, by SHA-256, that are exchanged for a session or a key. Deleted on use. Unlogged: after a crash,
--- people sign in again.
create unlogged table cue.session_tokens (
  token_hash bytea primary key, --- SHA-256 of the token.
  --- Account that the session or key will belong to.
  account_id uuid not null references cue.accounts on delete cascade,
  expires_at timestamptz not null, --- 15 minutes after creation.
  scopes cue.key_scope[] --- The scopes of the session that it opens; null: all.
);
create index session_tokens_account on cue.session_tokens (account_id);
create index session_tokens_expires_at on cue.session_tokens (expires_at);

--- Sign-ins in progress, by the SHA-256 of the code the device generated. Unlogged: after a crash, people sign in
--- again.
create unlogged table cue.device_codes (
  code_hash bytea primary key, --- SHA-256 of the code.
  status cue.device_code_status not null default 'pending', --- Status. Ignored after expires_at.
  ip text, --- Address of the device, shown to the person who confirms.
  email text, --- Email address the person entered.
  link_id uuid unique, --- Id contained, signed, in the mailed link.
  code_ciphertext text, --- The code, encrypted like the default key, for the mail of this sign-in that shows it.
  account_id uuid references cue.accounts on delete cascade, --- Account that the device was signed in to.
  key_id uuid, --- Key of the account, if this sign-in created it. The device gets it once, when it polls.
  created_at timestamptz not null, --- Time the sign-in started.
  expires_at timestamptz not null, --- 15 minutes later.
  cell smallint, --- Cell of the email address, in which the sign-in continues; null if that is this one.
  check ((email is not null) = (status <> 'pending')),
  check (num_nulls(email, link_id, code_ciphertext) in (0, 3)),
  check ((account_id is not null) = (status in ('approved', 'claimed')))
);
create index device_codes_account on cue.device_codes (account_id) where account_id is not null;
create index device_codes_email on cue.device_codes (lower(email)) where email is not null;
create index device_codes_expires_at on cue.device_codes (expires_at);

--- Requested account deletions. The mailed link contains the id, signed: if a genuine link has no row here, its account
--- has been deleted.
create table cue.deletions (
  id uuid primary key, --- Random; known only to the mailed link.
  account_id uuid not null references cue.accounts on delete cascade, --- The account to delete.
  requested_at timestamptz not null, --- Time of the request.
  due_at timestamptz not null, --- When the account is deleted: 24 hours after the request.
  cancelled_at timestamptz --- When the deletion was cancelled; null: not cancelled.
);
create index deletions_account on cue.deletions (account_id);
create unique index deletions_pending on cue.deletions (account_id) where cancelled_at is null;
create index deletions_due_at on cue.deletions (due_at) where cancelled_at is null;

--- Changes to an account, its keys, secrets and cues, with their authors. Never contains a key or secret.
create table cue.audit_events (
  id uuid primary key, --- UUIDv7.
  seq bigint not null generated always as identity, --- Order of the events, including those of one millisecond.
  account_id uuid not null references cue.accounts on delete cascade, --- The account that was changed.
  event cue.audit_event not null, --- Type of change.
  --- The author: key:ID, session:ID, client:ID, stripe, service or anonymous; in psql the database user.
  actor text not null,
  ip text, --- Address of the request; null in psql, and for changes of cues.
  --- Details, depending on the event: the id of a key or cue, the names of changed settings, counts.
  detail jsonb not null default '{}',
  created_at timestamptz not null --- Time of the change. Entries are removed after 400 days.
);
create index audit_events_account on cue.audit_events (account_id, seq);
create index audit_events_created_at on cue.audit_events (created_at);
create index audit_events_cue on cue.audit_events ((detail ->> 'cue_id'), seq) where detail ? 'cue_id';

create table cue.holds ( --- Periods in which the operator held the service or an account. Kept for 90 days.
  id uuid primary key default gen_random_uuid(), --- Random.
  account_id uuid references cue.accounts on delete cascade, --- The account; null for the service.
  --- Why, for whoever asks: /status shows it, and so do refused claims.
  reason text not null check (length(reason) between 1 and 500),
  held_by text not null, --- Who held it last: the operator's token, a session or key, or a database user.
  from_at timestamptz not null, --- Begin of the hold.
  until_at timestamptz not null default 'infinity', --- End of the hold; infinity while it lasts.
  --- Whether slots that came due meanwhile follow catch_up. After a short hold they run late.
  catches_up boolean not null default true,
  check (from_at < until_at)
);
create unique index holds_active on cue.holds (account_id) nulls not distinct where until_at = 'infinity';

-- Usage -----------------------------------------------------------------------------------------------------------------------------
create table cue.gates ( --- Limits that cues share: how many of their executions run at once, start in a period, or cost.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  key text not null check (key ~ '^(?![.]{1,2}$)[A-Za-z0-9._:/-]{1,255}$'), --- The user's own name of the gate.
  parallel int check (parallel between 1 and 1000), --- Executions that may run at once; null: any number.
  rate int check (rate between 1 and 10000), --- Attempts that may start in any interval of length per; null: any number.
  per text check (per ~ '^[0-9]{1,8}[smhd]$' and per::interval between '1 second' and '31 days'), --- As written: 10s, 1h. Null like rate.
  ordered boolean not null default false, --- Whether the first due execution holds the others until it has ended.
  on_failure cue.gate_on_failure not null default 'continue', --- What happens when an execution fails, if ordered.
  breaker_failures int check (breaker_failures between 1 and 1000), --- Failures in a row that open the breaker; null: none.
  breaker_open_seconds int check (breaker_open_seconds >= 1), --- Time until the first probe; it doubles. Null like breaker_failures.
  breaker_max_open_seconds int check (breaker_max_open_seconds <= 86400), --- The longest such time. Null like breaker_failures.
  budget_limit numeric check (budget_limit >= 0), --- What its executions may cost in a period; null: any amount.
  budget_unit text check (length(budget_unit) between 1 and 32), --- The unit of costs that it limits. Null like budget_limit.
  budget_period cue.budget_period, --- Null like budget_limit.
  budget_timezone text, --- IANA time zone in which periods begin. Null like budget_limit.
  budget_reserve numeric check (budget_reserve >= 0), --- What each start reserves; null: nothing.
  --- Executions that are held longer are missed; as written.
  max_wait text not null default '24h' check (max_wait ~ '^[0-9]{1,8}[smhd]$' and max_wait::interval between '1 second' and '31 days'),
  description text check (length(description) <= 2000), --- Description for people.
  paused_at timestamptz, --- Since when it is paused; null: it is not.
  paused_by text, --- Who paused it; null like paused_at, as are the next two.
  pause_reason text check (length(pause_reason) <= 500), --- Why.
  paused_until timestamptz, --- When it goes on by itself; null: never.
  created_at timestamptz not null, --- Creation time.
  updated_at timestamptz not null, --- Time of the last change.
  primary key (account_id, key),
  check ((rate is null) = (per is null)),
  check (not ordered or parallel is null or parallel = 1),
  check (on_failure = 'continue' or ordered),
  check (num_nulls(breaker_failures, breaker_open_seconds, breaker_max_open_seconds) in (0, 3) and breaker_open_seconds <= breaker_max_open_seconds),
  check (num_nulls(budget_limit, budget_unit, budget_period, budget_timezone) in (0, 4)),
  check (budget_reserve is null or budget_limit is not null),
  check (paused_at is not null or num_nonnulls(paused_by, pause_reason, paused_until) = 0)
);
create index gates_paused_until on cue.gates (paused_until) where paused_until is not null;

-- The counters have no foreign key: counting takes no lock of the account's row, so nobody who holds that one keeps the engine from firing the
-- cues of others. erase_account removes them.

--- Executions created per account and UTC month: the sum over all slots. Each database backend counts in its own slot,
--- so that writers never wait for each other; housekeeping sums them up in slot 0.
create table cue.usage_counters (
  account_id uuid not null, --- The account.
  month date not null, --- First day of the UTC month.
  --- Process id of the backend that counts here; 0: the sum so far; negative: a backend that found a row of its first
  --- slot locked.
  slot int not null,
  executions bigint not null default 0, --- Executions created, whatever triggered them.
  reported bigint not null default 0, --- Outcomes reported.
  succeeded bigint not null default 0, --- Outcomes reported as success.
  --- Outcomes reported as failure, plus executions whose delivery failed or was missed.
  failed bigint not null default 0,
  primary key (account_id, month, slot)
) with (fillfactor = 50);
-- What fold_usage sums up; and the months that prune removes, which are folded by then.
create index usage_counters_unfolded on cue.usage_counters (account_id) where slot <> 0;
create index usage_counters_month on cue.usage_counters (month) where slot = 0;

--- Payload bytes per account and UTC day, for plans that limit them. Each database backend counts in its own row.
create table cue.payload_counters (
  account_id uuid not null, --- The account.
  day date not null, --- UTC day on which the executions were created.
  slot int not null, --- Process id of the backend that counts here.
  bytes bigint not null, --- Total size of the executions' payloads.
  primary key (account_id, day, slot)
) with (fillfactor = 50);
create index payload_counters_day on cue.payload_counters (day);

-- Unlogged: what is missing is counted anew.
--- Lower bound of the number of cues an account may still create, so that creating one does not count them all.
--- Creating cues reduces it; when it is too low, the cues are counted again.
create unlogged table cue.cue_rooms (
  account_id uuid primary key references cue.accounts on delete cascade, --- The account.
  --- The plan's limit when the cues were counted. If the limit has changed since, the row is ignored.
  plan_cues int not null,
  room int not null check (room >= 0) --- Number of cues that can certainly be created.
) with (fillfactor = 50);

--- Sliding windows of rate limits. Unlogged: requests never wait for the disk, and after a crash all windows are empty.
--- Only the key is indexed, so that every hit is a HOT update.
create unlogged table cue.rate_windows (
  subject text primary key, --- What is limited, such as key:ID, address:IP or echo:IP.
  started_at timestamptz not null, --- Start of the time scale of hits.
  --- Times of the hits in milliseconds after started_at, ascending. At most 500 entries, so that they stay in the row:
  --- above a limit of 500, an entry counts several hits.
  hits int[] not null,
  newest int not null, --- Hits counted by the newest entry so far.
  weight int not null, --- Hits per entry: 1 for limits up to 500.
  expires_at timestamptz not null, --- When the last hit leaves the window and the row may be removed.
  recent int[], --- Hits of the latest five minutes, newest minute first, whatever the window's length.
  recent_minute int --- The newest of these minutes, since the epoch.
) with (fillfactor = 50);
alter table cue.rate_windows alter hits set storage plain, alter recent set storage plain;

create table cue.idempotency_keys ( --- Responses of the last 24 hours to requests with an Idempotency-Key.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  route text not null, --- Method and path of the request, with its ids.
  key text not null check (key ~ '^[\x21-\x7e]{1,255}$'), --- The key that the caller chose.
  request_hash bytea not null, --- SHA-256 of the body, to refuse a different request with the same key.
  status int not null, --- HTTP status of the response.
  body text not null, --- Body of the response.
  place bigint not null, --- Number within the account, in the order of created_at.
  bytes_before bigint not null, --- Sum of bytes of all earlier rows of the account, expired ones included.
  bytes int not null, --- Approximate size of the row with its index entries.
  created_at timestamptz not null, --- Time of the request. The row expires 24 hours later.
  primary key (account_id, route, key)
);
create index idempotency_keys_place on cue.idempotency_keys (account_id, created_at, place);
create index idempotency_keys_created_at on cue.idempotency_keys (created_at);

--- Stripe subscriptions, as reported by Stripe's events. An account gets the largest plan among those paid for.
create table cue.subscriptions (
  id text primary key, --- Stripe's id.
  account_id uuid not null references cue.accounts on delete cascade, --- The subscriber's account.
  plan cue.plan not null check (plan <> 'free'), --- Plan it pays for.
  status text not null, --- Stripe's status; canceled is final.
  state_at timestamptz not null, --- Creation time of the event that reported this state. Older events change nothing.
  version int not null default 1, --- Increases with every event applied.
  created_at timestamptz not null, --- Time of the first event.
  updated_at timestamptz not null --- Time of the latest change.
);
create index subscriptions_account on cue.subscriptions (account_id);

--- Stripe events already handled, so that none is applied twice. Kept for 90 days, longer than Stripe resends them.
create table cue.stripe_events (
  id text primary key, --- Stripe's id.
  type text not null, --- Stripe's event type.
  received_at timestamptz not null --- When it was handled.
);
create index stripe_events_received_at on cue.stripe_events (received_at);

-- Cues ----------------------------------------------------------------------------------------------------------------------------

create sequence cue.payload_ids; --- Ids of payloads.
--- Cues as their users configured them. Columns that change with every execution are in cue_runs, so that firing never
--- writes these wide rows.
create table cue.cues (
  id text primary key check (id ~ '^cue_[0-9A-Za-z]{12}$'), --- cue_ and twelve random characters.
  account_id uuid not null references cue.accounts on delete cascade, --- The cue's account.
  name text not null check (length(name) between 1 and 255), --- Name, not necessarily unique.
  description text, --- Description for people.
  status cue.cue_status not null default 'active', --- Whether it fires. Meaningful only while deleted_at is null.
  transport cue.transport not null, --- webhook or worker. Never changes.
  --- Whether it runs repeatedly, by cron or schedule_rules, or once, at at. Null: it has no schedule, and runs after other cues.
  schedule_type cue.schedule_type,
  cron text, --- Cron expression of five fields, or six with a leading seconds field, in timezone.
  at timestamptz, --- The only slot of a one-time cue.
  timezone text not null default 'UTC', --- IANA time zone of cron, in canonical form.
  callback_url text, --- URL that webhooks are sent to. Not needed by a worker cue.
  callback_method cue.callback_method not null default 'POST', --- HTTP method of webhooks.
  --- The user's own headers, sent with each webhook: names and values. Values may be credentials, so no view shows
  --- them.
  callback_headers jsonb not null default '{}',
  --- Payload as canonical JSON, exactly the bytes that webhooks send; null if it is in payloads.
  payload text default '{}',
  --- The payload's member task, if it is a string; workers filter by it.
  task text constraint task_is_a_name check (length(task) <= 255),
  --- Maximum attempts per execution, including the first; for worker cues, maximum claims.
  retry_max_attempts int not null default 3 check (retry_max_attempts between 1 and 10),
  --- Wait before the second attempt, before the third, and so on; the last value repeats.
  retry_backoff_minutes float8[] not null default '{1,2,4}' check (cardinality(retry_backoff_minutes) between 1 and 10),
  --- Whether a mail is sent when an execution exhausts its attempts or is missed.
  on_failure_email boolean not null default true,
  on_failure_webhook text, --- URL notified when an execution exhausts its attempts or is missed; null: none.
  --- Whether a recurring cue is paused when an execution exhausts its attempts or is missed.
  on_failure_pause boolean not null default false,
  --- Time limit for the callback's response; null means 30. Null, like the next three columns, if delivery was never
  --- set.
  timeout_seconds int check (timeout_seconds between 1 and 3600),
  --- Time limit for the awaited outcome, counted from the delivery; null means 300.
  outcome_deadline_seconds int check (outcome_deadline_seconds between 1 and 3600),
  --- Time limit for a worker to claim an execution; null means 900.
  claim_timeout_seconds int check (claim_timeout_seconds between 60 and 604800),
  --- Whether the execution ends only with the handler's report rather than with a 2xx. Null, which means false, until
  --- it or an outcome deadline is set.
  await_outcome boolean,
  --- Consecutive failures that raise an alert. Null, which means 3, if alerts was never set.
  alert_consecutive_failures int check (alert_consecutive_failures between 1 and 100),
  --- Slots without a success that raise an alert. Null, which means 2, if alerts was never set.
  alert_missed_window_multiplier int check (alert_missed_window_multiplier between 1 and 10),
  alert_channels text[] check (cardinality(alert_channels) <= 20), --- Names of the channels for its alerts; null: the default ones.
  catch_up cue.catch_up not null default 'run_once_if_missed', --- Policy for slots that came due during an outage.
  verification_mode cue.verification_mode, --- Requirement for a verified success. Null, which means none, if never set.
  created_at timestamptz not null default now(), --- Time of creation.
  updated_at timestamptz not null default now(), --- Time of the latest edit or status change.
  deleted_at timestamptz, --- When it was deleted; the row is removed once its history is.
  --- Marks the weekly memory block cue, which does not count against the plan's limit.
  memory_check boolean not null default false,
  payload_id bigint, --- Row of payloads that holds a payload over 2 KB.
  --- The user's own name for the cue, unique among the account's cues that are not deleted.
  key text check (key ~ '^(?![.]{1,2}$)[A-Za-z0-9._:/-]{1,255}$'),
  --- Labels to filter by, each at most 64 characters.
  tags text[] not null default '{}' check (cardinality(tags) <= 10),
  --- The set of declared cues that the cue belongs to, see apply_cues; null: none.
  managed_by text check (length(managed_by) >= 1 and length(managed_by) <= 100),
  --- Since when it is paused; null if active.
  paused_at timestamptz,
  paused_by cue.pause_cause, --- What paused it; null like paused_at.
  --- Reason that was given for the pause, or the error that caused it.
  pause_reason text check (length(pause_reason) between 0 and 500),
  paused_until timestamptz, --- When it resumes by itself; null: never.
  --- Number of failed runs in a row that pause a recurring cue; null: any.
  on_failure_pause_after int constraint cues_pause_after_check check (on_failure_pause_after between 1 and 1000),
  --- What few schedules have: the members crons, every, anchor, starts_at, ends_at, max_runs, exclude,
  --- exclude_calendars and window of schedule, as the API shows them. Null without any.
  schedule_rules jsonb check (jsonb_typeof(schedule_rules) = 'object' and schedule_rules <> '{}'),
  completed_reason cue.completion, --- Why it has completed, while status is completed.
  overlap cue.overlap not null default 'allow', --- What becomes of a slot while an execution of the cue has not ended.
  --- The gate that its executions pass: the gate's key, and behind # a part that is counted by itself. Null: none.
  gate text constraint cues_gate_check check (gate ~ '^(?![.]{1,2}(#|$))[A-Za-z0-9._:/-]{1,255}(#[A-Za-z0-9._:/-]{1,255})?$'),
  --- The cues that it follows, by their ids, with when, mode, within and wait. Null: none.
  after jsonb constraint cues_after_check check (
    after ?& '{cues,when,mode,within}' and jsonb_typeof(after -> 'cues') = 'array' and jsonb_array_length(after -> 'cues') between 1 and 20
      and after ->> 'when' in ('success', 'verified', 'failure', 'end') and after ->> 'mode' in ('all', 'any')
      and after ->> 'within' ~ '^[0-9]{1,8}[smhd]$' and (after ->> 'within')::interval between '1 second' and '31 days'
      and (not after ? 'wait' or after ->> 'wait' ~ '^[0-9]{1,8}[smhd]$' and (after ->> 'wait')::interval <= '24 hours')),
  --- A person's approval that its executions wait for, an object: expires, as written (24h) or null for never; on_expiry; message. Null: none.
  approval jsonb constraint cues_approval_check check (
    jsonb_typeof(approval) = 'object' and approval ->> 'on_expiry' in ('skip', 'run') and length(coalesce(approval ->> 'message', '')) <= 500
      and (approval ->> 'expires' is null or approval ->> 'expires' ~ '^[0-9]{1,8}[smhd]$'
           and (approval ->> 'expires')::interval between '1 minute' and '31 days')),
  --- Whether its executions that have not ended are in open_executions: if overlap is not allow, or a fire or replay
  --- specified one.
  tracked boolean not null default false,
  retry_on_worker_failure boolean, --- Whether a failure that a worker reports is retried; null means false.
  --- By this id, executions refer to the payload in this row; once it changes, the former one is in payloads. Null:
  --- they copy it.
  payload_ref bigint default nextval('cue.payload_ids'),
  payload_since_run bigint not null default 0, --- The cue's run_count when payload_ref was set.
  --- Whether names in its payload, header values and query are replaced by the values that an execution has for them.
  template boolean not null default false,
  constraint cues_one_schedule check (
    num_nonnulls(cron, schedule_rules -> 'crons', schedule_rules -> 'every') = (schedule_type is not null and schedule_type = 'recurring')::int),
  constraint one_payload check ((payload is null) = (payload_id is not null)),
  constraint cues_paused check (status = 'paused' or num_nonnulls(paused_at, paused_by, pause_reason, paused_until) = 0),
  check ((at is not null) = (schedule_type is not null and schedule_type = 'once')),
  constraint cues_runs_by_itself check (schedule_type is not null or after is not null),
  check (transport = 'worker' or callback_url is not null),
  check (num_nulls(timeout_seconds, outcome_deadline_seconds, claim_timeout_seconds) in (0, 3)),
  check (await_outcome is null or timeout_seconds is not null),
  check (num_nulls(alert_consecutive_failures, alert_missed_window_multiplier) in (0, 2))
);
-- With deleted cues, too: the foreign key asks for any cue of an account that is deleted.
create index cues_of_account on cue.cues (account_id, created_at desc, id desc);
create index cues_deleted on cue.cues (account_id) where deleted_at is not null;
create index cues_used on cue.cues (account_id, status) where deleted_at is null and status in ('active', 'paused') and not memory_check;
create unique index cues_memory_check on cue.cues (account_id) where memory_check and deleted_at is null;
create unique index cues_key on cue.cues (account_id, key) where key is not null and deleted_at is null;
create index cues_of_set on cue.cues (account_id, managed_by) where managed_by is not null and deleted_at is null;
create index cues_paused_until on cue.cues (paused_until) where paused_until is not null and deleted_at is null;
create index cues_paused_by_service on cue.cues (account_id, paused_at) where paused_by <> 'user' and deleted_at is null;
create index cues_with_gates on cue.cues (account_id, split_part(gate, '#', 1), gate) include (deleted_at) where gate is not null;
create index cues_with_calendars on cue.cues (account_id, id) where schedule_rules ? 'exclude_calendars' and deleted_at is null;

--- The cues that cues follow, as in after: so that the end of an execution finds the followers of its cue.
create table cue.cue_parents (
  cue_id text not null references cue.cues on delete cascade, --- The cue that follows.
  parent_id text not null references cue.cues on delete cascade, --- The cue that it follows.
  account_id uuid not null, --- Their account.
  primary key (cue_id, parent_id)
);
create index cue_parents_parent on cue.cue_parents (parent_id);

--- The frequently changing part of a cue: one narrow row that every execution updates. Removed when the cue is deleted.
create table cue.cue_runs (
  cue_id text primary key references cue.cues on delete cascade, --- The cue.
  account_id uuid not null, --- The cue's account, copied so that finding due cues needs no join.
  transport cue.transport not null, --- The cue's transport, copied for the same reason.
  --- Increases with every change of the definition or status, not when the cue runs. A slot computed from an older
  --- version does not fire.
  version int not null default 1,
  next_run timestamptz, --- Next slot. Null: none, because the cue is paused or has ended.
  --- Last slot fired. next_run is always later, so neither a clock nor an edit can fire a slot twice.
  last_slot timestamptz,
  last_run timestamptz, --- When an execution last started, whatever triggered it.
  run_count bigint not null default 0, --- Executions created, whatever triggered them.
  fired_count bigint not null default 0, --- Executions created by the schedule.
  failed_deliveries int not null default 0, --- Consecutive executions whose delivery failed.
  failed_outcomes int not null default 0, --- Consecutive outcomes that were failures or missing.
  deliveries_failing_since timestamptz, --- First of the failures in failed_deliveries.
  outcomes_failing_since timestamptz, --- First of the failures in failed_outcomes.
  --- Deadline for the next success, after which a missed_window alert is raised. Set on firing if null; a success does
  --- not write it.
  success_due_at timestamptz,
  --- Scheduled executions in a row that failed, were missed or timed out, while on_failure_pause_after is set; 0 after
  --- a resumption.
  failed_runs int not null default 0,
  skipped_count int, --- Those of fired_count that record a slot which did not run; null means none.
  --- Nominal time of the next slot, if it fires later, at next_run; null: it fires at once.
  next_slot timestamptz constraint cue_runs_next_slot_check check (next_slot <= next_run),
  --- Up to when excluded slots are recorded: at or before the next one. Null: none is excluded.
  excluded_at timestamptz,
  --- Those changes of version that only moved next_run, after a change of a calendar. The API does not count them.
  --- Null: none.
  recomputed int,
  --- Whether its executions can be held: the cue is tracked, or has a gate or an approval. For the functions that fire and finish plain executions.
  tracked boolean not null default false,
  alerted boolean not null default false, --- Whether an alert of the cue is not resolved.
  schedule_key uuid, --- Shared by cues with the same schedule. Null: shared with none.
  --- First slot that was refused because the account is over its monthly limit, and is not recorded yet: that is done
  --- at next_run, once an hour. Null: none.
  refused_from timestamptz,
  check (next_run > last_slot),
  -- What engines read, and send back to be compared.
  constraint instants_in_milliseconds check (
    next_run = next_run::timestamptz(3) and next_slot = next_slot::timestamptz(3) and success_due_at = success_due_at::timestamptz(3)
      and excluded_at = excluded_at::timestamptz(3))
) with (fillfactor = 50);
-- The cues that an account has at one instant share an entry.
create index cue_runs_next on cue.cue_runs (next_run, account_id) where next_run is not null;
create index cue_runs_noted on cue.cue_runs (cue_id) where failed_deliveries > 0 or failed_runs > 0 or tracked or alerted;
create index cue_runs_excluded on cue.cue_runs (excluded_at) where excluded_at is not null;
-- Only windows that end before the cue is due again, so that a cue which moves on writes one index less.
create index cue_runs_window_ends on cue.cue_runs (success_due_at) where success_due_at < coalesce(next_run, 'infinity');

--- Payloads over 2 KB, and former payloads of cues, each stored once per cue and referenced by the cue or its
--- executions.
create table cue.payloads (
  --- Referenced by payload_id of cues and executions; formerly payload_ref of its cue, if it was stored there.
  id bigint primary key,
  account_id uuid not null, --- The account of its cue.
  cue_id text not null references cue.cues on delete cascade, --- Cue whose executions may reference it.
  hash bytea not null, --- SHA-256 of the body.
  body text not null, --- Canonical JSON, exactly the bytes that webhooks send.
  since_run bigint, --- The cue's run_count when this became its payload; null if executions may have used it before.
  --- Latest time at which an execution may have been created with it; null while it is the cue's current payload.
  last_used_at timestamptz,
  created_at timestamptz not null, --- Time of creation.
  unique (cue_id, hash)
);
create index payloads_last_used on cue.payloads (last_used_at) where last_used_at is not null;

-- Revisions are never used twice, so that engines can keep what they have read.
create sequence cue.calendar_revisions; --- Revisions of calendars.
create table cue.calendars ( --- Exclusions that several cues share.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  name text not null check (name ~ '^(?![.]{1,2}$)[A-Za-z0-9._:/-]{1,64}$'), --- Name, as in schedule.exclude_calendars.
  description text check (length(description) <= 2000), --- Description.
  --- Excluded dates in the time zone of each cue: YYYY-MM-DD, or MM-DD for every year.
  dates text[] not null default '{}' check (cardinality(dates) <= 1000),
  --- Excluded stretches: an array of {from, to}, instants or local times in the time zone of each cue.
  ranges jsonb not null default '[]' check (case jsonb_typeof(ranges) when 'array' then jsonb_array_length(ranges) <= 500 else false end),
  revision bigint not null, --- Changes with every change of the calendar. No other calendar ever has the same.
  created_at timestamptz not null, --- Creation time.
  updated_at timestamptz not null, --- Time of the last change.
  primary key (account_id, name)
);
create unique index calendars_revision on cue.calendars (revision);

create table cue.missed_slots ( --- Slots that did not run, and why. Kept for 90 days.
  id bigint generated always as identity primary key, --- Order of recording.
  cue_id text not null references cue.cues on delete cascade, --- The cue.
  account_id uuid not null, --- The cue's account.
  first timestamptz not null, --- First slot that did not run.
  last timestamptz not null, --- Last slot that did not run.
  count int not null check (count > 0), --- Number of slots, exact up to 10,000.
  policy cue.catch_up not null, --- The cue's catch_up at that time.
  reason cue.missed_reason not null, --- Why they did not run.
  recorded_at timestamptz not null default now(), --- When the row was added or last extended.
  check (first <= last)
);
create index missed_slots_cue on cue.missed_slots (cue_id, id);
create index missed_slots_recorded_at on cue.missed_slots (recorded_at);

create table cue.backfilled_slots ( --- Slots that a backfill has run, so that none runs twice.
  cue_id text not null references cue.cues on delete cascade, --- The cue.
  slot timestamptz not null, --- Its nominal time.
  execution_id uuid not null, --- Its execution.
  primary key (cue_id, slot)
);
create index backfilled_slots_execution on cue.backfilled_slots (execution_id);

create table cue.fires ( --- Manual fires and tests of the last 24 hours, for the limit of ten per hour and for idempotency keys.
  id uuid primary key, --- UUIDv7.
  cue_id text not null references cue.cues on delete cascade, --- The cue that was fired.
  account_id uuid not null, --- The cue's account.
  fired_at timestamptz not null, --- Time of the request. The row is removed 24 hours later.
  idempotency_key text, --- The caller's idempotency key: repeating the request returns the same execution.
  request_hash text, --- Hash of the request, to refuse a different request with the same key.
  execution_id uuid --- The execution it created; null for a test.
);
create index fires_cue on cue.fires (cue_id, fired_at);
create index fires_fired_at on cue.fires (fired_at);
create index fires_idempotency_key on cue.fires (cue_id, idempotency_key, fired_at) where idempotency_key is not null;

-- Executions ----------------------------------------------------------------------------------------------------------------------
-- No index mentions status: every move would then rewrite all entries of the row. What waits sets a column that is null otherwise.

create sequence cue.flight_ids; --- Numbers flights.
--- Groups of webhook attempts begun together by one engine, which extends the lease while it is alive. When the lease
--- expires, any engine takes over the unfinished attempts.
create table cue.flights (
  id bigint primary key, --- Id; executions refer to it while they are in the flight.
  execution_ids uuid[] not null, --- Executions the flight began with. Ended ones stay listed until all have ended.
  lease_expires_at timestamptz not null, --- End of the lease, after which any engine may take the flight over.
  created_at timestamptz not null default now() --- When its attempts began.
) with (fillfactor = 50, toast_tuple_target = 8160);

--- Everything an engine needs to send one webhook. secrets sign it; api_key is the account's encrypted key, if
--- callbacks carry it; plain: a 2xx ends the execution and has no other effect; template_values: a JSON object, null without a template.
create type cue.begun_attempt as (
  execution_id uuid, flight_id bigint, attempt int, account_id uuid, cue_id text, scheduled_for timestamptz,
  callback_url text, callback_method cue.callback_method, callback_headers jsonb, payload text, timeout_seconds int,
  secrets text[], api_key text, plain boolean, template_values text
);

--- Runs of cues. Partitioned by the month of id, a UUIDv7, so that ordering by id is ordering by age.
create table cue.executions (
  id uuid not null, --- UUIDv7 of the creation time. Receivers use it to recognise repeated deliveries.
  account_id uuid not null, --- The cue's account.
  cue_id text not null, --- The cue. No foreign key: after a cue is deleted, its executions are removed in batches.
  transport cue.transport not null, --- The cue's transport.
  status cue.execution_status not null, --- Delivery status.
  triggered_by cue.trigger_kind not null, --- Trigger.
  replayed_from uuid, --- Execution that this one replays.
  scheduled_for timestamptz not null, --- The slot, or the time requested by a fire.
  --- The override of a fire that was sent, up to 2 KB, or a payload copied from the cue; null if it is in
  --- stored_payloads.
  payload text,
  task text, --- The payload's member task, if it is a string; workers filter by it.
  --- Attempts begun: sends or claims. Numbers the attempts, so that results of an attempt taken over by another are
  --- ignored.
  attempts int not null default 0,
  --- Lost sends and released claims, which do not count towards retry_max_attempts.
  lost_attempts int not null default 0,
  started_at timestamptz, --- When the first attempt began.
  last_attempt_at timestamptz, --- When the latest attempt began.
  delivered_at timestamptz, --- When the callback returned a 2xx, or the worker reported.
  ended_at timestamptz, --- When it ended. Set exactly in success, failed, missed and outcome_timeout.
  --- When the waiting webhook attempt is due; infinity: held, see held_executions. Set exactly while one is waiting.
  attempt_due_at timestamptz,
  --- From when workers may claim it; infinity: held. Set exactly while it can be claimed.
  claimable_at timestamptz,
  flight_id bigint, --- Flight of the attempt in progress.
  http_status int, --- HTTP status of the latest response; null: no response.
  error_message text, --- Why the latest attempt failed or the execution ended, as a sentence.
  response_body text, --- Start of the latest response body, up to 2,000 characters.
  claimed_by_worker text, --- Worker with the current or last claim. Null again after a release or loss.
  claimed_at timestamptz, --- Time of the claim.
  claim_token uuid, --- Token of the current claim; any other token is refused.
  last_heartbeat_at timestamptz, --- When the claim was made or last extended.
  lease_expires_at timestamptz, --- End of the claim, extended by the worker's heartbeats. Set exactly while claimed.
  outcome_deadline_at timestamptz, --- Deadline for the awaited outcome. Set exactly while one is awaited.
  outcome_state cue.outcome_state, --- State of the outcome; null before any report.
  --- Reported success or failure; never changes, except by the report of a later claim after a failure that is retried.
  outcome_success boolean,
  outcome_recorded_at timestamptz, --- Time of the report.
  result text, --- Reported result, in words.
  error text, --- Reported error, in words.
  metadata jsonb, --- Evidence: an object with any members, up to 10 KB.
  external_id text, --- Evidence: id of the result in another system.
  result_url text, --- Evidence: URL of the result.
  result_ref text, --- Evidence: short reference to the result.
  result_type text, --- Evidence: type of the result, for filtering.
  summary text, --- Evidence: summary of the result, up to 500 characters.
  artifacts jsonb, --- Evidence: list of created resources, up to 64 KB.
  created_at timestamptz not null, --- Time of creation.
  updated_at timestamptz not null, --- Time of the latest change.
  claim_deadline_at timestamptz, --- Deadline for a claim, after which the execution is missed.
  rejected_at timestamptz, --- When a person rejected the outcome; later evidence does not change that.
  verification_reason text, --- Reason a person gave for verifying or rejecting the outcome.
  payload_id bigint, --- Its payload in stored_payloads, which is kept as long as the execution.
  due_at timestamptz, --- When it was meant to start, if that is later than scheduled_for: within its window.
  --- Duration of the first attempt, begun at last_attempt_at, if it succeeded and has no row in attempts.
  attempt_ms int,
  held_ms int, --- Milliseconds for which it was held so far; null: never.
  missed_reason cue.missed_reason, --- Why it was missed, if it was held for too long.
  lineage_id uuid, --- The first of the executions that this one repeats, by replays of replays. Null: itself.
  parents jsonb, --- The executions that it follows: an array of {cue_id, cue_key, execution_id}. Null: none.
  is_fixed boolean, --- True if fixed_requests has a row of it; null if not.
  template_truncated boolean, --- True if values of its template were left out, because they exceed 16 KB in all; null if not.
  primary key (id),
  constraint one_payload check ((payload is null) = (payload_id is not null)),
  constraint attempt_due check ((attempt_due_at is not null) =
    (transport = 'webhook' and status in ('pending', 'retrying', 'retry_ready'))),
  constraint claimable check ((claimable_at is not null) =
    (transport = 'worker' and status in ('pending', 'retrying', 'retry_ready'))),
  constraint unclaimed check (claim_deadline_at is null or claimable_at is not null),
  constraint flying check ((flight_id is not null) = (status = 'delivering' and transport = 'webhook')),
  constraint leased check ((lease_expires_at is not null) = (status = 'delivering' and transport = 'worker')),
  constraint claimed check (lease_expires_at is null or claim_token is not null and claimed_by_worker is not null and claimed_at is not null),
  constraint started check (status in ('pending', 'failed', 'missed') or started_at is not null),
  constraint awaited check ((outcome_deadline_at is not null) = (status = 'pending_outcome')),
  constraint ended check ((ended_at is not null) = (status in ('success', 'failed', 'missed', 'outcome_timeout'))),
  constraint reported check ((outcome_recorded_at is null) = (outcome_success is null)),
  -- A failure is never verified, nothing is believed that was not reported, and a person's rejection stands.
  constraint judged check ((outcome_success is false) = (outcome_state is not distinct from 'reported_failure')
                           and (outcome_success is null) = (coalesce(outcome_state, 'unknown') = 'unknown')),
  constraint rejected check (rejected_at is null or outcome_state = 'verification_failed'),
  constraint lost_among_attempts check (lost_attempts between 0 and attempts),
  constraint first_attempt check (attempt_ms is null or attempts = 1 and delivered_at is not null)
) partition by range (id);
create index executions_account on cue.executions (account_id, id) include (cue_id);
create index executions_cue on cue.executions (cue_id, id);
create index executions_attempt_due on cue.executions (attempt_due_at) where attempt_due_at is not null;
create index executions_claimable on cue.executions (account_id, claimable_at, id) where claimable_at is not null;
create index executions_claimable_task on cue.executions (account_id, coalesce(task, ''), claimable_at, id) where claimable_at is not null;
create index executions_claim_deadline on cue.executions (claim_deadline_at) where claim_deadline_at is not null;
create index executions_lease on cue.executions (lease_expires_at) where lease_expires_at is not null;
create index executions_outcome_deadline on cue.executions (outcome_deadline_at) where outcome_deadline_at is not null;
create index executions_verification on cue.executions (account_id, id) where outcome_state = 'verification_pending';

--- The attempt log: one row per attempt that ended or was lost, except first attempts that succeeded: see
--- executions.attempt_ms. Partitioned like executions.
create table cue.attempts (
  execution_id uuid not null, --- The execution. Determines the partition.
  attempt int not null, --- Number of the attempt, from 1.
  account_id uuid not null, --- The execution's account.
  result cue.attempt_result not null, --- Result.
  started_at timestamptz not null, --- When the request was sent or the execution claimed.
  finished_at timestamptz not null, --- When it ended or was declared lost.
  duration_ms int not null, --- Milliseconds from started_at to finished_at.
  http_status int, --- HTTP status of the response; null: no response.
  error text, --- Why it failed, as a sentence.
  worker_id text, --- Worker that held the claim.
  response_headers jsonb, --- Headers of a response that failed it, up to 2 KB, without cookies.
  response_body text, --- The beginning of that response's body.
  primary key (execution_id, attempt)
) partition by range (execution_id);

--- Parts of executions' requests that are fixed, whatever becomes of their cues: values of the names in a template, and callbacks. Payloads are
--- fixed anyway. Partitioned like executions.
create table cue.fixed_requests (
  execution_id uuid not null, --- The execution. Determines the partition.
  account_id uuid not null, --- The execution's account.
  template_values jsonb, --- Values by name; null: the execution is sent as it is written.
  callback_url text, --- URL of the callback; null, like the next two columns: that of the cue.
  callback_method cue.callback_method, --- Method of the callback.
  callback_headers jsonb, --- Headers of the callback, with their values.
  primary key (execution_id),
  constraint whole_callback check (num_nulls(callback_url, callback_method, callback_headers) in (0, 3))
) partition by range (execution_id);

-- No foreign keys: they outlive their executions and cues, since a deletion does not undo what was spent, and no report waits for an account.
create table cue.costs ( --- Costs that executions reported. Kept for 400 days.
  execution_id uuid not null, --- The execution.
  attempt int not null, --- The attempt that reported them; 0: evidence that was added, which replaces what earlier evidence stated.
  unit text not null check (length(unit) between 1 and 32), --- The unit, such as usd.
  amount numeric not null check (amount >= 0), --- The amount, exactly as reported.
  account_id uuid not null, --- The execution's account.
  cue_id text not null, --- The execution's cue.
  reported_at timestamptz not null, --- Time of the report; of evidence, of the first that stated the unit.
  primary key (execution_id, attempt, unit)
);
create index costs_of_account on cue.costs (account_id, reported_at) include (cue_id, unit, amount);
create index costs_of_cue on cue.costs (cue_id, unit, reported_at) include (amount);
create index costs_reported on cue.costs using brin (reported_at);

--- Executions of tracked cues that have not ended. An entry may outlive its execution until the cue runs again.
create table cue.open_executions (
  execution_id uuid primary key, --- The execution.
  cue_id text not null references cue.cues on delete cascade, --- Its cue.
  account_id uuid not null --- The cue's account.
);
create index open_executions_cue on cue.open_executions (cue_id);

--- The waiting room: executions that wait for more than their time, each for one thing. Their attempts are due at infinity until they are released.
create table cue.held_executions (
  execution_id uuid primary key, --- The execution.
  account_id uuid not null, --- Its account.
  cue_id text not null references cue.cues on delete cascade, --- Its cue.
  transport cue.transport not null, --- The cue's transport.
  held_by cue.held_by not null, --- What it waits for.
  gate text, --- The gate at which it waits, with the part.
  place bigint not null generated always as identity, --- Order in the queue of its cue.
  due_at timestamptz not null, --- When it would have been due. With its id, the order at a gate.
  since timestamptz not null, --- Since when it is held.
  --- Since when it is due or claimable again, although it has not passed the gate yet. Null: it is held.
  released_at timestamptz,
  expires_at timestamptz, --- When it is missed if it still waits for signals. Null like held_by is not after.
  check ((gate is not null) = (held_by = 'gate')),
  check (expires_at is null or held_by = 'after'),
  check (released_at is null or held_by = 'gate')
);
create index held_executions_queue on cue.held_executions (cue_id, place) where held_by = 'overlap';
create index held_executions_after on cue.held_executions (cue_id, place) where held_by = 'after';
create index held_executions_expiring on cue.held_executions (expires_at) where expires_at is not null;
create index held_executions_gate on cue.held_executions (account_id, gate, due_at, execution_id) include (transport, released_at) where held_by = 'gate';
create index held_executions_others on cue.held_executions (account_id, held_by, due_at, execution_id) where held_by <> 'gate';
create index held_executions_released on cue.held_executions (account_id, gate) where released_at is not null;

--- Approvals that executions wait for, or that were decided. Kept as long as the execution, unless that ends without a decision.
create table cue.approvals (
  execution_id uuid primary key, --- The execution.
  account_id uuid not null, --- Its account.
  cue_id text not null references cue.cues on delete cascade, --- Its cue.
  message text, --- Shown to the person who decides.
  on_expiry cue.approval_expiry not null, --- What becomes of it at expires_at.
  requested_at timestamptz not null, --- Since when it waits for the approval.
  requested_by text, --- The key, session or user that fired or replayed it; null: its schedule.
  expires_at timestamptz, --- When it expires; null: never.
  remind_at timestamptz, --- When the next reminder is due; null: none is left.
  reminders int not null default 0, --- Reminders sent.
  decision cue.approval_decision, --- The decision; null: none yet.
  decided_at timestamptz, --- Time of the decision.
  decided_by text, --- Who decided, as in the audit log; null: it expired, or was superseded.
  decided_via cue.approval_source, --- How the decision came; null: it expired, or was superseded.
  reason text check (length(reason) <= 500), --- Reason given for the decision.
  check (num_nulls(decision, decided_at) in (0, 2)),
  check (num_nulls(decided_by, decided_via) in (0, 2) and (decision = 'cancelled' or (decided_by is not null) = (coalesce(decision, 'expired') <> 'expired'))),
  check (remind_at is null or decision is null)
);
create index approvals_waiting on cue.approvals (account_id, execution_id) where decision is null;
create index approvals_of_cue on cue.approvals (cue_id) where decision is null;
create index approvals_expiring on cue.approvals (expires_at) where decision is null;
create index approvals_reminders on cue.approvals (remind_at) where remind_at is not null;

--- Parts of gates that executions have reached, or whole gates. Whoever starts attempts behind one locks its row, and waits for nobody.
create table cue.gate_parts (
  account_id uuid not null, --- The account.
  gate text not null, --- As a cue names it: the gate's key, and # and the part.
  key text not null, --- The gate's key.
  starts bigint not null default 0, --- Number of attempts started so far.
  last_start_at timestamptz, --- When the latest of them started.
  failures int not null default 0, --- Attempts in a row without a 2xx, since the breaker is closed.
  opened_at timestamptz, --- Since when the breaker is open. Null: closed.
  open_until timestamptz, --- When the next probe may start; null like opened_at.
  open_seconds int, --- How long the last wait is, which doubles; null like opened_at.
  probe int, --- Number of the probe's attempt; null: none has started since open_until was set.
  probe_id uuid, --- Its execution.
  --- When the breaker closed, while 1, 2, 4, 8 … attempts per second start since then. Null: any number.
  ramp_from timestamptz,
  ramp_starts bigint, --- Number of starts at that time.
  retry_at timestamptz, --- When attempts may start again, by the latest Retry-After; at most an hour after it.
  spent numeric not null default 0, --- Costs of the budget's unit that were reported since period_start.
  spent_unit text, --- The unit of spent. Null: none was counted yet.
  period_start timestamptz, --- Begin of the period that was counted last.
  alert_id uuid, --- The alert about its open breaker. Null: none, or it has been resolved.
  budget_noted int not null default 0, --- Which events of the period were written: 1 budget_warning, 2 budget_reached.
  primary key (account_id, gate),
  check (num_nulls(opened_at, open_until, open_seconds) in (0, 3)),
  check ((probe is null) = (probe_id is null)),
  foreign key (account_id, key) references cue.gates on delete cascade
) with (fillfactor = 50);
create index gate_parts_open on cue.gate_parts (opened_at) where opened_at is not null or alert_id is not null;

--- Attempts started behind gates: those that may still run, and those that a rate counts.
create table cue.gate_starts (
  account_id uuid not null, --- The account.
  gate text not null, --- The gate, with the part.
  n bigint not null, --- Number of the start.
  execution_id uuid not null, --- The execution.
  attempt int not null, --- The attempt's number.
  started_at timestamptz not null, --- When it started, and not before the start n - 1.
  holds boolean not null default true, --- False once it was seen not to run any more, or that its execution has started another attempt.
  primary key (account_id, gate, n),
  foreign key (account_id, gate) references cue.gate_parts on delete cascade
) with (fillfactor = 50);
create index gate_starts_held on cue.gate_starts (account_id, gate) where holds;

--- Results of attempts behind gates that have not been added to their gate_parts: whoever records a result waits for no gate.
create table cue.gate_results (
  seq bigint primary key generated always as identity, --- Order of the results.
  account_id uuid not null, --- The account.
  gate text not null, --- The gate, with the part.
  execution_id uuid not null, --- The execution.
  attempt int not null, --- The attempt's number.
  success boolean, --- Whether it had a 2xx; null: it neither counts nor resets.
  retry_at timestamptz, --- By the Retry-After of a 429 or 503. Null: none.
  foreign key (account_id, gate) references cue.gate_parts on delete cascade
);
--- Costs reported behind gates with budgets that have not been added to their gate_parts.
create table cue.gate_spending (
  seq bigint primary key generated always as identity, --- Order of the reports.
  account_id uuid not null, --- The account.
  gate text not null, --- The gate, with the part.
  unit text not null, --- The unit.
  amount numeric not null, --- What came to the costs; negative if evidence replaced a larger amount.
  reported_at timestamptz not null, --- Time of the report.
  foreign key (account_id, gate) references cue.gate_parts on delete cascade
);
create index gate_spending_part on cue.gate_spending (account_id, gate);
create index gate_results_part on cue.gate_results (account_id, gate, seq);

--- Ends and verifications of executions, as their cues' followers count them. Written by whoever ends the execution, under no lock of the follower.
create table cue.signals (
  id bigint primary key generated always as identity, --- Order of the signals.
  account_id uuid not null, --- The account.
  follower_id text not null, --- The cue that follows. No foreign key, whose check would lock it.
  parent_id text not null, --- The cue that it follows.
  execution_id uuid not null, --- The execution.
  lineage_id uuid not null, --- The first of the executions that it repeats. Each signals a follower once.
  scheduled_for timestamptz not null, --- The execution's.
  signalled_at timestamptz not null, --- When it ended or was verified.
  expires_at timestamptz not null, --- Until when a run may spend it.
  --- Whether it has not been looked at together with those that came before it.
  is_new boolean not null default true,
  spent_at timestamptz, --- When a run spent it, or its expiry was recorded. Null: a run may spend it.
  spent_by uuid, --- The execution that runs on it, or on a newer one of the same parent. Null: none.
  unique (follower_id, lineage_id),
  check (spent_at is null or not is_new),
  check (spent_by is null or spent_at is not null)
);
create index signals_new on cue.signals (follower_id, id) where is_new;
create index signals_unspent on cue.signals (follower_id, parent_id, id desc) where spent_at is null;
create index signals_expiring on cue.signals (expires_at) where spent_at is null and not is_new;
create index signals_execution on cue.signals (execution_id);

--- Executions that failed, were missed or timed out, and were neither replayed nor dismissed.
create table cue.dead_letters (
  execution_id uuid primary key, --- The execution.
  account_id uuid not null, --- Its account.
  cue_id text not null, --- Its cue.
  --- What it has in common with others that failed in the same way; see error_group.
  error_group uuid not null
);
create index dead_letters_account on cue.dead_letters (account_id, execution_id);
create index dead_letters_cue on cue.dead_letters (cue_id, execution_id);
create index dead_letters_group on cue.dead_letters (account_id, error_group, execution_id);

-- Executions that ended, by status, for /metrics. Sequences, because counting then locks no row and leaves none behind.
create sequence cue.ended_success; --- Counts executions that ended as success; rolled back statements count, too.
create sequence cue.ended_failed; --- Counts executions that ended as failed.
create sequence cue.ended_missed; --- Counts executions that ended as missed.
create sequence cue.ended_outcome_timeout; --- Counts executions that ended as outcome_timeout.

create table cue.operations ( --- Bulk operations, kept for 90 days after their end.
  id text primary key check (id ~ '^op_[0-9A-Za-z]{12}$'), --- op_ and twelve random characters.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  type cue.operation_type not null, --- What it does to its targets.
  name text check (length(name) between 1 and 255), --- A name given by the caller.
  status cue.operation_status not null, --- Whether it is running.
  --- What its targets get: for pauses, the columns pause_reason and paused_until; overlap; for a backfill, its cue_id; for decisions, their reason.
  settings jsonb not null,
  --- Maximum number of targets acted on per minute; null: no limit.
  rate_per_minute int check (rate_per_minute between 1 and 100000),
  total int not null, --- Number of targets, including those not found.
  succeeded int not null default 0, --- Number of targets acted on.
  failed int not null default 0, --- Number of targets for which a single call would have been refused.
  skipped int not null default 0, --- Number of targets that had changed, were gone, or were as wanted already.
  errors jsonb not null, --- The first 100 failures: target, code (a SQLSTATE, or a code of the API) and message.
  paced_at timestamptz not null, --- With a rate: when the next target may be acted on.
  worked_at timestamptz not null, --- Time given to the latest target; if that is long ago, its job is missing.
  created_by text not null, --- The key or session that created it.
  may_approve boolean not null default false, --- Whether that had the scope approve.
  created_at timestamptz not null, --- Time of creation.
  ended_at timestamptz, --- When it was completed or aborted.
  check (succeeded + failed + skipped <= total),
  check ((ended_at is null) = (status = 'running'))
);
create unique index operations_running on cue.operations (account_id, type) where status = 'running';
create index operations_account on cue.operations (account_id, created_at desc, id desc);
create index operations_ended_at on cue.operations (ended_at) where ended_at is not null;

--- Targets of running operations that have not been acted on, up to twenty per row.
create table cue.operation_targets (
  operation_id text not null references cue.operations on delete cascade, --- The operation.
  place int not null, --- Order of the rows.
  targets text[] not null, --- Ids of executions or cues, or slots of a backfill, in order.
  states text[] not null, --- Their target_state when they were chosen; empty for slots.
  primary key (operation_id, place),
  check (cardinality(targets) > 0 and cardinality(targets) = cardinality(states))
);

-- Workers and engines ---------------------------------------------------------------------------------------------------------------

create table cue.workers ( --- Worker processes as reported by their heartbeats, and the tasks they handle.
  account_id uuid not null references cue.accounts on delete cascade, --- The worker's account.
  --- Id chosen by the worker, such as a host name.
  worker_id text not null check (length(worker_id) between 1 and 255 and worker_id not in ('.', '..')),
  handlers text[] not null, --- Tasks it handles.
  last_heartbeat timestamptz not null, --- Latest heartbeat of the worker or of one of its claims.
  registered_since timestamptz not null, --- First heartbeat.
  primary key (account_id, worker_id)
) with (fillfactor = 50);
create index workers_last_heartbeat on cue.workers (last_heartbeat);

--- Replicas that fire and deliver. The latest last_seen_at shows when the service was last alive.
create table cue.engines (
  id uuid primary key, --- Random id, new at each start.
  version text not null, --- Release it runs.
  started_at timestamptz not null, --- First heartbeat.
  last_seen_at timestamptz not null, --- Latest heartbeat.
  lateness_ms int, --- Milliseconds from the slot until the engine's latest scheduled delivery was taken.
  open_deliveries int not null default 0, --- Webhook requests open at the latest heartbeat.
  stopped_at timestamptz check (stopped_at >= started_at), --- Time of shutdown.
  name text, --- Its replica's name: REPLICA_NAME, or host and process.
  --- Accounts that had as many open deliveries as they may at the latest heartbeat, so that their due webhooks wait.
  full_accounts uuid[] not null default '{}',
  passed_over text[] not null default '{}', --- Due cues that it could not fire, and leaves for a minute.
  missed_after interval --- Length of an outage from which catch_up applies: MISSED_AFTER_SECONDS.
) with (fillfactor = 50);

--- Periods in which no engine was alive. Each cue's catch_up decides about slots that came due in one.
create table cue.outages (
  from_at timestamptz primary key, --- Last heartbeat before the outage.
  until_at timestamptz not null, --- First heartbeat after the outage.
  check (from_at < until_at)
);

-- Events --------------------------------------------------------------------------------------------------------------------------
-- Written in the transaction of their cause, and given their place in the feed afterwards: see functions/events.sql.

create table cue.new_events ( --- Events that are committed, or about to be, and have no place in the feed yet.
  seq bigint primary key generated always as identity, --- Order of the events of one object, which is locked when they are written.
  account_id uuid not null, --- The account. No foreign key: writing an event takes no lock of its row.
  id uuid not null, --- UUIDv7. Readers use it to recognise an event that they have read before.
  type cue.event_type not null, --- What happened.
  at timestamptz not null, --- When it happened.
  cue_id text, --- The cue, if it is about one.
  cue_key text, --- Its key at that time.
  cue_tags text[], --- Its tags at that time.
  execution_id uuid, --- The execution, if it is about one.
  data json, --- The object as lists show it, without payload, headers and secrets; at most 16 KB. Null with execution_ids.
  --- Executions that succeeded together. Each is an event, whose data is read from the execution: a row for each success
  --- would cost as much as its delivery.
  execution_ids uuid[],
  cue_ids text[], --- The cue of each.
  check ((data is null) = (execution_ids is not null))
);
create index new_events_deleted on cue.new_events (cue_id, seq) where type = 'cue.deleted';

create table cue.events ( --- The feed of each account. Partitioned by the day of publication in UTC; dropped by cue.drop_old_events.
  account_id uuid not null, --- The account.
  --- Order of the feed, among all accounts; of execution_ids, the place of the last one. Readers never see a place
  --- before all lower ones.
  place bigint not null,
  published_at timestamptz not null, --- When it got its place. Determines the partition.
  id uuid not null, --- UUIDv7.
  type cue.event_type not null, --- What happened.
  at timestamptz not null, --- When it happened.
  cue_id text, --- The cue, if it is about one.
  cue_key text, --- Its key at that time.
  cue_tags text[], --- Its tags at that time.
  execution_id uuid, --- The execution, if it is about one.
  data json, --- The object as lists showed it; null with execution_ids.
  execution_ids uuid[], --- Executions that succeeded together. Each is an event.
  cue_ids text[], --- The cue of each.
  primary key (account_id, place, published_at)
) partition by range (published_at);

create table cue.event_order ( --- One row, which whoever publishes events locks.
  id int primary key default 1 check (id = 1), --- Always 1.
  last_place bigint not null default 0, --- The place of the latest event.
  dropped_place bigint not null default 0, --- The highest place among those that have been dropped.
  for_endpoints uuid[] --- Accounts of the latest events whose endpoints get their jobs with the next publication, after the commit of this one.
) with (fillfactor = 10);
insert into cue.event_order default values;

create table cue.event_days ( --- How many events an account had on a day, and which ones were left out of its feed.
  account_id uuid not null, --- The account.
  day date not null, --- UTC day of publication.
  count int not null, --- Events published, and those left out.
  left_out_from bigint, --- First place at which one was left out; null: none.
  left_out_to bigint, --- Last place at which one was left out.
  primary key (account_id, day)
) with (fillfactor = 50);
create index event_days_day on cue.event_days (day);

create table cue.event_subscribers ( --- Accounts for which successes, retries and verifications are events, too.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  source text not null check (source in ('account', 'channels', 'endpoints')), --- Who subscribes: its setting, or one of its channels or endpoints.
  primary key (account_id, source)
);

create table cue.unattended_tasks ( --- Waiting work without a live worker, as its event reported it.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  task text not null, --- Task of the work; empty for work without one.
  primary key (account_id, task)
);

-- Alerts, tickets and the memory block ----------------------------------------------------------------------------------------------

create table cue.alerts ( --- Alerts. At most one of each type is open per cue.
  id uuid primary key, --- UUIDv7.
  account_id uuid not null references cue.accounts on delete cascade, --- The cue's account.
  cue_id text not null references cue.cues on delete cascade, --- The cue.
  execution_id uuid, --- Execution that raised it, if any.
  alert_type cue.alert_type not null, --- Reason.
  severity cue.alert_severity not null, --- Urgency.
  message text not null, --- Description for people, as of the latest update.
  --- Depends on the type, such as failure_count and first_failure_at (updated while the alert is open) or
  --- previous_acknowledged_at.
  metadata jsonb not null default '{}',
  acknowledged_at timestamptz, --- When it was acknowledged. Null: open.
  --- When the cue last succeeded after it. Null: not since it was raised, or raised again while it was open.
  resolved_at timestamptz,
  resolution jsonb, --- {"after_seconds", "failed", "missed"}, set with resolved_at; the last two count since the success before, at most 1,000.
  created_at timestamptz not null, --- When it was raised.
  snoozed_at timestamptz, --- Since when no notice of it is sent. Null: it is not snoozed.
  snoozed_until timestamptz, --- Until when; null like snoozed_at.
  snoozed_failures int not null default 0, --- How often it was raised again while snoozed.
  check ((resolved_at is null) = (resolution is null)),
  check ((snoozed_at is null) = (snoozed_until is null))
);
create index alerts_account on cue.alerts (account_id, id);
create index alerts_cue on cue.alerts (cue_id, alert_type, acknowledged_at);
create unique index alerts_open on cue.alerts (cue_id, alert_type) where acknowledged_at is null;

create index alerts_snoozed on cue.alerts (snoozed_until) where snoozed_until is not null;

create table cue.channels ( --- Where alerts and events are sent, besides the alert webhook.
  id uuid primary key, --- UUIDv7.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  name text not null check (name ~ '^(?![.]{1,2}$)[A-Za-z0-9._:/-]{1,64}$'), --- Name, as in alerts.channels of cues.
  type cue.channel_type not null, --- Service.
  --- Email address, URL, or PagerDuty's routing key. May be a secret, so no view shows all of it.
  target text not null check (length(target) <= 2048),
  types cue.event_type[], --- Events that it gets. Null: alerts and their resolution only.
  severity cue.alert_severity not null default 'high', --- The least severity of its alerts.
  tags text[] not null default '{}' check (cardinality(tags) <= 10), --- Only what concerns a cue that has all of these tags.
  is_default boolean not null default false, --- Whether it gets the alerts of cues that name no channels.
  enabled boolean not null default true, --- Whether anything is sent to it.
  --- Whether requests for approval come with the link that decides: it was last written by a caller with the scope approve.
  gets_links boolean not null default false,
  created_at timestamptz not null, --- Creation time.
  updated_at timestamptz not null --- Time of the last change.
);
create unique index channels_name on cue.channels (account_id, name);
create index channels_of_events on cue.channels (account_id) where types is not null and enabled;

create table cue.addresses ( --- Email addresses for channels that an account has asked to confirm.
  id uuid primary key, --- UUIDv7, which the mailed link contains.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  email text not null check (length(email) <= 254), --- The address. Unique in the account, ignoring case.
  asked_at timestamptz not null, --- When the last link was mailed.
  confirmed_at timestamptz --- When a link was confirmed. Null: not yet; removed after 30 days.
);
create unique index addresses_email on cue.addresses (account_id, lower(email));
create index addresses_unconfirmed on cue.addresses (asked_at) where confirmed_at is null;

-- No foreign keys of the account and the channel: whoever publishes events would wait for the deletion of an account, which waits for them.
create table cue.notices ( --- Messages to channels, each with a job of the same id while it waits.
  id uuid primary key, --- UUIDv7.
  account_id uuid not null, --- The account.
  channel_id uuid not null, --- The channel.
  alert_id uuid references cue.alerts on delete cascade, --- The alert. Null for events and approvals.
  kind cue.notice_kind not null, --- What it says.
  snoozed_until timestamptz, --- Of a summary: the end of the snooze.
  content jsonb, --- The event, or the execution that waits; of a summary, what happened.
  state cue.notice_state not null default 'waiting', --- Whether it has been sent.
  tries int not null default 0, --- Tries that have begun.
  --- When the next try is due. While one is under way, when another engine may repeat it. Null once it is not waiting.
  due_at timestamptz,
  http_status int, --- Of the last response.
  error text, --- Why the last try failed.
  sent_at timestamptz, --- When it was accepted; by the mail queue, if it is a mail.
  created_at timestamptz not null, --- Time of its cause.
  check ((due_at is not null) = (state = 'waiting')),
  check ((sent_at is not null) = (state = 'sent')),
  check ((alert_id is null) = (kind in ('event', 'approval'))),
  check ((snoozed_until is not null) = (kind = 'summary'))
);
create unique index notices_once on cue.notices (alert_id, channel_id, kind, coalesce(snoozed_until, 'infinity')) where alert_id is not null;
create index notices_of_channel on cue.notices (account_id, channel_id);
create index notices_due on cue.notices (due_at) where due_at is not null;
create index notices_of_events on cue.notices (id) where alert_id is null and due_at is null;

create table cue.event_endpoints ( --- Addresses that the events of an account are sent to, signed and in the order of the feed.
  id uuid primary key, --- UUIDv7.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  url text not null check (length(url) <= 2048), --- Where to send.
  types cue.event_type[] not null check (types <> '{}'), --- Events that it gets.
  tag text, --- Only events of cues with this tag.
  cue_ids text[] check (cardinality(cue_ids) between 1 and 100), --- Only events of these cues.
  description text check (length(description) <= 2000), --- Free text.
  secret text not null, --- Signs its requests.
  status cue.endpoint_status not null default 'enabled', --- Whether events are sent to it.
  place bigint not null, --- Place in the feed up to which it has got its events.
  turn int not null default 0, --- Number of the latest turn, in which a few events are sent. The end of an earlier one changes nothing.
  --- When the next turn begins, for which a job waits. While one is under way, when another engine may repeat it. Null: it has all events.
  due_at timestamptz,
  failing_since timestamptz, --- First of the tries that have failed since its latest success.
  tries int not null default 0, --- Number of these tries.
  http_status int, --- Of the last response.
  error text, --- Why the last try failed.
  delivered_at timestamptz, --- When it last accepted an event.
  created_at timestamptz not null, --- Creation time.
  disabled_at timestamptz, --- When it was disabled.
  check ((failing_since is null) = (tries = 0)),
  check ((disabled_at is not null) = (status = 'disabled')),
  check (due_at is null or status = 'enabled')
);
create index event_endpoints_account on cue.event_endpoints (account_id, id);

create table cue.tickets ( --- Support tickets.
  id int primary key generated always as identity, --- Ticket number shown to users.
  account_id uuid not null references cue.accounts on delete cascade, --- The author's account.
  subject text not null check (length(subject) between 10 and 200), --- Subject line.
  message text not null check (length(message) between 30 and 5000), --- Full text.
  severity cue.ticket_severity not null, --- Severity, chosen by the author.
  type cue.ticket_type not null, --- Type.
  status cue.ticket_status not null default 'open', --- Status.
  issue_url text, --- Issue in the tracker; null: none yet, or no tracker is configured.
  issue_tried_at timestamptz, --- When the creation of an issue last started: one may exist although issue_url is null.
  created_at timestamptz not null, --- Time of creation.
  updated_at timestamptz not null --- Time of the latest status change.
);
create index tickets_account on cue.tickets (account_id, id);
-- Numbers of cells must not clash, so each cell starts far from the others.
do $$
begin
  if (select id from cue.cell) > 1 then
    execute format('alter table cue.tickets alter column id set start with %1$s restart with %1$s', (select (id - 1) * 35000000 + 1 from cue.cell));
  end if;
end $$;

create table cue.memory_versions ( --- Versions of each account's memory block; the newest 50 are kept.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  version int not null, --- Counts from 1 per account.
  content jsonb not null, --- What the version was made from: {plan, release, cues: [{id, name}]}.
  changes text[] not null, --- Differences from the previous version, as sentences.
  created_at timestamptz not null, --- When the change was noticed.
  primary key (account_id, version)
);

create table cue.memory_subscriptions ( --- Agents notified when the memory block changes.
  id uuid primary key, --- UUIDv7.
  account_id uuid not null references cue.accounts on delete cascade, --- The account.
  agent_id text not null check (length(agent_id) between 1 and 255), --- Id chosen by the agent.
  callback_url text not null, --- URL that notifications are posted to.
  sent_version int not null, --- Latest version the agent was notified of.
  created_at timestamptz not null, --- Time of subscription.
  unique (account_id, agent_id)
);

--- Requests posted to the echo buffer, kept for five minutes. Unlogged: lost in a crash.
create unlogged table cue.echoes (
  --- Token in the URL, chosen by the caller; only the latest request to it is kept.
  token text primary key check (length(token) >= 16),
  payload text not null, --- The body as JSON text; a body that is not JSON is stored as a JSON string.
  headers jsonb not null, --- The captured headers, with lower-case names.
  received_at timestamptz not null, --- Time of the request.
  expires_at timestamptz not null --- Five minutes later.
);
create index echoes_expires_at on cue.echoes (expires_at);
