-- Pauses that don't come from a request, and those that end by themselves. update_cue pauses and resumes for users.

-- The caller has locked the cues, which are active.
create or replace function cue.pause_cues(
  p_cue_ids text[], p_by cue.pause_cause, p_reason text default null, p_now timestamptz default now()
) returns void
language plpgsql security definer as $$
begin
  update cue.cues
     set status = 'paused', paused_at = p_now, paused_by = p_by, pause_reason = left(p_reason, 500), paused_until = null, updated_at = p_now
   where id = any (p_cue_ids);
  update cue.cue_runs set next_run = null, next_slot = null, refused_from = null, success_due_at = null, excluded_at = null, version = version + 1
   where cue_id = any (p_cue_ids);
  -- A deleted account has an entry of its own.
  perform cue.record_cue_events(array[c.account_id], 'cue.paused', array[case when p_by <> 'deletion' then 'service' end], array[c.id],
                                jsonb_build_object('paused_by', p_by), p_now)
     from cue.cues c where c.id = any (p_cue_ids);
end $$;
comment on function cue.pause_cues is 'Pauses cues until somebody resumes them.';

-- The caller holds the cue's locks. Executions count when they end, by how they end; fires and replays don't count.
create or replace function cue.count_run(e cue.executions, c cue.cues, p_now timestamptz default now()) returns boolean
language plpgsql security definer as $$
declare
  v_error text := coalesce(e.error_message, e.error, 'unknown');
  v_count int;
  v_times text;
begin
  if c.schedule_type = 'once' or e.triggered_by not in ('schedule', 'chain') then return false; end if;
  if cue.is_success(e.status, e.outcome_success) then
    update cue.cue_runs set failed_runs = 0 where cue_id = c.id and failed_runs > 0;
    return false;
  end if;
  update cue.cue_runs set failed_runs = failed_runs + 1 where cue_id = c.id returning failed_runs into v_count;
  if c.status <> 'active' or v_count < c.on_failure_pause_after then return false; end if;
  v_times := case v_count when 1 then 'once' else format('%s times in a row', v_count) end;
  perform cue.pause_cues(array[c.id], 'failures', format('Failed %s. Last error: %s', v_times, v_error), p_now);
  perform cue.raise_alert(c, 'cue_paused', 'high', format('%s was paused: it failed %s', c.name, v_times),
    jsonb_build_object('failure_count', v_count, 'last_error', v_error), e.id, p_now);
  perform cue.add_job('mails', jsonb_build_object('kind', 'cue_paused', 'account_id', c.account_id, 'execution_id', e.id, 'failures', v_count));
  return true;
end $$;
comment on function cue.count_run is 'Counts failed runs in a row, and pauses the cue at on_failure.pause_after.';

create or replace function cue.with_pause(old cue.cues, c cue.cues, p_repeated boolean, p_now timestamptz) returns cue.cues
language plpgsql immutable as $$
begin
  if c.status <> 'paused' then
    select null, null, null, null into c.paused_at, c.paused_by, c.pause_reason, c.paused_until;
  elsif old.status <> 'paused' or p_repeated then
    c.paused_at := coalesce(old.paused_at, p_now);
    c.paused_by := 'user';
  end if;
  return c;
end $$;
comment on function cue.with_pause is 'Returns a changed cue with what its status says about pauses; p_repeated: a user pauses it, even if it is paused.';

create or replace function cue.ended_pauses(
  p_limit int default 200, p_now timestamptz default now(), p_skip text[] default '{}'
) returns table (
  cue_id text, account_id uuid, version int, paused_until timestamptz, last_slot timestamptz, schedule_type cue.schedule_type, cron text, at timestamptz, timezone text,
  schedule_rules jsonb, calendars bigint[]
)
language plpgsql stable security definer as $$
begin
  return query
  select c.id, c.account_id, r.version, c.paused_until, r.last_slot, c.schedule_type, c.cron, c.at, c.timezone, c.schedule_rules,
         case when c.schedule_rules ? 'exclude_calendars' then cue.revisions_of(c.account_id, c.schedule_rules) end
    from (select q.* from cue.cues q
           where q.paused_until <= p_now and q.deleted_at is null and q.id not in (select unnest(p_skip))
           order by q.paused_until limit p_limit) c
   cross join lateral (select n.version, n.last_slot from cue.cue_runs n where n.cue_id = c.id limit 1) r;
end $$;
comment on function cue.ended_pauses is 'Returns cues whose pause has ended, except those in p_skip, with the input for computing their next run.';

-- Only the engine whose version is still right resumes a cue. Without a next run, a recurring cue completes and a one-time cue stays paused, and so
-- does one for which the plan has no room; both without an end. Rows that are locked are left to the next call.
create or replace function cue.resume_cues(
  p_cue_ids text[], p_versions int[], p_next_runs timestamptz[], p_now timestamptz default now(), p_next_slots timestamptz[] default '{}'
) returns int
language plpgsql security definer as $$
declare
  d record;
  c cue.cues;
  v_moved int := 0;
begin
  for d in select * from unnest(p_cue_ids, p_versions, p_next_runs, p_next_slots) as u (cue_id, version, next_run, next_slot) order by u.cue_id loop
    -- Active cues are counted while the account is locked.
    perform from cue.accounts a
      where a.id = (select r.account_id from cue.cue_runs r where r.cue_id = d.cue_id limit 1) for no key update skip locked;
    continue when not found or cue.lock_free_cues(array[d.cue_id]) = '{}';
    select q.* into c from cue.cues q join cue.cue_runs r on r.cue_id = q.id
     where q.id = d.cue_id and q.deleted_at is null and q.status = 'paused' and q.paused_until <= p_now and r.version = d.version;
    continue when not found;
    if d.next_run is null and c.schedule_type = 'recurring' then
      perform cue.complete_cues(array[c.id], p_now);
    elsif d.next_run is null or not cue.may_resume(c) then
      update cue.cues
         set paused_until = null, paused_by = case when d.next_run is null then paused_by else 'plan' end, updated_at = p_now
       where id = c.id;
      update cue.cue_runs set version = version + 1 where cue_id = c.id;
      perform cue.add_cue_events('cue.updated', array[c.id], p_now);
    else
      update cue.cues
         set status = 'active', paused_at = null, paused_by = null, pause_reason = null, paused_until = null, updated_at = p_now
       where id = c.id;
      update cue.cue_runs set version = version + 1, next_run = d.next_run, next_slot = d.next_slot, failed_runs = 0 where cue_id = c.id;
      perform cue.watch_exclusions(array[c.id], p_now);
      perform cue.wake('cue_due', d.next_run);
      perform cue.record_cue_events(array[c.account_id], 'cue.resumed', array['service'], array[c.id], '{}', p_now);
    end if;
    v_moved := v_moved + 1;
  end loop;
  return v_moved;
end $$;
comment on function cue.resume_cues is 'Resumes cues whose pause has ended, from a next run each; returns the number of pauses ended.';
