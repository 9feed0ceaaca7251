-- no-transaction
-- 0053_worker_retries_checked.sql: whether a failure that a worker reports is retried. The first statement locks cues for milliseconds; the others
-- validate the checks of 0052, some minutes for ten million executions, a partition at a time, while everybody goes on reading and writing.
alter table cue.cues add column if not exists retry_on_worker_failure boolean;
do $$
declare
  v_check record;
begin
  for v_check in
    select c.conrelid::regclass as partition, c.conname as name
      from pg_constraint c join pg_inherits i on i.inhrelid = c.conrelid
     where i.inhparent = 'cue.executions'::regclass and c.conname in ('attempt_due', 'claimable') and not c.convalidated
     order by c.conrelid::regclass::text, c.conname
  loop
    execute format('alter table %s validate constraint %I', v_check.partition, v_check.name);
    commit;
  end loop;
end $$;
alter table cue.executions validate constraint attempt_due;
alter table cue.executions validate constraint claimable;
