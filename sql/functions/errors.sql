-- Errors: the dead letters of a time window, grouped. Two failures belong together if status, HTTP status and message are equal, apart from what
-- changes from one to the next: numbers, times, addresses and ids, which are shown as an ellipsis.

-- The HTTP status stays, as it is a part of our own messages; chr(1) takes its place meanwhile.
create or replace function cue.error_pattern(p_message text, p_http_status int) returns text
language sql immutable parallel safe as $$
  select left(replace(regexp_replace(
           regexp_replace(regexp_replace(left(p_message, 500), '\s+', ' ', 'g'), '\m' || coalesce(p_http_status, -1) || '\M', chr(1), 'g'),
           '[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}|\m(?=\w*\d)\w{8,}\M|\m\d+([.,:/TZ+-]+\d+)*Z?', '…', 'g'),
         chr(1), coalesce(p_http_status::text, '')), 200)
$$;
comment on function cue.error_pattern is 'Returns an error message of at most 200 characters, in which numbers, times, addresses and ids are an ellipsis.';

create or replace function cue.error_group(e cue.executions) returns uuid
language sql immutable parallel safe as $$
  select md5(concat_ws(e'\n', e.status, coalesce(e.http_status, 0), cue.error_pattern(coalesce(e.error_message, e.error), e.http_status)))::uuid
$$;
comment on function cue.error_group is 'Returns the group of a failed execution: the same for all with this status, HTTP status and kind of message.';

create or replace function cue.read_errors(
  p_account_id uuid, p_from timestamptz default null, p_to timestamptz default null, p_now timestamptz default now()
) returns table (since timestamptz, total int, groups int, errors jsonb)
language plpgsql stable security definer as $$
declare
  v_from timestamptz;
  v_to timestamptz;
begin
  select w.since, w.until into v_from, v_to from cue.time_window(p_from, p_to, '7 days', p_now) w;
  return query
  with newest as materialized (
    select d.execution_id as id, d.cue_id, d.error_group from cue.dead_letters d
     where d.account_id = p_account_id and d.execution_id >= cue.uuid_v7_floor(v_from) and d.execution_id < cue.uuid_v7_floor(v_to)
     order by d.execution_id desc limit 5000),
  found as materialized (
    select n.id, n.cue_id, n.error_group from newest n
     where n.cue_id in (select x.cue_id from (select distinct y.cue_id from newest y) x
                         cross join lateral (select from cue.cues q where q.id = x.cue_id and q.deleted_at is null limit 1) c)),
  grouped as materialized (
    select f.error_group, count(*)::int as count, count(distinct f.cue_id)::int as cues, min(f.id::text)::uuid as first_id,
           max(f.id::text)::uuid as last_id
      from found f group by f.error_group),
  most as (select * from grouped g order by g.count desc, g.last_id desc limit 100)
  select case when (select count(*) from newest) = 5000
              then (select e.created_at from cue.executions e where e.id = (select min(n.id::text)::uuid from newest n)) else v_from end,
         (select count(*)::int from found), (select count(*)::int from grouped),
         coalesce((
           select jsonb_agg(jsonb_build_object('error_group', m.error_group, 'status', l.status, 'http_status', l.http_status,
                    'message', cue.error_pattern(l.message, l.http_status), 'count', m.count, 'cues', m.cues,
                    'first_at', cue.iso(f.ended_at), 'last_at', cue.iso(l.ended_at),
                    'latest', jsonb_build_object('execution_id', m.last_id, 'cue_id', l.cue_id, 'cue_name', l.name,
                                                 'error_message', left(l.message, 500)))
                    order by m.count desc, m.last_id desc)
             from most m
            cross join lateral (select e.ended_at from cue.executions e where e.id = m.first_id limit 1) f
            cross join lateral (
              select e.status, e.http_status, coalesce(e.error_message, e.error) as message, e.ended_at, e.cue_id, c.name
                from cue.executions e join cue.cues c on c.id = e.cue_id where e.id = m.last_id limit 1) l), '[]');
end $$;
comment on function cue.read_errors is 'Returns up to 100 groups of an account''s newest 5,000 dead letters, by error.';
