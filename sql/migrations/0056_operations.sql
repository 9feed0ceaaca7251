-- 0056_operations.sql: bulk operations and what they have not acted on yet. Locks accounts for milliseconds.
create type cue.operation_type as enum ('replay', 'cancel', 'dismiss', 'pause', 'resume', 'delete', 'fire', 'backfill');
create type cue.operation_status as enum ('running', 'completed', 'aborted');
create table cue.operations (
  id text primary key check (id ~ '^op_[0-9A-Za-z]{12}$'),
  account_id uuid not null references cue.accounts (id) on delete cascade,
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
  operation_id text not null references cue.operations (id) on delete cascade,
  place int not null,
  targets text[] not null,
  states text[] not null,
  primary key (operation_id, place),
  check (cardinality(targets) > 0 and cardinality(targets) = cardinality(states))
);
