-- Workers: the registry, claims and their leases. Ending a claim locks cue, cue_runs and execution in that order; workers come last.

-- At most 1,000 workers per account: the one silent longest is removed.
create or replace function cue.heartbeat_worker(p_account_id uuid, p_worker_id text, p_handlers text[], p_now timestamptz default now())
returns void
language plpgsql security definer as $$
declare
  v_is_new boolean;
begin
  insert into cue.workers as w (account_id, worker_id, handlers, last_heartbeat, registered_since)
  values (p_account_id, p_worker_id, p_handlers, p_now, p_now)
  on conflict (account_id, worker_id) do update
     set handlers = excluded.handlers, last_heartbeat = greatest(w.last_heartbeat, excluded.last_heartbeat)
  returning xmax = 0 into v_is_new;
  if v_is_new then
    delete from cue.workers where account_id = p_account_id and worker_id = any (array(
      select w.worker_id from cue.workers w where w.account_id = p_account_id order by w.last_heartbeat desc, w.registered_since desc
      offset 1000 for update skip locked));
  end if;
end $$;
comment on function cue.heartbeat_worker is 'Records a worker''s heartbeat and the tasks it handles.';

-- Its claims are found among all current leases of the account, which are few, so that claiming maintains no index for this.
create or replace function cue.delete_worker(p_account_id uuid, p_worker_id text, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  r record;
  c cue.cues;
  e cue.executions;
begin
  for r in
    select id, cue_id from cue.executions
     where account_id = p_account_id and claimed_by_worker = p_worker_id and lease_expires_at is not null order by cue_id, id
  loop
    c := cue.lock_cue(r.cue_id);
    select * into e from cue.executions where id = r.id for update;
    if e.lease_expires_at is not null and e.claimed_by_worker = p_worker_id then
      perform cue.lose_claim(e, c, 'worker removed', true, p_now);
    end if;
  end loop;
  delete from cue.workers where account_id = p_account_id and worker_id = p_worker_id;
  perform cue.refuse_if(not found, 'QU005', format('worker %s not found', p_worker_id));
end $$;
comment on function cue.delete_worker is 'Removes a worker and releases its claims; QU005 if not found.';

create or replace function cue.has_live_worker(p_account_id uuid, p_now timestamptz default now()) returns boolean
language sql stable security definer as $$
  select exists (select from cue.workers where account_id = p_account_id and last_heartbeat > p_now - cue.worker_timeout())
$$;
comment on function cue.has_live_worker is 'Returns whether an account has a live worker.';

-- p_claim_token proves the claim without a worker id. QU002 not found, QU016 outdated claim token, QU017 claimed by another worker, QU018
-- not claimed.
create or replace function cue.heartbeat_execution(
  p_account_id uuid, p_execution_id uuid, p_worker_id text default null, p_claim_token uuid default null,
  p_lease interval default cue.claim_lease(), p_now timestamptz default now()
) returns timestamptz
language plpgsql security definer as $$
declare
  e cue.executions := cue.lock_execution(p_account_id, p_execution_id);
begin
  perform cue.refuse_superseded(e);
  perform cue.refuse_if(p_claim_token is not null and e.transport = 'worker' and e.claim_token is distinct from p_claim_token, 'QU016',
    format('Claim lost: execution %s may have been claimed by another worker. Stop working on it.', e.id));
  perform cue.refuse_if(e.lease_expires_at is null, 'QU018', format('Only a claimed execution can be extended; execution %s is %s.', e.id, e.status));
  perform cue.refuse_if(p_worker_id is not null and e.claimed_by_worker <> p_worker_id, 'QU017',
    format('Execution %s is claimed by another worker.', e.id));
  update cue.executions set last_heartbeat_at = p_now, lease_expires_at = p_now + p_lease, updated_at = p_now where id = e.id;
  update cue.workers set last_heartbeat = p_now
   where account_id = p_account_id and worker_id = e.claimed_by_worker and last_heartbeat < p_now - interval '10 seconds';
  return p_now + p_lease;
end $$;
comment on function cue.heartbeat_execution is 'Extends the lease of a claimed execution and returns its new end.';

create or replace function cue.release_execution(
  p_account_id uuid, p_execution_id uuid, p_claim_token uuid, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  c cue.cues := cue.lock_cue_of(p_account_id, p_execution_id);
  e cue.executions;
begin
  select * into e from cue.executions where id = p_execution_id for update;
  perform cue.refuse_superseded(e);
  perform cue.refuse_if(e.lease_expires_at is null, 'QU018', format('Only a claimed execution can be released; execution %s is %s.', e.id, e.status));
  perform cue.refuse_if(e.claim_token <> p_claim_token, 'QU016', format('Claim lost: execution %s may have been claimed by another worker.', e.id));
  perform cue.lose_claim(e, c, 'released by worker', true, p_now);
end $$;
comment on function cue.release_execution is 'Releases a claim; QU002 not found, QU016 claim lost, QU018 not claimed.';

create or replace function cue.lock_cue_of(p_account_id uuid, p_execution_id uuid) returns cue.cues
language plpgsql security definer as $$
declare
  c cue.cues := cue.lock_cue((select cue_id from cue.executions where id = p_execution_id and account_id = p_account_id));
begin
  perform cue.refuse_if(c.id is null or c.deleted_at is not null, 'QU002', format('execution %s not found', p_execution_id));
  return c;
end $$;
comment on function cue.lock_cue_of is 'Locks and returns the cue of an account''s execution, as the lock order demands; QU002 if not found.';

create or replace function cue.lock_execution(p_account_id uuid, p_execution_id uuid) returns cue.executions
language plpgsql security definer as $$
declare
  e cue.executions;
begin
  select * into e from cue.executions x
   where x.id = p_execution_id and x.account_id = p_account_id
     and (select c.deleted_at is null from cue.cues c where c.id = x.cue_id) for update;
  perform cue.refuse_if(not found, 'QU002', format('execution %s not found', p_execution_id));
  return e;
end $$;
comment on function cue.lock_execution is 'Locks and returns an account''s execution, but not its cue; QU002 if not found.';

create or replace function cue.lock_cue(p_cue_id text) returns cue.cues
language plpgsql security definer as $$
declare
  c cue.cues;
begin
  select * into c from cue.cues where id = p_cue_id for no key update;
  perform from cue.cue_runs where cue_id = p_cue_id for update;
  return c;
end $$;
comment on function cue.lock_cue is 'Locks and returns a cue, and locks its cue_runs.';

-- A released claim uses none up, but only a hundred times: the attempt log must not grow without bound. The caller has locked the cue and
-- the execution.
create or replace function cue.lose_claim(
  e cue.executions, c cue.cues, p_error text, p_given_back boolean, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
begin
  p_given_back := p_given_back and e.lost_attempts < 100;
  perform cue.log_attempt(e, 'lost', p_error, p_now);
  if p_given_back or e.attempts - e.lost_attempts < c.retry_max_attempts then
    update cue.executions
       set status = 'pending', claimable_at = p_now, claim_deadline_at = p_now + cue.claim_timeout(c.claim_timeout_seconds), lease_expires_at = null,
           claim_token = null, claimed_by_worker = null, claimed_at = null, last_heartbeat_at = null,
           lost_attempts = lost_attempts + p_given_back::int, error_message = p_error, updated_at = p_now
     where id = e.id;
    perform cue.wake_workers(e.account_id, p_now);
    if c.gate is not null then perform cue.release_held(c.account_id, c.gate, p_now); end if;
  else
    e := cue.end_execution(e, 'missed', format('gave up after %s claims without an outcome', e.attempts - e.lost_attempts), p_now);
    perform cue.after_end(e, c, p_now);
  end if;
end $$;
comment on function cue.lose_claim is 'Ends a claim without an outcome: the execution is claimable again, or missed.';

create or replace function cue.claim_timeout(p_claim_timeout_seconds int) returns interval
language sql immutable as $$
  select coalesce(p_claim_timeout_seconds, (cue.implied_settings()).claim_timeout_seconds) * interval '1 second'
$$;
comment on function cue.claim_timeout is 'Returns how long an execution of a cue may wait for a claim.';

-- Here, in miss_unclaimed and in expire_outcomes, locked rows are passed over: however many they are, they hold up no others.
-- The lease of a worker that counts as live is extended until it no longer does.
create or replace function cue.recover_leases(p_limit int default 200, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  c cue.cues;
  e cue.executions;
  v_heard_at timestamptz;
  v_count int := 0;
begin
  for e in
    select x.* from cue.executions x
     where x.lease_expires_at <= p_now and cue.lock_free_cues(array[x.cue_id]) <> '{}'
     order by x.lease_expires_at limit p_limit for update skip locked
  loop
    select * into c from cue.cues where id = e.cue_id;
    v_heard_at := greatest(e.last_heartbeat_at, (select w.last_heartbeat from cue.workers w
                                                  where w.account_id = e.account_id and w.worker_id = e.claimed_by_worker));
    if v_heard_at > p_now - cue.worker_timeout() then
      update cue.executions set lease_expires_at = v_heard_at + cue.worker_timeout() where id = e.id;
    else
      perform cue.lose_claim(e, c, 'worker stopped sending heartbeats', false, p_now);
      v_count := v_count + 1;
    end if;
  end loop;
  return v_count;
end $$;
comment on function cue.recover_leases is 'Releases executions whose lease has expired and whose worker is silent; returns how many.';

create or replace function cue.miss_unclaimed(p_limit int default 500, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  c cue.cues;
  e cue.executions;
  v_deadline timestamptz;
  v_count int := 0;
begin
  for e in
    select x.* from cue.executions x
     where x.claim_deadline_at <= p_now and cue.lock_free_cues(array[x.cue_id]) <> '{}'
     order by x.claim_deadline_at limit p_limit for update skip locked
  loop
    select * into c from cue.cues where id = e.cue_id;
    -- Nobody may claim during a hold: after it, the time to do so begins anew.
    v_deadline := cue.claim_timeout(c.claim_timeout_seconds) + (
      select max(least(h.until_at, p_now)) from cue.holds h
       where coalesce(h.account_id, e.account_id) = e.account_id and h.from_at < e.claim_deadline_at and h.until_at > e.claimable_at);
    if v_deadline > p_now then
      update cue.executions set claim_deadline_at = v_deadline where id = e.id and claim_deadline_at <= p_now;
      continue;
    end if;
    perform cue.after_end(cue.end_execution(e, 'missed', 'not claimed in time', p_now), c, p_now);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.miss_unclaimed is 'Ends executions that were not claimed in time as missed; returns how many.';
