-- Gates: limits that cues share. A cue names its gate by key, and behind # a part that is counted by itself. Whoever names a gate, changes or deletes
-- it has locked the account, so that a gate in use stays. Locks: the account, then cues.

create or replace function cue.gate_key(p_gate text) returns text
language sql immutable as $$ select split_part(p_gate, '#', 1) $$;
comment on function cue.gate_key is 'Returns the key of a gate, from the text by which a cue names it.';

create or replace function cue.gate_fault(p_account_id uuid, p_gate text) returns text
language plpgsql stable security definer as $$
declare
  v_key text := cue.gate_key(p_gate);
begin
  if not exists (select from cue.gates g where g.account_id = p_account_id and g.key = v_key) then
    return format('gate %s not found; create it first with PUT /v1/gates/{key}', v_key);
  end if;
  if p_gate <> v_key
     and not exists (select from cue.cues c where c.account_id = p_account_id and split_part(c.gate, '#', 1) = v_key and c.gate = p_gate and c.deleted_at is null)
     and cue.part_limit() <= (
       select count(distinct c.gate) from cue.cues c where c.account_id = p_account_id and split_part(c.gate, '#', 1) = v_key and c.deleted_at is null) then
    return format('gate %s has %s parts in use; name one of them, or another gate', v_key, cue.part_limit());
  end if;
  return null;
end $$;
comment on function cue.gate_fault is 'Returns why a cue cannot name a gate or part, or null.';

-- The caller has locked the account.
create or replace function cue.require_gate(p_account_id uuid, p_gate text) returns void
language plpgsql stable security definer as $$
declare
  v_fault text := case when p_gate is not null then cue.gate_fault(p_account_id, p_gate) end;
begin
  perform cue.refuse_if(v_fault is not null, 'QU038', v_fault);
end $$;
comment on function cue.require_gate is 'Raises QU038 if a cue cannot name a gate: it does not exist, or has too many parts.';

-- p_gate: an object of columns. Omitted columns take the table's default, except those of the pause, which stay.
create or replace function cue.put_gate(
  p_account_id uuid, p_key text, p_gate jsonb, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns text
language plpgsql security definer as $$
declare
  old cue.gates;
  g cue.gates;
begin
  perform cue.lock_account(p_account_id);
  select * into old from cue.gates where account_id = p_account_id and key = p_key;
  perform cue.refuse_if(not found and (select count(*) from cue.gates where account_id = p_account_id) >= 100, 'QU039',
    'Gate limit reached: 100 per account. Delete one, or use parts: cues may name key#part.');
  g := jsonb_populate_record(null::cue.gates, '{"ordered": false, "on_failure": "continue", "max_wait": "24h"}' || p_gate || jsonb_build_object(
    'account_id', p_account_id, 'key', p_key, 'paused_at', old.paused_at, 'paused_by', old.paused_by, 'pause_reason', old.pause_reason,
    'paused_until', old.paused_until, 'created_at', coalesce(old.created_at, p_now), 'updated_at', old.updated_at));
  if g is not distinct from old then return 'same'; end if;
  g.updated_at := p_now;
  if old.key is null then
    insert into cue.gates values (g.*);
  else
    update cue.gates q
       set (parallel, rate, per, ordered, on_failure, breaker_failures, breaker_open_seconds, breaker_max_open_seconds, budget_limit, budget_unit,
            budget_period, budget_timezone, budget_reserve, max_wait, description, updated_at)
         = (g.parallel, g.rate, g.per, g.ordered, g.on_failure, g.breaker_failures, g.breaker_open_seconds, g.breaker_max_open_seconds, g.budget_limit,
            g.budget_unit, g.budget_period, g.budget_timezone, g.budget_reserve, g.max_wait, g.description, p_now)
     where q.account_id = p_account_id and q.key = p_key;
  end if;
  perform cue.record_event(p_account_id, 'gate.set', p_actor, p_ip, jsonb_build_object('key', p_key), p_now);
  return case when old.key is null then 'created' else 'changed' end;
end $$;
comment on function cue.put_gate is 'Creates or replaces a gate; returns created, changed or same; QU039 too many.';

create or replace function cue.delete_gate(
  p_account_id uuid, p_key text, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  v_ids text[];
begin
  perform cue.lock_account(p_account_id);
  perform from cue.gates where account_id = p_account_id and key = p_key;
  perform cue.refuse_if(not found, 'QU037', format('gate %s not found', p_key));
  v_ids := array(
    select c.id from cue.cues c
     where c.account_id = p_account_id and c.gate is not null and split_part(c.gate, '#', 1) = p_key and c.deleted_at is null order by c.id limit 101);
  perform cue.refuse_if(v_ids <> '{}', 'QU040',
    format('Gate %s is used by %s. Remove it from their gate first.', p_key, cue.first_names(v_ids)),
    array_to_json(v_ids[1:100])::text);
  delete from cue.gates where account_id = p_account_id and key = p_key;
  perform cue.record_event(p_account_id, 'gate.deleted', p_actor, p_ip, jsonb_build_object('key', p_key), p_now);
end $$;
comment on function cue.delete_gate is
  'Deletes a gate; QU037 if not found, QU040 if cues use it; the detail is a JSON array of at most 100 of their ids.';

-- Takes effect for attempts that start after the commit.
create or replace function cue.pause_gate(
  p_account_id uuid, p_key text, p_reason text default null, p_until timestamptz default null, p_actor text default session_user,
  p_ip text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
begin
  perform cue.refuse_if(p_until <= p_now, 'QU034', 'until must be in the future.');
  perform cue.lock_account(p_account_id);
  update cue.gates
     set paused_at = case when paused_until <= p_now then p_now else coalesce(paused_at, p_now) end, paused_by = p_actor, pause_reason = p_reason, paused_until = p_until, updated_at = p_now
   where account_id = p_account_id and key = p_key;
  perform cue.refuse_if(not found, 'QU037', format('gate %s not found', p_key));
  perform cue.record_event(p_account_id, 'gate.paused', p_actor, p_ip, jsonb_build_object('key', p_key, 'reason', p_reason), p_now);
  perform cue.add_event(
    p_account_id, 'gate.paused', jsonb_build_object('gate', p_key, 'paused_by', p_actor, 'pause_reason', p_reason, 'paused_until', cue.iso(p_until)), p_now);
end $$;
comment on function cue.pause_gate is 'Pauses a gate, or gives a paused one another reason and end; QU037 if not found, QU034 if p_until is past.';

create or replace function cue.resume_gate(
  p_account_id uuid, p_key text, p_actor text default session_user, p_ip text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
declare
  old cue.gates;
begin
  perform cue.lock_account(p_account_id);
  select * into old from cue.gates where account_id = p_account_id and key = p_key;
  perform cue.refuse_if(not found, 'QU037', format('gate %s not found', p_key));
  update cue.gates set paused_at = null, paused_by = null, pause_reason = null, paused_until = null, updated_at = p_now
   where account_id = p_account_id and key = p_key and paused_at is not null;
  if found then
    perform cue.record_event(p_account_id, 'gate.resumed', p_actor, p_ip, jsonb_build_object('key', p_key), p_now);
    perform cue.add_event(p_account_id, 'gate.resumed', jsonb_build_object('gate', p_key), p_now);
  end if;
  perform cue.probe_now(p_account_id, p_key, p_now);
end $$;
comment on function cue.resume_gate is 'Ends the pause of a gate, and has an open breaker send a probe at once; QU037 if not found.';

-- Executions have been released for that instant. Waits for nobody.
create or replace function cue.end_gate_pauses(p_now timestamptz default now()) returns void
language sql security definer as $$
  with ended as (
    update cue.gates q set paused_at = null, paused_by = null, pause_reason = null, paused_until = null, updated_at = p_now
      from (select g.account_id, g.key from cue.gates g where g.paused_until <= p_now order by g.paused_until limit 100 for no key update skip locked) e
     where q.account_id = e.account_id and q.key = e.key returning q.account_id, q.key)
  select cue.add_event(e.account_id, 'gate.resumed', jsonb_build_object('gate', e.key), p_now) from ended e;
$$;
comment on function cue.end_gate_pauses is 'Ends the pauses of gates whose time has come.';
