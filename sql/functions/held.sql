-- The waiting room: one way in, add_held for new executions and hold_executions for those that exist, and one way out, release_executions. An
-- execution waits for one thing at a time, in the order of the labels of held_by: whoever releases it has the next check made. Waits for nobody.

create or replace function cue.can_be_held(c cue.cues) returns boolean
language sql immutable as $$ select c.tracked or c.gate is not null or c.after is not null or c.approval is not null or c.template $$;
comment on function cue.can_be_held is 'Returns whether executions of a cue can be held, or need values, so that functions for plain cues must leave it alone.';

-- New executions, which are due at infinity.
create or replace function cue.add_held(
  p_execution_ids uuid[], p_held_by cue.held_by, p_due_at timestamptz[], p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
begin
  insert into cue.held_executions as h (execution_id, account_id, cue_id, transport, held_by, gate, due_at, since)
  select e.id, e.account_id, e.cue_id, e.transport, p_held_by,
         case p_held_by when 'gate' then (select c.gate from cue.cues c where c.id = e.cue_id) end, u.due_at, p_now
    from unnest(p_execution_ids, p_due_at) with ordinality as u (id, due_at, n)
   cross join lateral (select * from cue.executions x where x.id = u.id limit 1) e
   order by u.n
  -- Released, and sent back: it keeps its place.
  on conflict (execution_id) do update
     set held_by = excluded.held_by, gate = excluded.gate, since = excluded.since, released_at = null, expires_at = null,
         due_at = case when h.gate = excluded.gate then h.due_at else excluded.due_at end;
  -- An end that commits at the same time sees none of them.
  if p_held_by = 'gate' then
    perform pg_notify('cue_gate', h.account_id || ' ' || h.gate) from (
      select distinct q.account_id, q.gate from cue.held_executions q where q.execution_id = any (p_execution_ids)) h;
  end if;
end $$;
comment on function cue.add_held is 'Adds executions to the waiting room, and notifies engines of those at gates.';

-- The caller has locked the executions, which wait for an attempt or a claim.
create or replace function cue.hold_executions(
  p_execution_ids uuid[], p_held_by cue.held_by, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
begin
  if cardinality(p_execution_ids) = 0 then return; end if;
  perform cue.add_held(p_execution_ids, p_held_by, array(
    select coalesce(e.attempt_due_at, e.claimable_at) from unnest(p_execution_ids) with ordinality as u (id, n)
     cross join lateral (select x.attempt_due_at, x.claimable_at from cue.executions x where x.id = u.id limit 1) e order by u.n), p_now);
  update cue.executions
     set attempt_due_at = case transport when 'webhook' then 'infinity'::timestamptz end,
         claimable_at = case transport when 'worker' then 'infinity'::timestamptz end,
         claim_deadline_at = case transport when 'worker' then 'infinity'::timestamptz end,
         -- Of a release for a later instant.
         held_ms = greatest(0, held_ms - cue.milliseconds(coalesce(attempt_due_at, claimable_at) - p_now)), updated_at = p_now
   where id = any (p_execution_ids);
  perform cue.drop_attempt_jobs(p_execution_ids);
end $$;
comment on function cue.hold_executions is 'Holds waiting executions until they are released.';

-- To the next check, after the one that it was held by. The caller has locked the cue, its cue_runs and h.
create or replace function cue.continue_held(c cue.cues, h cue.held_executions, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_next cue.held_by := case when h.held_by < 'approval' and c.approval is not null then 'approval'
                              when h.held_by < 'overlap' and c.overlap <> 'allow' and cue.waits_for_others(h) then 'overlap'
                              when c.gate is not null and h.due_at <= p_now then 'gate' end;
begin
  if v_next is null then
    perform cue.release_executions(array[h.execution_id], array[h.due_at], p_now);
    return;
  end if;
  if v_next = 'approval' and cue.has_approval_queue(c.id) then
    perform cue.miss_waiting(e, 'queue_full', format('%s executions of its cue waited for approval', cue.approval_limit()), p_now)
       from cue.executions e where e.id = h.execution_id;
    return;
  end if;
  perform cue.add_held(array[h.execution_id], v_next, array[greatest(h.due_at, p_now)], h.since);
  if v_next = 'approval' then perform cue.request_approval(c, h.execution_id, null, p_now); end if;
  if v_next = 'gate' then perform cue.release_held(c.account_id, c.gate, p_now); end if;
end $$;
comment on function cue.continue_held is 'Has a held execution pass the check that it was held by.';

-- The caller has locked the cue, its cue_runs and the execution.
create or replace function cue.miss_waiting(e cue.executions, p_reason cue.missed_reason, p_error text, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  if e.ended_at is not null then return; end if;
  e := cue.end_execution(e, 'missed', p_error, p_now, p_reason, (select h.since from cue.held_executions h where h.execution_id = e.id));
  perform cue.after_end(e, c, p_now) from cue.cues c where c.id = e.cue_id;
end $$;
comment on function cue.miss_waiting is 'Ends a held execution as missed.';

-- Each is due at its instant, or now if that has passed, in whole milliseconds, as engines count. Those behind a gate stay listed there until they pass
-- it. A locked one stays held, and one that has ended leaves.
create or replace function cue.release_executions(p_execution_ids uuid[], p_due_at timestamptz[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_free uuid[] := array(
    select x.id from cue.executions x
     where x.id = any (p_execution_ids) and 'infinity' in (x.attempt_due_at, x.claimable_at) order by x.id for update skip locked);
  v_ids uuid[];
  v_due timestamptz[];
  v_claimable timestamptz;
  v_account uuid;
begin
  with freed as (
    update cue.executions e
       set attempt_due_at = case e.transport when 'webhook' then d.due_at end, claimable_at = case e.transport when 'worker' then d.due_at end,
           claim_deadline_at = case e.transport when 'worker' then
             d.due_at + cue.claim_timeout((select c.claim_timeout_seconds from cue.cues c where c.id = e.cue_id)) end,
           held_ms = least(coalesce(e.held_ms, 0)::bigint + cue.milliseconds(d.due_at - d.since), 2147483647), updated_at = p_now
      from (select u.id, date_trunc('milliseconds', greatest(u.due_at, p_now)) as due_at, h.since
              from unnest(p_execution_ids, p_due_at) as u (id, due_at)
             cross join lateral (select q.since from cue.held_executions q where q.execution_id = u.id limit 1) h) d
     where e.id = d.id and e.id = any (v_free)
    returning e.id, e.account_id, e.attempt_due_at, e.claimable_at)
  select array_agg(f.id) filter (where f.attempt_due_at is not null), array_agg(f.attempt_due_at) filter (where f.attempt_due_at is not null),
         min(f.claimable_at), min(f.account_id::text)::uuid
    into v_ids, v_due, v_claimable, v_account from freed f;
  update cue.held_executions set released_at = p_now where execution_id = any (v_free) and held_by = 'gate';
  delete from cue.held_executions h
   where h.execution_id = any (p_execution_ids)
     and (h.execution_id = any (v_free) and h.held_by <> 'gate'
          or (select x.ended_at is null from cue.executions x where x.id = h.execution_id) is not true);
  if v_ids is not null then perform cue.enqueue_attempts(v_ids, v_due); end if;
  if v_claimable is not null then perform cue.wake_workers(v_account, v_claimable); end if;
end $$;
comment on function cue.release_executions is 'Releases held executions of an account.';

