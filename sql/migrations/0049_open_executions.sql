-- 0049_open_executions.sql: the executions of tracked cues that have not ended. Locks cues for milliseconds, for the foreign key.
create table cue.open_executions (
  execution_id uuid primary key,
  cue_id text not null references cue.cues on delete cascade,
  account_id uuid not null,
  place bigint not null generated always as identity,
  is_queued boolean not null
);
create index open_executions_cue on cue.open_executions (cue_id, is_queued, place);
