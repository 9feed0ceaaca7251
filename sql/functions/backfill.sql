-- Backfill: slots that did not run are run later, with their nominal time. Locks: the account, the cue, cue_runs, executions, jobs.

-- Returns no row if the slot was backfilled before. QU001 not found, QU011 a one-time cue, QU029 skipped, as p_overlap says, QU032 above the plan's limit.
create or replace function cue.backfill_slot(
  p_account_id uuid, p_cue_id text, p_slot timestamptz, p_now timestamptz default now(), p_overlap cue.overlap default 'allow',
  p_actor text default null
) returns setof cue.executions
language plpgsql security definer as $$
declare
  c cue.cues;
  v_id uuid;
  v_held_by cue.held_by;
begin
  perform from cue.accounts where id = p_account_id for no key update;
  select * into c from cue.cues where id = p_cue_id and account_id = p_account_id and deleted_at is null for no key update;
  perform cue.refuse_if(not found, 'QU001', format('cue %s not found', p_cue_id));
  perform cue.refuse_if(c.schedule_type = 'once', 'QU011', format('Cue %s runs once. Fire it, or replay its execution.', p_cue_id));
  if exists (select from cue.backfilled_slots where cue_id = p_cue_id and slot = p_slot) then return; end if;
  perform cue.admit_execution(p_account_id, p_now);
  perform cue.admit_payload(p_account_id, cue.payload_bytes(c.payload, c.payload_id), p_now);
  update cue.cue_runs set run_count = run_count + 1 where cue_id = p_cue_id;
  v_held_by := cue.place_request(c, p_overlap, p_now);
  c.tracked := c.tracked or p_overlap <> 'allow';
  v_id := cue.queue_execution(c, 'backfill', p_slot, p_now => p_now, p_held_by => v_held_by, p_requested_by => p_actor);
  insert into cue.backfilled_slots (cue_id, slot, execution_id) values (p_cue_id, p_slot, v_id);
  return query select * from cue.executions where id = v_id;
end $$;
comment on function cue.backfill_slot is 'Runs a slot that did not run, with its nominal time, and returns its execution.';

-- An execution of a slot is created at its time, after an outage or a hold at the end of that, or at most a day late, which comes on top of its window.
create or replace function cue.slots_without_execution(p_cue_id text, p_slots timestamptz[]) returns setof timestamptz
language plpgsql stable security definer as $$
declare
  v_first timestamptz := (select min(slot) from unnest(p_slots) as s (slot));
  v_last timestamptz := (select max(slot) from unnest(p_slots) as s (slot));
begin
  return query
  select s.slot from unnest(p_slots) as s (slot)
  except
  select e.scheduled_for from (
    select v_first - interval '1 minute', v_last
    union all
    select o.until_at, o.until_at from cue.unserved_periods o where o.from_at <= v_last and o.until_at >= v_first and o.until_at < 'infinity') w (first, last)
   cross join lateral (
     select x.scheduled_for from cue.executions x
      where x.cue_id = p_cue_id and x.id >= cue.uuid_v7_floor(w.first) and x.id < cue.uuid_v7_floor(w.last + interval '2 days')
        and x.triggered_by = 'schedule') e
  except
  select b.slot from cue.backfilled_slots b where b.cue_id = p_cue_id
  order by 1;
end $$;
comment on function cue.slots_without_execution is 'Returns those of a cue''s slots that have no execution, oldest first.';
