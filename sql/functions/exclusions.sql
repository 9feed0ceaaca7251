-- Excluded slots. They don't run and are no part of next_run; excluded_at is an instant up to which they are recorded, at or before the next one.

-- The caller has locked the cues' cue_runs.
create or replace function cue.watch_exclusions(p_cue_ids text[], p_now timestamptz) returns void
language plpgsql security definer as $$
begin
  update cue.cue_runs r set excluded_at = case when n.watched then date_trunc('milliseconds', p_now) + interval '1 millisecond' end
    from cue.cues c cross join lateral (select c.status = 'active' and coalesce(c.schedule_rules ?| '{exclude,exclude_calendars}', false) as watched) n
   where r.cue_id = any (p_cue_ids) and c.id = r.cue_id and (n.watched or r.excluded_at is not null);
  if found then perform cue.wake('cue_deadline', p_now); end if;
end $$;
comment on function cue.watch_exclusions is 'Starts recording the excluded slots of active cues from now on, and ends it for others.';

create or replace function cue.passed_exclusions(p_limit int default 200, p_now timestamptz default now(), p_skip text[] default '{}') returns table (
  cue_id text, account_id uuid, version int, excluded_at timestamptz, schedule_type cue.schedule_type, cron text, timezone text, schedule_rules jsonb, calendars bigint[]
)
language plpgsql stable security definer as $$
begin
  return query
  select r.cue_id, r.account_id, r.version, r.excluded_at, c.schedule_type, c.cron, c.timezone, c.schedule_rules,
         case when c.schedule_rules ? 'exclude_calendars' then cue.revisions_of(c.account_id, c.schedule_rules) end
    from (select n.* from cue.cue_runs n
           where n.excluded_at <= p_now and n.cue_id not in (select unnest(p_skip)) order by n.excluded_at limit p_limit) r
   cross join lateral (select q.* from cue.cues q where q.id = r.cue_id limit 1) c;
end $$;
comment on function cue.passed_exclusions is 'Returns cues that may have had excluded slots, except those in p_skip, with the input for computing them.';

-- p_cues: an array of {cue_id, version, expected, next, stretches: [{first, last, count, follows}]}. A stretch goes on in the same row if it follows
-- the last slot of the latest row. A cue that changed since the caller read it is skipped.
create or replace function cue.record_exclusions(p_cues jsonb, p_now timestamptz default now()) returns int
language plpgsql security definer as $$
declare
  d record;
  c cue.cues;
  v_count int := 0;
begin
  for d in
    select * from jsonb_to_recordset(p_cues)
      as u (cue_id text, version int, expected timestamptz, next timestamptz, stretches jsonb) order by u.cue_id
  loop
    continue when cue.lock_free_cues(array[d.cue_id]) = '{}';
    update cue.cue_runs r set excluded_at = d.next where r.cue_id = d.cue_id and r.version = d.version and r.excluded_at = d.expected;
    continue when not found;
    v_count := v_count + 1;
    select q.* into c from cue.cues q where q.id = d.cue_id;
    perform cue.note_missed_slots(c, 'excluded', s.first, s.last, s.count, s.follows, p_now) from (
      select * from jsonb_to_recordset(d.stretches) as u (first timestamptz, last timestamptz, count int, follows timestamptz)
       order by u.first) s;
  end loop;
  return v_count;
end $$;
comment on function cue.record_exclusions is 'Records excluded slots that have passed, one row for each stretch of them; returns the number of cues moved.';
