-- Settings of functions, applied after everything else is loaded, because `create or replace` removes them. A name that is not a function of
-- ours fails the load.
do $$
declare
  s record;
  v_function text;
begin
  -- For every security definer function: search_path, so that none can be tricked into using an object from a caller's schema. No sequential
  -- scans, since whatever they read has an index, and a plan made while a table is small is kept when it is big. Generic plans, because
  -- planning over all partitions takes longer than most calls.
  for v_function in
    select proname from pg_proc
     where pronamespace = 'cue'::regnamespace and prosecdef
       and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = pg_proc.oid and d.deptype = 'e')
  loop
    execute format('alter function cue.%I set search_path = pg_catalog, pg_temp', v_function);
    execute format('alter function cue.%I set enable_seqscan = off', v_function);
    execute format('alter function cue.%I set plan_cache_mode = force_generic_plan', v_function);
  end loop;

  for s in select * from (values
    -- Not security definer, but they must not call functions from a caller's schema either.
    (1, 'search_path = pg_catalog, pg_temp', '{memory_changes, require_writable}'::text[]),

    -- They read few rows in the order of an index, by id or by age. A bitmap scan loses that order and reads all matching rows
    -- before it returns the first. One for a look would also read the entries of cues that have moved on, until the next vacuum.
    (2, 'enable_bitmapscan = off', '{
      begin_attempts, begin_claims, claimable_tasks, expire_outcomes, fair_page, find_claimable, finish_attempts, gone_attempts,
      held_attempts, last_success, lock_claims, lock_next, look_ahead_by_schedule, look_waiting, miss_unclaimed, move_due_cues, lock_due_cues, next_claimable,
      passed_windows, previous_success, record_results, record_successes, recover_leases, settle_attempts}'),

    -- The oldest execution is the first entry of an index. Sorting would read an account's whole backlog to find it, or lock all that
    -- have passed their deadline. A look hashes cues by their schedules in half the time that sorting them takes.
    (3, 'enable_sort = off', '{
      claimable_tasks, expire_outcomes, fair_page, find_claimable, lock_claims, look_ahead_by_schedule, miss_unclaimed, next_claimable,
      recover_leases}'),

    -- Their rows are many, and expected to be few. A function that they call has this setting too.
    (6, 'enable_nestloop = off', '{move_due_cues, record_results, record_successes}'),

    -- They serve several accounts in one call: a locked row delays the others by no more than this. The caller then handles each account
    -- separately.
    (8, 'lock_timeout = ''20ms''', '{add_payload_bytes, admit, count_executions, create_each_cue}'),
    (9, 'lock_timeout = ''50ms''', '{finish_attempts, run_operation, settle_attempts}'),

    -- All readers and writers of the table queue behind its lock, so it gives up well before PostgreSQL checks them for a deadlock (1 s).
    (10, 'lock_timeout = ''300ms''', '{drop_old_events, drop_old_executions}'),

    -- The estimated cost over all partitions triggers JIT compilation, which takes longer than the query.
    (11, 'jit = off', '{service_health}')
  ) as settings (place, setting, functions) order by place loop
    foreach v_function in array s.functions loop
      execute format('alter function cue.%I set %s', v_function, s.setting);
    end loop;
  end loop;
end $$;
