-- Executions requested by a person, and the consequences of an execution's end. Locks: account, cue, cue_runs, execution, job.

-- The caller has locked the cue, counted the usage and set the cue's task and payload to those that the execution gets.
create or replace function cue.queue_execution(
  c cue.cues, p_triggered_by cue.trigger_kind, p_scheduled_for timestamptz, p_replayed_from uuid default null, p_now timestamptz default now(),
  p_held_by cue.held_by default null, p_slot_due_at timestamptz default null, p_requested_by text default null, p_parents jsonb default null
) returns uuid
language plpgsql security definer as $$
declare
  v_id uuid := cue.uuid_v7(p_now);
  v_due_at timestamptz := greatest(p_scheduled_for, p_slot_due_at, p_now);
  v_held_by cue.held_by := case
    when c.approval is not null and p_held_by is distinct from 'after' then 'approval'
    when p_held_by is not null then p_held_by
    when c.gate is not null and v_due_at <= p_now then 'gate' end;
begin
  insert into cue.new_executions
  select n.*
    from cue.new_execution(
      c, v_id, p_scheduled_for, case when v_held_by is null then v_due_at else 'infinity' end, p_triggered_by,
      p_replayed_from => p_replayed_from, p_slot_due_at => p_slot_due_at, p_parents => p_parents, p_now => p_now) n;
  if c.template then perform cue.fix_values(c, v_id, p_now); end if;
  if c.tracked then
    insert into cue.open_executions (execution_id, cue_id, account_id) values (v_id, c.id, c.account_id);
  end if;
  if v_held_by is not null then
    perform cue.add_held(array[v_id], v_held_by, array[v_due_at], p_now);
    if v_held_by = 'gate' then perform cue.release_held(c.account_id, c.gate, p_now); end if;
    if v_held_by = 'approval' then perform cue.request_approval(c, v_id, p_requested_by, p_now); end if;
  elsif c.transport = 'webhook' then
    perform cue.enqueue_attempts(array[v_id], array[v_due_at]);
  else
    perform cue.wake_workers(c.account_id, v_due_at);
  end if;
  return v_id;
end $$;
comment on function cue.queue_execution is 'Creates a pending execution: due, claimable, or held.';

create or replace function cue.wake_workers(p_account_id uuid, p_at timestamptz) returns void
language sql as $$ select pg_notify('cue_claimable', p_account_id || ' ' || floor(extract(epoch from p_at) * 1000)::bigint) $$;
comment on function cue.wake_workers is 'Notifies waiting requests of an account that something becomes claimable at an instant.';

-- Exact, because the account is locked. Reaching the limit starts a grace period of 24 hours, or until twice the limit.
create or replace function cue.admit_execution(p_account_id uuid, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  a cue.accounts;
  v_limit int;
  v_used bigint;
begin
  select * into a from cue.accounts where id = p_account_id for no key update;
  select executions_per_month into v_limit from cue.limits_of(a);
  v_used := cue.executions_used(a.id, p_now);
  if v_used >= v_limit then
    perform cue.refuse_if(v_used >= 2 * v_limit::bigint or cue.is_over_limit(a, p_now), 'QU032',
      format('Execution limit reached: the plan allows %s executions per month. Change the plan, or wait until next month.', v_limit));
    perform cue.start_grace(a, p_now);
  end if;
  perform cue.count_executions(array[a.id], p_now);
end $$;
comment on function cue.admit_execution is 'Counts one requested execution against the monthly limit; QU032 above it.';

create or replace function cue.replay_execution(
  p_account_id uuid, p_execution_id uuid, p_now timestamptz default now(), p_overlap cue.overlap default 'allow',
  p_actor text default null
) returns setof cue.executions
language plpgsql security definer as $$
declare
  e cue.executions;
  c cue.cues;
  v_id uuid;
  v_held_by cue.held_by;
begin
  select * into e from cue.executions where id = p_execution_id and account_id = p_account_id;
  if found then
    perform from cue.accounts where id = p_account_id for no key update;
    select * into c from cue.cues where id = e.cue_id and deleted_at is null for no key update;
  end if;
  perform cue.refuse_if(c.id is null, 'QU002', format('execution %s not found', p_execution_id));
  perform cue.refuse_if(e.ended_at is null, 'QU012', format('Only an ended execution can be replayed; execution %s is %s.', e.id, e.status));
  perform cue.admit_execution(p_account_id, p_now);
  perform cue.admit_payload(p_account_id, cue.payload_bytes(coalesce(e.payload, case when e.payload_id = c.payload_ref then c.payload end), e.payload_id), p_now);
  update cue.cue_runs set run_count = run_count + 1 where cue_id = c.id;
  v_held_by := cue.place_request(c, p_overlap, p_now);
  c.tracked := c.tracked or p_overlap <> 'allow';
  if e.payload_id is distinct from c.payload_ref and e.payload_id is not null then
    -- The lock keeps prune_payloads from removing it before the reference is added.
    update cue.payloads set last_used_at = case when last_used_at is not null then greatest(last_used_at, p_now) end where id = e.payload_id;
    -- Retention removed the execution and its payload after it was read.
    perform cue.refuse_if(not found, 'QU002', format('execution %s not found', p_execution_id));
  end if;
  c.payload := e.payload;
  c.payload_id := e.payload_id;
  c.payload_ref := null;
  c.task := e.task;
  c.template := cue.has_values(e);
  v_id := cue.queue_execution(c, 'replay', p_now, e.id, p_now, v_held_by, p_requested_by => coalesce(p_actor, session_user::text collate "default"));
  perform cue.settle_dead_letter(e.id);
  return query select * from cue.executions where id = v_id;
end $$;
comment on function cue.replay_execution is 'Runs an ended execution again; QU002 not found, QU012 not ended, QU029 skipped.';

create or replace function cue.log_attempt(e cue.executions, p_result cue.attempt_result, p_error text, p_now timestamptz) returns void
language sql security definer as $$
  insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, error, worker_id)
  values (e.id, e.attempts, e.account_id, p_result, e.last_attempt_at, p_now, cue.milliseconds(p_now - e.last_attempt_at), p_error,
          e.claimed_by_worker)
  on conflict do nothing
$$;
comment on function cue.log_attempt is 'Logs the running attempt of an execution as ended now, without a response.';

-- Whatever it waits for or does. The caller has locked the cue, its cue_runs and the execution, and decides what the end means for the cue.
create or replace function cue.end_execution(
  e cue.executions, p_status cue.execution_status, p_error text, p_now timestamptz, p_reason cue.missed_reason default null,
  p_held_since timestamptz default null
) returns cue.executions
language plpgsql security definer as $$
begin
  update cue.executions
     set status = p_status, error_message = p_error, missed_reason = p_reason, attempt_due_at = null, claimable_at = null, claim_deadline_at = null,
         flight_id = null, lease_expires_at = null, claim_token = null, outcome_deadline_at = null, ended_at = p_now, updated_at = p_now,
         outcome_state = case p_status when 'outcome_timeout' then 'unknown' else outcome_state end,
         held_ms = case when p_held_since is null then held_ms
                        else least(coalesce(held_ms, 0)::bigint + cue.milliseconds(p_now - p_held_since), 2147483647) end
   where id = e.id returning * into e;
  delete from cue.held_executions where execution_id = e.id;
  return e;
end $$;
comment on function cue.end_execution is 'Ends an execution without a success, and returns it.';

-- Also one that is running: engines abort the open request within a second, and a worker loses its claim.
create or replace function cue.stop_execution(
  e cue.executions, p_reason text, p_now timestamptz default now(), p_actor text default null, p_source cue.approval_source default null
) returns cue.executions
language plpgsql security definer as $$
begin
  perform cue.cancel_approval(e, nullif(p_reason, 'cancelled'), p_actor, p_source, p_now);
  if e.status = 'delivering' then perform cue.log_attempt(e, 'failed', p_reason, p_now); end if;
  e := cue.end_execution(e, 'failed', p_reason, p_now);
  perform cue.drop_attempt_jobs(array[e.id]);
  perform cue.count_ended('failed');
  perform cue.add_execution_events('execution.cancelled', array[e.id], p_now);
  return e;
end $$;
comment on function cue.stop_execution is 'Ends an execution as failed, whatever it is doing, without on_failure or alert, and returns it.';

-- With p_running, also one that is being sent, claimed or awaits its outcome.
create or replace function cue.cancel_execution(
  p_account_id uuid, p_execution_id uuid, p_now timestamptz default now(), p_running boolean default false, p_actor text default session_user,
  p_source cue.approval_source default 'call'
) returns setof cue.executions
language plpgsql security definer as $$
declare
  c cue.cues := cue.lock_cue_of(p_account_id, p_execution_id);
  e cue.executions;
begin
  select * into e from cue.executions where id = p_execution_id for update;
  perform cue.refuse_if(e.ended_at is not null or not p_running and e.status not in ('pending', 'retrying', 'retry_ready'), 'QU011',
    format('Only a waiting execution can be cancelled; execution %s is %s.', e.id, e.status));
  e := cue.stop_execution(e, 'cancelled', p_now, p_actor, p_source);
  perform cue.end_one_time_cue(c, 'failed', p_now);
  perform cue.follow_end(c, p_now);
  return next e;
end $$;
comment on function cue.cancel_execution is 'Cancels a waiting execution, without on_failure or alert; QU002 not found, QU011 not waiting.';

-- The caller has locked the account's cues. Engines abort the open requests within a second. Executions claimed by workers continue.
create or replace function cue.cancel_waiting(p_account_id uuid, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_ids uuid[] := array(
    select id from cue.executions where attempt_due_at is not null and account_id = p_account_id
    union all
    select id from cue.executions where claimable_at is not null and account_id = p_account_id
    union all
    select x.id from cue.flights f cross join lateral (
      select e.id from cue.executions e where e.id = any (f.execution_ids) and e.flight_id = f.id and e.account_id = p_account_id limit 1000) x);
  v_cues text[];
begin
  perform from cue.executions where id = any (v_ids) order by id for update;
  -- A new statement: some may have begun while this waited for their locks.
  perform cue.log_attempt(e, 'failed', 'cancelled', p_now) from cue.executions e where e.id = any (v_ids) and e.flight_id is not null;
  with ended as (
    update cue.executions
       set status = 'failed', error_message = 'cancelled', attempt_due_at = null, claimable_at = null, claim_deadline_at = null,
           flight_id = null, ended_at = p_now, updated_at = p_now
     where id = any (v_ids) and (status in ('pending', 'retrying', 'retry_ready') or flight_id is not null) returning id, cue_id)
  select array_agg(id), array_agg(distinct cue_id) into v_ids, v_cues from ended;
  perform cue.drop_attempt_jobs(v_ids);
  perform cue.add_execution_events('execution.cancelled', v_ids, p_now);
  delete from cue.open_executions where execution_id = any (v_ids);
  delete from cue.held_executions where execution_id = any (v_ids);
  delete from cue.approvals where execution_id = any (v_ids) and decision is null;
  perform cue.count_ended('failed') from unnest(v_ids);
  perform cue.end_one_time_cue(c, 'failed', p_now) from cue.cues c where c.id = any (v_cues) and c.schedule_type = 'once';
  return coalesce(cardinality(v_ids), 0);
end $$;
comment on function cue.cancel_waiting is 'Cancels the waiting and open executions of an account; returns how many.';

create or replace function cue.judge_outcome(
  p_mode cue.verification_mode, p_success boolean, p_external_id text, p_result_url text, p_artifacts jsonb
) returns cue.outcome_state
language sql immutable as $$
  select case
    when not p_success then 'reported_failure'
    else case coalesce(p_mode, 'none')
      when 'none' then 'reported_success'
      when 'manual' then 'verification_pending'
      when 'require_external_id' then case when p_external_id is not null then 'verified_success' else 'verification_failed' end
      when 'require_result_url' then case when p_result_url is not null then 'verified_success' else 'verification_failed' end
      when 'require_artifacts' then case when jsonb_array_length(p_artifacts) > 0 then 'verified_success' else 'verification_failed' end
    end
  end::cue.outcome_state
$$;
comment on function cue.judge_outcome is 'Returns the outcome state that a report leads to, by verification mode.';

-- The caller holds the cue's lock.
create or replace function cue.end_one_time_cue(c cue.cues, p_status cue.cue_status, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  if c.schedule_type = 'once' and c.status in ('active', 'paused') and c.deleted_at is null then
    update cue.cues
       set status = p_status, completed_reason = case p_status when 'completed' then 'once'::cue.completion end, paused_at = null,
           paused_by = null, pause_reason = null, paused_until = null, updated_at = p_now
     where id = c.id;
    update cue.cue_runs set next_run = null, success_due_at = null, version = version + 1 where cue_id = c.id;
    -- The event of a failed run says it all.
    if p_status = 'completed' then perform cue.add_cue_events('cue.completed', array[c.id], p_now); end if;
    perform cue.note_memory(c.account_id);
  end if;
end $$;
comment on function cue.end_one_time_cue is 'Completes or fails a one-time cue when its first execution ends.';

-- One sequence per status, so counting locks no row. A statement that is rolled back still counts.
create or replace function cue.count_ended(p_status cue.execution_status) returns bigint
language sql security definer as $$ select nextval(('cue.ended_' || p_status)::regclass) $$;
comment on function cue.count_ended is 'Counts an execution that ended with a status.';

create or replace function cue.ended_executions() returns table (status cue.execution_status, count bigint)
language sql stable security definer as $$
  select s.status, coalesce(pg_sequence_last_value(('cue.ended_' || s.status)::regclass), 0)
    from unnest('{success,failed,missed,outcome_timeout}'::cue.execution_status[]) as s (status)
$$;
comment on function cue.ended_executions is 'Returns how many executions have ended with each status since counting began.';

-- The caller holds the cue's locks. Exhausted retries and misses trigger on_failure; a failure that a worker reports doesn't, unless it would have
-- been retried. A reported outcome counts as an outcome, and so does an outcome timeout.
create or replace function cue.after_end(e cue.executions, c cue.cues, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.count_ended(e.status);
  if c.id is null or c.deleted_at is not null then return; end if;
  perform cue.add_end_event(e, p_now);
  if e.status in ('failed', 'missed', 'outcome_timeout') then perform cue.add_dead_letter(e); end if;
  perform cue.send_signals(array[e.id], p_now);
  if c.gate is not null and e.status <> 'success' then
    delete from cue.held_executions where execution_id = e.id;
    perform cue.pause_after_failure(e, c, p_now);
  end if;
  perform cue.follow_end(c, p_now);
  -- Not set when it started, if the row was locked then.
  if e.started_at > e.created_at then
    update cue.cue_runs set last_run = e.started_at where cue_id = c.id and (last_run is null or last_run < e.started_at);
  end if;
  -- The mail about the pause replaces the one about the failure.
  if c.on_failure_pause_after is not null and cue.count_run(e, c, p_now) then
    c.status := 'paused';
    c.on_failure_email := false;
  end if;
  if e.outcome_recorded_at = p_now then perform cue.count_outcome(e, c, p_now); end if;
  if e.status = 'success' and (e.outcome_success or e.transport = 'webhook' and not coalesce(c.await_outcome, false)) then
    perform cue.resolve_alerts(c.id, p_now);
    perform cue.end_one_time_cue(c, 'completed', p_now);
    return;
  end if;
  perform cue.end_one_time_cue(c, 'failed', p_now);
  if e.status = 'outcome_timeout' then
    perform cue.raise_alert(c, 'outcome_timeout', 'warning', format('%s was delivered, but no outcome was reported in time', c.name),
      jsonb_build_object('deadline_seconds', c.outcome_deadline_seconds), e.id, p_now);
    perform cue.count_failure(e, c, true, p_now);
  elsif e.status in ('failed', 'missed') and e.outcome_recorded_at is distinct from p_now then
    perform cue.count_results(c.account_id, 0, 0, 1, p_now);
    perform cue.count_failure(e, c, false, p_now);
    perform cue.run_on_failure(e, c, p_now);
  elsif e.status = 'failed' and c.retry_on_worker_failure then
    perform cue.run_on_failure(e, c, p_now);
  end if;
end $$;
comment on function cue.after_end is 'Applies the consequences of an execution''s end to its cue.';

create or replace function cue.follow_end(c cue.cues, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  if c.tracked then perform cue.start_queued(c.id, p_now); end if;
  if c.gate is not null then perform cue.release_held(c.account_id, c.gate, p_now); end if;
end $$;
comment on function cue.follow_end is 'Releases the executions for which an end of an execution or attempt of a cue made room.';

create or replace function cue.run_on_failure(e cue.executions, c cue.cues, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  if c.on_failure_email then
    perform cue.add_job('mails', jsonb_build_object('kind', 'cue_failed', 'account_id', c.account_id, 'execution_id', e.id));
  end if;
  if c.on_failure_webhook is not null then
    perform cue.add_job('notifications', jsonb_build_object('kind', 'cue_failed', 'account_id', c.account_id, 'url', c.on_failure_webhook,
      'execution_id', e.id, 'failed_at', p_now));
  end if;
  if c.on_failure_pause and c.schedule_type is distinct from 'once' and c.status = 'active' then
    perform cue.pause_cues(array[c.id], 'failures', e.error_message, p_now);
  end if;
end $$;
comment on function cue.run_on_failure is 'Applies a cue''s on_failure: queues the mail and the webhook, and pauses the cue.';

create or replace function cue.failure_notice(p_execution_id uuid, p_now timestamptz default now()) returns table (
  cue_id text, cue_name text, execution_id uuid, attempts int, last_http_status int, last_error text, secrets text[]
)
language sql stable security definer as $$
  select c.id, c.name, e.id, e.attempts, e.http_status, e.error_message, cue.signing_secrets(a, p_now)
    from cue.executions e join cue.cues c on c.id = e.cue_id join cue.accounts a on a.id = e.account_id
   where e.id = p_execution_id and c.deleted_at is null
$$;
comment on function cue.failure_notice is 'Returns the body and signing secrets of an on_failure webhook, or no row if the cue is gone.';

-- As for deliveries, by the cue's own attempts and backoff.
create or replace function cue.failure_notice_retry_at(
  p_execution_id uuid, p_tries int, p_retry_after_ms int default null, p_now timestamptz default now()
) returns timestamptz
language sql volatile security definer as $$
  select cue.retry_due_at(c.retry_backoff_minutes, p_tries, p_retry_after_ms, p_now)
    from cue.executions e join cue.cues c on c.id = e.cue_id
   where e.id = p_execution_id and c.deleted_at is null and p_tries < c.retry_max_attempts
$$;
comment on function cue.failure_notice_retry_at is 'Returns when an on_failure webhook is retried, or null if never.';
