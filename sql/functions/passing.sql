-- How executions pass gates. Whatever starts attempts calls pass_gates, which is exact: it has locked the row of the gate's part, counts the attempts
-- that run by their executions' own rows, and holds those that don't fit. release_held is a hint: it makes as many due as there seems to be room for.
-- Two that release at once may release too many, which then come back. Waits for nobody: what a locked row prevents, the sweep admit_held does later.

create or replace function cue.is_gate_full(p_account_id uuid, p_gate text, p_more int default 1) returns boolean
language plpgsql stable security definer as $$
begin
  return p_gate is not null and cue.gate_limit() < p_more + (
    select count(*) from (
      select from cue.held_executions h
       where h.account_id = p_account_id and h.gate = p_gate and h.held_by = 'gate' and h.released_at is null limit cue.gate_limit()) w);
end $$;
comment on function cue.is_gate_full is 'Returns whether too many executions wait at a gate for p_more to wait as well.';

create or replace function cue.has_cue(e cue.executions) returns boolean
language sql stable as $$ select exists (select from cue.cues c where c.id = e.cue_id and c.deleted_at is null) $$;
comment on function cue.has_cue is 'Returns whether the cue of an execution has not been deleted.';

-- An attempt that was taken over, or given back, has another number, or is not under way. An ordered gate is held until the execution has ended. Those of a
-- deleted cue, which are purged later, hold nothing.
create or replace function cue.holds_place(s cue.gate_starts, p_ordered boolean) returns boolean
language sql stable as $$
  select coalesce((
    select case when p_ordered then e.ended_at is null else e.status = 'delivering' and e.attempts = s.attempt end
      from cue.executions e where e.id = s.execution_id and cue.has_cue(e) limit 1), false)
$$;
comment on function cue.holds_place is 'Returns whether a start holds a place, by the row of its execution.';

-- As many as may start now, up to p_wanted; the reason why no more may, and when that may change without anything ending. p_ahead: how much
-- earlier a start counts as possible.
create or replace function cue.gate_room(
  g cue.gates, p cue.gate_parts, p_running int, p_wanted int, p_now timestamptz, p_ahead interval default '0 seconds',
  out room int, out reason cue.held_reason, out next_at timestamptz
)
language plpgsql stable security definer as $$
declare
  v_per interval := extract(epoch from g.per::interval) * interval '1 second';
  v_blocked int;
  v_first timestamptz;
begin
  room := p_wanted;
  if g.paused_at is not null and coalesce(g.paused_until > p_now, true) then
    room := 0;
    reason := 'paused';
    next_at := g.paused_until;
    return;
  end if;
  if p.retry_at > p_now then
    room := 0;
    reason := 'rate';
    next_at := p.retry_at;
    return;
  end if;
  -- One that was removed while it was open is closed by the next start.
  if g.breaker_failures is not null then
    select b.room, b.next_at into room, next_at from cue.breaker_room(p, room, p_now) b;
    if room < p_wanted then reason := 'breaker'; end if;
  end if;
  if room > 0 and (g.ordered or g.parallel is not null) then
    room := least(room, greatest(0, coalesce(g.parallel, 1) - p_running));
    if room < p_wanted then reason := coalesce(reason, case when g.ordered then 'order' else 'parallel' end::cue.held_reason); end if;
  end if;
  if g.budget_limit is not null and room > 0 then
    room := cue.budget_room(g, p, room, p_now);
    if room = 0 then
      reason := 'budget';
      next_at := cue.budget_bound(g, p_now, 1);
      return;
    elsif room < p_wanted then
      reason := coalesce(reason, 'budget'::cue.held_reason);
    end if;
  end if;
  if g.rate is not null and room > 0 then
    -- Start n is possible once start n - rate is as long ago as per. Starts are numbered in their order.
    room := least(room, g.rate);
    select count(*), min(s.started_at) into v_blocked, v_first from cue.gate_starts s
     where s.account_id = g.account_id and s.gate = p.gate and s.n between p.starts + 1 - g.rate and p.starts + room - g.rate
       and s.started_at > p_now + p_ahead - v_per;
    room := room - v_blocked;
    if room < p_wanted and (reason is null or v_blocked > 0 and room = 0) then
      reason := 'rate';
      next_at := date_trunc('milliseconds', v_first + v_per + interval '999 microseconds');
    end if;
  end if;
end $$;
comment on function cue.gate_room is 'Returns how many attempts may start at a gate now, why no more, and when that may change.';

-- Not for update: that would make the results that refer to the part wait.
create or replace function cue.lock_part(p_account_id uuid, p_gate text) returns setof cue.gate_parts
language plpgsql security definer as $$
begin
  if not exists (select from cue.gate_parts p where p.account_id = p_account_id and p.gate = p_gate) then
    insert into cue.gate_parts (account_id, gate, key)
    select g.account_id, p_gate, g.key from cue.gates g where g.account_id = p_account_id and g.key = cue.gate_key(p_gate) on conflict do nothing;
  end if;
  return query select * from cue.gate_parts p where p.account_id = p_account_id and p.gate = p_gate for no key update skip locked;
end $$;
comment on function cue.lock_part is 'Locks and returns a gate''s part, unless it is locked.';

-- The caller has locked the executions, which are due or claimable, and starts those in passed at begun_at, which is not before earlier starts
-- behind these gates. The others are held.
create or replace function cue.pass_gates(p_execution_ids uuid[], p_now timestamptz, out passed uuid[], out begun_at timestamptz)
language plpgsql security definer as $$
declare
  r record;
begin
  begun_at := p_now;
  passed := array(
    select u.id from unnest(p_execution_ids) with ordinality as u (id, n)
     where cue.gate_of(u.id) is null order by u.n);
  if cardinality(passed) = cardinality(p_execution_ids) then return; end if;
  select greatest(p_now, max(l.last_start_at)) into begun_at from (
      select distinct e.account_id, cue.gate_of(e.id) as gate from cue.executions e where e.id = any (p_execution_ids) order by 1, 2) t
     cross join lateral cue.lock_part(t.account_id, t.gate) l where t.gate is not null;
  for r in
    select e.account_id, t.gate, array_agg(e.id order by coalesce(h.due_at, e.attempt_due_at, e.claimable_at), e.id) as ids
      from unnest(p_execution_ids) as u (id)
     cross join lateral (select * from cue.executions x where x.id = u.id limit 1) e
     cross join lateral (select cue.gate_of(e.id) as gate) t
      left join cue.held_executions h on h.execution_id = u.id
     where t.gate is not null group by 1, 2 order by 1, 2
  loop
    passed := passed || cue.pass_gate(r.account_id, r.gate, r.ids, p_now, begun_at);
  end loop;
end $$;
comment on function cue.pass_gates is 'Returns those of these executions that may start an attempt now, and when; holds the others.';

create or replace function cue.gate_of(p_execution_id uuid) returns text
language sql stable as $$
  select (select c.gate from cue.cues c where c.id = e.cue_id) from cue.executions e where e.id = p_execution_id limit 1
$$;
comment on function cue.gate_of is 'Returns the gate of an execution''s cue.';

create or replace function cue.pass_gate(p_account_id uuid, p_gate text, p_ids uuid[], p_now timestamptz, p_begun_at timestamptz) returns uuid[]
language plpgsql security definer as $$
declare
  g cue.gates;
  p cue.gate_parts;
  v_ahead uuid[];
  v_room record;
begin
  select * into g from cue.gates q where q.account_id = p_account_id and q.key = cue.gate_key(p_gate);
  if not found then
    delete from cue.held_executions where execution_id = any (p_ids);
    return p_ids;
  end if;
  select * into p from cue.lock_part(p_account_id, p_gate);
  -- Locked: held, for the sweep that follows.
  if not found or p.last_start_at > p_begun_at then
    perform cue.hold_executions(p_ids, 'gate', p_now);
    return '{}';
  end if;
  p := cue.fold_results(g, p, p_begun_at);
  update cue.gate_starts s set holds = false
   where s.account_id = p_account_id and s.gate = p_gate and s.holds and not cue.holds_place(s, g.ordered)
     and not (g.budget_reserve > 0 and cue.keeps_reserve(s));
  if g.ordered then
    v_ahead := array(select u.id from unnest(p_ids) as u (id) where u.id = cue.next_in_order(p_account_id, p_gate, p_ids));
  else
    v_ahead := cue.not_overtaking(p_account_id, p_gate, p_ids);
  end if;
  v_room := cue.gate_room(g, p, case when g.ordered then 0 else cue.places_held(g, p_gate) end, cardinality(v_ahead), p_begun_at);
  v_ahead := v_ahead[:v_room.room];
  perform cue.hold_executions(array(select u.id from unnest(p_ids) as u (id) where u.id <> all (v_ahead)), 'gate', p_now);
  -- Workers must not try the others one by one.
  if v_room.room = 0 and not g.ordered then
    perform cue.hold_executions(array(
      select e.id from cue.held_executions h
       cross join lateral (select x.id from cue.executions x where x.id = h.execution_id and x.claimable_at <= p_now limit 1 for update skip locked) e
       where h.account_id = p_account_id and h.gate = p_gate and h.released_at is not null limit 1000), 'gate', p_now);
  end if;
  perform cue.add_starts(g, p, v_ahead, p_begun_at);
  return v_ahead;
end $$;
comment on function cue.pass_gate is 'Does what pass_gates does for one gate or part.';

-- The one that has started and not ended: while an attempt of it is under way, none of those that wait is next. There is more than one only after a gate
-- has become ordered. Otherwise the first.
create or replace function cue.next_in_order(p_account_id uuid, p_gate text, p_ids uuid[]) returns uuid
language plpgsql stable security definer as $$
begin
  return coalesce(
    (select s.execution_id from cue.gate_starts s
      cross join lateral (select x.status, x.ended_at from cue.executions x where x.id = s.execution_id and cue.has_cue(x) limit 1) e
      where s.account_id = p_account_id and s.gate = p_gate and s.holds and e.ended_at is null order by e.status <> 'delivering', s.n limit 1),
    (select f.id from (
       (select h.execution_id as id, h.due_at from cue.held_executions h
         where h.account_id = p_account_id and h.gate = p_gate and h.held_by = 'gate' order by h.due_at, h.execution_id limit 1)
       union all
       select e.id, coalesce(e.attempt_due_at, e.claimable_at) from unnest(p_ids) as u (id)
        cross join lateral (select * from cue.executions x where x.id = u.id limit 1) e
        where not exists (select from cue.held_executions h where h.execution_id = u.id)) f
      order by f.due_at, f.id limit 1));
end $$;
comment on function cue.next_in_order is 'Returns the only execution that may start at an ordered gate, among those that wait and p_ids.';

-- Those that were released, and those that come before all that are held.
create or replace function cue.not_overtaking(p_account_id uuid, p_gate text, p_ids uuid[]) returns uuid[]
language plpgsql stable security definer as $$
declare
  v_first timestamptz := (
    select h.due_at from cue.held_executions h
     where h.account_id = p_account_id and h.gate = p_gate and h.held_by = 'gate' and h.released_at is null order by h.due_at, h.execution_id limit 1);
begin
  if v_first is null then return p_ids; end if;
  return array(
    select u.id from unnest(p_ids) with ordinality as u (id, n)
     cross join lateral (select coalesce(x.attempt_due_at, x.claimable_at) as due_at from cue.executions x where x.id = u.id limit 1) e
     where e.due_at <= v_first or exists (select from cue.held_executions h where h.execution_id = u.id) order by u.n);
end $$;
comment on function cue.not_overtaking is 'Returns those of p_ids that have waited at their gate, or are due before all that wait there.';

create or replace function cue.add_starts(g cue.gates, p cue.gate_parts, p_ids uuid[], p_now timestamptz) returns void
language plpgsql security definer as $$
begin
  if cardinality(p_ids) = 0 then return; end if;
  delete from cue.held_executions where execution_id = any (p_ids);
  update cue.gate_starts s set holds = false
   where s.account_id = p.account_id and s.gate = p.gate and s.holds and s.execution_id = any (p_ids);
  insert into cue.gate_starts (account_id, gate, n, execution_id, attempt, started_at)
  select p.account_id, p.gate, p.starts + u.n, u.id, (select e.attempts + 1 from cue.executions e where e.id = u.id), p_now
    from unnest(p_ids) with ordinality as u (id, n);
  update cue.gate_parts q
     set starts = q.starts + cardinality(p_ids), last_start_at = p_now,
         probe_id = case when q.opened_at is not null then p_ids[1] end,
         probe = case when q.opened_at is not null then (select e.attempts + 1 from cue.executions e where e.id = p_ids[1]) end
   where q.account_id = p.account_id and q.gate = p.gate;
  -- Those that no rate counts any more. At most as many as start are left to others.
  delete from cue.gate_starts s
   where s.account_id = p.account_id and s.gate = p.gate and not s.holds and s.n = any (array(
     select o.n from cue.gate_starts o
      where o.account_id = p.account_id and o.gate = p.gate and o.n <= p.starts + cardinality(p_ids) - coalesce(g.rate, 0)
      order by o.n limit 2 * cardinality(p_ids) + 1000));
end $$;
comment on function cue.add_starts is 'Records the starts of attempts behind a gate, whose part is locked.';
