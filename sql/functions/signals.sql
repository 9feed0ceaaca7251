-- Signals: an execution that ends or is verified signals the followers of its cue, in the same transaction and under no lock of theirs. An engine then
-- looks at each follower's new signals, one by one in their order and under the follower's locks: each joins those that have not been spent, and a run
-- starts as soon as they meet the condition. So neither the number of engines nor a delay changes how many runs start, and a signal is new until that is
-- done. Locks: cues, cue_runs, executions; signals belong to whoever has locked the follower.

create or replace function cue.counts_for(e cue.executions, p_when text) returns boolean
language plpgsql stable security definer as $$
begin
  return case p_when
    when 'success' then cue.is_success(e.status, e.outcome_success)
    -- Not if it was cancelled or superseded, whatever is reported later.
    when 'verified' then e.ended_at is not null and e.outcome_state is not distinct from 'verified_success'
      and (e.status <> 'failed' or e.error_message is null or e.error_message not in ('cancelled', cue.superseded()))
    when 'failure' then exists (select from cue.dead_letters d where d.execution_id = e.id)
    else e.status = 'success' or exists (select from cue.dead_letters d where d.execution_id = e.id) end;
end $$;
comment on function cue.counts_for is 'Returns whether an execution, as it is now, signals followers with this `when`.';

-- The caller has locked the executions. Paused and ended followers get none, and each lineage signals a follower once.
create or replace function cue.send_signals(p_execution_ids uuid[], p_now timestamptz default now(), p_always boolean default false) returns int
language plpgsql security definer as $$
declare
  v_first uuid := (select min(u.id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_last uuid := (select max(u.id::text)::uuid from unnest(p_execution_ids) as u (id));
  v_count int;
begin
  if not exists (select from cue.cue_parents) then return 0; end if;
  insert into cue.signals (account_id, follower_id, parent_id, execution_id, lineage_id, scheduled_for, signalled_at, expires_at)
  select c.account_id, c.id, (e.row).cue_id, (e.row).id, coalesce((e.row).lineage_id, (e.row).id), (e.row).scheduled_for, p_now,
         p_now + cue.length_of(c.after ->> 'within')
    from unnest(p_execution_ids) as u (id)
   cross join lateral (select x as row from cue.executions x where x.id = u.id and x.id between v_first and v_last limit 1) e
   cross join lateral (select p.cue_id from cue.cue_parents p where p.parent_id = (e.row).cue_id limit 50) p
   cross join lateral (
     select q.id, q.account_id, q.after from cue.cues q
      where q.id = p.cue_id and q.deleted_at is null
        and (q.status = 'active' or q.status = 'completed' and exists (select from cue.held_executions h where h.cue_id = q.id and h.held_by = 'after'))
      limit 1) c
   where p_always or cue.counts_for(e.row, c.after ->> 'when')
   order by 2, 5
  on conflict do nothing;
  get diagnostics v_count = row_count;
  if v_count > 0 then perform pg_notify('cue_signal', ''); end if;
  return v_count;
end $$;
comment on function cue.send_signals is 'Signals the followers of executions for which these count, or with p_always all of them; returns how many signals.';

-- For the hot path, in which hardly any cue has followers.
create or replace function cue.signal_successes(p_execution_ids uuid[], p_cue_ids text[], p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  v_ids uuid[];
begin
  if not exists (select from cue.cue_parents) then return; end if;
  v_ids := array(
    select u.id from unnest(p_execution_ids, p_cue_ids) as u (id, cue_id)
     cross join lateral (select from cue.cue_parents p where p.parent_id = u.cue_id limit 1) p);
  if v_ids <> '{}' then perform cue.send_signals(v_ids, p_now); end if;
end $$;
comment on function cue.signal_successes is 'Does what send_signals does, for those of many executions whose cues have followers.';

-- The caller has locked the follower. p_signal: with mode any and no schedule, each signal starts a run.
create or replace function cue.matching_signals(c cue.cues, p_at timestamptz, p_signal bigint default null) returns bigint[]
language plpgsql stable security definer as $$
declare
  v_is_any boolean := c.after ->> 'mode' = 'any';
  v_ids bigint[];
begin
  if v_is_any and p_signal is not null then return array[p_signal]; end if;
  v_ids := array(
    select s.id from cue.cue_parents p
     cross join lateral (
       select q.id, q.expires_at from cue.signals q
        where q.follower_id = c.id and q.parent_id = p.parent_id and q.spent_at is null and not q.is_new order by q.id desc limit 1) s
     where p.cue_id = c.id and s.expires_at > p_at);
  return case when v_ids <> '{}' and (v_is_any or cardinality(v_ids) = (select count(*) from cue.cue_parents p where p.cue_id = c.id)) then v_ids end;
end $$;
comment on function cue.matching_signals is 'Returns the signals on which a follower can run: the newest of each cue that it follows; null if it cannot.';

create or replace function cue.parents_of(p_signals bigint[]) returns jsonb
language sql stable security definer as $$
  select jsonb_agg(jsonb_build_object(
           'cue_id', s.parent_id, 'cue_key', (select c.key from cue.cues c where c.id = s.parent_id), 'execution_id', s.execution_id) order by s.id)
    from cue.signals s where s.id = any (p_signals)
$$;
comment on function cue.parents_of is 'Returns the executions of signals as an execution shows its parents.';

-- Older ones of the same parents are spent with them.
create or replace function cue.spend_signals(c cue.cues, p_signals bigint[], p_execution_id uuid, p_now timestamptz) returns void
language plpgsql security definer as $$
begin
  update cue.signals s set spent_at = p_now, spent_by = p_execution_id
    from cue.signals n
   where n.id = any (p_signals) and s.follower_id = c.id and s.parent_id = n.parent_id and s.spent_at is null and not s.is_new
     and (s.id = n.id or s.id < n.id and (c.after ->> 'mode' = 'all' or c.schedule_type is not null));
end $$;
comment on function cue.spend_signals is 'Spends signals for a run, or for one that did not take place.';

-- The caller has locked the follower and its cue_runs.
create or replace function cue.start_follower(c cue.cues, p_signals bigint[], p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  v_scheduled_for timestamptz := (select max(s.scheduled_for) from cue.signals s where s.id = any (p_signals));
  v_id uuid;
begin
  if (select cue.is_over_limit(a, p_now) from cue.accounts a where a.id = c.account_id) or cue.caps_payloads() and cue.exceeds_payload_cap(c.id, p_now) then
    perform cue.note_missed_slots(c, 'execution_limit', v_scheduled_for, v_scheduled_for, 1, null, p_now);
  else
    v_id := cue.run_placed(c, 'chain', v_scheduled_for, null, p_now, null, cue.parents_of(p_signals));
  end if;
  perform cue.spend_signals(c, p_signals, v_id, p_now);
  if v_id is null then return; end if;
  perform cue.count_executions(array[c.account_id], p_now);
  perform cue.count_payloads(array[c.id], array[1], p_now);
  update cue.cue_runs set run_count = run_count + 1 where cue_id = c.id;
end $$;
comment on function cue.start_follower is 'Runs a follower without a schedule on signals, as its overlap and gate say.';

-- The caller has locked the follower and its cue_runs. Slots in their order.
create or replace function cue.feed_held(c cue.cues, p_at timestamptz, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  h cue.held_executions;
  e cue.executions;
  v_signals bigint[];
  v_written cue.cues; -- as it was when the execution was created
begin
  -- Those that have waited for too long are left to miss_unsignalled.
  select * into h from cue.held_executions q
   where q.cue_id = c.id and q.held_by = 'after' and q.expires_at > p_at order by q.place limit 1 for update skip locked;
  if not found then return; end if;
  v_signals := cue.matching_signals(c, p_at);
  if v_signals is null then return; end if;
  perform from cue.executions where id = h.execution_id and ended_at is null for update skip locked;
  if not found then return; end if;
  update cue.executions set parents = cue.parents_of(v_signals), updated_at = p_now where id = h.execution_id returning * into e;
  perform cue.spend_signals(c, v_signals, h.execution_id, p_now);
  if cue.has_values(e) then
    v_written := c;
    v_written.payload := e.payload;
    v_written.payload_id := e.payload_id;
    perform cue.fix_values(v_written, e.id, e.created_at);
  end if;
  perform cue.continue_held(c, h, p_now);
end $$;
comment on function cue.feed_held is 'Sends the first slot of a follower that waits for signals on, if they have come.';

-- The caller has locked the follower and its cue_runs.
create or replace function cue.read_signals(c cue.cues, p_now timestamptz, p_limit int default 50) returns void
language plpgsql security definer as $$
declare
  s cue.signals;
  v_signals bigint[];
begin
  for s in select * from cue.signals q where q.follower_id = c.id and q.is_new order by q.id limit p_limit loop
    update cue.signals set is_new = false where id = s.id;
    continue when c.status = 'paused';
    if c.schedule_type is not null then
      perform cue.feed_held(c, s.signalled_at, p_now);
    else
      v_signals := cue.matching_signals(c, s.signalled_at, s.id);
      if v_signals is not null then perform cue.start_follower(c, v_signals, p_now); end if;
    end if;
  end loop;
end $$;
comment on function cue.read_signals is 'Adds a follower''s new signals to those that are not spent, and starts or continues what can run on them.';

-- The caller has locked the follower. Starting one would wait for the rows of those that it cancels.
create or replace function cue.is_start_blocked(c cue.cues) returns boolean
language plpgsql security definer as $$
begin
  return cue.is_held(c.account_id) or c.overlap = 'cancel_previous' and cue.holds_executions(c.id);
end $$;
comment on function cue.is_start_blocked is 'Returns whether a follower has to wait: its account is held, or another transaction has locked an execution that it cancels.';

-- Waits for nobody, and ends after 50 ms, since it holds the locks of its cues. is_behind: a follower is locked, or has more signals.
create or replace function cue.start_followers(p_after text default '', p_limit int default 100, p_now timestamptz default now())
returns table (after text, is_behind boolean)
language plpgsql security definer as $$
declare
  v_id text;
  c cue.cues;
  v_until timestamptz := clock_timestamp() + interval '50 milliseconds';
begin
  is_behind := false;
  for v_id in
    select s.follower_id from cue.signals s where s.is_new and s.follower_id > p_after group by s.follower_id order by s.follower_id limit p_limit
  loop
    after := v_id;
    if cue.lock_free_cues(array[v_id]) = '{}' then
      is_behind := true;
      continue;
    end if;
    select * into c from cue.cues q where q.id = v_id;
    if not found or c.deleted_at is not null or c.after is null then
      update cue.signals set is_new = false where follower_id = v_id and is_new;
    elsif cue.is_start_blocked(c) then
      is_behind := is_behind or not cue.is_held(c.account_id);
    else
      perform cue.read_signals(c, p_now);
      is_behind := is_behind or exists (select from cue.signals s where s.follower_id = v_id and s.is_new);
    end if;
    exit when clock_timestamp() > v_until;
  end loop;
  return next;
end $$;
comment on function cue.start_followers is 'Looks at the new signals of the next followers; after is the last of these followers, or null without any.';

-- QU002 not found, QU011 not ended, or a success.
create or replace function cue.signal_execution(
  p_account_id uuid, p_execution_id uuid, p_reason text default null, p_now timestamptz default now(), p_actor text default session_user
) returns setof cue.executions
language plpgsql security definer as $$
declare
  e cue.executions := cue.lock_execution(p_account_id, p_execution_id);
begin
  perform cue.refuse_if(e.ended_at is null or cue.is_success(e.status, e.outcome_success), 'QU011',
    format('Only an execution that has ended without success can signal its followers; execution %s is %s.', e.id, e.status));
  if cue.send_signals(array[e.id], p_now, true) > 0 then
    perform cue.record_event(p_account_id, 'execution.signalled', p_actor, null,
      jsonb_build_object('cue_id', e.cue_id, 'execution_id', e.id, 'reason', p_reason), p_now);
  end if;
  return next e;
end $$;
comment on function cue.signal_execution is 'Has a failed execution signal all followers of its cue, as if it counted for them; QU002, QU011.';
