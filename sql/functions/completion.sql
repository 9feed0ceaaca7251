-- Recurring cues that complete: after their last slot (schedule.ends_at), or after schedule.max_runs runs. A slot that an engine has computed
-- fires only if version and next_run are still the same, and both determine how many runs were taken before it: so whoever takes it knows
-- whether it is the last one.

create or replace function cue.runs_left(p_rules jsonb, p_fired bigint, p_skipped int) returns int
language sql immutable as $$
  select case when p_rules ? 'max_runs' then greatest(0, (p_rules ->> 'max_runs')::bigint - p_fired + coalesce(p_skipped, 0))::int end
$$;
comment on function cue.runs_left is 'Returns how many scheduled runs a cue may still take, by its schedule_rules and counters; null without max_runs.';

-- The caller has locked the cues and their cue_runs, and has moved next_run on.
create or replace function cue.complete_cues(p_cue_ids text[], p_now timestamptz default now()) returns void
language plpgsql security definer as $$
begin
  update cue.cues c
     set status = 'completed', updated_at = p_now, paused_at = null, paused_by = null, pause_reason = null, paused_until = null,
         completed_reason = case cue.runs_left(c.schedule_rules, r.fired_count, r.skipped_count) when 0 then 'max_runs' else 'ended' end::cue.completion
    from cue.cue_runs r
   where c.id = any (p_cue_ids) and r.cue_id = c.id;
  update cue.cue_runs set next_run = null, next_slot = null, refused_from = null, success_due_at = null, excluded_at = null, version = version + 1
   where cue_id = any (p_cue_ids);
  perform cue.add_cue_events('cue.completed', p_cue_ids, p_now);
  perform cue.note_memory(a.id) from (select distinct c.account_id as id from cue.cues c where c.id = any (p_cue_ids)) a;
end $$;
comment on function cue.complete_cues is 'Completes recurring cues that have no further run.';

-- For recurring cues whose slot is their last one. Cues that are locked are left to the next call, so that they complete together with the run.
create or replace function cue.take_last_slots(
  p_cue_ids text[], p_versions int[], p_expected timestamptz[], p_missed_after interval default cue.missed_after(),
  p_lease interval default cue.flight_lease(), p_now timestamptz default now()
) returns setof cue.begun_attempt
language plpgsql security definer as $$
declare
  v_ids text[] := array(select c.id from cue.cues c where c.id = any (p_cue_ids) order by c.id for no key update skip locked);
begin
  return query
  select t.* from (
    select array_agg(d.cue_id) as cue_ids, array_agg(d.version) as versions, array_agg(d.expected) as expected
      from unnest(p_cue_ids, p_versions, p_expected) as d (cue_id, version, expected) where d.cue_id = any (v_ids) having count(*) > 0) f
   cross join lateral cue.take_due_cues(
     f.cue_ids, f.versions, f.expected, array_fill(null::timestamptz, array[cardinality(f.cue_ids)]),
     p_missed_after => p_missed_after, p_lease => p_lease, p_now => p_now) t;
  perform cue.complete_cues(array(
    select r.cue_id from unnest(p_cue_ids, p_versions, p_expected) as d (cue_id, version, expected)
     cross join lateral (
       select n.cue_id from cue.cue_runs n
        where n.cue_id = d.cue_id and n.version = d.version and n.last_slot <= d.expected and n.next_run is null limit 1) r
     where d.cue_id = any (v_ids)), p_now);
end $$;
comment on function cue.take_last_slots is 'Fires due cues for the last time, like take_due_cues, and completes them.';
