-- Budgets of gates. Costs are added in the transaction that reports them, and folded into the row of their part by whoever has locked it.

-- The first of two midnights, if clocks are set back there: a second after the one before it.
create or replace function cue.budget_bound(g cue.gates, p_now timestamptz, p_periods int default 0) returns timestamptz
language sql stable as $$
  select least(l.midnight at time zone g.budget_timezone, (l.midnight - interval '1 second') at time zone g.budget_timezone + interval '1 second')
    from (select date_trunc(g.budget_period::text, p_now at time zone g.budget_timezone) + p_periods * ('1 ' || g.budget_period)::interval as midnight) l
$$;
comment on function cue.budget_bound is 'Returns when the period of a budget began, or the period that many later.';

-- Until it has reported its costs or has ended.
create or replace function cue.keeps_reserve(s cue.gate_starts) returns boolean
language sql stable as $$
  select coalesce((select e.status in ('delivering', 'pending_outcome') and e.attempts = s.attempt from cue.executions e where e.id = s.execution_id and cue.has_cue(e) limit 1), false)
     and not exists (select from cue.costs c where c.execution_id = s.execution_id and c.attempt = s.attempt)
$$;
comment on function cue.keeps_reserve is 'Returns whether a start keeps what it has reserved of a budget.';

create or replace function cue.reserved(g cue.gates, p_gate text) returns numeric
language sql stable as $$
  select coalesce(g.budget_reserve, 0) * (
    select count(*) from cue.gate_starts s
     where g.budget_reserve > 0 and s.account_id = g.account_id and s.gate = p_gate and s.holds and cue.keeps_reserve(s))
$$;
comment on function cue.reserved is 'Returns what running attempts of a gate or part have reserved.';

create or replace function cue.budget_room(g cue.gates, p cue.gate_parts, p_wanted int, p_now timestamptz) returns int
language plpgsql stable security definer as $$
declare
  v_free numeric := g.budget_limit - case when p.period_start = cue.budget_bound(g, greatest(p_now, p.period_start)) and p.spent_unit = g.budget_unit then p.spent else 0 end;
begin
  if g.budget_reserve is null then return case when v_free > 0 then p_wanted else 0 end; end if;
  v_free := v_free - cue.reserved(g, p.gate);
  if g.budget_reserve = 0 then return case when v_free >= 0 then p_wanted else 0 end; end if;
  return greatest(0, least(p_wanted, floor(v_free / g.budget_reserve)));
end $$;
comment on function cue.budget_room is 'Returns how many attempts a budget lets start now.';

-- Without a part, no attempt has started there: costs are counted when the first does.
create or replace function cue.budgeted_part(p_cue_id text, p_unit text) returns setof cue.gate_parts
language plpgsql stable security definer as $$
begin
  return query
  select p.* from cue.cues c
   cross join lateral (select * from cue.gates q where q.account_id = c.account_id and q.key = cue.gate_key(c.gate) limit 1) g
   cross join lateral (select * from cue.gate_parts q where q.account_id = c.account_id and q.gate = c.gate limit 1) p
   where c.id = p_cue_id and c.gate is not null and g.budget_unit = p_unit;
end $$;
comment on function cue.budgeted_part is 'Returns the part of the gate that limits costs of a cue in a unit, if there is one.';

-- Evidence changes the period in which the unit was first stated: p_reported has that instant for the units of p_before.
create or replace function cue.add_spending(e cue.executions, p_before jsonb, p_after jsonb, p_reported jsonb, p_now timestamptz) returns void
language plpgsql security definer as $$
declare
  v_gate text;
begin
  insert into cue.gate_spending (account_id, gate, unit, amount, reported_at)
  select e.account_id, p.gate, u.unit, coalesce((p_after ->> u.unit)::numeric, 0) - coalesce((p_before ->> u.unit)::numeric, 0),
         coalesce((p_reported ->> u.unit)::timestamptz, p_now)
    from jsonb_object_keys(p_before || p_after) as u (unit)
   cross join lateral cue.budgeted_part(e.cue_id, u.unit) p
   where p_after ->> u.unit is distinct from p_before ->> u.unit
  returning gate into v_gate;
  if found then perform cue.fold_part(e.account_id, v_gate, p_now); end if;
end $$;
comment on function cue.add_spending is 'Adds what an execution has spent to the costs of its gate.';

-- The caller has locked the part. In a new period, or for a new unit, all costs of the gate's cues are counted anew, in one statement with those that are
-- waiting to be added: what commits later is added later.
create or replace function cue.fold_budget(g cue.gates, p cue.gate_parts, p_now timestamptz) returns cue.gate_parts
language plpgsql security definer as $$
declare
  -- No period comes back with a statement that began before its end.
  v_start timestamptz := cue.budget_bound(g, greatest(p_now, p.period_start));
  v_added numeric;
  v_spent numeric := p.spent;
  v_level int;
begin
  if g.budget_limit is null then return p; end if;
  if (p.period_start, p.spent_unit) is distinct from (v_start, g.budget_unit) then
    with gone as (delete from cue.gate_spending q where q.account_id = p.account_id and q.gate = p.gate)
    select coalesce(sum(s.amount), 0) into p.spent from cue.cues q
     cross join lateral (
       select sum(c.amount) as amount from cue.costs c where c.cue_id = q.id and c.unit = g.budget_unit and c.reported_at >= v_start) s
     where q.account_id = p.account_id and split_part(q.gate, '#', 1) = p.key and q.gate = p.gate;
    p.budget_noted := case when p.period_start = v_start then p.budget_noted else 0 end;
    p.period_start := v_start;
    p.spent_unit := g.budget_unit;
  else
    with gone as (delete from cue.gate_spending q where q.account_id = p.account_id and q.gate = p.gate returning q.unit, q.amount, q.reported_at)
    select coalesce(sum(o.amount), 0) into v_added from gone o where o.unit = g.budget_unit and o.reported_at >= v_start;
    p.spent := p.spent + v_added;
  end if;
  v_level := case when p.spent >= g.budget_limit then 2 when p.spent >= 0.8 * g.budget_limit then 1 else 0 end;
  if p.spent > v_spent and v_level > p.budget_noted then
    p.budget_noted := v_level;
    perform cue.add_event(
      g.account_id, case v_level when 2 then 'gate.budget_reached' else 'gate.budget_warning' end::cue.event_type, jsonb_build_object(
        'gate', p.gate, 'spent', p.spent::text, 'limit', g.budget_limit::text, 'unit', g.budget_unit, 'period_ends_at', cue.iso(cue.budget_bound(g, p_now, 1))),
      p_now);
  end if;
  return p;
end $$;
comment on function cue.fold_budget is 'Adds new costs to a gate''s part, and writes the events of its budget; returns the part.';
