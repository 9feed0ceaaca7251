-- 0054_dead_letters.sql: executions that failed and that nobody has dealt with. Locks no table.
create table cue.dead_letters (
  execution_id uuid primary key,
  account_id uuid not null,
  cue_id text not null
);
create index dead_letters_account on cue.dead_letters (account_id, execution_id);
create index dead_letters_cue on cue.dead_letters (cue_id, execution_id);
