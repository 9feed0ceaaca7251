-- Overlap: what a cue does if it is to run while it is running. A tracked cue has its executions that have not ended in open_executions: those that
-- are queued are in held_executions as well, all others are running. Whoever creates or ends executions of a cue has locked its
-- cue_runs, so decisions are exact. Whether an execution has ended is read from its row: an entry of open_executions that was not removed only
-- delays the next in the queue, until repair_queues.

-- The caller has locked the cue and its cue_runs.
create or replace function cue.track_cue(p_cue_id text) returns void
language plpgsql security definer as $$
begin
  update cue.cues set tracked = true where id = p_cue_id and not tracked;
  update cue.cue_runs set tracked = true where cue_id = p_cue_id;
  -- Locked, so that one that is about to end is seen to have ended.
  insert into cue.open_executions (execution_id, cue_id, account_id)
  select e.id, e.cue_id, e.account_id from (
    select x.id, x.cue_id, x.account_id from cue.executions x
     where x.cue_id = p_cue_id and x.ended_at is null order by x.id for update) e
  on conflict do nothing;
end $$;
comment on function cue.track_cue is 'Makes a cue tracked, with the executions that it has now.';

create or replace function cue.open_executions_of(p_cue_id text) returns table (execution_id uuid, is_queued boolean)
language sql stable as $$
  select o.execution_id, exists (select from cue.held_executions h where h.execution_id = o.execution_id and h.held_by = 'overlap')
    from cue.open_executions o
   where o.cue_id = p_cue_id and (select x.ended_at is null from cue.executions x where x.id = o.execution_id)
$$;
comment on function cue.open_executions_of is 'Returns the executions of a tracked cue that have not ended.';

-- For all that came before it, and for those that run, or wait for a gate. Not for later ones that have not reached this check.
create or replace function cue.waits_for_others(h cue.held_executions) returns boolean
language sql stable security definer as $$
  select exists (
    select from cue.open_executions_of(h.cue_id) o
     where o.execution_id <> h.execution_id
       and not exists (
         select from cue.held_executions q where q.execution_id = o.execution_id and q.held_by <= 'overlap' and q.place > h.place))
$$;
comment on function cue.waits_for_others is 'Returns whether a held execution of a tracked cue has to wait for the end of another one.';

-- The caller has locked the cue's cue_runs. Waits for nobody: a queued execution whose row is locked is left to repair_queues.
create or replace function cue.start_queued(p_cue_id text, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  h cue.held_executions;
begin
  perform cue.close_executions(array[p_cue_id]);
  select * into h from cue.held_executions q where q.cue_id = p_cue_id and q.held_by = 'overlap' order by q.place limit 1 for update skip locked;
  if found and not cue.waits_for_others(h) then perform cue.continue_held(c, h, p_now) from cue.cues c where c.id = p_cue_id; end if;
end $$;
comment on function cue.start_queued is 'Starts the execution that is first in a cue''s queue, if none is running.';

-- Most cues have nothing queued.
create or replace function cue.follow_ends(p_cue_ids text[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.close_executions(p_cue_ids);
  perform cue.start_queued(u.id, p_now) from unnest(p_cue_ids) as u (id)
    where exists (select from cue.held_executions h where h.cue_id = u.id and h.held_by = 'overlap');
  perform cue.free_places(p_cue_ids, p_now);
end $$;
comment on function cue.follow_ends is 'Does what follow_end does for several cues.';

create or replace function cue.free_places(p_cue_ids text[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.release_held(t.account_id, t.gate, p_now) from (
    select distinct c.account_id, c.gate from unnest(p_cue_ids) as u (id)
     cross join lateral (select q.account_id, q.gate from cue.cues q where q.id = u.id limit 1) c
     where c.gate is not null) t;
end $$;
comment on function cue.free_places is 'Releases executions that wait at the gates of cues, of which an attempt has ended.';

create or replace function cue.close_executions(p_cue_ids text[]) returns void
language plpgsql security definer as $$
begin
  delete from cue.held_executions where execution_id = any (array(
    select h.execution_id from cue.held_executions h
     where h.cue_id = any (p_cue_ids) and h.held_by = 'overlap'
       and (select x.ended_at is null from cue.executions x where x.id = h.execution_id) is not true
       for update skip locked));
  delete from cue.open_executions where execution_id = any (array(
    select o.execution_id from cue.open_executions o
     where o.cue_id = any (p_cue_ids) and (select x.ended_at is null from cue.executions x where x.id = o.execution_id) is not true
       for update skip locked));
end $$;
comment on function cue.close_executions is 'Removes ended executions of cues from open_executions, and from their queues.';

create or replace function cue.supersede_executions(p_cue_id text, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.stop_execution(l.e, cue.superseded(), p_now) from (
    select e, e.ended_at from cue.executions e
     where e.id = any (array(select o.execution_id from cue.open_executions_of(p_cue_id) o)) order by e.id for update) l
   where l.ended_at is null;
  perform cue.start_queued(p_cue_id, p_now); -- removes them
end $$;
comment on function cue.supersede_executions is 'Ends the executions of a cue, running and queued, for the next one.';

create or replace function cue.refuse_superseded(e cue.executions) returns void
language plpgsql immutable as $$
begin
  perform cue.refuse_if(e.status = 'failed' and e.transport = 'worker' and e.claim_token is null and e.error_message = cue.superseded(), 'QU016',
    format('Claim lost: execution %s was %s. Stop working on it.', e.id, e.error_message));
end $$;
comment on function cue.refuse_superseded is 'Raises QU016 for a worker whose execution was ended for the next one.';

-- The caller has locked the cue and its cue_runs, and creates the execution with queue_execution unless it is refused.
create or replace function cue.place_execution(p_cue_id text, p_overlap cue.overlap, p_now timestamptz default now())
returns table (held_by cue.held_by, refused cue.missed_reason)
language plpgsql security definer as $$
declare
  v_open int;
  v_queued int;
  v_held int;
  v_ended int;
begin
  if p_overlap = 'cancel_previous' then
    perform cue.supersede_executions(p_cue_id, p_now);
  elsif p_overlap <> 'allow' then
    for n in 1 .. 2 loop
      select count(*) filter (where x.is_open), count(*) filter (where x.is_open and x.held_by = 'overlap'),
             count(*) filter (where x.is_open and x.held_by <= 'overlap'), count(*) filter (where not x.is_open)
        into v_open, v_queued, v_held, v_ended
        from cue.open_executions o
       cross join lateral (
         select (select e.ended_at is null from cue.executions e where e.id = o.execution_id) is true as is_open,
                (select h.held_by from cue.held_executions h where h.execution_id = o.execution_id)) x
       where o.cue_id = p_cue_id;
      exit when v_ended = 0 and (v_queued = 0 or v_queued < v_open);
      -- An end has left something.
      perform cue.start_queued(p_cue_id, p_now);
    end loop;
    -- If all of them are held, the first counts as running.
    v_queued := least(v_held, v_open - 1);
    refused := case when v_open = 0 then null
                    when p_overlap = 'skip' or p_overlap = 'queue_one' and v_queued > 0 then 'overlap'
                    when v_queued >= cue.queue_limit() then 'queue_full' end;
    held_by := case when v_open > 0 then 'overlap' end;
  end if;
  if refused is null and (select c.approval is not null from cue.cues c where c.id = p_cue_id) and cue.has_approval_queue(p_cue_id) then
    refused := 'queue_full';
  end if;
  if refused is null and cue.is_gate_full((select c.account_id from cue.cues c where c.id = p_cue_id), (select c.gate from cue.cues c where c.id = p_cue_id)) then
    refused := 'queue_full';
  end if;
  return next;
end $$;
comment on function cue.place_execution is 'Decides about a tracked cue''s next execution: now, held by others of its cue, or refused.';

-- For executions that a person requests. The caller has locked the cue and its cue_runs.
create or replace function cue.place_request(c cue.cues, p_overlap cue.overlap, p_now timestamptz default now()) returns cue.held_by
language plpgsql security definer as $$
declare
  v_place record;
begin
  perform cue.refuse_if(cue.is_gate_full(c.account_id, c.gate), 'QU046',
    format('Gate %s is full: %s executions wait. Try again later.', c.gate, cue.gate_limit()), '60');
  perform cue.refuse_if(c.approval is not null and cue.has_approval_queue(c.id), 'QU035',
    format('%s executions of cue %s wait for approval. Try again when somebody has decided about one.', cue.approval_limit(), c.id));
  if p_overlap = 'allow' then return null; end if;
  if not c.tracked then perform cue.track_cue(c.id); end if;
  select * into v_place from cue.place_execution(c.id, p_overlap, p_now);
  perform cue.refuse_if(v_place.refused = 'queue_full', 'QU029',
    format('The queue of cue %s is full: %s executions. Try again when one has ended.', c.id, cue.queue_limit()));
  perform cue.refuse_if(v_place.refused is not null, 'QU029', format('Cue %s is running%s (overlap: %s). Try again when it has ended.', c.id,
    case p_overlap when 'skip' then '' else ', and another execution is queued' end, p_overlap));
  return v_place.held_by;
end $$;
comment on function cue.place_request is 'Returns what a requested execution waits for first, or null; QU029 if p_overlap skips it, QU035 or QU046 if too many wait for approval or at its gate.';

-- The caller has locked the cue and its cue_runs, and counts the execution.
create or replace function cue.run_placed(
  c cue.cues, p_triggered_by cue.trigger_kind, p_slot timestamptz, p_last_slot timestamptz, p_now timestamptz, p_slot_due_at timestamptz, p_parents jsonb
) returns uuid
language plpgsql security definer as $$
declare
  v_place record;
begin
  select * into v_place from cue.place_execution(c.id, c.overlap, p_now);
  if v_place.refused is not null then
    perform cue.note_missed_slots(c, v_place.refused, p_slot, p_slot, 1, p_last_slot, p_now);
    return null;
  end if;
  return cue.queue_execution(
    c, p_triggered_by, p_slot, p_held_by => v_place.held_by, p_slot_due_at => p_slot_due_at, p_parents => p_parents, p_now => p_now);
end $$;
comment on function cue.run_placed is 'Creates an execution as overlap and gate say, and returns its id; null if it is refused, which is recorded.';

-- Creates one execution, or records that the slot did not run. The caller has locked the cue and its cue_runs, moves the schedule on, and counts
-- the execution.
create or replace function cue.run_slot(
  c cue.cues, p_slot timestamptz, p_last_slot timestamptz, p_now timestamptz default now(), p_slot_due_at timestamptz default null
) returns boolean
language plpgsql security definer as $$
declare
  v_signals bigint[];
  v_id uuid;
begin
  if c.after is not null then
    perform cue.read_signals(c, p_now);
    v_signals := cue.matching_signals(c, p_now);
    if v_signals is null then return cue.wait_for_signals(c, p_slot, p_last_slot, p_now, p_slot_due_at); end if;
  end if;
  v_id := cue.run_placed(c, 'schedule', p_slot, p_last_slot, p_now, p_slot_due_at, cue.parents_of(v_signals));
  if v_id is not null and v_signals is not null then perform cue.spend_signals(c, v_signals, v_id, p_now); end if;
  return v_id is not null;
end $$;
comment on function cue.run_slot is 'Runs a slot of a tracked cue, if the cues that it follows have signalled; returns whether it has an execution.';

create or replace function cue.holds_executions(p_cue_id text) returns boolean
language plpgsql security definer as $$
declare
  v_ids uuid[] := array(select execution_id from cue.open_executions_of(p_cue_id));
begin
  return cardinality(v_ids) > (select count(*) from (select from cue.executions where id = any (v_ids) order by id for update skip locked) e);
end $$;
comment on function cue.holds_executions is 'Returns whether another transaction has locked an open execution of a tracked cue; locks the others.';

-- The end of an execution starts the next one, unless its row is locked then, or the cue was not tracked yet when the end began.
create or replace function cue.repair_queues(p_after text default '', p_limit int default 500, p_now timestamptz default now()) returns text
language plpgsql security definer as $$
declare
  v_cue_id text;
begin
  for v_cue_id in
    select h.cue_id from cue.held_executions h where h.held_by = 'overlap' and h.cue_id > p_after group by h.cue_id order by h.cue_id limit p_limit
  loop
    p_after := v_cue_id;
    continue when (
      select cue.waits_for_others(h) from cue.held_executions h where h.cue_id = v_cue_id and h.held_by = 'overlap' order by h.place limit 1);
    perform from cue.cue_runs where cue_id = v_cue_id for update skip locked;
    if found then perform cue.start_queued(v_cue_id, p_now); end if;
  end loop;
  return case when found then p_after end;
end $$;
comment on function cue.repair_queues is 'Starts queued executions of cues that wait for no other; returns the last cue.';
