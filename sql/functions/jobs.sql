-- The only file that names pg-boss's tables. An "attempts" job has its execution's id; it only marks that the execution waits for an
-- attempt, and the state is in the execution's row. Locks: executions first, then their jobs.

-- pg-boss copies a queue's settings into each job; a plain insert would get the table's defaults. The job's group is its account.
create or replace function cue.add_job(
  p_queue text, p_data jsonb default null, p_id uuid default gen_random_uuid(), p_start_after timestamptz default now(),
  p_singleton_key text default null
) returns void
language plpgsql security definer as $$
begin
  insert into pgboss.job (id, name, data, start_after, created_on, singleton_key, expire_seconds, deletion_seconds, keep_until, retry_limit,
                          retry_delay, retry_backoff, retry_delay_max, policy, dead_letter, heartbeat_seconds, group_id)
  select p_id, q.name, p_data, p_start_after, now(), p_singleton_key, q.expire_seconds, q.deletion_seconds,
         p_start_after + q.retention_seconds * interval '1 second', q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max,
         q.policy, q.dead_letter, q.heartbeat_seconds, p_data ->> 'account_id'
    from pgboss.queue q where q.name = p_queue
  on conflict do nothing;
  if found and p_start_after <= now() then perform pg_notify('cue_jobs', p_queue); end if;
end $$;
comment on function cue.add_job is 'Adds a pg-boss job with its queue''s settings, unless it exists.';

-- A notice's job has its id. One that is running is replaced: it is the one that asks for another try, or its process has crashed.
create or replace function cue.add_notice_job(p_notice_id uuid, p_account_id uuid, p_due_at timestamptz) returns void
language plpgsql security definer as $$
begin
  delete from pgboss.job where name = 'notices' and id = p_notice_id and state >= 'active';
  perform cue.add_job('notices', jsonb_build_object('notice_id', p_notice_id, 'account_id', p_account_id), p_notice_id, p_due_at);
end $$;
comment on function cue.add_notice_job is 'Adds the job of a notice, unless one waits.';

-- After a crash, once the time for its try has passed.
create or replace function cue.requeue_notices(p_limit int default 1000, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_count int;
begin
  perform cue.add_notice_job(n.id, n.account_id, p_now) from (
    select w.id, w.account_id from cue.notices w
     where w.due_at < p_now - interval '5 seconds'
       and not exists (select from pgboss.job j where j.name = 'notices' and j.id = w.id and j.state < 'active')
     order by w.due_at limit p_limit for update of w skip locked) n;
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function cue.requeue_notices is 'Adds the missing jobs of notices that are overdue; returns how many.';

-- At most one job of an endpoint waits: see event_endpoints.sql.
create or replace function cue.move_endpoint_job(p_endpoint_id uuid, p_account_id uuid, p_due_at timestamptz) returns void
language plpgsql security definer as $$
begin
  delete from pgboss.job
   where name = 'event_endpoints' and state = 'created' and policy = 'short' and coalesce(singleton_key, '') = p_endpoint_id::text;
  if p_due_at is null then return; end if;
  perform cue.add_job('event_endpoints', jsonb_build_object('endpoint_id', p_endpoint_id, 'account_id', p_account_id), p_start_after => p_due_at,
                      p_singleton_key => p_endpoint_id::text);
end $$;
comment on function cue.move_endpoint_job is 'Lets the waiting job of an endpoint start at an instant, or removes it.';

create or replace function cue.queue_endpoints(p_account_ids uuid[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.add_job('event_endpoints', jsonb_build_object('endpoint_id', e.id, 'account_id', e.account_id), p_start_after => p_now,
                      p_singleton_key => e.id::text)
     from cue.event_endpoints e where e.account_id = any (p_account_ids) and e.status = 'enabled';
end $$;
comment on function cue.queue_endpoints is 'Adds jobs for the endpoints of accounts that have new events, except those whose job waits.';

create or replace function cue.enqueue_attempts(p_execution_ids uuid[], p_due_at timestamptz[]) returns void
language plpgsql security definer as $$
begin
  insert into pgboss.job (id, name, start_after, created_on, expire_seconds, deletion_seconds, keep_until, retry_limit, retry_delay,
                          retry_backoff, retry_delay_max, policy, dead_letter, heartbeat_seconds)
  select d.id, q.name, d.due_at, now(), q.expire_seconds, q.deletion_seconds, d.due_at + q.retention_seconds * interval '1 second',
         q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max, q.policy, q.dead_letter, q.heartbeat_seconds
    from unnest(p_execution_ids, p_due_at) as d (id, due_at), pgboss.queue q
   where q.name = 'attempts'
  on conflict (name, id) do update set start_after = excluded.start_after, keep_until = excluded.keep_until, state = 'created';
  perform cue.wake('cue_waiting', (select min(due_at) from unnest(p_due_at) as d (due_at)));
end $$;
comment on function cue.enqueue_attempts is 'Adds one attempt job per execution, due at its instant, and wakes an engine for the first.';

create or replace function cue.drop_attempt_jobs(p_execution_ids uuid[]) returns void
language sql security definer as $$
  delete from pgboss.job where name = 'attempts' and id = any(p_execution_ids)
$$;
comment on function cue.drop_attempt_jobs is 'Removes the attempt jobs of executions.';

-- A position is an instant in epoch microseconds and an id: with milliseconds, the caller would read the same rows again and again.
create or replace function cue.look_waiting(
  p_after bigint, p_after_id uuid, p_limit int default 1000, p_now timestamptz default now()
) returns table (execution_id uuid, account_id uuid, due_at bigint, is_due boolean)
language plpgsql stable security definer as $$
declare
  v_after constant timestamptz := 'epoch'::timestamptz + p_after * interval '1 microsecond';
begin
  return query
  select w.id, w.account_id, (extract(epoch from w.attempt_due_at) * 1000000)::bigint, w.attempt_due_at <= p_now from (
    (select * from cue.executions e
      where e.attempt_due_at >= v_after and (e.attempt_due_at, e.id) > (v_after, p_after_id) and e.attempt_due_at <= p_now
      order by e.attempt_due_at, e.id limit p_limit)
    union all
    (select * from cue.executions e
      where e.attempt_due_at > p_now and e.attempt_due_at < 'infinity' order by e.attempt_due_at limit 1)) w
   order by w.attempt_due_at, w.id;
end $$;
comment on function cue.look_waiting is 'Returns a page of executions whose attempts are due, and the next one; locks none.';

-- Jobs are removed and a flight is added in the same call. An execution without a job is left to requeue_attempts.
create or replace function cue.begin_attempts(
  p_execution_ids uuid[], p_lease interval default cue.flight_lease(), p_now timestamptz default now()
) returns setof cue.begun_attempt
language plpgsql security definer as $$
declare
  v_flight bigint;
  v_ids uuid[];
  v_starts boolean;
  v_gated boolean;
  v_tried uuid[];
  v_first uuid := (select min(id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_last uuid := (select max(id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_limited boolean := cue.limits_timeouts();
  v_holds boolean := cue.has_holds();
begin
  -- Scalar subqueries look up one row each; a join could read all jobs.
  select array_agg(due.id), bool_or(due.started_at is null), bool_or(due.gate <> '') into v_ids, v_starts, v_gated from (
    select e.id, e.started_at, (select coalesce(c.gate, '') from cue.cues c where c.id = e.cue_id and c.deleted_at is null) as gate
      from cue.executions e
     where e.id = any (p_execution_ids) and e.id between v_first and v_last and e.attempt_due_at <= p_now
       and (select true from pgboss.job j where j.name = 'attempts' and j.id = e.id and j.state < 'active')
       and not (v_holds and cue.is_held(e.account_id))
     order by e.id for update of e skip locked) due
   where due.gate is not null;
  if v_ids is null then return; end if;
  with gone as (
    delete from pgboss.job where name = 'attempts' and id = any (array(
      select j.id from pgboss.job j where j.name = 'attempts' and j.id = any (v_ids) for update skip locked)) returning id)
  select array_agg(id) into v_ids from gone;
  if v_gated and v_ids is not null then
    v_tried := v_ids;
    select x.passed, x.begun_at into v_ids, p_now from cue.pass_gates(v_ids, p_now) x;
  end if;
  v_flight := nextval('cue.flight_ids');
  -- cue_runs precede executions in the lock order, so a locked row is skipped; its last_run is set when the execution ends.
  if v_starts then
    update cue.cue_runs set last_run = greatest(last_run, p_now)
     where cue_id = any (array(
       select l.cue_id from cue.executions e
        cross join lateral (select r.cue_id from cue.cue_runs r where r.cue_id = e.cue_id limit 1 for update skip locked) l
        where e.id = any (v_ids) and e.id between v_first and v_last and e.started_at is null));
  end if;
  return query
  with begun as (
    update cue.executions e
       set status = 'delivering', attempts = e.attempts + 1, flight_id = v_flight, attempt_due_at = null,
           started_at = coalesce(e.started_at, p_now), last_attempt_at = p_now, updated_at = p_now
     where e.id = any (v_ids) and e.id between v_first and v_last
    returning e.id, e.attempts, e.account_id, e.cue_id, e.scheduled_for, e.payload, e.payload_id, e.started_at, e.created_at,
              e.is_fixed),
  flight as (
    insert into cue.flights (id, execution_ids, lease_expires_at, created_at)
    select v_flight, array_agg(b.id), p_now + p_lease, p_now from begun b having count(*) > 0)
  select b.id, v_flight, b.attempts, b.account_id, b.cue_id, b.scheduled_for, coalesce(f.callback_url, c.callback_url), coalesce(f.callback_method, c.callback_method),
         coalesce(f.callback_headers, c.callback_headers),
         coalesce(b.payload, (select p.body from cue.stored_payloads p where p.id = b.payload_id and p.cue_id = b.cue_id limit 1)),
         least(coalesce(c.timeout_seconds, (cue.implied_settings()).timeout_seconds), case when v_limited then cue.max_timeout(b.account_id) end),
         a.secrets, a.api_key,
         c.schedule_type is distinct from 'once' and not coalesce(c.await_outcome, false)
           and (b.started_at = b.created_at or coalesce((select r.last_run >= b.started_at from cue.cue_runs r where r.cue_id = b.cue_id), false)),
         f.template_values::text
    from begun b
   cross join lateral (select * from cue.cues where id = b.cue_id limit 1) c
   cross join lateral cue.signing_account(b.account_id, p_now) a
    left join lateral (
      select q.* from cue.fixed_requests q
       where b.is_fixed and q.execution_id = b.id and q.execution_id between v_first and v_last limit 1) f on true;
  if v_tried is not null then perform cue.release_behind(v_tried, p_now); end if;
end $$;
comment on function cue.begin_attempts is 'Begins those due attempts that are not locked; returns the requests to send.';

-- A job can be missing after a repair by hand, or because it expired. Runs every minute and looks only two minutes ahead, so that executions
-- that wait for longer are not read each time.
create or replace function cue.requeue_attempts(p_limit int default 1000, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_ids uuid[];
  v_due timestamptz[];
begin
  select array_agg(w.id), array_agg(w.attempt_due_at) into v_ids, v_due from (
    select e.id, e.attempt_due_at from cue.executions e
     where e.attempt_due_at <= p_now + interval '2 minutes'
       and not exists (select from pgboss.job j where j.name = 'attempts' and j.id = e.id and j.state < 'active')
     order by e.attempt_due_at limit p_limit for update of e skip locked) w;
  if v_ids is null then return 0; end if;
  perform cue.enqueue_attempts(v_ids, v_due);
  return cardinality(v_ids);
end $$;
comment on function cue.requeue_attempts is 'Adds the missing jobs of executions that are soon due for an attempt; returns how many.';

-- pg-boss has no index on start_after, so this reads waiting jobs in the order of its fetch index, up to p_limit per queue. For executions
-- see next_wakes.
create or replace function cue.next_jobs(p_past interval default '0 seconds', p_limit int default 1000)
returns table (queue text, wait_ms float8)
language plpgsql stable security definer as $$
begin
  return query
  select q.name::text, (extract(epoch from next.start_after - clock_timestamp()) * 1000)::float8
    from pgboss.queue q
   cross join lateral (
     select min(w.start_after) as start_after from (
       select j.start_after from pgboss.job j
        where j.name = q.name and j.state < 'active' and not j.blocked
        order by j.priority desc, j.created_on limit p_limit) w
      where w.start_after > now() - p_past) next
   where q.name <> 'attempts' and next.start_after is not null;
end $$;
comment on function cue.next_jobs is 'Returns the milliseconds until each queue''s next waiting job may start; negative if it became due within p_past.';

create or replace function cue.job_counts(p_limit int default cue.counted_to()) returns table (queue text, waiting int)
language plpgsql stable security definer as $$
begin
  return query
  select q.name::text, counted.waiting
    from pgboss.queue q
   cross join lateral (
     select count(*)::int as waiting from (
       select from pgboss.job j where j.name = q.name and j.state < 'active' and not j.blocked limit p_limit) w) counted;
end $$;
comment on function cue.job_counts is 'Returns the number of waiting jobs per queue, counted up to p_limit; finished jobs are not read.';

-- A job's group is its account; see add_job.
create or replace function cue.drop_account_jobs(p_account_id uuid) returns void
language sql security definer as $$
  delete from pgboss.job where group_id = p_account_id::text
$$;
comment on function cue.drop_account_jobs is 'Removes all jobs of an account, including completed and failed ones.';
