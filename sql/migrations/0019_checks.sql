-- no-transaction
-- 0019_checks.sql: a slot is an instant in milliseconds, which engines compare: with microseconds, as psql's now() has, a cue never ran. And
-- checks of rows from before they were added. Adding one locks cue_runs for milliseconds; whatever reads a table (cues and cue_runs, some
-- seconds for a million rows; executions, some minutes for ten million, a partition at a time) lets everybody go on reading and writing.
alter table cue.cue_runs
  drop constraint if exists next_run_in_milliseconds,
  add constraint next_run_in_milliseconds check (date_part('microseconds', next_run)::bigint % 1000 = 0) not valid;
-- Locks the rows that it changes: few, since only slots that were written by hand have microseconds.
update cue.cue_runs set next_run = date_trunc('milliseconds', next_run) where date_part('microseconds', next_run)::bigint % 1000 <> 0;
alter table cue.cue_runs validate constraint next_run_in_milliseconds;
alter table cue.cues validate constraint one_payload;
do $$
declare
  v_partition regclass;
begin
  for v_partition in
    select c.conrelid from pg_constraint c join pg_inherits i on i.inhrelid = c.conrelid
     where i.inhparent = 'cue.executions'::regclass and c.conname = 'one_payload' and not c.convalidated order by c.conrelid::regclass::text
  loop
    execute format('alter table %s validate constraint one_payload', v_partition);
    commit;
  end loop;
end $$;
alter table cue.executions validate constraint one_payload;
