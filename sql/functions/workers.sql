-- Workers: the registry, what they may claim, claims and their leases. A claim is taken with skip locked and so waits for nobody; whatever
-- ends one locks cue, cue_runs and execution in that order.

create or replace function cue.heartbeat_worker(p_account_id uuid, p_worker_id text, p_handlers text[], p_now timestamptz default now())
returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into cue.workers as w (account_id, worker_id, handlers, last_heartbeat, registered_since)
  values (p_account_id, p_worker_id, p_handlers, p_now, p_now)
  on conflict (account_id, worker_id) do update
     set handlers = excluded.handlers, last_heartbeat = greatest(w.last_heartbeat, excluded.last_heartbeat)
$$;
comment on function cue.heartbeat_worker is 'A worker''s sign of life, with the tasks it handles.';

-- Forgets a worker; what it holds may be claimed again. QU005 unknown.
create or replace function cue.delete_worker(p_account_id uuid, p_worker_id text, p_now timestamptz default now()) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  r record;
begin
  delete from cue.workers where account_id = p_account_id and worker_id = p_worker_id;
  if not found then
    raise exception 'there is no worker %', p_worker_id using errcode = 'QU005';
  end if;
  for r in
    select id, cue_id from cue.executions
     where account_id = p_account_id and claimed_by_worker = p_worker_id and lease_expires_at is not null order by cue_id, id
  loop
    perform cue.lose_claim(r.id, r.cue_id, null, 'its worker was removed', false, p_now);
  end loop;
end $$;
comment on function cue.delete_worker is 'Removes a worker from the registry and frees its claims.';

-- Whether any of an account's workers showed a sign of life in the last three minutes.
create or replace function cue.has_live_worker(p_account_id uuid, p_now timestamptz default now()) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from cue.workers where account_id = p_account_id and last_heartbeat > p_now - interval '180 seconds')
$$;
comment on function cue.has_live_worker is 'Whether an account has a live worker.';

-- The tasks that have something claimable, found by skipping from one to the next, so that a backlog of one costs one step. Null stands for
-- executions without a task.
create or replace function cue.claimable_tasks(p_account_id uuid, p_now timestamptz default now()) returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
  return query
  with recursive tasks as (
    (select e.task, 1 as n from cue.executions e
      where e.account_id = p_account_id and e.claimable_at is not null and e.task is not null order by e.task limit 1)
    union all
    select f.task, t.n + 1 from tasks t cross join lateral (
      select e.task from cue.executions e
       where e.account_id = p_account_id and e.claimable_at is not null and e.task > t.task order by e.task limit 1) f
     where t.n < 1000)
  select t.task from tasks t
   where exists (select from cue.executions e
                  where e.account_id = p_account_id and e.task = t.task and e.claimable_at <= p_now);
  if exists (select from cue.executions e where e.account_id = p_account_id and e.task is null and e.claimable_at <= p_now) then
    return next null;
  end if;
end $$;
comment on function cue.claimable_tasks is 'Tasks with something to claim; null for what has no task.';

-- What may be claimed, oldest first. Without a task each task has its share of the page, so that a backlog of one hides no other.
create or replace function cue.list_claimable(
  p_account_id uuid, p_task text default null, p_limit int default 50, p_now timestamptz default now()
) returns table (
  id uuid, execution_id uuid, cue_id text, cue_name text, task text, scheduled_for timestamptz, attempt int, payload text
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
  return query
  with tasks as (
    select p_task as task where p_task is not null
    union all
    select t.task from cue.claimable_tasks(p_account_id, p_now) as t (task) where p_task is null),
  chosen as (
    select m.* from tasks t cross join lateral (
      (select e.id, e.cue_id, e.task, e.scheduled_for, e.attempts, e.payload, e.claimable_at, row_number() over (order by e.claimable_at, e.id) as place
         from cue.executions e
        where e.account_id = p_account_id and e.task = t.task and e.claimable_at <= p_now
        order by e.claimable_at, e.id limit p_limit)
      union all
      (select e.id, e.cue_id, e.task, e.scheduled_for, e.attempts, e.payload, e.claimable_at, row_number() over (order by e.claimable_at, e.id)
         from cue.executions e
        where t.task is null and e.account_id = p_account_id and e.task is null and e.claimable_at <= p_now
        order by e.claimable_at, e.id limit p_limit)) m
     order by m.place, m.claimable_at limit p_limit)
  select c.id, c.id, c.cue_id, q.name, c.task, c.scheduled_for, c.attempts + 1, c.payload
    from chosen c join cue.cues q on q.id = c.cue_id and q.deleted_at is null
   order by c.claimable_at, c.id;
end $$;
comment on function cue.list_claimable is 'Executions that workers may claim.';

-- Claims executions for one worker: of one id, or the next of some tasks (all of them for null), at most p_limit. Exactly one caller gets
-- each; nobody waits. The token fences the claim: whoever shows an older one has lost it.
create or replace function cue.claim_executions(
  p_account_id uuid, p_worker_id text, p_execution_id uuid default null, p_tasks text[] default null, p_limit int default 1,
  p_lease interval default '900 seconds', p_now timestamptz default now()
) returns table (
  execution_id uuid, cue_id text, cue_name text, task text, scheduled_for timestamptz, lease_expires_at timestamptz, claim_token uuid,
  attempt int, payload text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_ids uuid[] := '{}';
  v_tasks text[];
  v_task text;
  v_share int;
  v_more uuid[];
begin
  if p_execution_id is not null then
    select array_agg(e.id) into v_ids from (
      select x.id from cue.executions x
       where x.id = p_execution_id and x.account_id = p_account_id and x.claimable_at <= p_now
         and exists (select from cue.cues q where q.id = x.cue_id and q.deleted_at is null)
         for update skip locked) e;
  else
    -- In random order: whoever asks for several tasks serves each in its turn.
    select array_agg(t.task order by random()) into v_tasks
      from (select unnest(p_tasks) as task where p_tasks is not null
            union all
            select c.task from cue.claimable_tasks(p_account_id, p_now) as c (task) where p_tasks is null) t;
    v_share := ceil(p_limit::numeric / greatest(cardinality(v_tasks), 1));
    for v_round in 1 .. case when cardinality(v_tasks) > 1 and p_limit > 1 then 2 else 1 end loop
      foreach v_task in array coalesce(v_tasks, '{}') loop
        exit when cardinality(v_ids) >= p_limit;
        v_more := cue.lock_claimable(p_account_id, v_task,
          least(p_limit - cardinality(v_ids), case v_round when 1 then v_share else p_limit end), v_ids, p_now);
        v_ids := v_ids || v_more;
      end loop;
    end loop;
  end if;
  return query
  update cue.executions e
     set status = 'delivering', attempts = e.attempts + 1, started_at = coalesce(e.started_at, p_now), last_attempt_at = p_now,
         claimed_by_worker = p_worker_id, claimed_at = p_now, claim_token = gen_random_uuid(), last_heartbeat_at = p_now,
         lease_expires_at = p_now + p_lease, claimable_at = null, claim_deadline_at = null, updated_at = p_now
    from cue.cues q
   where e.id = any (v_ids) and q.id = e.cue_id
  returning e.id, e.cue_id, q.name, e.task, e.scheduled_for, e.lease_expires_at, e.claim_token, e.attempts, e.payload;
end $$;
comment on function cue.claim_executions is 'Gives claimable executions to one worker.';

-- Locks the oldest claimable executions of one task that nobody else is claiming.
create or replace function cue.lock_claimable(p_account_id uuid, p_task text, p_limit int, p_except uuid[], p_now timestamptz) returns uuid[]
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_ids uuid[];
begin
  if p_task is null then
    select array_agg(l.id) into v_ids from (
      select e.id from cue.executions e
       where e.account_id = p_account_id and e.task is null and e.claimable_at <= p_now and e.id <> all (p_except)
         and exists (select from cue.cues q where q.id = e.cue_id and q.deleted_at is null)
       order by e.claimable_at, e.id limit p_limit for update skip locked) l;
  else
    select array_agg(l.id) into v_ids from (
      select e.id from cue.executions e
       where e.account_id = p_account_id and e.task = p_task and e.claimable_at <= p_now and e.id <> all (p_except)
         and exists (select from cue.cues q where q.id = e.cue_id and q.deleted_at is null)
       order by e.claimable_at, e.id limit p_limit for update skip locked) l;
  end if;
  return coalesce(v_ids, '{}');
end $$;
comment on function cue.lock_claimable is 'Locks the next claimable executions of a task, passing over what others hold.';

-- When something becomes claimable for an account, of some tasks or of any: what a waiting request sleeps until.
create or replace function cue.next_claimable(p_account_id uuid, p_now timestamptz default now()) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select min(claimable_at) from cue.executions where account_id = p_account_id and claimable_at > p_now
$$;
comment on function cue.next_claimable is 'When the next deferred execution of an account becomes claimable.';

-- Extends a claim. p_claim_token proves it without the worker's name. QU002, QU018 not being worked on, QU016 an old token, QU017 another's.
create or replace function cue.heartbeat_execution(
  p_account_id uuid, p_execution_id uuid, p_worker_id text default null, p_claim_token uuid default null,
  p_lease interval default '900 seconds', p_now timestamptz default now()
) returns timestamptz
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  e cue.executions;
begin
  select * into e from cue.executions where id = p_execution_id and account_id = p_account_id for update;
  if not found then
    raise exception 'there is no execution %', p_execution_id using errcode = 'QU002';
  end if;
  if p_claim_token is not null and e.claim_token is distinct from p_claim_token then
    raise exception 'this claim was lost: another may have taken execution % over; stop working on it', e.id using errcode = 'QU016';
  end if;
  if e.lease_expires_at is null then
    raise exception 'execution % is %; heartbeats belong to one that a worker has claimed', e.id, e.status using errcode = 'QU018';
  end if;
  if p_worker_id is not null and e.claimed_by_worker <> p_worker_id then
    raise exception 'execution % is claimed by another worker', e.id using errcode = 'QU017';
  end if;
  update cue.executions set last_heartbeat_at = p_now, lease_expires_at = p_now + p_lease where id = e.id;
  update cue.workers set last_heartbeat = p_now
   where account_id = p_account_id and worker_id = e.claimed_by_worker and last_heartbeat < p_now - interval '10 seconds';
  return p_now + p_lease;
end $$;
comment on function cue.heartbeat_execution is 'Extends the lease of a claimed execution, and returns its end.';

-- A worker gives a claim back: it may be claimed at once. QU002, QU016 an old token, QU018 not claimed.
create or replace function cue.release_execution(
  p_account_id uuid, p_execution_id uuid, p_claim_token uuid, p_now timestamptz default now()
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  e cue.executions;
begin
  select * into e from cue.executions where id = p_execution_id and account_id = p_account_id;
  if not found then
    raise exception 'there is no execution %', p_execution_id using errcode = 'QU002';
  end if;
  if e.lease_expires_at is null and e.claim_token is not distinct from p_claim_token or e.claimed_at is null or e.transport <> 'worker' then
    raise exception 'execution % is not claimed', e.id using errcode = 'QU018';
  end if;
  if not cue.lose_claim(e.id, e.cue_id, p_claim_token, 'released by its worker', true, p_now) then
    raise exception 'this claim was lost: another may have taken execution % over', e.id using errcode = 'QU016';
  end if;
end $$;
comment on function cue.release_execution is 'Gives a claim back.';

-- A claim ends without a report: the attempt is logged as lost, and the execution waits to be claimed again, or is missed when its claims
-- are used up. One that was given back uses none up. False when it is not claimed, or not by that token.
create or replace function cue.lose_claim(
  p_execution_id uuid, p_cue_id text, p_claim_token uuid, p_error text, p_given_back boolean, p_now timestamptz default now()
) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  c cue.cues;
  e cue.executions;
begin
  select * into c from cue.cues where id = p_cue_id for no key update;
  perform from cue.cue_runs where cue_id = p_cue_id for update;
  select * into e from cue.executions where id = p_execution_id for update;
  if e.lease_expires_at is null or p_claim_token is not null and e.claim_token <> p_claim_token then return false; end if;
  insert into cue.attempts (execution_id, attempt, account_id, result, started_at, finished_at, duration_ms, error, worker_id)
  values (e.id, e.attempts, e.account_id, 'lost', e.claimed_at, p_now, cue.milliseconds(p_now - e.claimed_at), p_error, e.claimed_by_worker)
  on conflict do nothing;
  if p_given_back or e.attempts - e.lost_attempts < c.retry_max_attempts then
    update cue.executions
       set status = 'pending', claimable_at = p_now, claim_deadline_at = p_now + cue.claim_timeout(c), lease_expires_at = null,
           claim_token = null, claimed_by_worker = null, claimed_at = null, last_heartbeat_at = null,
           lost_attempts = lost_attempts + p_given_back::int, error_message = p_error, updated_at = p_now
     where id = e.id;
    perform cue.wake_workers(e.account_id, p_now);
  else
    update cue.executions
       set status = 'missed', lease_expires_at = null, claim_token = null, ended_at = p_now, updated_at = p_now,
           error_message = format('given up after %s claims that nobody reported on', e.attempts)
     where id = e.id returning * into e;
    perform cue.after_end(e, c, p_now);
  end if;
  return true;
end $$;
comment on function cue.lose_claim is 'Ends a claim that has no report.';

create or replace function cue.claim_timeout(c cue.cues) returns interval
language sql immutable as $$ select coalesce(c.claim_timeout_seconds, 900) * interval '1 second' $$;
comment on function cue.claim_timeout is 'How long an execution of this cue may wait for a claim.';

-- Leases that are over. One whose worker has been heard of in the last three minutes is looked at again when that is no longer so.
create or replace function cue.recover_leases(p_limit int default 200, p_now timestamptz default now()) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
  set plan_cache_mode = force_generic_plan as $$
declare
  r record;
  v_count int := 0;
begin
  for r in
    select l.* from (
      select e.id, e.cue_id, e.claim_token,
             greatest(e.last_heartbeat_at, (select w.last_heartbeat from cue.workers w
                                             where w.account_id = e.account_id and w.worker_id = e.claimed_by_worker)) as heard_at
        from cue.executions e where e.lease_expires_at <= p_now order by e.lease_expires_at limit p_limit) l
     order by l.cue_id, l.id
  loop
    if r.heard_at > p_now - interval '180 seconds' then
      update cue.executions set lease_expires_at = r.heard_at + interval '180 seconds'
       where id = r.id and claim_token = r.claim_token and lease_expires_at <= p_now;
    elsif cue.lose_claim(r.id, r.cue_id, r.claim_token, 'its worker went silent', false, p_now) then
      v_count := v_count + 1;
    end if;
  end loop;
  return v_count;
end $$;
comment on function cue.recover_leases is 'Frees executions whose worker went silent. Returns how many.';

-- Executions that nobody claimed in time.
create or replace function cue.miss_unclaimed(p_limit int default 500, p_now timestamptz default now()) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off
  set plan_cache_mode = force_generic_plan as $$
declare
  r record;
  c cue.cues;
  e cue.executions;
  v_count int := 0;
begin
  for r in
    select w.id, w.cue_id from (
      select id, cue_id from cue.executions where claim_deadline_at <= p_now order by claim_deadline_at limit p_limit) w
     order by w.cue_id, w.id
  loop
    select * into c from cue.cues where id = r.cue_id for no key update skip locked;
    continue when not found;
    perform from cue.cue_runs where cue_id = r.cue_id for update;
    update cue.executions
       set status = 'missed', claimable_at = null, claim_deadline_at = null, ended_at = p_now, updated_at = p_now,
           error_message = 'no worker claimed it in time'
     where id = r.id and claim_deadline_at <= p_now
    returning * into e;
    continue when not found;
    perform cue.after_end(e, c, p_now);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.miss_unclaimed is 'Ends executions that nobody claimed in time. Returns how many.';
