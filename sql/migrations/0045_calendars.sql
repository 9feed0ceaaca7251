-- 0045_calendars.sql: exclusions that several cues share. A new table; locks accounts for milliseconds. Revisions are never used twice, so that
-- engines can keep what they have read.
create sequence cue.calendar_revisions;
create table cue.calendars (
  account_id uuid not null references cue.accounts (id) on delete cascade,
  name text not null check (name ~ '^[A-Za-z0-9._:/-]{1,64}$'),
  description text check (length(description) <= 2000),
  dates text[] not null default '{}' check (cardinality(dates) <= 1000),
  ranges jsonb not null default '[]' check (case jsonb_typeof(ranges) when 'array' then jsonb_array_length(ranges) <= 500 else false end),
  revision bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (account_id, name)
);
create unique index calendars_revision on cue.calendars (revision);
