-- 0004_billing_and_content.sql: counts of outcomes, subscriptions, tickets and the memory block. Quick on any size: new columns are null or
-- have constant defaults. The index on cues reads them once, while nobody creates or edits one.

alter type cue.audit_event add value 'plan.changed';
create type cue.ticket_severity as enum ('low', 'medium', 'high');
create type cue.ticket_type as enum ('bug', 'feature-request');
create type cue.ticket_status as enum ('open', 'in_progress', 'resolved', 'closed');

alter table cue.usage_counters add column reported bigint not null default 0, add column succeeded bigint not null default 0,
  add column failed bigint not null default 0;

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

create table cue.stripe_events (
  id text primary key,
  type text not null,
  received_at timestamptz not null
);
create index stripe_events_received_at on cue.stripe_events (received_at);

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

-- Memory block --------------------------------------------------------------------------------------------------------------------

alter table cue.cues add column memory_check boolean not null default false;
create unique index cues_memory_check on cue.cues (account_id) where memory_check and deleted_at is null;

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
