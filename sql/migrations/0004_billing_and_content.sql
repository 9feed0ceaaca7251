-- 0004_billing_and_content.sql: counts of outcomes, subscriptions, tickets and the memory block. Quick on any size: new columns are null or
-- have constant defaults. The index on cues reads them once, while nobody creates or edits one.

alter type cue.audit_event add value 'plan.changed';
create type cue.ticket_severity as enum ('low', 'medium', 'high');
create type cue.ticket_type as enum ('bug', 'feature-request');
create type cue.ticket_status as enum ('open', 'in_progress', 'resolved', 'closed');

alter table cue.usage_counters add column reported bigint not null default 0, add column succeeded bigint not null default 0,
  add column failed bigint not null default 0;
comment on column cue.usage_counters.reported is 'Outcomes that handlers reported, whatever they said.';
comment on column cue.usage_counters.failed is 'Reported failures, and executions that failed or were missed on the delivery side.';

-- Billing -------------------------------------------------------------------------------------------------------------------------

alter table cue.accounts add column stripe_customer_id text;
create unique index accounts_stripe_customer_id on cue.accounts (stripe_customer_id) where stripe_customer_id is not null;

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
comment on table cue.subscriptions is 'Stripe''s subscriptions, as its events tell. An account''s plan is the largest of those that are paid.';
comment on column cue.subscriptions.status is 'As Stripe has it; canceled is final.';
comment on column cue.subscriptions.state_at is 'When the event that told this state was made. Older events change nothing.';
comment on column cue.subscriptions.version is 'Grows with every event applied.';

create table cue.stripe_events (
  id text primary key,
  type text not null,
  received_at timestamptz not null
);
create index stripe_events_received_at on cue.stripe_events (received_at);
comment on table cue.stripe_events is 'Stripe''s events that were handled, so that none is twice. Kept longer than Stripe repeats them.';

-- Support -------------------------------------------------------------------------------------------------------------------------

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
comment on table cue.tickets is 'What users asked of support.';
comment on column cue.tickets.issue_url is 'The issue made for it in the tracker.';
comment on column cue.tickets.issue_tried_at is 'An issue may have been made since then: look for it before making another.';

-- Memory block --------------------------------------------------------------------------------------------------------------------

alter table cue.cues add column memory_check boolean not null default false;
create unique index cues_memory_check on cue.cues (account_id) where memory_check and deleted_at is null;
comment on column cue.cues.memory_check is 'The weekly look for a new memory block. Not counted against the plan''s limit.';

create table cue.memory_versions (
  account_id uuid not null references cue.accounts on delete cascade,
  version int not null,
  content jsonb not null,
  changes text[] not null,
  created_at timestamptz not null,
  primary key (account_id, version)
);
comment on table cue.memory_versions is 'Each account''s memory block, version by version: the newest fifty.';
comment on column cue.memory_versions.content is '{plan, release, cues: [{id, name}]}: what a version is made of.';

create table cue.memory_subscriptions (
  id uuid primary key,
  account_id uuid not null references cue.accounts on delete cascade,
  agent_id text not null check (length(agent_id) between 1 and 255),
  callback_url text not null,
  sent_version int not null,
  created_at timestamptz not null,
  unique (account_id, agent_id)
);
comment on table cue.memory_subscriptions is 'Agents that are told when the memory block changes.';
comment on column cue.memory_subscriptions.sent_version is 'The latest version that the agent knows of.';
