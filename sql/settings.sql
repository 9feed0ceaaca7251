-- Settings of functions, applied after everything else is loaded, because `create or replace` removes them. A name that is not a function of
-- ours fails the load. search_path is set for every security definer function, so that none can be tricked into using an object from a
-- caller's schema. The lists below name the rest, each with its reason.
do $$
declare
  s record;
  v_function text;
begin
  for v_function in
    select proname from pg_proc
     where pronamespace = 'cue'::regnamespace and prosecdef
       and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = pg_proc.oid and d.deptype = 'e')
  loop
    execute format('alter function cue.%I set search_path = pg_catalog, pg_temp', v_function);
  end loop;

  for s in select * from (values
    -- Not security definer, but they must not call functions from a caller's schema either.
    (1, 'search_path = pg_catalog, pg_temp', '{memory_changes, require_writable}'::text[]),

    -- Every row these functions read has an index. Statistics lag behind tables that grow from empty to millions of rows, and a plan made
    -- for a small table must not scan it once it is big.
    (2, 'enable_seqscan = off', '{
      abort_operation, act_on_target, add_cues, admit, apply_cues, attach_evidence, backfill_slot,
      begin_attempts, begin_claims, busiest_accounts, calendar_cues, cancel_execution, cancel_waiting, catch_up_cues,
      check_secrets, claim_executions, claim_next, claimable_page, claimable_tasks, complete_cues, count_executions, count_hits, count_results,
      create_each_cue, create_operation, cue_detail_by_key, cue_id_by_key, cues_of_targets, delete_due_accounts, delete_old_executions,
      delete_worker, dismiss_execution, drop_account_jobs, end_flights, ended_pauses, erase_account, expire_outcomes,
      find_claimable, finish_attempts, fire_cue, fire_tracked_cues, fold_usage, gone_attempts, 
      heartbeat_execution, held_attempts, holds_executions, job_counts, last_success, lock_accounts, lock_attempts, lock_cues,
      lock_free_cues, lock_next, look_ahead_by_schedule, look_waiting, lose_attempts, mail_cue_failed, miss_unclaimed, move_calendar_cues,
      move_due_cues, move_windows, next_claimable, next_jobs, next_resumed, next_wakes, open_limits, passed_exclusions, passed_windows,
      place_execution, prune, prune_dead_letters, prune_payloads, purge_cue, read_cue_details, read_cues, read_declared_cues, read_destinations,
      read_errors, read_execution_details, read_operator, record_exclusions, recover_flights, recover_leases, recover_stuck,
      refuse_due_cues, release_execution, release_flight, repair_queues, replay_execution, report_outcome, requeue_attempts,
      requeue_operations, requeue_purges, resume_cues, retry_refused, run_operation, service_health, settle_attempts, slots_without_execution,
      start_queued, stop_execution, supersede_executions, take_due_cues, take_last_slots, target_state, track_cue, verify_outcome,
      waiting_work, watch_exclusions, within_bytes}'),

    -- They read few rows in the order of an index, by id or by age. A bitmap scan loses that order and reads all matching rows
    -- before it returns the first.
    (3, 'enable_bitmapscan = off', '{
      begin_attempts, begin_claims, claim_next, claimable_tasks, expire_outcomes, find_claimable, finish_attempts,
      gone_attempts, held_attempts, last_success, lock_next, look_waiting, miss_unclaimed, move_due_cues, next_claimable, passed_windows,
      recover_leases, settle_attempts}'),

    -- The oldest execution is the first entry of an index. Sorting would read an account's whole backlog to find it, or lock all that have passed
    -- their deadline.
    (4, 'enable_sort = off', '{
      claim_next, claimable_tasks, expire_outcomes, find_claimable, miss_unclaimed, next_claimable, recover_leases}'),

    -- Hashing cues by their schedules takes half as long as sorting them, which the planner prefers.
    (15, 'enable_sort = off', '{look_ahead_by_schedule}'),

    -- An index scan marks the entries of cues that have moved on, and the next look skips them. A bitmap scan reads them until the next vacuum.
    (16, 'enable_bitmapscan = off', '{look_ahead_by_schedule}'),

    -- A batch of requests rarely looks up the same key twice; remembering the rows cost 5% of admitting.
    (5, 'enable_memoize = off', '{admit}'),

    -- They look up each entry of a short list in a big table. A hash or merge join would read that table from end to end.
    (11, 'enable_hashjoin = off', '{fold_usage, requeue_attempts}'),
    (12, 'enable_mergejoin = off', '{fold_usage, requeue_attempts}'),

    -- Its rows are many, and expected to be few.
    (13, 'enable_nestloop = off', '{move_due_cues}'),

    -- They serve several accounts in one call: a locked row delays the others by no more than this. The caller then handles each account
    -- separately.
    (6, 'lock_timeout = ''20ms''', '{add_payload_bytes, admit, count_executions, create_each_cue}'),
    (7, 'lock_timeout = ''50ms''', '{finish_attempts, run_operation, settle_attempts}'),

    -- All readers and writers of the table queue behind its lock, so it gives up well before PostgreSQL checks them for a deadlock (1 s).
    (8, 'lock_timeout = ''300ms''', '{drop_old_executions}'),

    -- Planning over all partitions takes up to thirty times as long as the call, so each session plans once. The plans suit arrays of any
    -- size.
    (9, 'plan_cache_mode = force_generic_plan', '{
      act_on_target, add_cues, admit, attach_evidence, backfill_slot, begin_attempts, begin_claims,
      calendar_cues, cancel_execution, catch_up_cues, claim_executions, claim_next, claimable_page, claimable_tasks,
      count_executions, count_hits, create_each_cue, create_operation, cue_detail_by_key, cues_of_targets, dismiss_execution, ended_pauses,
      expire_outcomes, find_claimable, finish_attempts, fire_cue, fire_tracked_cues, gone_attempts,
      heartbeat_execution, held_attempts, holds_executions, job_counts, last_success, lock_accounts,
      lock_free_cues, lock_next, look_ahead_by_schedule, look_waiting, lose_attempts, mail_cue_failed, miss_unclaimed, move_calendar_cues,
      move_due_cues, next_claimable, next_jobs, next_wakes, passed_exclusions, passed_windows, place_execution, read_cue_details, read_cues, read_destinations,
      read_errors, read_execution_details, record_exclusions, recover_flights, recover_leases, recover_stuck, refuse_due_cues,
      release_execution, release_flight, repair_queues, replay_execution, report_outcome, requeue_attempts, resume_cues,
      run_operation, settle_attempts, start_queued, stop_execution, supersede_executions, take_due_cues, take_last_slots, target_state, track_cue,
      verify_outcome, within_bytes}'),

    -- The estimated cost over all partitions triggers JIT compilation, which takes longer than the query.
    (10, 'jit = off', '{service_health}')
  ) as settings (place, setting, functions) order by place loop
    foreach v_function in array s.functions loop
      execute format('alter function cue.%I set %s', v_function, s.setting);
    end loop;
  end loop;
end $$;
