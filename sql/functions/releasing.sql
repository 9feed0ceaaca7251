-- Releases of executions that wait at gates, by whatever makes room, and by the sweep admit_held. See passing.sql.

-- Ahead of a rate's window, by up to two seconds, due at the instant at which they may start: so that no time is lost. One is always released for the
-- instant at which a pause or a window ends, unless it is missed before. For ordered gates, the first of all; otherwise, workers that don't come must not
-- keep webhooks waiting.
create or replace function cue.release_held(p_account_id uuid, p_gate text, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  g cue.gates;
  p cue.gate_parts;
  v_running int;
begin
  perform cue.fold_part(p_account_id, p_gate, p_now);
  if not exists (select from cue.held_executions h where h.account_id = p_account_id and h.gate = p_gate and h.held_by = 'gate') then return 0; end if;
  select * into g from cue.gates q where q.account_id = p_account_id and q.key = cue.gate_key(p_gate);
  select * into p from cue.gate_parts q where q.account_id = p_account_id and q.gate = p_gate;
  p.account_id := p_account_id;
  p.gate := p_gate;
  p.starts := coalesce(p.starts, 0);
  v_running := case when g.ordered then 0 else cue.places_held(g, p_gate) end;
  return (
    select sum(cue.release_some(g, p, v_running, u.transport, p_now))
      from unnest(case when g.ordered then array[null::cue.transport] else enum_range(null::cue.transport) end) as u (transport));
end $$;
comment on function cue.release_held is 'Releases as many of the executions that wait at a gate as there is room for, in their order; returns how many.';

create or replace function cue.release_some(g cue.gates, p cue.gate_parts, p_running int, p_transport cue.transport, p_now timestamptz) returns int
language plpgsql security definer as $$
declare
  v_next uuid;
  v_released int;
  v_room record;
  v_wanted int;
  v_wait interval := extract(epoch from g.max_wait::interval) * interval '1 second';
  v_far uuid[];
  v_ids uuid[];
  v_due timestamptz[];
begin
  if p_transport is null then
    v_next := cue.next_in_order(p.account_id, p.gate, '{}');
    if not exists (select from cue.held_executions h where h.execution_id = v_next) then return 0; end if;
  end if;
  v_released := (
    select count(*) from cue.held_executions h
     where h.account_id = p.account_id and h.gate = p.gate and h.released_at is not null
       and case when p_transport is null then h.execution_id = v_next else h.transport = p_transport end);
  v_room := cue.gate_room(g, p, p_running, 1000, p_now, interval '2 seconds');
  -- Released for a later instant than is necessary or possible now: a pause was ended, a limit raised, or max_wait shortened.
  v_far := array(
    select h.execution_id from cue.held_executions h
     cross join lateral (
       select coalesce(x.attempt_due_at, x.claimable_at) as due_at from cue.executions x where x.id = h.execution_id limit 1 for update skip locked) e
     where v_released > 0 and h.account_id = p.account_id and h.gate = p.gate and h.released_at is not null and (p_transport is null or h.transport = p_transport)
       and e.due_at > p_now + interval '2 seconds' and (v_room.room > 0 or v_room.next_at < e.due_at or e.due_at > h.due_at + v_wait) limit 10);
  if v_far <> '{}' then
    perform cue.hold_executions(v_far, 'gate', p_now);
    v_released := v_released - cardinality(v_far);
  end if;
  v_wanted := v_room.room - v_released;
  if v_wanted <= 0 and v_released = 0 and v_room.next_at is not null then v_wanted := 1; end if;
  if v_wanted <= 0 then return 0; end if;
  -- Not the rows of held_executions: whoever ends one has locked the execution first.
  select array_agg(l.execution_id order by l.due_at, l.execution_id) into v_ids from (
    select h.execution_id, h.due_at from cue.held_executions h
     cross join lateral (select from cue.executions x where x.id = h.execution_id limit 1 for update skip locked) e
     where h.account_id = p.account_id and h.gate = p.gate and h.held_by = 'gate' and h.released_at is null
       and case when p_transport is null then h.execution_id = v_next else h.transport = p_transport end
       and (v_room.room > 0 or v_room.next_at <= h.due_at + v_wait)
     order by h.due_at, h.execution_id limit v_wanted) l;
  if v_ids is null then return 0; end if;
  v_due := array(
    select greatest(p_now, case when v_room.room = 0 then v_room.next_at end,
                    date_trunc('milliseconds', s.started_at + extract(epoch from g.per::interval) * interval '1 second' + interval '999 microseconds'))
      from unnest(v_ids) with ordinality as u (id, n)
      left join cue.gate_starts s on s.account_id = p.account_id and s.gate = p.gate and s.n = p.starts + v_released + u.n - g.rate
     order by u.n);
  perform cue.release_executions(v_ids, v_due, p_now);
  return cardinality(v_ids);
end $$;
comment on function cue.release_some is 'Does what release_held does, for webhooks, workers or (null) all.';

create or replace function cue.release_gates(p_account_ids uuid[], p_gates text[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.release_held(u.account_id, u.gate, p_now) from unnest(p_account_ids, p_gates) as u (account_id, gate);
end $$;
comment on function cue.release_gates is 'Does what release_held does for several gates.';

create or replace function cue.release_behind(p_execution_ids uuid[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  perform cue.release_held(t.account_id, t.gate, p_now) from (
    select distinct e.account_id, cue.gate_of(e.id) as gate from cue.executions e where e.id = any (p_execution_ids)) t where t.gate is not null;
end $$;
comment on function cue.release_behind is 'Releases executions that wait at the gates of these, whose attempts have begun or ended.';

-- The caller has locked the cue. Those that waited at the former gate come to the new one, when an engine begins them or a worker claims them.
create or replace function cue.change_gate(c cue.cues, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_ids uuid[] := array(
    select h.execution_id from cue.held_executions h where h.cue_id = c.id and h.held_by = 'gate' order by h.due_at, h.execution_id);
begin
  if v_ids = '{}' then return; end if;
  perform from cue.executions where id = any (v_ids) order by id for update;
  -- Those released for a later instant. Not by the gate, which the cue may not have any more.
  perform cue.hold_executions(array(
    select e.id from unnest(v_ids) as u (id)
     cross join lateral (select x.id, coalesce(x.attempt_due_at, x.claimable_at) as due_at from cue.executions x where x.id = u.id limit 1) e
     where e.due_at > p_now and e.due_at < 'infinity'), 'overlap', p_now);
  perform cue.release_executions(v_ids, array_fill(p_now, array[cardinality(v_ids)]), p_now);
  delete from cue.held_executions where execution_id = any (v_ids);
end $$;
comment on function cue.change_gate is 'Makes the executions of a cue that wait at its former gate due.';

-- As pausing by a person would. The caller has locked the execution.
create or replace function cue.pause_after_failure(e cue.executions, c cue.cues, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  update cue.gates g
     set paused_at = p_now, paused_by = 'service', paused_until = null, updated_at = p_now,
         pause_reason = left(format('Execution %s of %s %s: %s', e.id, c.name, replace(e.status::text, '_', ' '), coalesce(e.error_message, e.error, 'unknown')), 500)
   where g.account_id = c.account_id and g.key = cue.gate_key(c.gate) and g.ordered and g.on_failure = 'pause'
     and (g.paused_at is null or g.paused_until <= p_now);
  if found then
    perform cue.add_event(c.account_id, 'gate.paused', jsonb_build_object(
      'gate', g.key, 'paused_by', g.paused_by, 'pause_reason', g.pause_reason, 'paused_until', null), p_now)
       from cue.gates g where g.account_id = c.account_id and g.key = cue.gate_key(c.gate);
  end if;
end $$;
comment on function cue.pause_after_failure is 'Pauses an ordered gate with on_failure pause, after an execution has failed.';

-- Gates and parts after p_after, in order, until p_limit were looked at or sweep_limit executions released or missed. Those that have waited for longer than
-- max_wait are missed.
create or replace function cue.admit_held(p_after text default '', p_limit int default 500, p_now timestamptz default now()) returns text
language plpgsql security definer as $$
declare
  t record;
  v_moved int := 0;
begin
  for t in
    with recursive gates as (
      (select h.account_id, h.gate, 1 as n from cue.held_executions h
        where h.held_by = 'gate' and (h.account_id, h.gate) > (coalesce(nullif(split_part(p_after, ' ', 1), ''), '00000000-0000-0000-0000-000000000000')::uuid,
                                      split_part(p_after, ' ', 2))
        order by h.account_id, h.gate limit 1)
      union all
      select f.account_id, f.gate, k.n + 1 from gates k cross join lateral (
        select h.account_id, h.gate from cue.held_executions h
         where h.held_by = 'gate' and (h.account_id, h.gate) > (k.account_id, k.gate) order by h.account_id, h.gate limit 1) f
       where k.n < p_limit)
    select * from gates
  loop
    v_moved := v_moved + cue.miss_held(t.account_id, t.gate, p_now) + cue.release_held(t.account_id, t.gate, p_now);
    p_after := t.account_id || ' ' || t.gate;
    exit when v_moved >= cue.sweep_limit();
  end loop;
  if found then return p_after; end if;
  perform cue.end_gate_pauses(p_now);
  perform cue.alert_open_gates(p_now);
  return null;
end $$;
comment on function cue.admit_held is
  'Releases what can be released at the next gates, and ends what has waited too long; returns the last gate. After all of them, ends pauses and raises alerts.';

create or replace function cue.miss_held(p_account_id uuid, p_gate text, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  v_wait text := (select g.max_wait from cue.gates g where g.account_id = p_account_id and g.key = cue.gate_key(p_gate));
  v_late_since timestamptz := p_now - extract(epoch from v_wait::interval) * interval '1 second';
  v_count int;
begin
  perform cue.miss_waiting(x.e, 'gate', format('waited at gate %s for longer than %s', p_gate, v_wait), p_now) from (
      select h.execution_id from cue.held_executions h
       where h.account_id = p_account_id and h.gate = p_gate and h.held_by = 'gate' and h.due_at < v_late_since and h.released_at is null
       order by h.due_at, h.execution_id limit 100) w
     cross join lateral (select e, e.cue_id from cue.executions e where e.id = w.execution_id limit 1 for update skip locked) x
     where cue.lock_free_cues(array[x.cue_id]) <> '{}';
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function cue.miss_held is 'Ends executions that have waited at a gate for longer than its max_wait as missed; returns how many.';
