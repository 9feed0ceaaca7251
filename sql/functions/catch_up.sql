-- Slots that don't fire normally: those that came due during an outage or above the plan's limit. Handled cue by cue.

-- p_cues: a JSON array of {cue_id, version, expected, next_run, next_slot, slots, due, dropped: {first, last, count, reason} | null}. slots are to
-- run, oldest first; due says when they were meant to fire, if later; dropped ones are recorded; next_run is the first slot after the outage:
-- without one, a recurring cue completes. A one-time cue whose slot is dropped gets a missed execution. A cue that changed since the caller read it
-- is skipped.
create or replace function cue.catch_up_cues(p_cues jsonb, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  d record;
  c cue.cues;
  r cue.cue_runs;
  e cue.executions;
  v_made int;
  v_reason cue.missed_reason;
  v_count int := 0;
begin
  for d in
    select * from jsonb_to_recordset(p_cues)
      as u (cue_id text, version int, expected timestamptz, next_run timestamptz, next_slot timestamptz, slots timestamptz[], due timestamptz[],
            dropped jsonb)
     order by u.cue_id
  loop
    continue when cue.lock_free_cues(array[d.cue_id]) = '{}';
    select * into c from cue.cues where id = d.cue_id;
    select * into r from cue.cue_runs
     where cue_id = d.cue_id and version = d.version and next_run = d.expected and next_run <= p_now
       -- Slots that were refused end at next_run, so another engine that has recorded them may have left it as it was.
       and (refused_from is not null or next_run is distinct from d.next_run);
    continue when not found or cue.is_held(c.account_id) or c.overlap = 'cancel_previous' and cue.holds_executions(c.id);
    -- Why the slot was not taken when it came due: no engine was alive, or it was held.
    v_reason := coalesce(nullif(d.dropped ->> 'reason', 'service_away')::cue.missed_reason, (
      select o.reason from cue.unserved_periods o
       where coalesce(o.account_id, c.account_id) = c.account_id and d.expected > o.from_at and d.expected <= o.until_at order by o.until_at desc limit 1),
      'service_away');
    v_made := 0;
    if d.dropped is not null then
      perform cue.note_missed_slots(
        c, v_reason, (d.dropped ->> 'first')::timestamptz, (d.dropped ->> 'last')::timestamptz, (d.dropped ->> 'count')::int, null, p_now);
    end if;
    if cardinality(d.slots) > 0 then
      v_made := cue.run_slots(c, r.last_slot, d.slots, d.due, p_now);
    elsif c.schedule_type = 'once' then
      e := cue.add_ended_execution(c, 'missed', d.expected,
        format('came due %s, and catch_up is skip_missed', case v_reason when 'held' then 'during a hold' else 'during an outage' end), p_now);
      perform cue.after_end(e, c, p_now);
    end if;
    if v_made > 0 then
      perform cue.count_executions(array_fill(c.account_id, array[v_made]), p_now);
      perform cue.count_payloads(array[c.id], array[v_made], p_now);
    end if;
    update cue.cue_runs
       set next_run = d.next_run, next_slot = d.next_slot, refused_from = null, fired_count = fired_count + v_made, run_count = run_count + v_made,
           last_slot = (
             select max(s) from unnest(
               d.slots || case when r.refused_from is null then coalesce(r.next_slot, d.expected) else r.last_slot end || (d.dropped ->> 'last')::timestamptz) as u (s))
     where cue_id = d.cue_id;
    if c.schedule_type = 'recurring' and (d.next_run is null or cue.runs_left(c.schedule_rules, r.fired_count + v_made, r.skipped_count) = 0) then
      perform cue.complete_cues(array[c.id], p_now);
    end if;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function cue.catch_up_cues is 'Applies catch_up to slots that came due during an outage; returns how many cues.';

-- A millisecond apart, so that queues and lists keep the order of the slots. p_last_slot: the one before them.
create or replace function cue.run_slots(
  c cue.cues, p_last_slot timestamptz, p_slots timestamptz[], p_slots_due timestamptz[], p_now timestamptz
) returns int
language plpgsql security definer as $$
declare
  v_due timestamptz[] := array(
    select date_trunc('milliseconds', p_now) + (n - 1) * interval '1 millisecond' from generate_subscripts(p_slots, 1) as n order by n);
  v_ids uuid[];
  v_made int := 0;
begin
  if cue.can_be_held(c) then
    for i in 1 .. cardinality(v_due) loop
      v_made := v_made + cue.run_slot(c, p_slots[i], p_last_slot, v_due[i], p_slots_due[i])::int;
      p_last_slot := p_slots[i];
    end loop;
    return v_made;
  end if;
  v_ids := array(select cue.uuid_v7(u.due_at) from unnest(v_due) with ordinality as u (due_at, n) order by u.n);
  insert into cue.new_executions
  select n.* from unnest(v_ids, p_slots, v_due, p_slots_due) as u (id, slot, due_at, slot_due_at)
   cross join lateral cue.new_execution(c, u.id, u.slot, u.due_at, p_slot_due_at => u.slot_due_at, p_now => p_now) n;
  if c.transport = 'webhook' then perform cue.enqueue_attempts(v_ids, v_due);
  else perform cue.wake_workers(c.account_id, p_now);
  end if;
  return cardinality(v_ids);
end $$;
comment on function cue.run_slots is 'Runs slots of a cue late, each as its overlap says; returns how many have an execution.';

create or replace function cue.add_ended_execution(
  c cue.cues, p_status cue.execution_status, p_scheduled_for timestamptz, p_error text, p_now timestamptz
) returns cue.executions
language plpgsql security definer as $$
declare
  e cue.executions;
  v_id uuid := cue.uuid_v7(p_now);
begin
  insert into cue.new_executions
  select n.* from cue.new_execution(c, v_id, p_scheduled_for, p_ended => p_status, p_error => p_error, p_now => p_now) n;
  select * into e from cue.executions where id = v_id;
  update cue.cue_runs
     set run_count = run_count + 1, fired_count = fired_count + 1, skipped_count = coalesce(skipped_count, 0) + 1
   where cue_id = c.id;
  return e;
end $$;
comment on function cue.add_ended_execution is 'Records a slot that did not run as an ended execution.';

-- One row for slots in a row that did not run for the same reason. p_follows: the slot before the first of them; null for slots above the plan's
-- limit and for signals that expired, of which those of a day are in one row.
create or replace function cue.note_missed_slots(
  c cue.cues, p_reason cue.missed_reason, p_first timestamptz, p_last timestamptz, p_count int, p_follows timestamptz, p_now timestamptz
) returns void
language plpgsql security definer as $$
begin
  update cue.missed_slots m set last = p_last, count = least(m.count + p_count, cue.counted_to()), recorded_at = p_now
   -- If the latest row is locked, a new one is inserted below.
   where m.id = (select o.id from cue.missed_slots o
                  where o.id = (select id from cue.missed_slots where cue_id = c.id order by id desc limit 1) for update skip locked)
     and m.reason = p_reason
     and case when p_reason = 'execution_limit' or p_reason = 'after' and p_follows is null then m.last < p_first and m.first > p_now - interval '1 day'
                       else m.policy = c.catch_up and m.last = p_follows end;
  if not found then
    insert into cue.missed_slots (cue_id, account_id, first, last, count, policy, reason, recorded_at)
    values (c.id, c.account_id, p_first, p_last, p_count, c.catch_up, p_reason, p_now);
  end if;
end $$;
comment on function cue.note_missed_slots is 'Records slots that did not run, in the row of those before them if it fits.';

-- One failed execution per cue and hour records the reason, and the other slots go to missed_slots: those above the monthly limit at the end of the
-- hour, so that such a cue costs nothing in between. No usage is counted and on_failure does not run: the owner was notified by mail when the limit was reached.
create or replace function cue.refuse_due_cues(
  p_cue_ids text[], p_versions int[], p_expected timestamptz[], p_next timestamptz[], p_now timestamptz default now(),
  p_next_slots timestamptz[] default '{}'
) returns int
language plpgsql security definer as $$
declare
  d record;
  c cue.cues;
  v_ended cue.executions;
  v_over boolean;
  v_error text;
  v_slot timestamptz;
  v_hour timestamptz := date_trunc('hour', p_now, 'UTC') + interval '1 hour';
  v_waits boolean;
  v_count int := 0;
begin
  for d in
    select * from unnest(p_cue_ids, p_versions, p_expected, p_next, p_next_slots) as u (cue_id, version, expected, next_run, next_slot) order by u.cue_id
  loop
    continue when cue.lock_free_cues(array[d.cue_id]) = '{}';
    select q.* into c from cue.cues q where q.id = d.cue_id;
    continue when not found;
    select cue.is_over_limit(a, p_now) into v_over from cue.accounts a where a.id = c.account_id;
    continue when not v_over and not (cue.caps_payloads() and cue.exceeds_payload_cap(c.id, p_now));
    v_error := case when v_over then 'execution_limit_exceeded: monthly execution limit of the plan reached'
                    else 'execution_limit_exceeded: daily payload limit of the plan reached' end;
    select coalesce(r.next_slot, r.next_run) into v_slot from cue.cue_runs r
     where r.cue_id = d.cue_id and r.version = d.version and r.next_run = d.expected and r.next_run <= p_now;
    continue when not found;
    v_waits := v_over and d.next_run < v_hour;
    update cue.cue_runs r
       set next_run = case when v_waits then v_hour else d.next_run end, next_slot = case when not v_waits then d.next_slot end,
           refused_from = case when v_waits then coalesce(d.next_slot, d.next_run) end, last_slot = v_slot
     where r.cue_id = d.cue_id;
    v_count := v_count + 1;
    if d.next_run is null and c.schedule_type = 'recurring' then perform cue.complete_cues(array[c.id], p_now); end if;
    if exists (
      select from cue.executions e
       where e.cue_id = c.id and e.id >= cue.uuid_v7_floor(date_trunc('hour', p_now, 'UTC')) and e.status = 'failed'
         and e.error_message = v_error)
    then
      perform cue.note_missed_slots(c, 'execution_limit', v_slot, v_slot, 1, null, p_now);
    else
      v_ended := cue.add_ended_execution(c, 'failed', v_slot, v_error, p_now);
      perform cue.add_dead_letter(v_ended);
      perform cue.send_signals(array[v_ended.id], p_now);
      perform cue.count_ended('failed');
      perform cue.add_end_event(v_ended, p_now);
      perform cue.end_one_time_cue(c, 'failed', p_now);
    end if;
  end loop;
  return v_count;
end $$;
comment on function cue.refuse_due_cues is 'Skips slots of accounts above a limit; returns the number of cues moved.';

create or replace function cue.retry_refused(p_account_ids uuid[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  with refused as materialized (
    select r.cue_id from cue.cue_runs r
     where r.cue_id = any (array(
             select c.id from cue.cues c where c.account_id = any (p_account_ids) and c.status = 'active' and c.deleted_at is null))
       and r.refused_from is not null
     order by r.cue_id for update)
  update cue.cue_runs r set next_run = date_trunc('milliseconds', p_now) + interval '1 millisecond' from refused f where r.cue_id = f.cue_id;
  if found then perform cue.wake('cue_due', p_now); end if;
end $$;
comment on function cue.retry_refused is 'Tries the cues of accounts again at once, after a change of their limit.';
