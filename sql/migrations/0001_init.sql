-- 0001_init.sql: all types, tables and indexes. Functions live in sql/functions and are reloaded by every migrate; nothing here calls one, so
-- that they may change freely. What each table and column is for stands in sql/comments.sql, reloaded likewise. Until 1.0.0 this file is edited
-- in place; from then on, changes are new files.

create type cue.plan as enum ('free', 'pro', 'scale');
create type cue.webhook_authorization as enum ('execution_token', 'api_key');
create type cue.key_origin as enum ('user', 'register', 'migration', 'mcp-exchange');
create type cue.key_scope as enum ('read', 'write', 'worker', 'account');
create type cue.audit_event as enum
  ('account.registered', 'account.updated', 'key.created', 'key.renamed', 'key.revoked', 'key.regenerated', 'key.revealed',
   'webhook_secret.regenerated', 'alert_webhook_secret.created', 'alert_webhook_secret.regenerated', 'session.created', 'session.refreshed',
   'session.revoked', 'account.deletion_requested', 'account.deletion_cancelled', 'account.disowned', 'plan.changed', 'cue.created',
   'cue.updated', 'cue.paused', 'cue.resumed', 'cue.deleted', 'cues.applied', 'operation.created', 'account.held', 'account.released');
create type cue.device_code_status as enum ('pending', 'email_sent', 'approved', 'claimed');
create type cue.transport as enum ('webhook', 'worker');
create type cue.schedule_type as enum ('recurring', 'once');
create type cue.cue_status as enum ('active', 'paused', 'completed', 'failed');
create type cue.completion as enum ('ended', 'max_runs', 'once');
create type cue.pause_cause as enum ('user', 'plan', 'failures', 'deletion');
create type cue.callback_method as enum ('POST', 'PUT', 'PATCH', 'GET');
create type cue.catch_up as enum ('skip_missed', 'run_once_if_missed', 'replay_all_missed');
create type cue.overlap as enum ('allow', 'skip', 'queue_one', 'queue_all', 'cancel_previous');
create type cue.verification_mode as enum ('none', 'require_external_id', 'require_result_url', 'require_artifacts', 'manual');
create type cue.execution_status as enum
  ('pending', 'delivering', 'success', 'failed', 'retrying', 'retry_ready', 'missed', 'pending_outcome', 'outcome_timeout');
create type cue.outcome_state as enum
  ('reported_success', 'reported_failure', 'verified_success', 'verification_pending', 'verification_failed', 'unknown');
create type cue.trigger_kind as enum ('schedule', 'manual_fire', 'replay', 'backfill');
create type cue.attempt_result as enum ('success', 'failed', 'lost');
create type cue.missed_reason as enum ('service_away', 'execution_limit', 'excluded', 'overlap', 'queue_full', 'held');
create type cue.alert_type as enum ('consecutive_failure', 'missed_window', 'outcome_timeout', 'cue_paused');
create type cue.alert_severity as enum ('info', 'warning', 'high', 'critical');
create type cue.operation_type as enum ('replay', 'cancel', 'dismiss', 'pause', 'resume', 'delete', 'fire', 'backfill');
create type cue.operation_status as enum ('running', 'completed', 'aborted');
create type cue.ticket_severity as enum ('low', 'medium', 'high');
create type cue.ticket_type as enum ('bug', 'feature-request');
create type cue.ticket_status as enum ('open', 'in_progress', 'resolved', 'closed');

-- The cell ------------------------------------------------------------------------------------------------------------------------

-- The number of this database among those of the service, which the migrating session sets.
create table cue.cell (
  id smallint not null check (id between 1 and 61),
  created_at timestamptz not null default now()
);
create unique index cell_is_one on cue.cell ((true));
insert into cue.cell (id) values (coalesce(nullif(current_setting('pgcue.cell', true), ''), '1')::smallint);
-- Ids and keys contain the number. Conditional rules, so that the statement's rights are still checked.
create rule cell_stays as on delete to cue.cell where true do instead nothing;
create rule cell_stays_the_same as on update to cue.cell where true do instead nothing;

create table cue.moved (
  to_url text not null,
  at timestamptz not null default now()
);
create unique index moved_is_one on cue.moved ((true));

create table cue.directory (
  email_hash bytea primary key,
  cell smallint not null,
  created_at timestamptz not null
);

create table cue.known_secrets (
  name text not null,
  value text not null,
  known_at timestamptz not null default now(),
  primary key (name, value)
);

-- Accounts ------------------------------------------------------------------------------------------------------------------------

create table cue.plans (
  plan cue.plan primary key,
  requests_per_minute int not null check (requests_per_minute > 0),
  cues int not null check (cues >= 0),
  executions_per_month int not null check (executions_per_month >= 0),
  fires_per_hour int not null default 10 check (fires_per_hour > 0),
  open_deliveries int not null default 1000 check (open_deliveries > 0),
  max_timeout_seconds int check (max_timeout_seconds between 1 and 3600),
  min_interval_seconds int check (min_interval_seconds > 0),
  payload_bytes_per_day bigint check (payload_bytes_per_day > 0)
);
insert into cue.plans (plan, requests_per_minute, cues, executions_per_month, open_deliveries)
values ('free', 60, 10, 300, 50), ('pro', 200, 100, 5000, 250), ('scale', 500, 500, 50000, 1000);

create table cue.overridden_limits (
  name text primary key,
  least bigint not null
);

create table cue.accounts (
  id uuid primary key,
  email text not null check (length(email) <= 254),
  plan cue.plan not null default 'free' references cue.plans,
  limits jsonb not null default '{}',
  webhook_secret text not null check (webhook_secret ~ '^whsec_[0-9a-f]{64}$'),
  previous_webhook_secret text,
  previous_webhook_secret_until timestamptz,
  webhook_authorization cue.webhook_authorization not null default 'execution_token',
  memory_block_enabled boolean not null default false,
  alert_webhook_url text,
  alert_webhook_secret text check (alert_webhook_secret ~ '^[0-9a-f]{64}$'),
  previous_alert_webhook_secret text,
  previous_alert_webhook_secret_until timestamptz,
  limit_reached_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  stripe_customer_id text,
  email_confirmed_at timestamptz,
  check ((previous_webhook_secret is null) = (previous_webhook_secret_until is null)),
  check ((previous_alert_webhook_secret is null) = (previous_alert_webhook_secret_until is null))
);
create unique index accounts_email on cue.accounts (lower(email));
create unique index accounts_stripe_customer_id on cue.accounts (stripe_customer_id) where stripe_customer_id is not null;

create table cue.api_keys (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  key_hash bytea not null unique,
  prefix text not null,
  label text not null check (length(label) between 1 and 100),
  scopes cue.key_scope[] not null default '{read,write,worker,account}' check (cardinality(scopes) > 0),
  created_by cue.key_origin not null,
  is_default boolean not null default false,
  ciphertext text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  check (ciphertext is null or is_default and revoked_at is null)
);
create index api_keys_account on cue.api_keys (account_id, created_at desc);
create index api_keys_revoked_at on cue.api_keys (revoked_at) where revoked_at is not null;
create unique index api_keys_default on cue.api_keys (account_id) where is_default and revoked_at is null;

create table cue.sessions (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  scopes cue.key_scope[],
  key_id uuid,
  ip text,
  user_agent text
);
create index sessions_account on cue.sessions (account_id);
create index sessions_expires_at on cue.sessions (expires_at);

create unlogged table cue.session_tokens (
  token_hash bytea primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  expires_at timestamptz not null
);
create index session_tokens_account on cue.session_tokens (account_id);
create index session_tokens_expires_at on cue.session_tokens (expires_at);

create unlogged table cue.device_codes (
  code_hash bytea primary key,
  status cue.device_code_status not null default 'pending',
  ip text,
  email text,
  link_id uuid unique,
  code_ciphertext text,
  account_id uuid references cue.accounts on delete cascade,
  key_id uuid,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  cell smallint,
  check ((email is not null) = (status <> 'pending')),
  check (num_nulls(email, link_id, code_ciphertext) in (0, 3)),
  check ((account_id is not null) = (status in ('approved', 'claimed')))
);
create index device_codes_account on cue.device_codes (account_id) where account_id is not null;
create index device_codes_email on cue.device_codes (lower(email)) where email is not null;
create index device_codes_expires_at on cue.device_codes (expires_at);

create table cue.deletions (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  requested_at timestamptz not null,
  due_at timestamptz not null,
  cancelled_at timestamptz
);
create index deletions_account on cue.deletions (account_id);
create unique index deletions_pending on cue.deletions (account_id) where cancelled_at is null;
create index deletions_due_at on cue.deletions (due_at) where cancelled_at is null;

create table cue.audit_events (
  id uuid primary key,
  seq bigint not null generated always as identity,
  account_id uuid not null references cue.accounts on delete cascade,
  event cue.audit_event not null,
  actor text not null,
  ip text,
  detail jsonb not null default '{}',
  created_at timestamptz not null
);
create index audit_events_account on cue.audit_events (account_id, seq);
create index audit_events_created_at on cue.audit_events (created_at);
create index audit_events_cue on cue.audit_events ((detail ->> 'cue_id'), seq) where detail ? 'cue_id';

create table cue.holds (
  id uuid primary key default gen_random_uuid(),
  account_id uuid references cue.accounts on delete cascade,
  reason text not null check (length(reason) between 1 and 500),
  held_by text not null,
  from_at timestamptz not null,
  until_at timestamptz not null default 'infinity',
  catches_up boolean not null default true,
  check (from_at < until_at)
);
create unique index holds_active on cue.holds (account_id) nulls not distinct where until_at = 'infinity';

-- Usage -----------------------------------------------------------------------------------------------------------------------------
-- The counters have no foreign key: counting takes no lock of the account's row, so nobody who holds that one keeps the engine from firing the
-- cues of others. erase_account removes them.

create table cue.usage_counters (
  account_id uuid not null,
  month date not null,
  slot int not null,
  executions bigint not null default 0,
  reported bigint not null default 0,
  succeeded bigint not null default 0,
  failed bigint not null default 0,
  primary key (account_id, month, slot)
) with (fillfactor = 50);
-- What fold_usage sums up; and the months that prune removes, which are folded by then.
create index usage_counters_unfolded on cue.usage_counters (account_id) where slot <> 0;
create index usage_counters_month on cue.usage_counters (month) where slot = 0;

create table cue.payload_counters (
  account_id uuid not null,
  day date not null,
  slot int not null,
  bytes bigint not null,
  primary key (account_id, day, slot)
) with (fillfactor = 50);
create index payload_counters_day on cue.payload_counters (day);

-- Unlogged: what is missing is counted anew.
create unlogged table cue.cue_rooms (
  account_id uuid primary key references cue.accounts on delete cascade,
  plan_cues int not null,
  room int not null check (room >= 0)
) with (fillfactor = 50);

create unlogged table cue.rate_windows (
  subject text primary key,
  started_at timestamptz not null,
  hits int[] not null,
  newest int not null,
  weight int not null,
  expires_at timestamptz not null,
  recent int[],
  recent_minute int
) with (fillfactor = 50);
alter table cue.rate_windows alter hits set storage plain, alter recent set storage plain;

create table cue.idempotency_keys (
  account_id uuid not null references cue.accounts on delete cascade,
  route text not null,
  key text not null check (key ~ '^[\x21-\x7e]{1,255}$'),
  request_hash bytea not null,
  status int not null,
  body text not null,
  place bigint not null,
  bytes_before bigint not null,
  bytes int not null,
  created_at timestamptz not null,
  primary key (account_id, route, key)
);
create index idempotency_keys_place on cue.idempotency_keys (account_id, created_at, place);
create index idempotency_keys_created_at on cue.idempotency_keys (created_at);

create table cue.subscriptions (
  id text primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  plan cue.plan not null check (plan <> 'free'),
  status text not null,
  state_at timestamptz not null,
  version int not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index subscriptions_account on cue.subscriptions (account_id);

create table cue.stripe_events (
  id text primary key,
  type text not null,
  received_at timestamptz not null
);
create index stripe_events_received_at on cue.stripe_events (received_at);

-- Cues ----------------------------------------------------------------------------------------------------------------------------

create sequence cue.payload_ids;
create table cue.cues (
  id text primary key check (id ~ '^cue_[0-9A-Za-z]{12}$'),
  account_id uuid not null references cue.accounts on delete cascade,
  name text not null check (length(name) between 1 and 255),
  description text,
  status cue.cue_status not null default 'active',
  transport cue.transport not null,
  schedule_type cue.schedule_type not null,
  cron text,
  at timestamptz,
  timezone text not null default 'UTC',
  callback_url text,
  callback_method cue.callback_method not null default 'POST',
  callback_headers jsonb not null default '{}',
  payload text default '{}',
  task text constraint task_is_a_name check (length(task) <= 255),
  retry_max_attempts int not null default 3 check (retry_max_attempts between 1 and 10),
  retry_backoff_minutes float8[] not null default '{1,2,4}' check (cardinality(retry_backoff_minutes) between 1 and 10),
  on_failure_email boolean not null default true,
  on_failure_webhook text,
  on_failure_pause boolean not null default false,
  timeout_seconds int check (timeout_seconds between 1 and 3600),
  outcome_deadline_seconds int check (outcome_deadline_seconds between 1 and 3600),
  claim_timeout_seconds int check (claim_timeout_seconds between 60 and 604800),
  await_outcome boolean,
  alert_consecutive_failures int check (alert_consecutive_failures between 1 and 100),
  alert_missed_window_multiplier int check (alert_missed_window_multiplier between 1 and 10),
  catch_up cue.catch_up not null default 'run_once_if_missed',
  verification_mode cue.verification_mode,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  memory_check boolean not null default false,
  payload_id bigint,
  key text check (key ~ '^(?![.]{1,2}$)[A-Za-z0-9._:/-]{1,255}$'),
  tags text[] not null default '{}' check (cardinality(tags) <= 10),
  managed_by text check (length(managed_by) >= 1 and length(managed_by) <= 100),
  paused_at timestamptz,
  paused_by cue.pause_cause,
  pause_reason text check (length(pause_reason) between 0 and 500),
  paused_until timestamptz,
  on_failure_pause_after int constraint cues_pause_after_check check (on_failure_pause_after between 1 and 1000),
  schedule_rules jsonb check (jsonb_typeof(schedule_rules) = 'object' and schedule_rules <> '{}'),
  completed_reason cue.completion,
  overlap cue.overlap not null default 'allow',
  tracked boolean not null default false,
  retry_on_worker_failure boolean,
  payload_ref bigint default nextval('cue.payload_ids'),
  payload_since_run bigint not null default 0,
  constraint cues_one_schedule check (
    num_nonnulls(cron, schedule_rules -> 'crons', schedule_rules -> 'every') = (schedule_type = 'recurring')::int),
  constraint one_payload check ((payload is null) = (payload_id is not null)),
  constraint cues_paused check (status = 'paused' or num_nonnulls(paused_at, paused_by, pause_reason, paused_until) = 0),
  check ((at is not null) = (schedule_type = 'once')),
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
create index cues_with_calendars on cue.cues (account_id, id) where schedule_rules ? 'exclude_calendars' and deleted_at is null;
-- Cues whose payload store_payloads moves.
create index cues_large_payload on cue.cues (id) where octet_length(payload) > 2048;

create table cue.cue_runs (
  cue_id text primary key references cue.cues on delete cascade,
  account_id uuid not null,
  transport cue.transport not null,
  version int not null default 1,
  next_run timestamptz,
  last_slot timestamptz,
  last_run timestamptz,
  run_count bigint not null default 0,
  fired_count bigint not null default 0,
  failed_deliveries int not null default 0,
  failed_outcomes int not null default 0,
  deliveries_failing_since timestamptz,
  outcomes_failing_since timestamptz,
  success_due_at timestamptz,
  failed_runs int not null default 0,
  skipped_count int,
  next_slot timestamptz constraint cue_runs_next_slot_check check (next_slot <= next_run),
  excluded_at timestamptz,
  recomputed int,
  tracked boolean not null default false,
  schedule_key uuid,
  refused_from timestamptz,
  check (next_run > last_slot),
  -- What engines read, and send back to be compared.
  constraint instants_in_milliseconds check (
    next_run = next_run::timestamptz(3) and next_slot = next_slot::timestamptz(3) and success_due_at = success_due_at::timestamptz(3)
      and excluded_at = excluded_at::timestamptz(3))
) with (fillfactor = 50);
-- The cues that an account has at one instant share an entry.
create index cue_runs_next on cue.cue_runs (next_run, account_id) where next_run is not null;
create index cue_runs_noted on cue.cue_runs (cue_id) where failed_deliveries > 0 or failed_runs > 0 or tracked;
create index cue_runs_excluded on cue.cue_runs (excluded_at) where excluded_at is not null;
-- Only windows that end before the cue is due again, so that a cue which moves on writes one index less.
create index cue_runs_window_ends on cue.cue_runs (success_due_at) where success_due_at < coalesce(next_run, 'infinity');

create table cue.payloads (
  id bigint primary key,
  account_id uuid not null,
  cue_id text not null references cue.cues on delete cascade,
  hash bytea not null,
  body text not null,
  since_run bigint,
  last_used_at timestamptz,
  created_at timestamptz not null,
  unique (cue_id, hash)
);
create index payloads_last_used on cue.payloads (last_used_at) where last_used_at is not null;

-- Revisions are never used twice, so that engines can keep what they have read.
create sequence cue.calendar_revisions;
create table cue.calendars (
  account_id uuid not null references cue.accounts on delete cascade,
  name text not null check (name ~ '^(?![.]{1,2}$)[A-Za-z0-9._:/-]{1,64}$'),
  description text check (length(description) <= 2000),
  dates text[] not null default '{}' check (cardinality(dates) <= 1000),
  ranges jsonb not null default '[]' check (case jsonb_typeof(ranges) when 'array' then jsonb_array_length(ranges) <= 500 else false end),
  revision bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (account_id, name)
);
create unique index calendars_revision on cue.calendars (revision);

create table cue.missed_slots (
  id bigint generated always as identity primary key,
  cue_id text not null references cue.cues on delete cascade,
  account_id uuid not null,
  first timestamptz not null,
  last timestamptz not null,
  count int not null check (count > 0),
  policy cue.catch_up not null,
  reason cue.missed_reason not null,
  recorded_at timestamptz not null default now(),
  check (first <= last)
);
create index missed_slots_cue on cue.missed_slots (cue_id, id);
create index missed_slots_recorded_at on cue.missed_slots (recorded_at);

create table cue.backfilled_slots (
  cue_id text not null references cue.cues on delete cascade,
  slot timestamptz not null,
  execution_id uuid not null,
  primary key (cue_id, slot)
);
create index backfilled_slots_execution on cue.backfilled_slots (execution_id);

create table cue.fires (
  id uuid primary key,
  cue_id text not null references cue.cues on delete cascade,
  account_id uuid not null,
  fired_at timestamptz not null,
  idempotency_key text,
  request_hash text,
  execution_id uuid not null
);
create index fires_cue on cue.fires (cue_id, fired_at);
create index fires_fired_at on cue.fires (fired_at);
create index fires_idempotency_key on cue.fires (cue_id, idempotency_key, fired_at) where idempotency_key is not null;

-- Executions ----------------------------------------------------------------------------------------------------------------------
-- No index mentions status: every move would then rewrite all entries of the row. What waits sets a column that is null otherwise.

create sequence cue.flight_ids;
create table cue.flights (
  id bigint primary key,
  execution_ids uuid[] not null,
  lease_expires_at timestamptz not null,
  created_at timestamptz not null default now()
) with (fillfactor = 50, toast_tuple_target = 8160);

create type cue.begun_attempt as (
  execution_id uuid, flight_id bigint, attempt int, account_id uuid, cue_id text, scheduled_for timestamptz,
  callback_url text, callback_method cue.callback_method, callback_headers jsonb, payload text, timeout_seconds int,
  secrets text[], api_key text, plain boolean
);

create table cue.executions (
  id uuid not null,
  account_id uuid not null,
  cue_id text not null,
  transport cue.transport not null,
  status cue.execution_status not null,
  triggered_by cue.trigger_kind not null,
  replayed_from uuid,
  scheduled_for timestamptz not null,
  payload text,
  task text,
  attempts int not null default 0,
  lost_attempts int not null default 0,
  started_at timestamptz,
  last_attempt_at timestamptz,
  delivered_at timestamptz,
  ended_at timestamptz,
  attempt_due_at timestamptz,
  claimable_at timestamptz,
  flight_id bigint,
  http_status int,
  error_message text,
  response_body text,
  claimed_by_worker text,
  claimed_at timestamptz,
  claim_token uuid,
  last_heartbeat_at timestamptz,
  lease_expires_at timestamptz,
  outcome_deadline_at timestamptz,
  outcome_state cue.outcome_state,
  outcome_success boolean,
  outcome_recorded_at timestamptz,
  result text,
  error text,
  metadata jsonb,
  external_id text,
  result_url text,
  result_ref text,
  result_type text,
  summary text,
  artifacts jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  claim_deadline_at timestamptz,
  rejected_at timestamptz,
  verification_reason text,
  payload_id bigint,
  due_at timestamptz,
  attempt_ms int,
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

create table cue.attempts (
  execution_id uuid not null,
  attempt int not null,
  account_id uuid not null,
  result cue.attempt_result not null,
  started_at timestamptz not null,
  finished_at timestamptz not null,
  duration_ms int not null,
  http_status int,
  error text,
  worker_id text,
  primary key (execution_id, attempt)
) partition by range (execution_id);

create table cue.open_executions (
  execution_id uuid primary key,
  cue_id text not null references cue.cues on delete cascade,
  account_id uuid not null,
  place bigint not null generated always as identity,
  is_queued boolean not null
);
create index open_executions_cue on cue.open_executions (cue_id, is_queued, place);

create table cue.dead_letters (
  execution_id uuid primary key,
  account_id uuid not null,
  cue_id text not null,
  error_group uuid
);
create index dead_letters_account on cue.dead_letters (account_id, execution_id);
create index dead_letters_cue on cue.dead_letters (cue_id, execution_id);
create index dead_letters_group on cue.dead_letters (account_id, error_group, execution_id);
create index dead_letters_ungrouped on cue.dead_letters (execution_id) where error_group is null;

-- Executions that ended, by status, for /metrics. Sequences, because counting then locks no row and leaves none behind.
create sequence cue.ended_success;
create sequence cue.ended_failed;
create sequence cue.ended_missed;
create sequence cue.ended_outcome_timeout;

create table cue.operations (
  id text primary key check (id ~ '^op_[0-9A-Za-z]{12}$'),
  account_id uuid not null references cue.accounts on delete cascade,
  type cue.operation_type not null,
  name text check (length(name) between 1 and 255),
  status cue.operation_status not null,
  settings jsonb not null,
  rate_per_minute int check (rate_per_minute between 1 and 100000),
  total int not null,
  succeeded int not null default 0,
  failed int not null default 0,
  skipped int not null default 0,
  errors jsonb not null,
  paced_at timestamptz not null,
  worked_at timestamptz not null,
  created_by text not null,
  created_at timestamptz not null,
  ended_at timestamptz,
  check (succeeded + failed + skipped <= total),
  check ((ended_at is null) = (status = 'running'))
);
create unique index operations_running on cue.operations (account_id, type) where status = 'running';
create index operations_account on cue.operations (account_id, created_at desc, id desc);
create index operations_ended_at on cue.operations (ended_at) where ended_at is not null;

create table cue.operation_targets (
  operation_id text not null references cue.operations on delete cascade,
  place int not null,
  targets text[] not null,
  states text[] not null,
  primary key (operation_id, place),
  check (cardinality(targets) > 0 and cardinality(targets) = cardinality(states))
);

-- Workers and engines ---------------------------------------------------------------------------------------------------------------

create table cue.workers (
  account_id uuid not null references cue.accounts on delete cascade,
  worker_id text not null check (length(worker_id) between 1 and 255 and worker_id not in ('.', '..')),
  handlers text[] not null,
  last_heartbeat timestamptz not null,
  registered_since timestamptz not null,
  primary key (account_id, worker_id)
) with (fillfactor = 50);
create index workers_last_heartbeat on cue.workers (last_heartbeat);

create table cue.engines (
  id uuid primary key,
  version text not null,
  started_at timestamptz not null,
  last_seen_at timestamptz not null,
  lateness_ms int,
  open_deliveries int not null default 0,
  stopped_at timestamptz check (stopped_at >= started_at),
  name text,
  full_accounts uuid[] not null default '{}',
  passed_over text[] not null default '{}',
  missed_after interval
) with (fillfactor = 50);

create table cue.outages (
  from_at timestamptz primary key,
  until_at timestamptz not null,
  check (from_at < until_at)
);

-- Alerts, tickets and the memory block ----------------------------------------------------------------------------------------------

create table cue.alerts (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  cue_id text not null references cue.cues on delete cascade,
  execution_id uuid,
  alert_type cue.alert_type not null,
  severity cue.alert_severity not null,
  message text not null,
  metadata jsonb not null default '{}',
  acknowledged_at timestamptz,
  created_at timestamptz not null
);
create index alerts_account on cue.alerts (account_id, id);
create index alerts_cue on cue.alerts (cue_id, alert_type, acknowledged_at);
create unique index alerts_open on cue.alerts (cue_id, alert_type) where acknowledged_at is null;

create table cue.tickets (
  id int primary key generated always as identity,
  account_id uuid not null references cue.accounts on delete cascade,
  subject text not null check (length(subject) between 10 and 200),
  message text not null check (length(message) between 30 and 5000),
  severity cue.ticket_severity not null,
  type cue.ticket_type not null,
  status cue.ticket_status not null default 'open',
  issue_url text,
  issue_tried_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index tickets_account on cue.tickets (account_id, id);
-- Numbers of cells must not clash, so each cell starts far from the others.
do $$
begin
  if (select id from cue.cell) > 1 then
    execute format('alter table cue.tickets alter column id set start with %1$s restart with %1$s', (select (id - 1) * 35000000 + 1 from cue.cell));
  end if;
end $$;

create table cue.memory_versions (
  account_id uuid not null references cue.accounts on delete cascade,
  version int not null,
  content jsonb not null,
  changes text[] not null,
  created_at timestamptz not null,
  primary key (account_id, version)
);

create table cue.memory_subscriptions (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  agent_id text not null check (length(agent_id) between 1 and 255),
  callback_url text not null,
  sent_version int not null,
  created_at timestamptz not null,
  unique (account_id, agent_id)
);

create unlogged table cue.echoes (
  token text primary key check (length(token) >= 16),
  payload text not null,
  headers jsonb not null,
  received_at timestamptz not null,
  expires_at timestamptz not null
);
create index echoes_expires_at on cue.echoes (expires_at);
