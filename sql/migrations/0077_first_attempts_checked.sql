-- no-transaction
-- 0077_first_attempts_checked.sql: validates the check of 0076, some seconds for a million executions, a partition at a time, while everybody goes
-- on reading and writing.
do $$
declare
  v_partition text;
begin
  for v_partition in
    select c.conrelid::regclass::text
      from pg_constraint c join pg_inherits i on i.inhrelid = c.conrelid
     where i.inhparent = 'cue.executions'::regclass and c.conname = 'first_attempt' and not c.convalidated
     order by 1
  loop
    execute format('alter table %s validate constraint first_attempt', v_partition);
    commit;
  end loop;
end $$;
alter table cue.executions validate constraint first_attempt;
