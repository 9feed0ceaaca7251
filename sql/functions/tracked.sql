-- Firing of cues whose executions can be held. Locks as in firing.sql; a cue that is locked after cue_runs is skipped if it is locked already.

-- Usually no execution of a tracked cue is open: a few statements fire all of those. The caller has locked their cue_runs.
create or replace function cue.fire_idle_cues(
  p_cue_ids text[], p_expected timestamptz[], p_next timestamptz[], p_success_due timestamptz[], p_next_slots timestamptz[], p_now timestamptz
) returns text[]
language plpgsql security definer as $$
declare
  v_capped boolean := cue.caps_payloads();
  v_idle text[];
  v_ids uuid[];
  v_webhooks uuid[];
  v_gated uuid[];
  v_accounts uuid[];
  v_expected timestamptz[];
  v_slots timestamptz[];
begin
  v_idle := array(
    with named as materialized (
      select u.id, u.next, u.n, c.* from unnest(p_cue_ids, p_next) with ordinality as u (id, next, n)
        left join lateral (
          select q.account_id, q.gate, q.overlap, q.tracked, q.schedule_rules, q.after is null and q.approval is null and not q.template as is_plain
            from cue.cues q where q.id = u.id limit 1) c on true),
    -- Materialized, so that each is counted once.
    gates as materialized (select distinct n.account_id, n.gate from named n where n.gate is not null),
    crowded as materialized (
      select g.account_id, g.gate from gates g
       where cue.is_gate_full(g.account_id, g.gate, cardinality(p_cue_ids)))
    select case when (n.overlap <> 'allow' or n.gate is not null and not n.tracked) and (n.schedule_rules ? 'max_runs') is not true and n.is_plain
                 and n.next is not null and not exists (select from cue.open_executions o where o.cue_id = n.id)
                 and not exists (select from crowded f where f.account_id = n.account_id and f.gate = n.gate) then n.id end
      from named n order by n.n);
  select array_agg(m.cue_id), array_agg(m.account_id), array_agg(m.slot), array_agg(m.expected) into v_idle, v_accounts, v_slots, v_expected
    from cue.move_due_cues(v_idle, p_expected, p_next, p_next_slots, p_success_due, v_capped, p_now, true) m;
  if v_idle is null then return '{}'; end if;
  v_ids := cue.uuids_v7(cardinality(v_idle), p_now);
  perform cue.count_executions(v_accounts, p_now);
  if v_capped then perform cue.count_payloads(v_idle, array_fill(1, array[cardinality(v_idle)]), p_now); end if;
  with fired as materialized (
    select u.id, u.slot, u.expected, c.cue, c.transport, c.gate, c.tracked, u.cue_id, u.account_id
      from unnest(v_ids, v_idle, v_accounts, v_slots, v_expected) as u (id, cue_id, account_id, slot, expected)
     cross join lateral (select q as cue, q.transport, q.gate, q.tracked from cue.cues q where q.id = u.cue_id limit 1) c),
  made as (
    insert into cue.new_executions
    select n.*
      from fired f
     cross join lateral cue.new_execution(
       f.cue, f.id, f.slot, case when f.gate is not null then 'infinity'::timestamptz end, p_slot_due_at => f.expected, p_now => p_now) n),
  opened as (
    insert into cue.open_executions (execution_id, cue_id, account_id) select f.id, f.cue_id, f.account_id from fired f where f.tracked),
  woken as materialized (
    select cue.wake_workers(w.account_id, p_now)
      from (select distinct f.account_id from fired f where f.transport = 'worker' and f.gate is null) w)
  select array_agg(f.id) filter (where f.transport = 'webhook' and f.gate is null), array_agg(f.id order by f.expected, f.id) filter (where f.gate is not null)
    into v_webhooks, v_gated from fired f where (select count(*) from woken) >= 0;
  if v_webhooks is not null then perform cue.enqueue_attempts(v_webhooks, array_fill(p_now, array[cardinality(v_webhooks)])); end if;
  if v_gated is not null then
    perform cue.add_held(v_gated, 'gate', array_fill(p_now, array[cardinality(v_gated)]), p_now);
    perform cue.free_places(v_idle, p_now);
  end if;
  return v_idle;
end $$;
comment on function cue.fire_idle_cues is 'Fires those tracked cues of which no execution is open, and whose slot is not their last; returns their ids.';

-- Like take_due_cues, but the executions wait for an engine.
create or replace function cue.fire_tracked_cues(
  p_cue_ids text[], p_versions int[], p_expected timestamptz[], p_next timestamptz[], p_success_due timestamptz[] default '{}',
  p_missed_after interval default cue.missed_after(), p_now timestamptz default now(), p_next_slots timestamptz[] default '{}'
) returns int
language plpgsql security definer as $$
declare
  v_fired text[];
begin
  if not exists (select from cue.engines where last_seen_at > p_now - p_missed_after) then return 0; end if;
  v_fired := cue.fire_idle_cues(
    cue.lock_due_cues(p_cue_ids, p_versions, p_expected, p_now), p_expected, p_next, p_success_due, p_next_slots, p_now);
  return cardinality(v_fired)
    + cue.fire_busy_cues(p_cue_ids, p_versions, p_expected, p_next, p_success_due, p_next_slots, v_fired, p_now);
end $$;
comment on function cue.fire_tracked_cues is 'Fires due tracked cues, each as its overlap says; returns the number of cues moved.';

-- One by one. Of a full gate, those that wait are counted once: for 240 slots at 10,000, that took three seconds.
create or replace function cue.fire_busy_cues(
  p_cue_ids text[], p_versions int[], p_expected timestamptz[], p_next timestamptz[], p_success_due timestamptz[], p_next_slots timestamptz[],
  p_except text[], p_now timestamptz
) returns int
language plpgsql security definer as $$
declare
  d record;
  c cue.cues;
  r cue.cue_runs;
  v_slot timestamptz;
  v_runs boolean;
  v_accounts uuid[] := '{}';
  v_cue_ids text[] := '{}';
  v_full text[] := '{}';
  v_count int := 0;
begin
  for d in
    select * from unnest(p_cue_ids, p_versions, p_expected, p_next, p_next_slots, p_success_due)
      as u (cue_id, version, expected, next_run, next_slot, success_due)
     where u.cue_id <> all (p_except) order by u.cue_id
  loop
    continue when cue.lock_free_cues(array[d.cue_id]) = '{}';
    select * into c from cue.cues where id = d.cue_id;
    select * into r from cue.cue_runs
     where cue_id = d.cue_id and version = d.version and next_run = d.expected and next_run <= p_now and tracked
       and (select not cue.is_over_limit(a, p_now) from cue.accounts a where a.id = c.account_id)
       and not cue.is_unserved(c.account_id, d.expected)
       and not (cue.caps_payloads() and cue.exceeds_payload_cap(c.id, p_now));
    continue when not found or c.overlap = 'cancel_previous' and cue.holds_executions(c.id);
    if c.overlap = 'allow' and c.tracked and not exists (select from cue.open_executions_of(c.id)) then
      c.tracked := false;
      update cue.cues set tracked = false where id = c.id;
      update cue.cue_runs set tracked = cue.can_be_held(c) where cue_id = c.id;
    end if;
    v_slot := coalesce(r.next_slot, d.expected);
    v_runs := (c.account_id || ' ' || c.gate = any (v_full)) is not true and cue.run_slot(c, v_slot, r.last_slot, p_now, d.expected);
    if not v_runs and c.gate is not null then
      if c.account_id || ' ' || c.gate = any (v_full) then
        perform cue.note_missed_slots(c, 'queue_full', v_slot, v_slot, 1, r.last_slot, p_now);
      elsif cue.is_gate_full(c.account_id, c.gate) then
        v_full := v_full || (c.account_id || ' ' || c.gate);
      end if;
    end if;
    if v_runs then
      v_accounts := v_accounts || c.account_id;
      v_cue_ids := v_cue_ids || c.id;
    end if;
    update cue.cue_runs
       set next_run = d.next_run, next_slot = d.next_slot, last_slot = v_slot, fired_count = fired_count + v_runs::int, run_count = run_count + v_runs::int,
           success_due_at = coalesce(success_due_at, d.success_due)
     where cue_id = c.id;
    if c.schedule_type = 'recurring' and (d.next_run is null or cue.runs_left(c.schedule_rules, r.fired_count + v_runs::int, r.skipped_count) = 0) then
      perform cue.complete_cues(array[c.id], p_now);
    end if;
    v_count := v_count + 1;
  end loop;
  if v_cue_ids <> '{}' then
    perform cue.count_executions(v_accounts, p_now);
    perform cue.count_payloads(v_cue_ids, array_fill(1, array[cardinality(v_cue_ids)]), p_now);
  end if;
  return v_count;
end $$;
comment on function cue.fire_busy_cues is 'Fires due tracked cues one by one, except those of p_except; returns the number of cues moved.';
