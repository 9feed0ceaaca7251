-- Breakers of gates. Results are added in the transaction that records them, and folded into the row of their part by whoever has locked it.

-- While it is open, none; then one probe at a time. After it has closed, 1, 2, 4, 8 … starts per second.
create or replace function cue.breaker_room(p cue.gate_parts, p_wanted int, p_now timestamptz, out room int, out next_at timestamptz)
language plpgsql stable security definer as $$
declare
  v_seconds int := floor(extract(epoch from p_now - p.ramp_from));
begin
  room := p_wanted;
  if p.open_until > p_now then
    room := 0;
    next_at := p.open_until;
  elsif p.opened_at is not null then
    room := case when exists (
      select from cue.executions e where e.id = p.probe_id and e.status = 'delivering' and e.attempts = p.probe and cue.has_cue(e)) then 0 else least(1, p_wanted) end;
  elsif v_seconds <= 13 then
    -- Negative for a statement that began before the breaker closed.
    v_seconds := greatest(0, v_seconds);
    room := least(p_wanted, greatest(0, (2 << v_seconds) - 1 - (p.starts - p.ramp_starts)))::int;
    if room < p_wanted then next_at := date_trunc('milliseconds', p.ramp_from + (v_seconds + 1) * interval '1 second' + interval '999 microseconds'); end if;
  end if;
end $$;
comment on function cue.breaker_room is 'Returns how many attempts a breaker lets start now, and when that may change.';

-- A response other than a 2xx, 429 or 5xx neither counts nor resets. A lost or cancelled attempt has no result here.
create or replace function cue.add_results(
  p_execution_ids uuid[], p_attempts int[], p_http_status int[], p_errors text[], p_retry_after_ms int[], p_now timestamptz
) returns void
language plpgsql security definer as $$
declare
  v_accounts uuid[];
  v_gates text[];
begin
  with added as (
    insert into cue.gate_results (account_id, gate, execution_id, attempt, success, retry_at)
    select r.account_id, r.gate, r.id, r.attempt, r.success, r.retry_at from (
      select e.account_id, c.gate, u.id, u.attempt, g.breaker_failures, p.failures, p.opened_at,
             case when u.error is null then true when coalesce(u.status, 500) not between 400 and 499 or u.status = 429 then false end as success,
             case when u.status in (429, 503) and u.retry_after_ms is not null then p_now + least(u.retry_after_ms, 3600000) * interval '1 millisecond' end as retry_at
        from unnest(p_execution_ids, p_attempts, p_http_status, p_errors, p_retry_after_ms) as u (id, attempt, status, error, retry_after_ms)
       cross join lateral (
         select x.account_id, x.cue_id from cue.executions x
          where x.id = u.id and x.attempts = u.attempt and x.updated_at = p_now and x.status not in ('delivering', 'retry_ready', 'missed') limit 1) e
       cross join lateral (select q.gate, q.account_id from cue.cues q where q.id = e.cue_id and q.gate is not null limit 1) c
       cross join lateral (select q.* from cue.gates q where q.account_id = c.account_id and q.key = cue.gate_key(c.gate) limit 1) g
       cross join lateral (select q.* from cue.gate_parts q where q.account_id = c.account_id and q.gate = c.gate limit 1) p) r
     where r.retry_at is not null or r.breaker_failures is not null and (not r.success or r.success and (r.failures > 0 or r.opened_at is not null))
     order by r.account_id, r.gate
    returning account_id, gate)
  select array_agg(a.account_id), array_agg(a.gate) into v_accounts, v_gates from (select distinct d.account_id, d.gate from added d) a;
  perform cue.fold_part(u.account_id, u.gate, p_now) from unnest(v_accounts, v_gates) as u (account_id, gate);
end $$;
comment on function cue.add_results is 'Adds the results of attempts that were recorded now to those of their gates, as far as they matter.';

-- The caller has locked the part.
create or replace function cue.fold_results(g cue.gates, p cue.gate_parts, p_now timestamptz default now()) returns cue.gate_parts
language plpgsql security definer as $$
declare
  r cue.gate_results;
  old cue.gate_parts := p;
begin
  if g.breaker_failures is null and p.opened_at is not null then p := cue.close_breaker(p, p_now); end if;
  for r in
    with gone as (delete from cue.gate_results q where q.account_id = p.account_id and q.gate = p.gate returning q.*)
    select * from gone order by seq
  loop
    p.retry_at := greatest(p.retry_at, r.retry_at);
    continue when g.breaker_failures is null or r.success is null;
    if r.success then
      p.failures := 0;
      if p.opened_at is not null then p := cue.close_breaker(p, p_now); end if;
    elsif p.opened_at is null then
      p.failures := p.failures + 1;
      if p.failures >= g.breaker_failures then
        p.opened_at := p_now;
        p.open_seconds := g.breaker_open_seconds;
        p.open_until := date_trunc('milliseconds', p_now) + p.open_seconds * interval '1 second';
        p.ramp_from := null;
        p.ramp_starts := null;
        perform cue.add_gate_event(p, 'gate.opened', p_now);
      end if;
    elsif (r.execution_id, r.attempt) = (p.probe_id, p.probe) then
      p.open_seconds := least(2 * p.open_seconds::bigint, g.breaker_max_open_seconds);
      p.open_until := date_trunc('milliseconds', p_now) + p.open_seconds * interval '1 second';
      p.probe_id := null;
      p.probe := null;
    end if;
  end loop;
  p := cue.fold_budget(g, p, p_now);
  if p.ramp_from is not null and (p.ramp_from < p_now - interval '14 seconds' or not exists (
       select from cue.held_executions h where h.account_id = p.account_id and h.gate = p.gate and h.held_by = 'gate')) then
    p.ramp_from := null;
    p.ramp_starts := null;
  end if;
  if p is distinct from old then
    update cue.gate_parts q
       set (failures, opened_at, open_until, open_seconds, probe, probe_id, ramp_from, ramp_starts, retry_at, spent, spent_unit, period_start, budget_noted)
         = (p.failures, p.opened_at, p.open_until, p.open_seconds, p.probe, p.probe_id, p.ramp_from, p.ramp_starts, p.retry_at, p.spent, p.spent_unit,
            p.period_start, p.budget_noted)
     where q.account_id = p.account_id and q.gate = p.gate;
  end if;
  return p;
end $$;
comment on function cue.fold_results is 'Adds new results to the row of their gate''s part, and opens or closes its breaker; returns the row.';

create or replace function cue.close_breaker(p cue.gate_parts, p_now timestamptz) returns cue.gate_parts
language plpgsql security definer as $$
begin
  p.failures := 0;
  select null, null, null, null, null into p.opened_at, p.open_until, p.open_seconds, p.probe, p.probe_id;
  p.ramp_from := p_now;
  p.ramp_starts := p.starts;
  perform cue.add_gate_event(p, 'gate.closed', p_now);
  return p;
end $$;
comment on function cue.close_breaker is 'Returns a part whose breaker has closed.';

create or replace function cue.add_gate_event(p cue.gate_parts, p_type cue.event_type, p_now timestamptz) returns void
language sql security definer as $$
  select cue.add_event(p.account_id, p_type, jsonb_build_object('gate', p.gate, 'opened_at', cue.iso(p.opened_at), 'open_until', cue.iso(p.open_until)), p_now)
$$;
comment on function cue.add_gate_event is 'Adds an event about the breaker of a gate.';

-- Unless the part is locked: then whoever has locked it, or the sweep, does so.
create or replace function cue.fold_part(p_account_id uuid, p_gate text, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  p cue.gate_parts;
begin
  if not exists (select from cue.gate_results r where r.account_id = p_account_id and r.gate = p_gate)
     and not exists (select from cue.gate_spending r where r.account_id = p_account_id and r.gate = p_gate) then return; end if;
  select * into p from cue.lock_part(p_account_id, p_gate);
  if found then
    perform cue.fold_results(g, p, p_now) from cue.gates g where g.account_id = p_account_id and g.key = p.key;
  end if;
end $$;
comment on function cue.fold_part is 'Adds new results to the row of their gate''s part, unless it is locked.';

create or replace function cue.probe_now(p_account_id uuid, p_key text, p_now timestamptz default now()) returns void
language plpgsql security definer as $$
declare
  v_gate text;
  v_released int := 0;
begin
  update cue.gate_parts set open_until = case when opened_at is not null then least(open_until, p_now) end, retry_at = null
   where account_id = p_account_id and key = p_key and (open_until > p_now or retry_at > p_now);
  for v_gate in
    select distinct q.gate from cue.held_executions q
     where q.account_id = p_account_id and q.held_by = 'gate' and (q.gate = p_key or starts_with(q.gate, p_key || '#')) limit 500
  loop
    v_released := v_released + cue.release_held(p_account_id, v_gate, p_now);
    exit when v_released >= cue.sweep_limit();
  end loop;
end $$;
comment on function cue.probe_now is 'Lets the open breakers of a gate send a probe at once, and releases what has room; the sweep follows.';
