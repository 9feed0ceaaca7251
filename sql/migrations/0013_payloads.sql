-- 0013_payloads.sql: a large payload is stored once and referenced by cues and executions. Locks cues for milliseconds and reads no row of it:
-- the new column is null, and the check is validated by 0019. The strongest lock comes first, and executions follow in 0014: who takes a
-- stronger lock, or one of another table, while holding one can meet a writer who does the opposite. Until the functions are loaded, those of
-- the previous release keep everything inline.
alter table cue.cues
  alter column payload drop not null,
  add column payload_id bigint,
  add constraint one_payload check ((payload is null) = (payload_id is not null)) not valid;

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
