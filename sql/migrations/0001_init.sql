-- 0001_init.sql: accounts, cues, executions and what moves them. Functions live in sql/functions and are reloaded by every migrate;
-- nothing here calls one, so that they may change freely. What each table and column is for stands in sql/comments.sql, reloaded likewise.

create type cue.plan as enum ('free', 'pro', 'scale');
create type cue.webhook_authorization as enum ('execution_token', 'api_key');
create type cue.key_origin as enum ('user', 'register', 'migration', 'mcp-exchange');
create type cue.key_scope as enum ('read', 'write', 'worker', 'account');
create type cue.audit_event as enum
  ('account.registered', 'account.updated', 'key.created', 'key.renamed', 'key.revoked', 'key.regenerated', 'key.revealed',
   'webhook_secret.regenerated', 'alert_webhook_secret.created', 'alert_webhook_secret.regenerated');
create type cue.transport as enum ('webhook', 'worker');
create type cue.schedule_type as enum ('recurring', 'once');
create type cue.cue_status as enum ('active', 'paused', 'completed', 'failed');
create type cue.callback_method as enum ('POST', 'PUT', 'PATCH', 'GET');
create type cue.catch_up as enum ('skip_missed', 'run_once_if_missed', 'replay_all_missed');
create type cue.verification_mode as enum ('none', 'require_external_id', 'require_result_url', 'require_artifacts', 'manual');
create type cue.execution_status as enum
  ('pending', 'delivering', 'success', 'failed', 'retrying', 'retry_ready', 'missed', 'pending_outcome', 'outcome_timeout');
create type cue.outcome_state as enum
  ('reported_success', 'reported_failure', 'verified_success', 'verification_pending', 'verification_failed', 'unknown');
create type cue.trigger_kind as enum ('schedule', 'manual_fire', 'replay');
create type cue.attempt_result as enum ('success', 'failed', 'lost');
create type cue.missed_reason as enum ('service_away', 'execution_limit');

-- Accounts ------------------------------------------------------------------------------------------------------------------------

create table cue.plans (
  plan cue.plan primary key,
  requests_per_minute int not null check (requests_per_minute > 0),
  cues int not null check (cues >= 0),
  executions_per_month int not null check (executions_per_month >= 0)
);
insert into cue.plans values ('free', 60, 10, 300), ('pro', 200, 100, 5000), ('scale', 500, 500, 50000);

create table cue.accounts (
  id uuid primary key,
  email text not null check (length(email) <= 254),
  plan cue.plan not null default 'free' references cue.plans,
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
  check ((previous_webhook_secret is null) = (previous_webhook_secret_until is null)),
  check ((previous_alert_webhook_secret is null) = (previous_alert_webhook_secret_until is null))
);
create unique index accounts_email on cue.accounts (lower(email));

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

create table cue.usage_counters (
  account_id uuid not null references cue.accounts on delete cascade,
  month date not null,
  slot int not null,
  executions bigint not null default 0,
  primary key (account_id, month, slot)
) with (fillfactor = 50);

-- Cues ----------------------------------------------------------------------------------------------------------------------------

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
  payload text not null default '{}',
  task text,
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
  check ((cron is not null) = (schedule_type = 'recurring')),
  check ((at is not null) = (schedule_type = 'once')),
  check (transport = 'worker' or callback_url is not null),
  check (num_nulls(timeout_seconds, outcome_deadline_seconds, claim_timeout_seconds) in (0, 3)),
  check (await_outcome is null or timeout_seconds is not null),
  check (num_nulls(alert_consecutive_failures, alert_missed_window_multiplier) in (0, 2))
);
create index cues_account on cue.cues (account_id, created_at desc, id desc) where deleted_at is null;
create index cues_counted on cue.cues (account_id) where deleted_at is null and status in ('active', 'paused');
create index cues_deleted on cue.cues (account_id) where deleted_at is not null;

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
  check (next_run > last_slot)
) with (fillfactor = 50);
create index cue_runs_due on cue.cue_runs (next_run, account_id, cue_id) where next_run is not null;
create index cue_runs_failing on cue.cue_runs (cue_id) where failed_deliveries > 0;

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
  payload text not null,
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
  primary key (id),
  constraint attempt_due check ((attempt_due_at is not null) =
    (status in ('retrying', 'retry_ready') or status = 'pending' and transport = 'webhook')),
  constraint claimable check ((claimable_at is not null) = (status = 'pending' and transport = 'worker')),
  constraint flying check ((flight_id is not null) = (status = 'delivering' and transport = 'webhook')),
  constraint leased check ((lease_expires_at is not null) = (status = 'delivering' and transport = 'worker')),
  constraint claimed check (lease_expires_at is null or claim_token is not null and claimed_by_worker is not null and claimed_at is not null),
  constraint started check (status in ('pending', 'failed', 'missed') or started_at is not null),
  constraint awaited check ((outcome_deadline_at is not null) = (status = 'pending_outcome')),
  constraint ended check ((ended_at is not null) = (status in ('success', 'failed', 'missed', 'outcome_timeout'))),
  constraint reported check ((outcome_recorded_at is null) = (outcome_success is null)),
  constraint verified check (outcome_state <> 'verified_success' or outcome_success is true),
  constraint failure_reported check ((outcome_state = 'reported_failure') is not true or outcome_success is false),
  constraint lost_among_attempts check (lost_attempts between 0 and attempts)
) partition by range (id);
create index executions_account on cue.executions (account_id, id) include (cue_id);
create index executions_cue on cue.executions (cue_id, id);
create index executions_attempt_due on cue.executions (attempt_due_at) where attempt_due_at is not null;
create index executions_claimable on cue.executions (account_id, claimable_at, id) where claimable_at is not null;
create index executions_claimable_task on cue.executions (account_id, coalesce(task, ''), claimable_at, id) where claimable_at is not null;
create index executions_lease on cue.executions (lease_expires_at) where lease_expires_at is not null;
create index executions_outcome_deadline on cue.executions (outcome_deadline_at) where outcome_deadline_at is not null;

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

-- Engines -------------------------------------------------------------------------------------------------------------------------

create table cue.engines (
  id uuid primary key,
  version text not null,
  started_at timestamptz not null,
  last_seen_at timestamptz not null,
  lateness_ms int,
  open_deliveries int not null default 0
) with (fillfactor = 50);

create table cue.outages (
  from_at timestamptz primary key,
  until_at timestamptz not null,
  check (from_at < until_at)
);

-- Echo ----------------------------------------------------------------------------------------------------------------------------

create unlogged table cue.echoes (
  token text primary key check (length(token) >= 16),
  payload text not null,
  headers jsonb not null,
  received_at timestamptz not null,
  expires_at timestamptz not null
);
create index echoes_expires_at on cue.echoes (expires_at);

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
  expires_at timestamptz not null
) with (fillfactor = 50);
alter table cue.rate_windows alter hits set storage plain;
