-- Heartbeats of engines, and recovery of work whose holder stopped responding. Every sweep reads a partial index and skips locked rows.

-- Called every few seconds, and before an engine first takes anything. database_now gives the offset of the database's clock.
create or replace function cue.beat_engine(
  p_engine_id uuid, p_version text, p_lateness_ms int default null, p_open_deliveries int default 0,
  p_missed_after interval default cue.missed_after(), p_now timestamptz default now(), p_name text default null,
  p_full_accounts uuid[] default '{}', p_passed_over text[] default '{}'
) returns table (database_now timestamptz, outage_recorded boolean, engines int)
language plpgsql security definer as $$
declare
  v_last timestamptz := (select max(last_seen_at) from cue.engines);
  v_outage boolean := false;
begin
  if v_last < p_now - p_missed_after then
    -- One engine records the outage; the others wait here, and then see its heartbeat.
    perform pg_advisory_xact_lock(hashtext('cue.outages'));
    v_last := (select max(last_seen_at) from cue.engines);
    if v_last < p_now - p_missed_after then
      insert into cue.outages (from_at, until_at) values (v_last, p_now) on conflict do nothing;
      v_outage := true;
    end if;
  end if;
  insert into cue.engines as n (id, name, version, started_at, last_seen_at, lateness_ms, open_deliveries, missed_after, full_accounts, passed_over)
  values (p_engine_id, p_name, p_version, p_now, p_now, p_lateness_ms, p_open_deliveries, p_missed_after, p_full_accounts, p_passed_over)
  on conflict (id) do update
     set last_seen_at = greatest(n.last_seen_at, excluded.last_seen_at), lateness_ms = excluded.lateness_ms,
         open_deliveries = excluded.open_deliveries, missed_after = excluded.missed_after, full_accounts = excluded.full_accounts,
         passed_over = excluded.passed_over;
  return query
  select case when p_now = now() then clock_timestamp() else p_now end, v_outage, count(*)::int
    from cue.engines n where n.last_seen_at > p_now - cue.engine_timeout() and n.stopped_at is null or n.id = p_engine_id;
end $$;
comment on function cue.beat_engine is 'Records an engine''s heartbeat, and an outage before it; returns how many live.';

create or replace function cue.stop_engine(p_engine_id uuid, p_now timestamptz default now()) returns void
language sql security definer as $$
  update cue.engines set stopped_at = greatest(started_at, p_now) where id = p_engine_id
$$;
comment on function cue.stop_engine is 'Records that an engine has shut down.';

-- Called every second.
create or replace function cue.extend_flights(
  p_flight_ids bigint[], p_lease interval default cue.flight_lease(), p_now timestamptz default now()
) returns setof bigint
language plpgsql security definer as $$
begin
  update cue.flights set lease_expires_at = p_now + p_lease
   where id = any (array(select id from cue.flights where id = any (p_flight_ids) order by id for update skip locked));
  -- Locked flights are still held: while the row is locked, no engine can take it over.
  return query select id from cue.flights where id = any (p_flight_ids);
end $$;
comment on function cue.extend_flights is 'Extends the leases of an engine''s flights; returns those it still holds.';

create or replace function cue.release_flight(p_flight_id bigint, p_execution_ids uuid[], p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_ids uuid[];
begin
  perform from cue.executions where id = any (p_execution_ids) order by id for update;
  with freed as (
    update cue.executions
       set status = 'retry_ready', flight_id = null, attempt_due_at = p_now, attempts = attempts - 1, updated_at = p_now
     where id = any (p_execution_ids) and status = 'delivering' and flight_id = p_flight_id
    returning id)
  select coalesce(array_agg(id), '{}') into v_ids from freed;
  if cardinality(v_ids) > 0 then
    perform cue.enqueue_attempts(v_ids, array_fill(p_now, array[cardinality(v_ids)]));
  end if;
  return cardinality(v_ids);
end $$;
comment on function cue.release_flight is 'Gives back begun but unsent attempts of a flight; for an engine''s shutdown.';

-- Their attempts are logged as lost, and the executions become retry_ready, or missed after five lost attempts. p_asked_at is when the
-- caller sent the statement: if it was delayed, so were the holders' extensions, and leases that expired since then must not count.
create or replace function cue.recover_flights(
  p_limit int default 20, p_asked_at timestamptz default null, p_now timestamptz default now()
) returns int
language plpgsql security definer as $$
declare
  v_flights bigint[];
  v_ids uuid[];
  v_cues text[];
  v_count int;
begin
  select array_agg(l.id) into v_flights from (
    select id from cue.flights
     where lease_expires_at < least(p_asked_at, p_now) order by id limit p_limit for update skip locked) l;
  if v_flights is null then return 0; end if;
  v_ids := array(select unnest(execution_ids) from cue.flights where id = any (v_flights));
  v_cues := cue.lock_free_cues(array(
    select cue_id from cue.executions where id = any (v_ids) and flight_id = any (v_flights) and cue.is_last_loss(lost_attempts)));
  v_ids := array(
    select id from cue.executions
     where id = any (v_ids) and flight_id = any (v_flights) and (not cue.is_last_loss(lost_attempts) or cue_id = any (v_cues))
     order by id for update skip locked);
  v_count := (
    select sum(cue.lose_attempts(array(select u.id from unnest(f.execution_ids) as u (id) where u.id = any (v_ids)), f.id,
                                 'the replica sending it stopped responding', p_now))
      from cue.flights f where f.id = any (v_flights));
  -- A flight whose executions are locked by someone else stays until the next sweep.
  delete from cue.flights n
   where n.id = any (v_flights)
     and not exists (select from cue.executions x where x.id = any (n.execution_ids) and x.flight_id = n.id);
  return v_count;
end $$;
comment on function cue.recover_flights is 'Recovers executions from flights whose lease has expired; returns how many.';

-- A request that crashes its sender must not be sent forever.
create or replace function cue.is_last_loss(p_lost_attempts int) returns boolean
language sql immutable as $$ select p_lost_attempts >= 4 $$;
comment on function cue.is_last_loss is 'Returns whether the next lost attempt ends an execution: the fifth.';

create or replace function cue.lose_attempts(
  p_execution_ids uuid[], p_flight_id bigint, p_error text, p_now timestamptz default now()
) returns int
language plpgsql security definer as $$
declare
  v_again uuid[];
  v_missed uuid[];
  v_count int;
  c cue.cues;
  e cue.executions;
begin
  -- Only executions still in the flight count, so that locking again takes no further locks.
  perform cue.lock_cues(array(
    select cue_id from cue.executions where id = any (p_execution_ids) and flight_id = p_flight_id and cue.is_last_loss(lost_attempts)));
  perform from cue.executions where id = any (p_execution_ids) and flight_id = p_flight_id order by id for update;
  with lost as (
    update cue.executions x
       set status = case when cue.is_last_loss(x.lost_attempts) then 'missed' else 'retry_ready' end::cue.execution_status, flight_id = null,
           attempt_due_at = case when not cue.is_last_loss(x.lost_attempts) then p_now end,
           ended_at = case when cue.is_last_loss(x.lost_attempts) then p_now end,
           error_message = case when cue.is_last_loss(x.lost_attempts) then 'gave up after five lost attempts' else p_error end,
           lost_attempts = x.lost_attempts + 1, updated_at = p_now
     where x.id = any (p_execution_ids) and x.status = 'delivering' and x.flight_id = p_flight_id
    returning x.id, x.account_id, x.status, x.attempts, x.last_attempt_at),
  log as (
    insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, error)
    select l.id, l.attempts, l.account_id, 'lost', l.last_attempt_at, p_now, cue.milliseconds(p_now - l.last_attempt_at), p_error
      from lost l
    on conflict do nothing)
  select count(*), array_agg(l.id) filter (where l.status = 'retry_ready'), array_agg(l.id) filter (where l.status = 'missed')
    into v_count, v_again, v_missed from lost l;
  if v_again is not null then perform cue.enqueue_attempts(v_again, array_fill(p_now, array[cardinality(v_again)])); end if;
  for e in select * from cue.executions where id = any (v_missed) order by id loop
    select * into c from cue.cues where id = e.cue_id;
    perform cue.after_end(e, c, p_now);
  end loop;
  return v_count;
end $$;
comment on function cue.lose_attempts is 'Logs a flight''s attempts as lost; executions are attempted again or missed.';

create or replace function cue.milliseconds(p_interval interval) returns int
language sql immutable as $$ select least(greatest(extract(epoch from p_interval) * 1000, 0), 2147483647)::int $$;
comment on function cue.milliseconds is 'Returns an interval in whole milliseconds, at least 0.';

-- A minute past the timeout and at least five minutes old: a bug in the engine. It counts as a failed send, and is retried or ends as
-- missed.
create or replace function cue.recover_stuck(p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_ids uuid[];
  v_cues text[];
  c cue.cues;
  e cue.executions;
  v_count int := 0;
  v_error constant text := 'no response was recorded in time';
begin
  select array_agg(x.id) into v_ids from cue.flights f
    join cue.executions x on x.id = any (f.execution_ids) and x.flight_id = f.id
    join cue.cues q on q.id = x.cue_id
   where f.created_at < p_now - interval '5 minutes'
     and x.last_attempt_at + (coalesce(q.timeout_seconds, (cue.implied_settings()).timeout_seconds) + 60) * interval '1 second' < p_now;
  if v_ids is null then return 0; end if;
  v_cues := cue.lock_free_cues(array(select cue_id from cue.executions where id = any (v_ids)));
  v_ids := array(select id from cue.executions where id = any (v_ids) and cue_id = any (v_cues) order by id for update skip locked);
  for e in
    select * from cue.executions
     where id = any (v_ids) and status = 'delivering' and last_attempt_at < p_now - interval '5 minutes' order by id
  loop
    select * into c from cue.cues where id = e.cue_id;
    v_count := v_count + 1;
    perform cue.log_attempt(e, 'failed', v_error, p_now);
    if c.deleted_at is null and e.attempts - e.lost_attempts < c.retry_max_attempts then
      update cue.executions
         set status = 'retrying', flight_id = null, attempt_due_at = p_now, error_message = v_error, updated_at = p_now
       where id = e.id;
      perform cue.enqueue_attempts(array[e.id], array[p_now]);
      perform cue.add_execution_events('execution.retrying', array[e.id], p_now);
    else
      perform cue.after_end(cue.end_execution(e, 'missed', v_error, p_now), c, p_now);
    end if;
  end loop;
  return v_count;
end $$;
comment on function cue.recover_stuck is 'Ends attempts that a live engine has held far beyond their timeout; returns how many.';

create or replace function cue.expire_outcomes(p_limit int default 500, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  c cue.cues;
  e cue.executions;
  v_count int := 0;
begin
  for e in
    select x.* from cue.executions x
     where x.outcome_deadline_at <= p_now and cue.lock_free_cues(array[x.cue_id]) <> '{}'
     order by x.outcome_deadline_at limit p_limit for update skip locked
  loop
    select * into c from cue.cues where id = e.cue_id;
    perform cue.after_end(cue.end_execution(e, 'outcome_timeout', 'delivered, but no outcome was reported in time', p_now), c, p_now);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.expire_outcomes is 'Ends executions whose outcome deadline has passed; returns how many.';

-- "min" over so many partitions would take twice as long to plan. A job that
-- became due some seconds ago may still wait for a worker.
create or replace function cue.next_wakes()
returns table (waiting_at timestamptz, deadline_at timestamptz, due_at timestamptz, window_at timestamptz,
  job_queues text[], job_waits_ms float8[], has_flights boolean)
language plpgsql stable security definer as $$
begin
  return query
  select (select e.attempt_due_at from cue.executions e where e.attempt_due_at < 'infinity' order by e.attempt_due_at limit 1),
         least((select e.outcome_deadline_at from cue.executions e where e.outcome_deadline_at is not null order by e.outcome_deadline_at limit 1),
               (select e.claim_deadline_at from cue.executions e where e.claim_deadline_at < 'infinity' order by e.claim_deadline_at limit 1),
               (select e.lease_expires_at from cue.executions e where e.lease_expires_at is not null order by e.lease_expires_at limit 1),
               (select min(a.expires_at) from cue.approvals a where a.decision is null),
               (select min(a.remind_at) from cue.approvals a where a.remind_at is not null),
               (select min(c.paused_until) from cue.cues c where c.paused_until is not null and c.deleted_at is null),
               (select min(r.excluded_at) from cue.cue_runs r where r.excluded_at is not null),
               (select min(h.expires_at) from cue.held_executions h where h.expires_at is not null),
               (select min(s.expires_at) from cue.signals s where s.spent_at is null and not s.is_new)),
         (select min(r.next_run) from cue.cue_runs r where r.next_run is not null),
         (select min(r.success_due_at) from cue.cue_runs r where r.success_due_at < coalesce(r.next_run, 'infinity')),
         job.queues, job.waits_ms, exists (select from cue.flights)
    from (select coalesce(array_agg(j.queue), '{}') as queues, coalesce(array_agg(j.wait_ms), '{}') as waits_ms
            from cue.next_jobs('10 seconds') j) job;
end $$;
comment on function cue.next_wakes is
  'Returns when the next waiting attempt is due, the next deadline of an outcome, a claim, a lease, a pause, an approval or a signal or the next excluded slot, the next '
  'cue and the next window for a success that ends before its cue is due again; the queues with waiting jobs, and the milliseconds until the next of each may start; and whether any attempt is in flight.';
