-- 0094_success_windows.sql: when a cue's window for a success ends, in a table of its own, because every index of cue_runs gets an entry whenever
-- a cue moves on. A new table: locks nothing. after_load.sql fills it, and then drops the index that it replaces.
create table cue.success_windows (
  due_at timestamptz not null,
  cue_id text not null,
  id uuid not null default gen_random_uuid(),
  primary key (due_at, cue_id, id)
);
