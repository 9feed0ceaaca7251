-- 0002_workers_and_alerts.sql: what workers, verification and alerts need besides. Quick on any size: columns are null or have constant
-- defaults, and the new indexes are empty.

create type cue.alert_type as enum ('consecutive_failure', 'missed_window', 'outcome_timeout');
create type cue.alert_severity as enum ('info', 'warning', 'high', 'critical');

create table cue.workers (
  account_id uuid not null references cue.accounts on delete cascade,
  worker_id text not null check (length(worker_id) between 1 and 255),
  handlers text[] not null,
  last_heartbeat timestamptz not null,
  registered_since timestamptz not null,
  primary key (account_id, worker_id)
) with (fillfactor = 50);

alter table cue.executions add column claim_deadline_at timestamptz, add column rejected_at timestamptz,
  add column verification_reason text;
alter table cue.executions
  drop constraint failure_reported, drop constraint verified,
  add constraint unclaimed check (claim_deadline_at is null or claimable_at is not null) not valid,
  -- A failure is never verified, nothing is believed that was not reported, and a person's rejection stands.
  add constraint judged check ((outcome_success is false) = (outcome_state is not distinct from 'reported_failure')
                               and (outcome_success is null) = (coalesce(outcome_state, 'unknown') = 'unknown')) not valid,
  add constraint rejected check (rejected_at is null or outcome_state = 'verification_failed') not valid;
create index executions_claim_deadline on cue.executions (claim_deadline_at) where claim_deadline_at is not null;

alter table cue.cue_runs add column failed_outcomes int not null default 0,
  add column deliveries_failing_since timestamptz, add column outcomes_failing_since timestamptz, add column success_due_at timestamptz;
create index cue_runs_success_due on cue.cue_runs (success_due_at) where success_due_at is not null;

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
