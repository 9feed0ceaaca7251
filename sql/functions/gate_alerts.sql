-- Alerts about gates whose breaker has been open for a while. An alert belongs to a cue: that of the latest probe, or of the first that waits. Locks:
-- the part, then the cue; waits for nobody.

create or replace function cue.alert_open_gates(p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  p cue.gate_parts;
  c cue.cues;
  v_count int := 0;
begin
  for p in
    select * from cue.gate_parts q
     where (q.opened_at is not null or q.alert_id is not null) and (q.opened_at is null or q.alert_id is null and q.opened_at <= p_now - interval '5 minutes')
     limit 100 for no key update skip locked
  loop
    if p.opened_at is null then
      update cue.alerts a
         set resolved_at = p_now, resolution = jsonb_build_object(
               'after_seconds', greatest(floor(date_part('epoch', p_now - a.created_at)), 0), 'failed', coalesce((a.metadata ->> 'failure_count')::int, 0), 'missed', 0)
       where a.id = p.alert_id and a.resolved_at is null;
      if found then
        perform cue.add_alert_event('alert.resolved', p.alert_id, p_now);
        perform cue.add_resolved_notices(p.alert_id, p_now);
      end if;
      p.alert_id := null;
    else
      select * into c from cue.cues q where q.deleted_at is null and q.id = coalesce(
        (select e.cue_id from cue.executions e where e.id = p.probe_id),
        (select h.cue_id from cue.held_executions h
          where h.account_id = p.account_id and h.gate = p.gate and h.held_by = 'gate' order by h.due_at, h.execution_id limit 1),
        (select s.cue_id from cue.gate_starts g cross join lateral (select e.cue_id from cue.executions e where e.id = g.execution_id limit 1) s
          where g.account_id = p.account_id and g.gate = p.gate order by g.n desc limit 1));
      continue when not found or cue.lock_free_cues(array[c.id]) = '{}';
      p.alert_id := coalesce(
        cue.raise_alert(c, 'gate_open', 'high', format('Gate %s has been open for five minutes (failures in a row: %s)', p.gate, p.failures),
                        jsonb_build_object('gate', p.gate, 'opened_at', cue.iso(p.opened_at), 'failure_count', p.failures), p.probe_id, p_now),
        (select a.id from cue.alerts a where a.cue_id = c.id and a.alert_type = 'gate_open' and a.acknowledged_at is null));
    end if;
    update cue.gate_parts q set alert_id = p.alert_id where q.account_id = p.account_id and q.gate = p.gate;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.alert_open_gates is 'Raises alerts about gates that have been open for five minutes, and resolves those of gates that have closed; returns how many.';
