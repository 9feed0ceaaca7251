-- 0013_payloads.sql: a large payload is stored once and referenced by cues and executions. Quick on any size: new columns are null, dropping
-- "not null" and constraints that are not valid read nothing. The index reads cues once, while nobody creates or edits one; cues that it
-- lists are moved by store_payloads. Until the functions are loaded, those of the previous release keep everything inline.
create sequence cue.payload_ids;
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

alter table cue.cues
  alter column payload drop not null,
  add column payload_id bigint,
  add constraint one_payload check ((payload is null) = (payload_id is not null)) not valid;
create index cues_large_payload on cue.cues (id) where octet_length(payload) > 2048;

alter table cue.executions
  alter column payload drop not null,
  add column payload_id bigint,
  add constraint one_payload check ((payload is null) = (payload_id is not null)) not valid;

create table cue.payload_counters (
  account_id uuid not null references cue.accounts on delete cascade,
  day date not null,
  slot int not null,
  bytes bigint not null,
  primary key (account_id, day, slot)
) with (fillfactor = 50);
create index payload_counters_day on cue.payload_counters (day);
