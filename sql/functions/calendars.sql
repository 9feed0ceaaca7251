-- Calendars: exclusions that several cues share. Whoever changes a calendar, or computes a cue's next run from one, holds the account's lock, and
-- engines compute again if a cue has changed in between. Locks: the account, then cue_runs.

create or replace function cue.named_calendars(p_account_id uuid, p_names text[]) returns table (name text, revision bigint, dates text[], ranges jsonb)
language sql stable security definer as $$
  select k.name, k.revision, k.dates, k.ranges from cue.calendars k where k.account_id = p_account_id and k.name = any (p_names)
$$;
comment on function cue.named_calendars is 'Returns what computing slots needs of an account''s calendars; those not found are left out.';

create or replace function cue.calendars_by_revision(p_revisions bigint[]) returns table (revision bigint, dates text[], ranges jsonb)
language sql stable security definer as $$
  select k.revision, k.dates, k.ranges from cue.calendars k where k.revision = any (p_revisions)
$$;
comment on function cue.calendars_by_revision is 'Returns calendars for engines; those that have changed since are left out.';

create or replace function cue.revisions_of(p_account_id uuid, p_rules jsonb) returns bigint[]
language sql stable security definer as $$
  select coalesce(array_agg(k.revision), '{}') from cue.calendars k
   where k.account_id = p_account_id and k.name = any (array(select jsonb_array_elements_text(p_rules -> 'exclude_calendars')))
$$;
comment on function cue.revisions_of is 'Returns the revisions of the calendars that a cue''s schedule_rules name.';

-- p_revisions: the revision that was used of each, by name. The caller has locked the account.
create or replace function cue.require_calendars(p_account_id uuid, p_revisions jsonb) returns void
language plpgsql stable security definer as $$
begin
  perform cue.refuse_if(exists (
    select from jsonb_each_text(p_revisions) u
     where not exists (select from cue.calendars k where k.account_id = p_account_id and k.name = u.key and k.revision = u.value::bigint)),
    'QU014', 'A calendar was changed at the same time. Try again.');
end $$;
comment on function cue.require_calendars is 'Raises QU014 if a calendar has changed since its revision was read.';

create or replace function cue.cue_ids_of_calendar(p_account_id uuid, p_name text, p_limit int default null) returns setof text
language sql stable security definer as $$
  select c.id from cue.cues c
   where c.account_id = p_account_id and c.schedule_rules ? 'exclude_calendars' and c.deleted_at is null
     and c.schedule_rules -> 'exclude_calendars' ? p_name
   order by c.id limit p_limit
$$;
comment on function cue.cue_ids_of_calendar is 'Returns the cues that use a calendar.';

-- The first call of a transaction; move_calendar_cues is the second. p_revision: the revision that the caller has read, null for a new calendar.
-- QU033 too many calendars, QU014 changed at the same time.
create or replace function cue.put_calendar(
  p_account_id uuid, p_name text, p_description text, p_dates text[], p_ranges jsonb, p_revision bigint default null, p_now timestamptz default now()
) returns bigint
language plpgsql security definer as $$
declare
  v_revision bigint;
begin
  perform from cue.accounts where id = p_account_id for no key update;
  select revision into v_revision from cue.calendars where account_id = p_account_id and name = p_name;
  perform cue.refuse_if(v_revision is distinct from p_revision, 'QU014', format('Calendar %s was changed at the same time. Try again.', p_name));
  perform cue.refuse_if(v_revision is null and (select count(*) from cue.calendars where account_id = p_account_id) >= 100, 'QU033',
    'Calendar limit reached: 100 per account. Delete one, or add the dates to another.');
  insert into cue.calendars as k (account_id, name, description, dates, ranges, revision, created_at, updated_at)
  values (p_account_id, p_name, p_description, p_dates, p_ranges, nextval('cue.calendar_revisions'), p_now, p_now)
  on conflict (account_id, name) do update
     set description = excluded.description, dates = excluded.dates, ranges = excluded.ranges, revision = excluded.revision, updated_at = excluded.updated_at
  returning revision into v_revision;
  return v_revision;
end $$;
comment on function cue.put_calendar is 'Creates or replaces a calendar and returns its new revision.';

create or replace function cue.delete_calendar(p_account_id uuid, p_name text) returns void
language plpgsql security definer as $$
declare
  v_ids text[];
begin
  perform from cue.accounts where id = p_account_id for no key update;
  perform from cue.calendars where account_id = p_account_id and name = p_name;
  perform cue.refuse_if(not found, 'QU008', format('calendar %s not found', p_name));
  v_ids := array(select cue.cue_ids_of_calendar(p_account_id, p_name, 101));
  perform cue.refuse_if(v_ids <> '{}', 'QU026',
    format('Calendar %s is used by %s. Remove it from their schedule.exclude_calendars first.', p_name, cue.first_names(v_ids)),
    array_to_json(v_ids[1:100])::text);
  delete from cue.calendars where account_id = p_account_id and name = p_name;
end $$;
comment on function cue.delete_calendar is 'Deletes a calendar; QU008 if not found, QU026 if cues use it; the detail is a JSON array of at most 100 of their ids.';

-- Paused cues are computed when they resume, by themselves or not.
create or replace function cue.calendar_cues(p_account_id uuid, p_name text, p_cue_ids text[] default null) returns table (
  cue_id text, version int, next_run timestamptz, next_slot timestamptz, last_slot timestamptz, excluded_at timestamptz,
  schedule_type cue.schedule_type, cron text, timezone text, schedule_rules jsonb
)
language plpgsql stable security definer as $$
begin
  return query
  select c.id, r.version, r.next_run, r.next_slot, r.last_slot, r.excluded_at, c.schedule_type, c.cron, c.timezone, c.schedule_rules
    from cue.cue_ids_of_calendar(p_account_id, p_name) u (id)
   cross join lateral (select q.* from cue.cues q where q.id = u.id limit 1) c
   cross join lateral (select n.* from cue.cue_runs n where n.cue_id = u.id limit 1) r
   where (p_cue_ids is null or u.id = any (p_cue_ids)) and (r.next_run is not null or c.paused_until is not null);
end $$;
comment on function cue.calendar_cues is 'Returns cues whose next run depends on a calendar, with the input for computing it.';

-- Rows with a next run after p_later_than move; the others with a second call, so that no due cue is locked for longer than that takes. A row moves if
-- version and next_run are still those that its new run was computed from; rows that others hold are left to the next call, because a wait could
-- end in a deadlock. An engine may be about to fire a cue that is nearly due, with a following slot computed from the former calendar: a new
-- version makes it look again. The same goes for cues that are about to resume. Returns what is left.
create or replace function cue.move_calendar_cues(
  p_cue_ids text[], p_versions int[], p_expected timestamptz[], p_next_runs timestamptz[], p_next_slots timestamptz[], p_excluded_at timestamptz[],
  p_later_than timestamptz default '-infinity', p_now timestamptz default now()
) returns setof text
language plpgsql security definer as $$
declare
  v_settled text[];
  v_wake timestamptz;
  v_deadline timestamptz;
begin
  with given as materialized (
    select u.*, r.same from unnest(p_cue_ids, p_versions, p_expected, p_next_runs, p_next_slots, p_excluded_at)
             as u (cue_id, version, expected, next_run, next_slot, excluded_at)
     cross join lateral (
       select n.next_run = u.next_run and (n.next_slot, n.excluded_at) is not distinct from (u.next_slot, u.excluded_at)
                and least(n.next_run, n.excluded_at) > p_now + interval '10 seconds' as same
         from cue.cue_runs n
        where n.cue_id = u.cue_id and n.version = u.version and n.next_run is not distinct from u.expected
          and coalesce(n.next_run, 'infinity') > p_later_than limit 1) r),
  held as materialized (
    select g.* from given g
     cross join lateral (
       select from cue.cue_runs n
        where n.cue_id = g.cue_id and n.version = g.version and n.next_run is not distinct from g.expected limit 1 for update skip locked) r
     where g.same is not true),
  moved as (
    update cue.cue_runs r
       set next_run = case when r.refused_from is null then h.next_run else r.next_run end,
           next_slot = case when r.refused_from is null then h.next_slot end,
           excluded_at = h.excluded_at, version = r.version + 1, recomputed = coalesce(r.recomputed, 0) + 1
      from held h where r.cue_id = h.cue_id
    returning r.cue_id, r.next_run, r.excluded_at)
  select array(select g.cue_id from given g where g.same) || array(select m.cue_id from moved m),
         (select min(m.next_run) from moved m), (select min(m.excluded_at) from moved m)
    into v_settled, v_wake, v_deadline;
  perform cue.wake('cue_due', v_wake);
  perform cue.wake('cue_deadline', v_deadline);
  return query select unnest(p_cue_ids) except select unnest(v_settled);
end $$;
comment on function cue.move_calendar_cues is 'Gives cues a next run that was computed from a new calendar; returns those that changed or were locked meanwhile.';
