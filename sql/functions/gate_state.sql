-- The state of gates, for people. Nothing here decides anything.

create or replace function cue.gate_reason(p_account_id uuid, p_gate text, p_now timestamptz default now()) returns cue.held_reason
language plpgsql stable security definer as $$
declare
  g cue.gates;
  p cue.gate_parts;
begin
  select * into g from cue.gates q where q.account_id = p_account_id and q.key = cue.gate_key(p_gate);
  select * into p from cue.gate_parts q where q.account_id = p_account_id and q.gate = p_gate;
  return coalesce((cue.gate_room(g, p, cue.places_held(g, p_gate), 1, p_now)).reason, case when g.ordered then 'order' when g.parallel is not null then 'parallel' else 'rate' end::cue.held_reason);
end $$;
comment on function cue.gate_reason is 'Returns why executions wait at a gate or part.';

create or replace function cue.places_held(g cue.gates, p_gate text) returns int
language sql stable as $$
  select count(distinct s.execution_id)::int from cue.gate_starts s
   where s.account_id = g.account_id and s.gate = p_gate and s.holds and cue.holds_place(s, g.ordered)
$$;
comment on function cue.places_held is 'Returns how many executions hold a place of a gate or part.';

-- Null for one that has been released, and is due. Those that were released for a later instant wait for it. A list has up to 100: with 10,000 waiting,
-- counting to the end takes 2 ms for each.
create or replace function cue.describe_held(h cue.held_executions, p_due_at timestamptz, p_now timestamptz default now()) returns jsonb
language plpgsql stable security definer as $$
begin
  if h.released_at is not null and p_due_at <= h.released_at then return null; end if;
  return jsonb_build_object(
    'by', h.held_by, 'key', h.gate,
    'reason', case h.held_by when 'gate' then cue.gate_reason(h.account_id, h.gate, p_now) else h.held_by::text::cue.held_reason end, 'since', cue.iso(h.since),
    'ahead', case h.held_by
      when 'gate' then (
        select count(*) from (
          select from cue.held_executions o
           where o.account_id = h.account_id and o.gate = h.gate and o.held_by = 'gate' and (o.due_at, o.execution_id) < (h.due_at, h.execution_id)
           limit 1000) o)
      when 'approval' then 0
      else (select count(*) from cue.held_executions o where o.cue_id = h.cue_id and o.held_by = h.held_by and o.place < h.place) end);
end $$;
comment on function cue.describe_held is 'Returns what a held execution waits for, as the API shows it.';

create or replace function cue.gate_state(p_account_id uuid, p_gate text, p_now timestamptz default now())
returns table (running int, waiting int, oldest_waiting_seconds float8, next_start_at timestamptz, breaker_state jsonb, spent text, reserved text,
               period_ends_at timestamptz)
language plpgsql stable security definer as $$
declare
  g cue.gates;
  p cue.gate_parts;
  v_first timestamptz;
begin
  select * into g from cue.gates q where q.account_id = p_account_id and q.key = cue.gate_key(p_gate);
  if not found then return; end if;
  select * into p from cue.gate_parts q where q.account_id = p_account_id and q.gate = p_gate;
  p.gate := p_gate;
  p.starts := coalesce(p.starts, 0);
  running := cue.places_held(g, p_gate);
  select count(*), min(h.since) into waiting, v_first from cue.held_executions h
   where h.account_id = p_account_id and h.gate = p_gate and h.held_by = 'gate';
  oldest_waiting_seconds := extract(epoch from p_now - v_first);
  next_start_at := (select case when r.room > 0 then p_now else r.next_at end from cue.gate_room(g, p, running, 1, p_now) r);
  breaker_state := case when g.breaker_failures is not null then jsonb_build_object(
    'state', case when p.opened_at is null then 'closed' when p.open_until > p_now or p.probe is null then 'open' else 'probing' end,
    'failures', coalesce(p.failures, 0), 'open_until', cue.iso(p.open_until)) end;
  if g.budget_limit is not null then
    spent := case when p.period_start = cue.budget_bound(g, p_now) then trim_scale(p.spent) else 0 end::text;
    reserved := trim_scale(cue.reserved(g, p_gate))::text;
    period_ends_at := cue.budget_bound(g, p_now, 1);
  end if;
  return next;
end $$;
comment on function cue.gate_state is 'Returns the current state of a gate or a part; no row if not found.';

-- Sums, and the ten busiest parts: those where most wait or run. Only these are looked at one by one: there may be 10,000.
create or replace function cue.gate_states(p_account_id uuid, p_key text, p_now timestamptz default now()) returns table (
  running int, waiting int, oldest_waiting_seconds float8, next_start_at timestamptz, breaker_state jsonb, spent text, reserved text,
  period_ends_at timestamptz, parts jsonb)
language plpgsql stable security definer as $$
declare
  g cue.gates;
begin
  select * into g from cue.gates q where q.account_id = p_account_id and q.key = p_key;
  return query
  with waits as materialized (
    select h.gate, count(*) as waiting, min(h.since) as since from cue.held_executions h
     where h.account_id = p_account_id and h.held_by = 'gate' and cue.gate_key(h.gate) = p_key group by h.gate),
  runs as materialized (
    select s.gate, count(distinct s.execution_id) filter (where cue.holds_place(s, g.ordered)) as running,
           case when g.budget_reserve > 0 then count(*) filter (where cue.keeps_reserve(s)) else 0 end as reserving
      from cue.gate_starts s where s.account_id = p_account_id and s.holds and cue.gate_key(s.gate) = p_key group by s.gate),
  busy as materialized (
    select b.gate, t.* from (
      -- Not a join: planned for few parts, it would compare each with all.
      select x.gate from (select w.gate, w.waiting, 0 as running from waits w union all select r.gate, 0, r.running from runs r) x
       where x.gate like '%#%' group by x.gate order by sum(x.waiting) desc, sum(x.running) desc, x.gate limit 10) b
     cross join lateral cue.gate_state(p_account_id, b.gate, p_now) t)
  select coalesce((select sum(r.running) from runs r), 0)::int, coalesce((select sum(w.waiting) from waits w), 0)::int,
         (select extract(epoch from p_now - min(w.since)) from waits w)::float8,
         least((select min(b.next_start_at) from busy b), case when not exists (select from busy)
                or exists (select from cue.gate_parts q where q.account_id = p_account_id and q.gate = p_key) then o.next_start_at end),
         coalesce((select jsonb_build_object('state', case when q.open_until > p_now or q.probe is null then 'open' else 'probing' end,
                                             'failures', q.failures, 'open_until', cue.iso(q.open_until))
                     from cue.gate_parts q where q.account_id = p_account_id and q.key = p_key and q.opened_at is not null order by q.open_until desc limit 1),
                  o.breaker_state),
         case when g.budget_limit is not null then coalesce((
           select trim_scale(sum(q.spent)) from cue.gate_parts q
            where q.account_id = p_account_id and q.key = p_key and q.period_start = cue.budget_bound(g, p_now) and q.spent_unit = g.budget_unit), 0)::text end,
         case when g.budget_limit is not null then trim_scale(coalesce(g.budget_reserve, 0) * coalesce((select sum(r.reserving) from runs r), 0))::text end,
         o.period_ends_at,
         (select coalesce(jsonb_agg(to_jsonb(b) - '{gate,period_ends_at}'::text[] || jsonb_build_object('part', split_part(b.gate, '#', 2), 'next_start_at', cue.iso(b.next_start_at))
                                    order by b.waiting desc, b.running desc, b.gate), '[]') from busy b)
    from cue.gate_state(p_account_id, p_key, p_now) o;
end $$;
comment on function cue.gate_states is 'Returns the current state of a gate: sums over its parts, and the ten busiest; no row if not found.';

-- By the first that waits at each of up to 1,000 gates and parts, and up to 10,000 that wait for others of their cue.
create or replace function cue.held_seconds(p_now timestamptz default now()) returns table (reason text, seconds float8)
language plpgsql stable security definer as $$
begin
  return query
  with recursive gates as (
    (select h.account_id, h.gate, 1 as n from cue.held_executions h where h.held_by = 'gate' order by h.account_id, h.gate limit 1)
    union all
    select f.account_id, f.gate, k.n + 1 from gates k cross join lateral (
      select h.account_id, h.gate from cue.held_executions h
       where h.held_by = 'gate' and (h.account_id, h.gate) > (k.account_id, k.gate) order by h.account_id, h.gate limit 1) f
     where k.n < 1000),
  firsts as (
    select cue.gate_reason(g.account_id, g.gate, p_now) as reason, f.since from gates g cross join lateral (
      select h.since from cue.held_executions h
       where h.account_id = g.account_id and h.gate = g.gate and h.held_by = 'gate' and h.released_at is null order by h.due_at, h.execution_id limit 1) f
    union all
    select 'overlap', min(q.since) from (select h.since from cue.held_executions h where h.held_by = 'overlap' limit cue.counted_to()) q)
  select r.reason::text, coalesce(max(extract(epoch from p_now - f.since)), 0)::float8
    from unnest(enum_range(null::cue.held_reason)) as r (reason) left join firsts f on f.reason = r.reason group by r.reason order by r.reason;
end $$;
comment on function cue.held_seconds is 'Returns for how long the first executions have been held, by reason; for metrics.';
