-- 0081_room_for_results.sql: pages that executions are added to keep 55 % free, as in partitions that are created from now on: without a payload,
-- a row grows more by its result. Takes milliseconds; neither reads nor writes wait for it.
do $$
declare
  v_partition text;
begin
  for v_partition in select inhrelid::regclass::text from pg_inherits where inhparent = 'cue.executions'::regclass order by 1 loop
    execute format('alter table %s set (fillfactor = 45)', v_partition);
  end loop;
end $$;
