-- Schedules that cues share. A look reads the definition of one cue for all that have the same key.

-- All that a look reads of a cue. Cues with schedule_rules share none: their counters, calendars and windows are their own. Nobody can make a key
-- that another schedule has.
create or replace function cue.schedule_key(c cue.cues) returns uuid
language sql stable as $$
  select encode(substring(sha256(convert_to(
    row(c.schedule_type, c.cron, c.timezone, c.catch_up, c.alert_missed_window_multiplier, case when c.schedule_rules is not null then c.id end)::text,
    'UTF8')) for 16), 'hex')::uuid
$$;
comment on function cue.schedule_key is 'Returns what cues have in common whose due slots and windows are computed alike.';

create or replace function cue.keep_schedule_key() returns trigger
language plpgsql security definer as $$
begin
  update cue.cue_runs set schedule_key = cue.schedule_key(new) where cue_id = new.id;
  return null;
end $$;
comment on function cue.keep_schedule_key is 'Changes a cue''s key with its schedule, also if that is changed by hand.';

-- Not in a migration, because it needs the function. Creating it again would lock the table.
do $$
begin
  if not exists (select from pg_trigger where tgrelid = 'cue.cues'::regclass and tgname = 'keep_schedule_key') then
    create trigger keep_schedule_key after update on cue.cues for each row
      when (cue.schedule_key(new) <> cue.schedule_key(old)) execute function cue.keep_schedule_key();
  end if;
end $$;
